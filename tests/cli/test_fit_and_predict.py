"""Models from files: fitted, saved, predicted with, scored, shown."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.cli.options import KERNELS
from maxmargin.kernels import as_kernel
from tests.cli.conftest import Run


def column(path: Path, name: str) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def test_fit_saves_pipeline_certificate_and_columns(run: Run, people: Path, tmp_path: Path) -> None:
    result = run("fit", people.name)
    assert result.exit_code == 0, result.output
    assert "The objective" in result.stdout
    assert "saved           Leute über 18.mmg" in result.stdout
    model, layout, _ = mm.files.load_described(tmp_path / "Leute über 18.mmg")
    assert model[-1].certificate_.holds(model[-1].tol)
    assert layout.label_name == "risk"
    assert [type(step).__name__ for step in model] == ["ColumnTransformer", "StandardScaler", "SVC"]


def test_predictions_are_those_of_the_library_for_columns_in_any_order_without_label(
    run: Run, people: Path, tmp_path: Path
) -> None:
    run("fit", people.name, "-o", "m.mmg")
    result = run("predict", "m.mmg", people.name)
    labelled = mm.data.read_labelled(people)
    assert result.stdout.splitlines() == mm.load("m.mmg").predict(labelled.X).tolist()
    assert result.stderr == ""
    with people.open(encoding="utf-8", newline="") as file:
        rows = [{k: v for k, v in row.items() if k != "risk"} for row in csv.DictReader(file)]
    later = io.StringIO()
    writer = csv.DictWriter(later, ["joined", "city", "age", "id"])
    writer.writeheader()
    writer.writerows(rows)
    (tmp_path / "später.csv").write_text(later.getvalue(), encoding="utf-8")
    assert run("predict", "m.mmg", "später.csv").stdout == result.stdout


def test_standard_input_and_output(run: Run, rings: Path) -> None:
    text = rings.read_bytes()
    assert run("fit", "-", "-o", "m.mmg", stdin=text).exit_code == 0
    streamed = run("predict", "m.mmg", "-", stdin=text).stdout
    assert run("predict", "m.mmg", rings.name, "-o", "out.txt").stdout == ""
    assert Path("out.txt").read_text() == streamed
    assert run("predict", "m.mmg", rings.name, "-o", "-").stdout == streamed
    nameless = run("fit", "-", stdin=text)
    assert nameless.exit_code == 2
    assert "-o MODEL" in nameless.stderr
    faulty = run("fit", "-", "-o", "m.mmg", stdin=b"a,y\n1,u\n2,v,7\n")
    assert faulty.exit_code == 1
    assert "standard input" in faulty.stderr
    assert "maxmargin-" not in faulty.stderr


def test_regression_is_noticed_and_scaled_by_the_targets(run: Run, houses: Path) -> None:
    rows = mm.data.read_labelled(houses)
    result = run("fit", houses.name, "--test", "0.25", "-o", "m.mmg")
    assert result.exit_code == 0, result.output
    assert "regression: the label has 120 different numbers" in result.stdout
    machine = mm.load("m.mmg")[-1]
    assert machine.epsilon == pytest.approx(0.1 * machine.C)
    assert pytest.approx(np.std(rows.y), rel=0.2) == machine.C
    assert "R²" in result.stdout
    assert "test rows       30" in result.stdout
    predicted = np.array(list(map(float, run("predict", "m.mmg", houses.name).stdout.split())))
    np.testing.assert_array_equal(predicted, mm.load("m.mmg").predict(rows.X))


@pytest.mark.parametrize("model", ["nu-svc", "averaged-perceptron", "one-class", "quantile-svr"])
def test_models_by_name(run: Run, rings: Path, houses: Path, model: str) -> None:
    data, count = (houses, 120) if model == "quantile-svr" else (rings, 100)
    result = run("fit", data.name, "--model", model, "-o", "m.mmg")
    assert result.exit_code == 0, result.output
    assert len(run("predict", "m.mmg", data.name).stdout.splitlines()) == count


def test_probabilities_and_scores_are_tables(run: Run, people: Path) -> None:
    run("fit", people.name, "-o", "m.mmg", "--probability")
    proba = list(csv.reader(io.StringIO(run("predict", "m.mmg", people.name, "--proba").stdout)))
    assert proba[0] == ["high", "low"]
    sums = [sum(map(float, row)) for row in proba[1:]]
    np.testing.assert_allclose(sums, 1.0)
    scores = run("predict", "m.mmg", people.name, "--decision").stdout.splitlines()
    assert scores[0] == "decision"
    assert len(scores) == 121
    assert run("predict", "m.mmg", people.name, "--decision", "--proba").exit_code == 2
    run("fit", people.name, "-o", "m.mmg")
    assert "--probability" in run("predict", "m.mmg", people.name, "--proba").stderr


def test_rows_stay_in_blocks(run: Run, rings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("fit", rings.name, "-o", "m.mmg")
    expected = run("predict", "m.mmg", rings.name).stdout
    real, sizes = mm.data.read_rows, []

    def in_small_blocks(*given: Any, **named: Any) -> Any:
        for block in real(*given, **{**named, "rows": 7}):
            sizes.append(block.X.shape[0])
            yield block

    monkeypatch.setattr("maxmargin.cli.saved.read_rows", in_small_blocks)
    assert run("predict", "m.mmg", rings.name).stdout == expected
    assert max(sizes) == 7


def test_a_prediction_that_fails_leaves_no_file(run: Run, people: Path, tmp_path: Path) -> None:
    run("fit", people.name, "-o", "m.mmg")
    lines = people.read_text(encoding="utf-8").splitlines()
    lines[-1] = "120,old,Rome,2020-01-15,low"
    (tmp_path / "bad.csv").write_text("\n".join(lines), encoding="utf-8")
    result = run("predict", "m.mmg", "bad.csv", "-o", "out.txt")
    assert result.exit_code == 1
    assert "bad.csv:121" in result.stderr
    assert not Path("out.txt").exists()


def test_existing_files_that_are_no_models_are_kept(run: Run, rings: Path) -> None:
    before = rings.read_bytes()
    refused = run("fit", rings.name, "-o", rings.name)
    assert refused.exit_code == 1
    assert "is no model of maxmargin" in refused.stderr
    assert rings.read_bytes() == before
    for _ in range(2):  # a model may be replaced
        assert run("fit", rings.name, "-o", "m.mmg").exit_code == 0
    Path("m.mmg").write_text("notes")
    assert run("fit", rings.name, "-o", "m.mmg").exit_code == 1
    nowhere = run("fit", rings.name, "-o", "none/m.mmg")
    assert nowhere.exit_code == 1
    assert "there is no folder" in nowhere.stderr


def test_what_is_not_proved_is_saved_and_said(run: Run, rings: Path) -> None:
    result = run("fit", rings.name, "--kernel", "sigmoid", "-o", "m.mmg")
    assert result.exit_code == 3
    assert "although it has not converged to --tol" in result.stdout
    assert mm.load("m.mmg").predict is not None
    few = ["--param", "max_iter=1", "--tol", "1e-14"]
    assert run("fit", rings.name, *few, "-o", "m.mmg").exit_code == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--C", "-1"], "--C: C=-1.0 is not valid"),
        (["--param", "shrinking=1"], "--param shrinking: shrinking=1 is not valid"),
        (["--C", "one"], "not a valid float"),
        (["--epsilon", "1"], "--epsilon is not for --model svc"),
        (["--param", "shrnking=False"], "Did you mean 'shrinking'"),
        (["--param", "shrinking"], "NAME=VALUE"),
        (["--class-weight", "heavy"], "'heavy' is not 'balanced'"),
        (["--model", "svr", "--task", "classification"], "is for regression"),
        (["--test", "1"], "--test"),
        (["--scale", "huge"], "--scale"),
    ],
)
def test_wrong_options_are_usage_errors(
    run: Run, rings: Path, options: list[str], words: str
) -> None:
    result = run("fit", rings.name, "-o", "m.mmg", *options)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert not Path("m.mmg").exists()


def test_options_reach_the_machine(run: Run, rings: Path) -> None:
    given = [
        *("--C", "3", "--kernel", "poly", "--gamma", "0.5", "--class-weight", "balanced"),
        *("--tol", "1e-3", "--seed", "5", "--param", "shrinking=False", "--scale", "none"),
        *("--param", "degree=2", "--param", "coef0=1.0", "--param", "multi-class=ovo"),
    ]
    assert run("fit", rings.name, "-o", "m.mmg", *given).exit_code == 0
    machine = mm.load("m.mmg")
    expected = mm.SVC(
        C=3.0, kernel="poly", degree=2, coef0=1.0, gamma=0.5, class_weight="balanced",
        tol=1e-3, random_state=5, shrinking=False, multi_class="ovo",
    )  # fmt: skip
    assert machine.get_params() == expected.get_params()


def test_whole_numbers_may_be_either(run: Run, tmp_path: Path) -> None:
    rows = [f"{k / 7:.3f},{k % 40}" for k in range(120)]
    (tmp_path / "counts.csv").write_text("\n".join(["x,label", *rows]))
    assert "if they are measurements, --task regression" in " ".join(
        run("fit", "counts.csv").stdout.split()
    )
    assert "regression" in run("fit", "counts.csv", "--task", "regression").stdout
    (tmp_path / "named.csv").write_text("\n".join(["x,score", *rows]))
    said = " ".join(run("fit", "named.csv").stdout.split())
    assert "regression: the label has 40 different numbers; if they are classes" in said


def test_models_that_cannot_be_read_are_sentences(run: Run, rings: Path) -> None:
    Path("broken.mmg").write_bytes(b"\0" * 100)
    for name, words in [
        ("broken.mmg", "broken.mmg"),
        ("none.mmg", "there is no file"),
        (rings.name, rings.name),
    ]:
        result = run("predict", name, rings.name)
        assert result.exit_code == 1
        assert words in result.stderr


def test_scores_have_intervals_and_classes(run: Run, people: Path) -> None:
    run("fit", people.name, "-o", "m.mmg", "--test", "0.5", "--seed", "3")
    split = ["--test", "0.5", "--seed", "3"]
    result = run("predict", "m.mmg", people.name, "--score", *split)
    assert result.exit_code == 0, result.output
    assert re.search(r"^rows +60$", result.stdout, re.MULTILINE)
    assert re.search(r"^accuracy +\d+\.\d+%  \d+\.\d% to \d+\.\d%$", result.stdout, re.MULTILINE)
    assert "precision" in result.stdout
    score = ["predict", "m.mmg", people.name, "--score"]
    assert "which the model was fitted to" not in run(*score).stdout
    assert run(*score, "-o", "x.csv").exit_code == 2
    assert run(*score[:3], "--test", "0.5").exit_code == 2


def test_scores_need_labels(run: Run, people: Path, tmp_path: Path) -> None:
    run("fit", people.name, "-o", "m.mmg")
    assert "which the model was fitted to" in run("predict", "m.mmg", people.name, "--score").stdout
    (tmp_path / "new.csv").write_text("age,city,joined\n30,Rome,2020-01-15\n")
    result = run("predict", "m.mmg", "new.csv", "--score")
    assert result.exit_code == 1
    assert "no label column" in result.stderr


def test_report_without_data_shows_what_is_in_a_file(run: Run, people: Path) -> None:
    run("fit", people.name, "-o", "m.mmg", "--C", "2")
    shown = run("report", "m.mmg").stdout
    for words in ("SVC(C=2.0)", "high, low", "RBF(gamma=", "training rows    120", "risk"):
        assert words in shown
    assert "(as recorded)" in " ".join(shown.split())
    assert run("report", "m.mmg", "-o", "page.html").exit_code == 2


def test_dense_svmlight_rows_are_centred_in_both_commands(run: Run, rings: Path) -> None:
    run("fit", rings.name, "-o", "m.mmg", "--scale", "standard")
    model = mm.load("m.mmg")
    assert model[0].with_mean
    dense = mm.data.read_labelled(rings).X.toarray()
    predicted = run("predict", "m.mmg", rings.name).stdout.split()
    assert predicted == list(map(str, model.predict(dense).tolist()))


def test_sparse_rows_are_left_as_they_are(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for k in range(60):
        columns = sorted(rng.choice(200, 5, replace=False) + 1)
        lines.append(f"{k % 2} " + " ".join(f"{c}:{rng.random() + k % 2:.3f}" for c in columns))
    (tmp_path / "wide.svm").write_text("\n".join(lines))
    assert run("fit", "wide.svm", "-o", "m.mmg").exit_code == 0
    assert isinstance(mm.load("m.mmg"), mm.SVC)
    assert run("fit", "wide.svm", "-o", "m.mmg", "--scale", "standard").exit_code == 0
    assert not mm.load("m.mmg")[0].with_mean
    assert run("predict", "m.mmg", "wide.svm").exit_code == 0
    refused = run("fit", "wide.svm", "-o", "m.mmg", "--scale", "minmax")
    assert refused.exit_code == 2
    assert "maxabs" in refused.stderr


def test_kernels_offered_are_those_of_the_library() -> None:
    for name in KERNELS:
        assert as_kernel(name) is not None
    with pytest.raises(ValueError, match="valid names") as wrong:
        as_kernel("none")
    known = {word.strip("' ") for word in str(wrong.value).split("[")[1].split("]")[0].split(",")}
    assert known == {*KERNELS, "polynomial", "precomputed"}


def test_what_a_model_cannot_take_is_named_by_line_and_column(
    run: Run, houses: Path, rings: Path, tmp_path: Path
) -> None:
    run("fit", houses.name, "-o", "m.mmg")
    (tmp_path / "gap.csv").write_text("b,a\n1,2\n,3\n")
    result = run("predict", "m.mmg", "gap.csv")
    assert result.exit_code == 1
    assert "gap.csv:3: column 'b' is empty" in result.stderr
    run("fit", rings.name, "-o", "r.mmg")
    result = run("predict", "r.mmg", "-", stdin=b"1 1:0.5 99:1\n")
    assert result.exit_code == 1
    assert "1:9: index 99 is beyond n_features=2, the columns of the model" in result.stderr
