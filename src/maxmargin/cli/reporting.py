"""The report that ``maxmargin try`` leaves behind, with a script that does the same again."""

import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin.cli.facts import is_sparse
from maxmargin.data import Labelled
from maxmargin.inspection.code import write_code
from maxmargin.reports.subject import Subject, Wording, subject_of
from maxmargin.reports.writing import write

if TYPE_CHECKING:
    from maxmargin.cli.reading import Split
    from maxmargin.cli.trial import Trial

NAME = "maxmargin-report"
MODEL = ".joblib"
OPTIONS = {"max_time": "--time"}  # parameters by their names on the command line


def subject(model: Any, parts: "Split", data: Labelled, trial: "Trial", search: Any) -> Subject:
    """Return what there is to print and to report: the model, and what it says of the rows."""
    names = data.feature_names if len(data.feature_names or ()) == data.X.shape[1] else None
    return subject_of(
        model,
        parts.X_train,
        parts.y_train,
        X_test=parts.X_test,
        y_test=parts.y_test,
        search=search,
        title=Path(trial.file).name if trial.file else data.format,
        feature_names=names,
        rows=parts.numbers_train,
        rows_test=parts.numbers_test,
        wording=Wording(data.numbered, data.label_name or "label", OPTIONS, data.remarks),
    )


def reported(found: Subject, data: Labelled, trial: "Trial", diagnosis: Any) -> str:
    """Write the report, and the model beside it; return a sentence on where they are.

    By default no file is replaced.
    """
    try:
        path = Path(trial.report) if trial.report else fresh(Path())
        write(path, found, diagnosis, script=script(found, data, trial))
        saved(found.model, path.with_suffix(MODEL))
    except OSError as impossible:
        if trial.report:
            raise
        return f"Not written here ({impossible}): choose a place with --report PATH."
    return (
        f"{path} has all this and more: open it in a browser. {path.with_suffix(MODEL)} is the "
        "fitted model: joblib.load reads it, and its predict takes rows as "
        f"{_rows_come_from(trial)} gives them."
    )


def _rows_come_from(trial: "Trial") -> str:
    return "mm.data.read_labelled(FILE).X" if trial.file else "load_breast_cancer().data"


def saved(model: Any, path: Path) -> None:
    """Write a fitted model as a whole, or not at all."""
    import joblib

    draft = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        joblib.dump(model, draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def fresh(folder: Path) -> Path:
    """Return the first of maxmargin-report.html, maxmargin-report-2.html, … that is not there.

    Nor may there be a model of that name.
    """
    names = (folder / f"{NAME}{'' if k == 1 else f'-{k}'}.html" for k in count(1))
    taken = os.path.lexists
    return next(path for path in names if not taken(path) and not taken(path.with_suffix(MODEL)))


def script(found: Subject, data: Labelled, trial: "Trial") -> str:
    """Return a program that reads the same rows, splits them, fits the model and prints figures."""
    from maxmargin.reports.making import figures_code, program

    made, count = write_code(found.model), len(found.y)
    assert found.test is not None
    some = f"[:{count}]" if count + found.test.total < len(data.y) else ""
    lines = [
        *made.imports,
        *_reading(data, trial),
        "from sklearn.model_selection import train_test_split",
        "",
        "X_train, X_test, y_train, y_test = train_test_split(",
        f"    X, y, test_size={trial.test_fraction!r}, stratify=y, random_state={trial.seed}",
        ")",
        f"model = {made.expression}",
        f"model.fit(X_train{some}, y_train{some})",
        *figures_code(found.model, "X_test", "y_test"),
    ]
    return program(lines)


def _reading(data: Labelled, trial: "Trial") -> list[str]:
    """Return the lines that read the rows as they were read."""
    if trial.file is None:
        return [
            "from sklearn.datasets import load_breast_cancer",
            "",
            "data = load_breast_cancer()",
            "X, y = data.data, data.target_names[data.target]",
        ]
    label = "" if trial.label is None else f", {trial.label!r}"
    lines = [
        "import maxmargin as mm",
        "",
        f"data = mm.data.read_labelled({os.path.abspath(trial.file)!r}{label})",
        "X, y = data.X, data.y",
    ]
    if data.format.startswith("svmlight") and not is_sparse(data.X):
        lines.append("X = X.toarray()  # dense enough")
    return lines
