"""How good a model is on rows: figures with 95 % intervals, as reports have them."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_regressor

from maxmargin.inspection.model_view import view_model
from maxmargin.reports.context import score_part
from maxmargin.reports.quality import error_figures, quality_of


class MeasuredScores(NamedTuple):
    """Figures of merit of a model on some rows; of an outlier detector, the share inside."""

    rows: int
    figures: list[Any]  # Figure
    inside: float | None = None

    def __str__(self) -> str:
        if self.inside is not None:
            return f"{self.rows}: {self.inside:.2%} are inside, the others are outliers"
        named = (f"{one.name} {one} ({one.interval})" for one in self.figures if one.interval)
        return f"{self.rows}: {', '.join(named)}"

    def to_json(self) -> dict[str, Any]:
        """Return the figures for programs."""
        if self.inside is not None:
            return {"rows": self.rows, "share_inside": self.inside}
        figures = {one.name: {"value": one.value, "interval": [one.low, one.high]}
                   for one in self.figures}  # fmt: skip
        return {"rows": self.rows, **figures}


def measure(model: Any, X: Any, y: Any, name: str = "test") -> MeasuredScores:
    """Return how good a fitted model is on rows, on some of them if they take too long."""
    view = view_model(model)
    outliers = view.detects_outliers
    part = score_part(name, view, X, None if outliers else y, np.arange(len(y)))
    if outliers:
        return MeasuredScores(len(part.rows), [], float(part.scores.right.mean()))
    if is_regressor(view.machine):
        return MeasuredScores(len(part.rows), error_figures(part))
    return MeasuredScores(len(part.rows), list(quality_of(part, view.machine).figures()))


# ------------------------------------------------------------------- scorers of scikit-learn


def readable(name: str) -> str:
    """Return what a scorer is called in a sentence.

    >>> readable("neg_mean_absolute_error"), readable("r2"), readable("balanced_accuracy")
    ('mean absolute error', 'R²', 'balanced accuracy')
    """
    special = {"r2": "R²", "roc_auc": "AUC"}
    return special.get(name, name.removeprefix("neg_").replace("_", " "))


def shown(name: str, value: float) -> str:
    """Return a score as text; losses without the sign that makes more better."""
    if np.isnan(value):
        return "undefined"
    if "accuracy" in name or name == "roc_auc":
        return f"{value:.2%}"
    return f"{abs(value) if name.startswith('neg_') else value:.4g}"
