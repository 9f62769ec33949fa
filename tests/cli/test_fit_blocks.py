"""``maxmargin fit`` and its neighbours on several files, and on files larger than ``--memory``."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.cli import fit as fitting
from maxmargin.rows.reading import counted_reading, describe_reading
from tests.cli.conftest import Run

RunJson = Callable[..., Any]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 3)) * [1, 100, 0.1] + [0, 5, 0]
WORDS = np.where(X[:, 0] + 0.01 * X[:, 1] + RNG.normal(0, 0.3, 3000) > 0, "yes", "no")
PRICE = np.round(50 + 3 * X[:, 0] - 0.02 * X[:, 1] + RNG.normal(0, 0.2, 3000), 3)


def write_parquet(path: Path, X: Any, y: Any, names: tuple[str, ...] = ("a", "b", "c")) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {names[0]: X[:, 0], "y": y, names[1]: X[:, 1], names[2]: X[:, 2]}
    pq.write_table(pa.table(table), path, row_group_size=300)


def write_csv(path: Path, X: Any, y: Any) -> None:
    rows = [f"{a!r},{label},{b!r},{c!r}" for (a, b, c), label in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(["a,y,b,c", *rows, ""]))


def write_svmlight(path: Path, X: Any, y: Any) -> None:
    rows = zip(X.tolist(), np.where(y == "yes", 1, -1), strict=True)
    path.write_text("".join(f"{label} 1:{a!r} 3:{c!r}\n" for (a, _, c), label in rows))


def write_files(folder: Path, write: Any, ending: str, y: Any = WORDS) -> list[str]:
    """Write three files, and one with all of their rows, and return the three names."""
    for k in range(3):
        rows = slice(1000 * k, 1000 * (k + 1))
        write(folder / f"part-{k}.{ending}", X[rows], y[rows])
    (folder / "all").mkdir()
    write(folder / "all" / f"whole.{ending}", X, y)
    return [f"part-{k}.{ending}" for k in range(3)]


@pytest.fixture
def parts(tmp_path: Path) -> list[str]:
    """Three Parquet files."""
    return write_files(tmp_path, write_parquet, "parquet")


# What is fitted.


@pytest.mark.parametrize(
    ("write", "ending"),
    [(write_parquet, "parquet"), (write_csv, "csv"), (write_svmlight, "svm")],
)
def test_the_model_is_that_of_one_file(
    run_json: RunJson, run: Run, tmp_path: Path, write: Any, ending: str
) -> None:
    files = write_files(tmp_path, write, ending)
    scale = ["--scale", "standard"] if ending != "svm" else ["--scale", "none"]
    words = ["--model", "linear-svc", *scale]
    found = run_json("fit", *files, *words, "-o", "blocks.mmg")
    whole = run_json("fit", f"all/whole.{ending}", *words, "-o", "whole.mmg")
    assert set(found) == {*whole, "passes", "bytes_read"}
    assert set(found["data"]) == {*whole["data"], "files", "parts"}
    assert found["certificate"]["holds"]
    assert found["certificate"]["primal"] == pytest.approx(whole["certificate"]["primal"], rel=1e-9)
    assert found["model"] == whole["model"]
    assert found["data"]["rows"] == whole["data"]["rows"] == 3000
    assert (found["data"]["columns"], found["data"]["label"]) == (
        whole["data"]["columns"],
        whole["data"]["label"],
    )
    assert found["passes"] > 0
    assert found["bytes_read"] > 0
    expected = run("predict", "whole.mmg", f"all/whole.{ending}").stdout
    assert run("predict", "blocks.mmg", *files).stdout == expected
    assert run("predict", "blocks.mmg", f"part-*.{ending}").stdout == expected
    scored = run_json("predict", "blocks.mmg", *files, "--score")
    assert scored["scores"]["accuracy"]["value"] > 0.7
    proved = run_json("certify", "blocks.mmg", f"all/whole.{ending}")
    assert proved["certificate"]["holds"]
    assert proved["rows"] == 3000


def test_regression_has_the_defaults_of_one_file(run_json: RunJson, tmp_path: Path) -> None:
    files = write_files(tmp_path, write_csv, "csv", PRICE)
    found = run_json("fit", *files, "--label", "y", "-o", "m.mmg")
    whole = run_json("fit", "all/whole.csv", "--label", "y", "--model", "linear-svr")
    assert found["data"]["task"] == "regression"
    assert found["model"] == whole["model"]
    assert found["certificate"]["primal"] == pytest.approx(whole["certificate"]["primal"], rel=1e-9)
    assert run_json("certify", "m.mmg", *files)["certificate"]["holds"]


def test_one_file_within_so_much_memory(run: Run, run_json: RunJson, parts: list[str]) -> None:
    words = ["fit", "all/whole.parquet", "--label", "y", "--memory", "3MB"]
    said = run(*words)
    assert said.exit_code == 0, said.output
    for heading in ("data", "read in", "classes", "model", "stopped", "certificate", "saved"):
        assert heading in said.stdout
    assert "whole.parquet: Parquet, label column 'y'" in said.stdout
    assert "passes over the rows" in said.stdout
    assert Path("whole.mmg").exists()
    weighted = run_json(*words, "--class-weight", "balanced", "-o", "m.mmg")
    assert "balanced" in weighted["model"]
    assert mm.load("m.mmg")[-1].class_weight == "balanced"


def test_a_folder_gives_the_model_its_name(run_json: RunJson, parts: list[str]) -> None:
    found = run_json("fit", "all", "--scale", "none")
    assert found["saved"] == "all.mmg"
    assert found["data"]["files"] == ["all/whole.parquet"]
    assert type(mm.load("all.mmg")).__name__ == "LinearSVC"


def test_more_rows_than_memory_with_a_checkpoint(run_json: RunJson, tmp_path: Path) -> None:
    many = np.tile(X, (40, 1)) + RNG.normal(0, 0.01, (120_000, 3))
    write_parquet(tmp_path / "many.parquet", many, np.tile(WORDS, 40))
    words = ["fit", "many.parquet", "--label", "y", "--checkpoint", "kept", "--tol", "0.01"]
    found = run_json(*words, "--memory", "5MB")
    assert found["certificate"]["holds"]
    assert found["bytes_read"] >= many.nbytes
    assert not list(Path("kept").rglob("*.*"))


def test_ctrl_c_saves_what_was_reached(
    run: Run, parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from maxmargin.solvers.newton import Newton

    iterates = Newton.iterates

    def interrupted(self: Newton, *given: Any) -> Iterator[Any]:
        for k, iterate in enumerate(iterates(self, *given)):
            if k == 4:
                raise KeyboardInterrupt
            yield iterate

    monkeypatch.setattr(Newton, "iterates", interrupted)
    said = run("fit", *parts, "-o", "m.mmg")
    assert said.exit_code == 130
    assert "Interrupted: saving what was reached to m.mmg" in said.stderr
    assert mm.load("m.mmg").predict(X).shape == (3000,)


def test_columns_may_stand_in_another_order_later(run: Run, parts: list[str]) -> None:
    run("fit", *parts, "-o", "m.mmg")
    Path("new.csv").write_text("c,b,a\n0,5,3\n0,5,-3\n")
    assert run("predict", "m.mmg", "new.csv").stdout == "yes\nno\n"


def test_lines_say_how_much_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    with counted_reading() as readers:
        mm.LinearSVC(verbose=1).fit(mm.data.open(X, WORDS, rows=500))
        lines = capsys.readouterr().out.splitlines()
        assert all(" pass" in line and line.endswith(" read") for line in lines)
        assert f"{readers[0].passes} passes, " in describe_reading()
    del readers
    gc.collect()
    assert describe_reading() == ""  # the rows are not there any more
    mm.LinearSVC(verbose=1).fit(X[:100], WORDS[:100])
    assert "read" not in capsys.readouterr().out


# What is refused.


def refused(run: Run, *words: str, code: int = 1) -> str:
    """Return what is said when a fit is refused; nothing is saved."""
    said = run("fit", *words, "-o", "m.mmg")
    assert said.exit_code == code, said.output
    assert not Path("m.mmg").exists()
    return " ".join(said.stderr.split())


def test_a_part_that_is_not_a_number_is_named(run: Run, parts: list[str], tmp_path: Path) -> None:
    rows = X[1000:2000].copy()
    rows[701, 1] = np.nan
    write_parquet(tmp_path / "part-1.parquet", rows, WORDS[1000:2000])
    said = refused(run, *parts)
    assert "part 6 (part-1.parquet, row group 2): column 'b' has nan in row 701" in said


def test_other_columns_are_named(run: Run, parts: list[str], tmp_path: Path) -> None:
    write_parquet(tmp_path / "part-2.parquet", X[2000:], WORDS[2000:], ("a", "b", "d"))
    said = refused(run, *parts)
    assert "part 8 (part-2.parquet" in said
    assert "it has no column 'c'" in said


def test_a_file_that_vanishes_is_named(
    run: Run, parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standardize = mm.data.standardize

    def then_vanish(source: Any) -> Any:
        view = standardize(source)
        (tmp_path / "part-2.parquet").unlink()
        return view

    monkeypatch.setattr(fitting, "standardize", then_vanish)
    said = refused(run, *parts)
    assert "part 8 (part-2.parquet" in said
    assert "is not there any more" in said


def test_labels_are_needed(run: Run, parts: list[str], tmp_path: Path) -> None:
    said = refused(run, *parts, "--label", "z")
    assert "part-0.parquet: no column is named 'z' (a, y, b, c)" in said
    write_csv(tmp_path / "part-9.csv", X[:20], [*WORDS[:19], ""])
    said = refused(run, "part-9.csv", "--memory", "1GB", "--label", "a", "--task", "classification")
    assert "holds words" in said
    said = refused(run, *parts, "--label", "a", "--task", "regression")
    assert "column 'y' holds what is no number" in said


def test_texts_and_flags_are_no_labels(run: Run, tmp_path: Path) -> None:
    write_parquet(tmp_path / "names.parquet", X[:50], [f"name {k}" for k in range(50)])
    assert "these are texts or names" in refused(run, "names.parquet", "--memory", "1GB")
    write_parquet(tmp_path / "flags.parquet", X[:50], WORDS[:50] == "yes")
    assert "store it as 0 and 1" in refused(run, "flags.parquet", "--memory", "1GB")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--test", "0.3"], "--test is not for rows in blocks"),
        (["--model", "svc"], "For kernels, fit PartitionedSVC in Python, or Nystroem"),
        (["--scale", "minmax"], "--scale minmax is not for rows in blocks"),
        (["--memory", "much"], "'much' is no amount of memory"),
        (["--insecure"], "--insecure is for --cluster"),
        (["--cluster", "tcp://192.0.2.1:8786"], "is another machine without TLS"),
        (["-"], "Standard input (-) comes once"),
    ],
)
def test_wrong_usage(run: Run, parts: list[str], words: list[str], message: str) -> None:
    assert message in refused(run, *parts, *words, code=2)


def test_what_needs_all_rows_in_memory_says_so(run: Run, parts: list[str]) -> None:
    said = refused(run, *parts, "--model", "linear-svc", "--param", "penalty=l1")
    assert "penalty='l1' needs all rows in memory" in said
    assert "set penalty='l2', or fit to arrays" in said


def test_several_files_need_a_name(run: Run, parts: list[str]) -> None:
    for words in (parts, ["part-*.parquet"]):
        said = run("fit", *words)
        assert said.exit_code == 2
        assert "say where with -o MODEL" in said.stderr
    said = run("fit", "nothing-*.parquet", "-o", "m.mmg")
    assert said.exit_code == 1
    assert "no file matches 'nothing-*.parquet'" in said.stderr


def test_a_label_by_its_number(run_json: RunJson, parts: list[str]) -> None:
    assert run_json("fit", *parts, "--label", "2", "-o", "m.mmg")["data"]["label"] == "y"
    assert run_json("fit", *parts, "--label", "9", "-o", "m.mmg", code=1)["error"]["message"]
