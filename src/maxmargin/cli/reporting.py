"""The report that ``maxmargin try`` leaves behind."""

import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin.data import Labelled
from maxmargin.reports import report

if TYPE_CHECKING:
    from maxmargin.cli.reading import Split
    from maxmargin.cli.trial import Trial

NAME = "maxmargin-report"


def reported(model: Any, parts: "Split", data: Labelled, trial: "Trial", **found: Any) -> str:
    """Write the report and return a sentence on where it is; by default no file is replaced."""
    names = data.feature_names if len(data.feature_names or ()) == data.X.shape[1] else None
    title = Path(trial.file).name if trial.file else data.format
    try:
        path = Path(trial.report) if trial.report else fresh(Path())
        report(
            model,
            parts.X_train,
            parts.y_train,
            path,
            X_test=parts.X_test,
            y_test=parts.y_test,
            title=title,
            feature_names=names,
            **found,
        )
    except OSError as impossible:
        if trial.report:
            raise
        return f"Not written here ({impossible}): choose a place with --report PATH."
    return f"{path} has all this and more: open it in a browser."


def fresh(folder: Path) -> Path:
    """Return the first of maxmargin-report.html, maxmargin-report-2.html, … that is not there."""
    names = (f"{NAME}{'' if k == 1 else f'-{k}'}.html" for k in count(1))
    return next(folder / name for name in names if not os.path.lexists(folder / name))
