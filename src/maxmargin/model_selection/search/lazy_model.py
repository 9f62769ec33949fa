"""The models of a search as scorers see them."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from maxmargin._typing import Floats
from maxmargin.estimators.reductions import best_classes, combined_scores
from maxmargin.model_selection.search.plan import Split
from maxmargin.model_selection.search.shared_gram import SolvedJob


class Fold:
    """The rows of a split as scorers get them: the ones given, before any pipeline.

    Those to learn from are taken when they are needed: they would be many copies of X.
    """

    def __init__(self, X: Any, y: Any, split: Split, fit_params: dict[str, Any]) -> None:
        self._given, self.split = (X, y, fit_params), split
        self.X_test, self.y_test = _safe_indexing(X, split.test), _safe_indexing(y, split.test)

    @cached_property
    def learnt(self) -> tuple[Any, Any]:
        """Rows to learn from, and their targets."""
        X, y, _ = self._given
        return _safe_indexing(X, self.split.train), _safe_indexing(y, self.split.train)

    @property
    def fit_params(self) -> dict[str, Any]:
        """What else ``fit`` is given."""
        params = self._given[2].items()
        return {name: _safe_indexing(values, self.split.train) for name, values in params}


class LazyModel:
    """Stands for a model fitted in one split, whose scores of the split's rows are known.

    Whatever else it is asked for, it fits the model and passes the question on.
    """

    def __init__(self, model: Any, solved: SolvedJob, cost: int, fold: Fold) -> None:
        self._model, self._fold = model, fold
        self._machine, self._pairs = solved.job.machine, solved.job.pairs
        self._scores: Floats = solved.scores[cost]
        if self._pairs:
            self.classes_ = self._machine.classes_

    def __sklearn_tags__(self) -> Any:
        return self._model.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Any:
        return clone(self._model)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._model)

    def __reduce__(self) -> Any:
        return _itself, (self.fitted,)

    def __getitem__(self, step: Any) -> Any:
        return self.fitted[step]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        model = self._model
        if name in vars(model) and not isinstance(model, Pipeline):
            return getattr(model, name)  # a parameter
        if not (name.endswith("_") or hasattr(model, name)):
            raise AttributeError(f"{type(model).__name__} has no attribute {name!r}")
        return getattr(self.fitted, name)

    @cached_property
    def fitted(self) -> Any:
        """The model itself, fitted."""
        return clone(self._model).fit(*self._fold.learnt, **self._fold.fit_params)

    def _planes(self, X: Any) -> Floats | None:
        """Return the scores of rows in each plane, if they are known."""
        n_test = len(self._fold.split.test)
        if X is self._fold.X_test:
            return self._scores[:n_test]
        if len(self._scores) > n_test and X is self._fold.learnt[0]:
            return self._scores[n_test:]
        return None

    def _votes(self, planes: Floats) -> Floats:
        if len(self.classes_) == 2:
            return planes[:, 0]
        return combined_scores(planes, self._pairs, len(self.classes_))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return what the model predicts."""
        planes = self._planes(X)
        if planes is None:
            return np.asarray(self.fitted.predict(X))
        return best_classes(self._votes(planes), self.classes_) if self._pairs else planes[:, 0]

    @available_if(lambda self: bool(self._pairs))
    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the model."""
        planes = self._planes(X)
        ovo = len(self.classes_) > 2 and self._machine.decision_function_shape == "ovo"
        if planes is None or ovo:
            return np.asarray(self.fitted.decision_function(X))
        return self._votes(planes)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return accuracy, or R² of a regression."""
        kind: Any = ClassifierMixin if self._pairs else RegressorMixin
        return float(kind.score(self, X, y, sample_weight))


def _itself(model: Any) -> Any:
    return model
