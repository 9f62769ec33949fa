"""The rows that learners are compared on, in the forms that learners need."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.diagnosis.candidates import scaler

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass
class Sample:
    """Rows drawn for cross-validation: as they are, and with columns scaled.

    Scaling looks at all drawn rows, but at no label.
    """

    rows: Ints
    X: Any
    y: Ints
    folds: Ints
    n_classes: int
    sparse: bool
    wide: bool
    uneven: bool
    hurry: Callable[[], bool]
    over: Callable[[], bool]
    _scaled: dict[bool, Any] = field(default_factory=dict)

    def form(self, scaled: bool, centred: bool = False) -> Any:
        """Return the rows, with columns scaled if asked for."""
        if not scaled:
            return self.X
        mean = centred or not self.sparse
        if mean not in self._scaled:
            self._scaled[mean] = scaler(not mean, self.wide).fit_transform(self.X)
        return self._scaled[mean]

    @property
    def forms(self) -> list[bool]:
        """Whether to scale: both are tried if columns are uneven, else they stay as they are."""
        return [True, False] if self.uneven else [False]

    @property
    def majority(self) -> npt.NDArray[np.bool_]:
        """Where naming the largest class is right."""
        return np.asarray(self.y == np.bincount(self.y).argmax())

    def spread(self, scaled: bool) -> float:
        """Return the mean squared distance of the rows from their mean."""
        X = self.form(scaled)
        squares: float = X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij->", X, X)
        mean = np.asarray(X.mean(axis=0)).ravel()
        variance = float(squares) / int(X.shape[0]) - float(mean @ mean)
        return max(variance, 1e-300)


def fitted_classes(learner: Any, X: Any, y: Ints, test: Any) -> Ints:
    """Return the classes that a learner predicts; the only one where the rows have only one."""
    if (y == y[0]).all():
        return np.full(test.shape[0], y[0])
    with warnings.catch_warnings():
        # Bounded iterations are intended here, and the score says what they are worth.
        warnings.simplefilter("ignore")
        return np.asarray(learner.fit(X, y).predict(test), dtype=np.int64)
