"""What kernel machines that predict numbers share: two duals a row, one for each side of a tube."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.inputs import check_targets, regression_weights
from maxmargin.estimators.kernel_machine import KernelMachine
from maxmargin.estimators.kernel_models import Found, Training
from maxmargin.loops.records import Loss

_ON_TUBE = 1e-5  # error beyond ε, in spreads of y, up to which a row counts as lying on the tube


class KernelRegressor(RegressorMixin, KernelMachine):
    """Base of SVR and NuSVR."""

    def _check_answers(
        self, y: Any, n_rows: int, sample_weight: Any, reset: bool
    ) -> tuple[Floats, Floats, Any]:
        return check_targets(y, n_rows), regression_weights(sample_weight, n_rows), 1.0

    def _sides(self) -> int:
        return 2

    def _half_width(self) -> float:
        """Return ε."""
        raise NotImplementedError

    def _keep(self, data: Training, found: Found) -> None:
        self._keep_support(data, found.duals, found.duals.sum(axis=0, keepdims=True))
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)

    def _keep_answers(self, data: Training, used: Ints) -> None:
        self._support_targets = data.answers[used]
        self._spread = float(data.answers.std()) or 1.0

    @property
    def _slacks(self) -> Floats:
        check_is_fitted(self)
        errors = np.abs(self._support_targets - self._products()[:, 0] - self.intercept_[0])
        return np.asarray(np.maximum(0.0, errors - self._half_width()))

    @property
    def support_kind_(self) -> npt.NDArray[np.str_]:
        """What kind of support vector each is."""
        return np.where(self._slacks <= _ON_TUBE * self._spread, "on the tube", "outside")

    @property
    def margin_(self) -> float:
        """1/‖w‖ in feature space."""
        return float(self._margins()[0])

    @property
    def alpha_(self) -> Floats:
        """Dual variables |β| of all rows."""
        check_is_fitted(self)
        return self._among_rows(np.abs(self.dual_coef_[0]))

    @property
    def slack_(self) -> Floats:
        """Errors beyond ε of the support vectors, 0 for other rows."""
        return self._among_rows(self._slacks)

    def predict(self, X: Any) -> Floats:
        """Return f(x) of each row; with kernel="precomputed", as in ``SVC.decision_function``."""
        return self._plane_scores(X)[:, 0]


def two_sided(above: Floats, below: Floats, cost: Floats) -> Loss:
    """Return the losses of two variables a row: one pulls f up to a target, one pulls it down."""
    none = np.zeros(len(cost))
    return Loss(
        np.concatenate([above, below]),
        np.concatenate([none, -cost]),
        np.concatenate([cost, none]),
        np.zeros(2 * len(cost)),
        0.0,
    )
