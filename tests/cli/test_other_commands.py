"""Search, diagnosis, certificates, conversions and reports."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from tests.cli.conftest import Run


def offered(output: str, verb: str) -> list[str]:
    """Return the words of a command line that is printed for copying."""
    line = next(line for line in output.splitlines() if line.startswith(f"  maxmargin {verb} "))
    return shlex.split(line)[1:]


def test_search_prints_a_fit_that_makes_the_same_model(run: Run, people: Path) -> None:
    result = run("search", people.name, "--C", "0.1,1,10", "--gamma", "0.01:1:3", "-o", "s.mmg")
    assert result.exit_code == 0, result.output
    assert "9 candidates, 5 folds" in result.stdout
    again = run(*offered(result.stdout, "fit"), "-o", "f.mmg")
    assert again.exit_code == 0, again.output
    rows = mm.data.read_labelled(people)
    first, second = mm.load("s.mmg"), mm.load("f.mmg")
    np.testing.assert_array_equal(first.decision_function(rows.X), second.decision_function(rows.X))


def test_search_of_a_regression(run: Run, houses: Path) -> None:
    result = run("search", houses.name, "--model", "svr", "--C", "1,10", "--gamma", "0.5")
    assert result.exit_code == 0, result.output
    assert "C=10 is the largest that was tried" in result.stdout
    assert "R²" in result.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--C", "1:2"], "LOW:HIGH:COUNT"),
        (["--C", "a,b"], "LOW:HIGH:COUNT"),
        (["--nu", "0.1"], "--nu is not a parameter of SVC"),
        (["--scoring", "acc"], "--scoring"),
        (["--folds", "1"], "--folds"),
        (["--model", "perceptron"], "--model"),
    ],
)
def test_wrong_searches_are_usage_errors(
    run: Run, rings: Path, options: list[str], words: str
) -> None:
    result = run("search", rings.name, *options)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_diagnosis_leads_to_a_fit_and_a_search(run: Run, houses: Path) -> None:
    result = run("diagnose", houses.name)
    assert result.exit_code == 0, result.output
    assert "Verdict: curved" in result.stdout
    assert run(*offered(result.stdout, "fit"), "-o", "m.mmg").exit_code == 0
    assert offered(result.stdout, "search")[:4] == ["search", "houses.csv", "--model", "svr"]
    assert run("diagnose", houses.name, houses.name).exit_code == 2
    assert run("diagnose", houses.parent).exit_code == 2


def test_certificates_are_computed_anew(run: Run, people: Path) -> None:
    run("fit", people.name, "-o", "m.mmg")
    result = run("certify", "m.mmg", people.name)
    assert result.exit_code == 0, result.output
    assert "holds           yes, to 0.0001" in result.stdout
    assert run("certify", "m.mmg", people.name, "--tol", "1e-30").exit_code == 3


def test_certify_wants_the_rows_of_the_fit(run: Run, people: Path) -> None:
    run("fit", people.name, "-o", "m.mmg", "--test", "0.25", "--seed", "2")
    refused = run("certify", "m.mmg", people.name)
    assert refused.exit_code == 1
    assert "--test and --seed" in refused.stderr
    assert run("certify", "m.mmg", people.name, "--test", "0.25", "--seed", "2").exit_code == 0


def test_text_models_go_round_and_are_certified(run: Run, rings: Path) -> None:
    run("fit", rings.name, "-o", "m.mmg", "--scale", "none", "--C", "2")
    assert "LIBSVM" in run("convert", "m.mmg", "m.model").stdout
    result = run("predict", "m.model", rings.name)
    assert result.stdout == run("predict", "m.mmg", rings.name).stdout
    assert "LIBSVM model" in result.stderr
    certified = run("certify", "m.model", rings.name, "--C", "2")
    assert certified.exit_code == 0, certified.output
    assert run("certify", "m.mmg", rings.name, "--C", "3").exit_code == 2
    run("fit", rings.name, "-o", "l.mmg", "--scale", "none", "--model", "linear-svc")
    assert "LIBLINEAR" in run("convert", "l.mmg", "l.model").stdout
    assert "LinearSVC" in run("report", "l.model").stdout
    assert "training rows" not in run("report", "m.model").stdout


def test_text_models_hold_no_preparation(run: Run, rings: Path) -> None:
    run("fit", rings.name, "-o", "m.mmg", "--scale", "standard")
    result = run("convert", "m.mmg", "m.model")
    assert result.exit_code == 1
    assert "--scale none" in result.stderr
    assert not Path("m.model").exists()


def test_text_models_become_files_of_maxmargin(run: Run, rings: Path) -> None:
    run("fit", rings.name, "-o", "m.mmg", "--scale", "none", "--model", "nu-svc", "--nu", "0.1")
    run("convert", "m.mmg", "m.model")
    assert run("convert", "m.model", "back.mmg").exit_code == 0
    shown = run("report", "back.mmg").stdout
    assert "LIBSVM file" in shown
    assert "training rows" not in shown
    assert "certificate" not in shown
    predicted = run("predict", "back.mmg", rings.name).stdout
    assert predicted == run("predict", "m.model", rings.name).stdout
    assert "does not hold nu" in run("certify", "back.mmg", rings.name).stderr
    assert run("certify", "back.mmg", rings.name, "--nu", "0.1").exit_code == 0
    assert run("convert", "m.model", "back.mmg", "--nu", "0.1").exit_code == 0
    assert run("certify", "back.mmg", rings.name).exit_code == 0
    assert run("certify", "back.mmg", rings.name, "--nu", "0.2").exit_code == 2
    assert "fitted to" not in run("predict", "back.mmg", rings.name, "--score").stdout
    run("convert", "back.mmg", "again.model")
    assert Path("again.model").read_bytes() == Path("m.model").read_bytes()


def test_outlier_detectors_have_no_labels_to_score(run: Run, people: Path) -> None:
    assert (
        run("fit", people.name, "--model", "one-class", "--test", "0.3", "-o", "m.mmg").exit_code
        == 0
    )
    assert run("certify", "m.mmg", people.name, "--test", "0.3").exit_code == 0
    result = run("predict", "m.mmg", people.name, "--score")
    assert result.exit_code == 1
    assert "outliers" in result.stderr


def test_onnx_holds_all_steps(run: Run, rings: Path) -> None:
    onnx = pytest.importorskip("onnx")
    run("fit", rings.name, "-o", "m.mmg", "--scale", "standard")
    assert run("convert", "m.mmg", "m.onnx").exit_code == 0
    onnx.checker.check_model(onnx.load("m.onnx"))


def test_data_is_converted_and_comes_back(run: Run, rings: Path) -> None:
    assert run("convert", rings.name, "rings.csv").exit_code == 0
    assert run("convert", "rings.csv", "back.svm").exit_code == 0
    first, back = (mm.data.read_labelled(name) for name in (rings, "back.svm"))
    np.testing.assert_array_equal(first.X.toarray(), back.X.toarray())
    np.testing.assert_array_equal(first.y, back.y)


def test_a_report_gets_lines_columns_and_the_rows_held_back(
    run: Run, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def report(model: Any, X: Any, y: Any, path: str, **named: Any) -> Path:
        given.update(named, rows_trained=len(y))
        return Path(path)

    run("fit", people.name, "-o", "m.mmg", "--test", "0.3")
    monkeypatch.setattr(mm, "report", report)
    result = run("report", "m.mmg", people.name, "--test", "0.3", "-o", "my page.html")
    assert result.exit_code == 0, result.output
    assert given["rows_trained"] == 84
    assert len(given["X_test"]) == 36
    assert given["label_name"] == "risk"
    assert set(given["feature_names"]) == {"age", "city", "joined"}
    assert {*given["rows"], *given["rows_test"]} == set(range(2, 122))
