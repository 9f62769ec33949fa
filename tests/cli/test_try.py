"""The command line: the main job from end to end, and sentences instead of tracebacks."""

import html
import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner, Result

import maxmargin as mm
from maxmargin.cli import main, printing, reading, trial
from maxmargin.diagnosis import automatic
from maxmargin.reports import context
from maxmargin.runtime import clock


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["try", "--no-report", *map(str, arguments)])


def invoke_with_report(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["try", *map(str, arguments)])


@pytest.fixture
def seconds_of_a_look() -> float:
    """How far the clock goes on whenever somebody looks at it."""
    return 0.0


@pytest.fixture(autouse=True)
def patient_clock(monkeypatch: pytest.MonkeyPatch, seconds_of_a_look: float) -> None:
    """Let no answer depend on how busy the machine is: the clock stands still, or counts looks."""
    looks = itertools.count()
    monkeypatch.setattr(clock, "now", lambda: next(looks) * seconds_of_a_look)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    rows = [f"{i % 7},{i * 1000},{'yes' if i % 7 > 3 else 'no'}" for i in range(60)]
    path.write_text("\n".join(["small,large,label", *rows]))
    return path


def test_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", "try", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "FILE is svmlight" in done.stdout


def test_bundled_data_end_to_end() -> None:
    result = invoke()
    assert result.exit_code == 0, result.output
    assert "569 × 30" in result.output
    assert "Training on 398 rows, testing on 171." in result.output
    steps = ["Diagnosis", "Verdict: ", "Use: ", "Search", "Fit", "How good", "Certificate"]
    places = [result.output.index(step) for step in steps]
    assert places == sorted(places)
    assert max(map(len, result.output.splitlines())) <= printing.PIPE_WIDTH
    figures = dict(
        re.findall(r"^    (accuracy|balanced accuracy|AUC) +([\d.]+)%", result.output, re.M)
    )
    assert set(figures) == {"accuracy", "balanced accuracy", "AUC"}
    assert all(float(figure) > 90 for figure in figures.values())
    assert "says malignant" in result.output
    assert "of the best possible" in result.output


def test_seed_decides_everything(table: Path) -> None:
    first, second = invoke(table, "--seed", 3), invoke(table, "--seed", 3)
    assert first.exit_code == 0
    assert _untimed(first.output) == _untimed(second.output)


def _untimed(output: str) -> list[str]:
    return re.sub(r"\[[\d.]+ s\]", "", output).split()


def test_a_table_is_diagnosed_searched_and_fitted(table: Path) -> None:
    said = " ".join(invoke(table).output.split())
    assert "label column 'label'" in said
    assert "Verdict: linearly separable" in said
    assert "accuracy 100.00%" in said


def test_a_regression_is_diagnosed_fitted_reported_and_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    size, town = rng.uniform(30, 200, 90), rng.choice(["Rome", "Oslo", "Bonn"], 90)
    price = 2500 * size + 50_000 * (town == "Oslo") + 8000 * rng.normal(size=90)
    price_of = ["" if i == 7 else f'"${price[i]:,.0f}"' for i in range(90)]
    rows = [f"{i},{size[i]:.1f},{town[i]},{price_of[i]}" for i in range(90)]
    path = tmp_path / "houses.csv"
    path.write_text("\n".join(["id,size,town,price", *rows]))
    place = tmp_path / "report.html"
    result = invoke_with_report(path, "--report", place)
    said = " ".join(result.output.split())
    assert result.exit_code == 0, result.output
    assert "task regression: the label has 89 different numbers" in said
    assert "Currency signs in column 'price' are dropped." in said
    assert "Verdict: linear" in said
    assert all(f"{rung}: " in said for rung in ("planes", "kernels"))
    assert "of the best possible" in said
    r2, mae = re.findall(r"(?:R²|mean absolute error) +([\d.,]+) +[\d.,]+ to", result.output)
    text = place.read_text(encoding="utf-8")
    assert "The label, &#x27;price&#x27;, goes from" in text
    assert "Residuals" in text
    program = re.search("<pre.*?><code>(.*?)</code>", text, re.S)
    assert program is not None
    exec(html.unescape(program[1]), {})
    again = capsys.readouterr().out
    assert f"R²: {float(r2):.4g}" in again
    assert float(again.split()[-1]) == pytest.approx(float(mae.replace(",", "")), rel=1e-3)
    model = mm.load(place.with_suffix(".mmg"))
    assert np.isfinite(model.predict(np.array([[100.0, "Rome"]], dtype=object))).all()


def test_many_rows_are_sampled_openly(rings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "SEARCHED_ROWS", 100)
    said = " ".join(invoke(rings).output.split())
    assert "fitted to 100 sampled rows, scored on 200 others: best C=" in said


def test_models_without_a_cost_are_not_searched(tmp_path: Path) -> None:
    path = tmp_path / "conflicts.csv"
    rows = [f"{i % 3},{i % 2}" for i in range(120)]
    path.write_text("\n".join(["a,y", *rows]))
    said = " ".join(invoke(path).output.split())
    assert "Certificate" in said
    assert "accuracy" in said


NUMBERS = "".join(f"{i * i % 97}.5,{i * 7 % 31}.5\n" for i in range(30))


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (None, [], "there is no file"),
        ("", [], "empty"),
        (f"b,y\n{NUMBERS}red,2\n", [], "a.csv:32: column 1 (b): 'red'"),
        (f"b,price\n{NUMBERS}", ["--task", "classification"], "say --task regression"),
        ("a,y\n" + "1,u\n2,v\n" * 50 + "3,w\n3,w\n", ["--test", "0.1"], "no test row has"),
        ("a,y\n" + "1,u\n2,v\n" * 9 + "3,w\n", [], "too few members are: ['w']"),
        ("a,y\n" + "".join(f"{i},so {i % 29}\n" for i in range(40)), [], "column with --label"),
        ("a,y\n1,2\n", ["--label", "z"], "no column is named 'z'"),
        ("a,y\n1,2\n3,2\n", [], "nothing to learn"),
        ("a,y\n1,2.5\n3,3.5\n", [], "8 are needed"),
        ("a,y\n" + "1,u\n2,v\n" * 3, ["--test", "0.01"], "Choose another --test"),
        ("1 5000000000:1\n2 1:1\n", [], "do not fit in memory"),
        ("a,y\n1,2\n", ["--test", "1"], "--test"),
        ("a,y\n1,2\n", ["--seed", "-1"], "--seed"),
    ],
)
def test_bad_input_is_a_sentence(
    tmp_path: Path, content: str | None, arguments: list[str], words: str
) -> None:
    path = tmp_path / ("a.svm" if content and ":" in content else "a.csv")
    if content is not None:
        path.write_text(content)
    result = invoke(path, *arguments)
    assert result.exit_code in (1, 2)
    assert isinstance(result.exception, SystemExit)
    assert words in result.output


def test_label_without_a_file_is_refused() -> None:
    assert "there is no FILE" in invoke("--label", "y").output


# The report.


def test_a_report_is_written_and_told(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "my report.html"
    path.write_text("old")
    result = invoke_with_report(table, "--report", path)
    assert result.exit_code == 0, result.output
    assert "open it in a browser" in " ".join(result.output.split())
    page = path.read_text(encoding="utf-8")
    for words in ("table.csv", "small", "What is proved", "test rows", "yes"):
        assert words in page
    assert "could not be drawn" not in page
    written = sorted(entry.name for entry in tmp_path.iterdir())
    assert written == ["my report.html", "my report.mmg", "table.csv"]
    model = mm.load(tmp_path / "my report.mmg")
    assert model.predict([[6.0, 1000.0]]) == ["yes"]


@pytest.fixture
def quick_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Run in a folder of its own, where a report is but a file."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(trial, "write_page", lambda path, *_, **__: path.write_text("new"))
    return folder


def test_reports_have_fresh_names_by_default(table: Path, quick_report: Path) -> None:
    (quick_report / "maxmargin-report.html").write_text("mine")
    for _ in range(2):
        assert invoke_with_report(table).exit_code == 0
    found = {entry.name: entry.read_text() for entry in quick_report.glob("*.html")}
    assert found == {
        "maxmargin-report.html": "mine",
        "maxmargin-report-2.html": "new",
        "maxmargin-report-3.html": "new",
    }


def test_rows_are_predicted_once_for_figures_and_report(
    table: Path, quick_report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    score_part = context.score_part

    def counting(name: str, *given: Any) -> Any:
        seen.append(name)
        return score_part(name, *given)

    monkeypatch.setattr(context, "score_part", counting)
    assert invoke_with_report(table).exit_code == 0
    assert sorted(seen) == ["test", "training"]


def test_links_to_nowhere_are_not_followed(quick_report: Path) -> None:
    (quick_report / "maxmargin-report.html").symlink_to(quick_report / "elsewhere.html")
    assert trial.find_free_path(quick_report).name == "maxmargin-report-2.html"


def test_no_report_is_none(table: Path, quick_report: Path) -> None:
    result = invoke_with_report(table, "--no-report")
    assert result.exit_code == 0
    assert "Report" not in result.output
    assert not list(quick_report.iterdir())


def test_a_report_that_cannot_be_written_is_a_sentence(
    table: Path, quick_report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError("read-only folder")

    monkeypatch.setattr(trial, "write_page", refuse)
    default = invoke_with_report(table)
    assert default.exit_code == 0
    assert "read-only folder" in default.output
    assert "--report PATH" in default.output
    assert invoke_with_report(table, "--report", "x.html").exit_code == 1


@pytest.mark.parametrize("error", [ValueError("two numbers"), OSError("disk full")], ids=repr)
def test_a_model_that_cannot_be_saved_leaves_the_page_and_a_sentence(
    table: Path, quick_report: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(mm, "save", refuse)
    result = invoke_with_report(table, "--report", "x.html")
    assert result.exit_code == 0
    said = " ".join(result.output.split())
    assert "x.html has all this and more" in said
    assert f"The model could not be saved: {error}" in said
    assert [entry.name for entry in quick_report.iterdir()] == ["x.html"]


def test_impossible_reports_are_refused_before_the_work(table: Path, tmp_path: Path) -> None:
    nowhere = invoke_with_report(table, "--report", tmp_path / "none" / "x.html")
    assert nowhere.exit_code == 1
    assert "no such folder" in nowhere.output
    assert "Diagnosis" not in nowhere.output
    assert "exclude each other" in invoke_with_report("--report", "x", "--no-report").output
    assert "is a directory" in invoke_with_report(table, "--report", tmp_path).output


# The rows, and where they are in the file.


def test_rows_of_both_parts_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = ["size,city,label", ""]
    lines += [f"{i / 7},{'uvw'[i % 3]},{'' if i % 9 == 0 else i % 2}" for i in range(90)]
    path.write_text("\n".join(lines))
    data = reading.read_data([str(path)])
    parts = reading.split_rows(data.y, data.task, 0.3, 0)
    for part in (data.take(rows).rows for rows in parts):
        assert len(part.X) == len(part.y) == len(part.numbers) > 0
        for row, label, number in zip(part.X, part.y, part.numbers, strict=True):
            size, city, written = lines[number - 1].split(",")
            assert (float(size), city, int(written)) == (row[0], row[1], label)
    assert len({*parts[0], *parts[1]}) == 80


def test_bundled_rows_have_numbers() -> None:
    data = trial.read_bundled(None)
    assert data.rows.numbers.tolist() == list(range(569))
    assert data.rows.numbered == "row"


def test_a_guessed_label_is_no_warning_but_a_remark(tmp_path: Path) -> None:
    path = tmp_path / "wine.data"
    path.write_text("\n".join(f"{i % 3},{np.sin(i)},{np.cos(i)}" for i in range(60)))
    data = reading.read_data([str(path)])
    assert set(data.y) == {0, 1, 2}
    assert "Column 1 is taken as the label" in data.remarks[0]


# Facts about the data.


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_facts_do_not_depend_on_storage(make: Any) -> None:
    X = make(np.array([[0.0, 5, 1e-3], [0, 5, 2e-3], [-0.0, 5, 1e-3], [0, 5, 1e-3]]))
    y = np.array([1, 2, 2, 1])
    said = dict(reading.describe_rows(X, y))
    assert said["rows × columns"] == "4 × 3, 66.67% nonzero"
    assert said["classes"] == "1: 2, 2: 2"
    said = dict(reading.describe_rows(make(np.ones((4, 3))), y))
    assert said["rows × columns"] == "4 × 3"


def test_facts_count_words_and_missing_cells() -> None:
    X = np.array([[1.0, "a"], [np.nan, None]], dtype=object)
    assert (
        dict(reading.describe_rows(X, [0, 1]))["rows × columns"]
        == "2 × 2, words in 1 column, 50.00% missing"
    )
    X = np.array([[1.0, 0.0], [np.nan, 2.0]])
    assert (
        dict(reading.describe_rows(X, [0, 1]))["rows × columns"]
        == "2 × 2, 75.00% nonzero, 25.00% missing"
    )


def test_many_classes_are_counted_not_listed() -> None:
    assert "(30 in all)" in dict(reading.describe_rows(np.ones((30, 1)), np.arange(30)))["classes"]


# Many rows, within the time.


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    path = tmp_path / "rings.csv"
    X, y = mm.datasets.circles(600, random_state=0)
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", fmt="%.6g")
    return path


def test_where_an_exact_machine_takes_too_long_a_map_takes_its_place(
    rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = " ".join(invoke(rings).output.split())
    assert "SVC(" in said
    assert "Nystroem" not in said
    monkeypatch.setattr(automatic, "KERNEL_WORK", 1.0)
    said = " ".join(invoke(rings).output.split())
    assert "SVC on 420 rows would take longer than --max-time 30." in said
    assert "these features and a plane replace it" in said
    assert "Nystroem(" in said
    assert "accuracy 100.00%" in said


def test_where_a_map_is_worse_the_kernel_is_fitted_to_some_of_the_rows(
    rings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(automatic, "KERNEL_WORK", 1.0)
    monkeypatch.setattr(automatic, "MAP_FEATURES", (2, 2))
    monkeypatch.setattr(automatic, "SEARCHED_ROWS", 200)
    scripts = []
    monkeypatch.setattr(trial, "write_page", lambda *_, script: scripts.append(script))
    output = invoke_with_report(rings, "--report", rings.with_suffix(".html")).output
    said = " ".join(output.split())
    assert "the kernel is kept, and fitted to 200 of the rows" in said
    assert "Nystroem" not in said.split("the kernel is kept")[1]
    figures = re.findall(
        r"^    (accuracy|AUC) +([\d.]+)%", output.split("How good is it?")[1], re.M
    )
    assert [name for name, _ in figures] == ["accuracy", "AUC"]
    assert all(float(figure) > 90 for _, figure in figures)
    exec(scripts[0], {})
    printed = capsys.readouterr().out
    assert all(f"{name}: {figure}%" in printed for name, figure in figures)


@pytest.mark.parametrize("seconds_of_a_look", [0.15])
def test_a_diagnosis_without_time_does_not_end_in_a_plane(rings: Path) -> None:
    said = " ".join(invoke(rings).output.split())
    assert "Verdict: undecided" in said
    assert "The diagnosis had no time to compare planes with RBF kernels" in said
    assert "no signal" not in said
    assert "Dummy" not in said
    accuracy = re.search(r"accuracy ([\d.]+)%", said.split("How good is it?")[1])
    assert accuracy is not None
    assert float(accuracy[1]) > 90


def test_words_gaps_and_dates_go_through_a_pipeline_that_is_shown_and_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    age, city = rng.integers(18, 80, 200), rng.choice(["Rome", "Oslo", "Bern"], 200)
    risk = np.where(age + 20 * (city == "Oslo") > 60, "high", "low")
    cells = ["" if k % 17 == 3 else str(a) for k, a in enumerate(age)]
    towns = ["" if k % 29 == 5 else c for k, c in enumerate(city)]
    lines = [f"{k},{a},{c},{r}" for k, (a, c, r) in enumerate(zip(cells, towns, risk, strict=True))]
    (tmp_path / "people.csv").write_text("\n".join(["id,age,city,risk", *lines]))
    monkeypatch.chdir(tmp_path)
    result = invoke_with_report("people.csv")
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "'id'" in said
    assert "OneHotEncoder" in said
    assert "The 2 columns become 5 columns of numbers." in said
    page = Path("maxmargin-report.html").read_text()
    assert "city_missing" in page
    assert "city_None" not in page
    assert "Preprocessing turns the 2 columns into 5" in page
    exec(html.unescape(re.findall(r"<pre><code>(.*?)</code>", page, re.S)[-1]), {})
    figure = re.search(r"    accuracy +([\d.]+%)", result.output)
    assert figure is not None
    assert f"\naccuracy: {figure[1]}\n" in f"\n{capsys.readouterr().out}"
    assert "Beware: Columns are uneven: column 'age'" in said
    model = mm.load("maxmargin-report.mmg")
    asked = np.array([[79.0, "Oslo"], [18.0, "Bern"], [np.nan, "Paris"]], dtype=object)
    assert model.predict(asked).tolist()[:2] == ["high", "low"]


@pytest.mark.parametrize("seconds_of_a_look", [1.0])
def test_time_that_runs_out_is_named(table: Path) -> None:
    said = " ".join(invoke(table, "--time", 0.001).output.split())
    assert "Verdict: undecided" in said
    assert "no signal" not in said
    assert "raise max_time" in said
    assert "DummyClassifier" not in said
