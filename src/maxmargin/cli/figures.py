"""How good a model is on labelled rows: scores by scikit-learn's names, with standard errors."""

import warnings
from typing import Any, NamedTuple

import click
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names, precision_recall_fscore_support

from maxmargin.errors import did_you_mean

GROUPS = 50  # left out one by one for a standard error
DEFAULTS = {
    "classification": ("accuracy", "balanced_accuracy"),
    "regression": ("r2", "neg_mean_absolute_error"),
}


class Score(NamedTuple):
    """A score, its standard error and how many rows it is from."""

    name: str
    value: float
    error: float
    rows: int

    def __str__(self) -> str:
        return f"{readable(self.name)} {self.figures}"

    @property
    def figures(self) -> str:
        """The value, and its standard error if there are rows enough for one."""
        value = shown(self.name, self.value)
        return value if np.isnan(self.error) else f"{value} ± {shown(self.name, self.error)}"


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


def check_scoring(names: tuple[str, ...]) -> None:
    """Refuse names that scikit-learn does not have."""
    known = get_scorer_names()
    for name in names:
        if name not in known:
            raise click.UsageError(
                f"--scoring {name} is not a scorer of scikit-learn.{did_you_mean(name, known)}"
            )


def score_rows(model: Any, X: Any, y: Any, scoring: tuple[str, ...], task: str) -> list[Score]:
    """Return scores of a fitted model, every row predicted once for all of them."""
    names = scoring or DEFAULTS[task]
    check_scoring(names)
    remembered = remember(model, X)
    return [score_remembered(remembered, y, name) for name in names]


def score_remembered(remembered: Any, y: Any, name: str) -> Score:
    """Return a score, with the standard error of the jackknife that leaves out groups of rows.

    θ₋ⱼ is the score without group j of g; the squared error is (g − 1)/g Σⱼ (θ₋ⱼ − θ̄)².
    """
    n, scorer = len(y), get_scorer(name)
    g = min(GROUPS, n)
    groups = np.random.default_rng(0).permutation(n) % g
    every = np.arange(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes without rows in a group
        try:
            value = float(scorer(remembered, every, y))
        except AttributeError as missing:
            raise click.ClickException(
                f"--scoring {name} needs probabilities or scores that the model does not have; "
                "maxmargin fit --probability makes probabilities."
            ) from missing
        if n < 3:
            return Score(name, value, np.nan, n)
        without = [every[groups != j] for j in range(g)]
        left = np.array([scorer(remembered, rows, y[rows]) for rows in without])
    error = np.sqrt((g - 1) / g * np.sum((left - left.mean()) ** 2))
    return Score(name, value, float(error), n)


class _Remembered(BaseEstimator):  # type: ignore[misc, unused-ignore]
    """A model that predicts rows by number, each method called once for all rows."""

    def __init__(self, model: Any, X: Any) -> None:
        self.model, self.X, self._answers = model, X, dict[str, Any]()
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def answers(self, method: str) -> Any:
        """Return what the model's method says of all rows."""
        if method not in self._answers:
            self._answers[method] = np.asarray(getattr(self.model, method)(self.X))
        return self._answers[method]

    def predict(self, rows: Any) -> Any:
        """Return the predictions for some rows."""
        return self.answers("predict")[rows]

    def __getattr__(self, name: str) -> Any:
        if name not in ("decision_function", "predict_proba") or not hasattr(self.model, name):
            raise AttributeError(name)

        def answer(rows: Any) -> Any:
            return self.answers(name)[rows]

        answer.__name__ = name  # by which scikit-learn asks which method it has found
        return answer


class _RememberedClassifier(ClassifierMixin, _Remembered):  # type: ignore[misc, unused-ignore]
    pass


class _RememberedRegressor(RegressorMixin, _Remembered):  # type: ignore[misc, unused-ignore]
    pass


def remember(model: Any, X: Any) -> Any:
    """Return a model that scorers can ask for rows by number."""
    kind = _RememberedClassifier if hasattr(model, "classes_") else _RememberedRegressor
    return kind(model, X)


def score_classes(y: Any, predicted: Any) -> list[dict[str, Any]]:
    """Return precision, recall and F1 of each class."""
    labels = np.unique(np.concatenate([np.asarray(y), np.asarray(predicted)]))
    columns = precision_recall_fscore_support(y, predicted, labels=labels, zero_division=0)
    return [
        {"label": label, "rows": int(rows), "precision": p, "recall": r, "f1": f}
        for label, p, r, f, rows in zip(
            labels.tolist(), *map(np.ndarray.tolist, columns), strict=True
        )
    ]
