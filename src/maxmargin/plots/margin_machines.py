"""What a picture of a margin reads in a fitted model: f, w, and its support vectors.

A machine with two classes has one score f = w·φ(x) + b, positive for the second. One with more has
as many as there are pairs, and then one pair is chosen, or nothing but the predictions is drawn.
A support vector with slack ξ = max(0, 1 − y f) is on the margin (ξ ≤ τ), inside it (ξ ≤ 1) or on
the wrong side (ξ > 1). What the model says of its own support vectors is taken as it is; of
scikit-learn's, kinds follow from y f with its tolerance as τ.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.geometry import Hyperplane, KernelHyperplane, hyperplane
from maxmargin.plots.margin_rows import n_rows, taken

Floats = npt.NDArray[np.float64]

_ON_MARGIN = 1e-5  # τ of our own machines
_COMPARED = 200  # rows on which a plane must agree with the model


@dataclass(frozen=True)
class Support:
    """Support vectors: their rows in X, what kind each is, and their slacks."""

    rows: npt.NDArray[np.intp]
    kinds: npt.NDArray[np.str_]
    slacks: Floats


@dataclass(frozen=True)
class Machine:
    """A fitted model, as a picture of its margin needs it.

    ``model`` is the last step of ``estimator``, ``before`` the steps ahead of it. ``plane`` is f
    in the model's own space, or None if it is not one plane; ``pair`` is the number of the pair of
    classes, if there are more than two.
    """

    estimator: Any
    model: Any
    before: Any
    classes: npt.NDArray[Any]
    pair: int | None
    plane: Hyperplane | KernelHyperplane | None

    @property
    def binary(self) -> bool:
        """Whether there is one f."""
        return len(self.classes) == 2

    @property
    def one_class(self) -> bool:
        """Whether it detects outliers."""
        return not hasattr(self.model, "classes_")

    @property
    def levels(self) -> tuple[float, ...]:
        """Values of f at which lines mean something."""
        margins = self.binary and not self.one_class and _has_margins(self.model)
        return (-1.0, 0.0, 1.0) if margins else (0.0,)

    @property
    def straight(self) -> bool:
        """Whether f is w·x + b in the coordinates of the data themselves."""
        return self.before is None and isinstance(self.plane, Hyperplane)

    @property
    def precomputed(self) -> bool:
        """Whether X holds kernel values, and no coordinates."""
        return getattr(self.model, "kernel", None) == "precomputed"

    @property
    def norm(self) -> float:
        """‖w‖, in feature space."""
        if self.plane is not None:
            return self.plane.norm
        if self.precomputed and hasattr(self.model, "support_kind_"):
            return 1.0 / float(self.model.margin_)
        raise ValueError(
            f"view='margin' needs w, and {type(self.model).__name__} is not one plane that can be "
            "read; take view='data'"
        )

    def inner(self, X: Any) -> Any:
        """Return rows as the last step sees them."""
        X = X if self.before is None else self.before.transform(X)
        return X if sp.issparse(X) else np.asarray(X)

    def scores(self, X: Any) -> Floats:
        """Return f of rows as the data have them."""
        if self.pair is None:
            return np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        assert self.plane is not None
        return self.plane.decision_function(self.inner(X))

    def regions(self, X: Any) -> npt.NDArray[np.intp]:
        """Return the number of the class predicted for each row."""
        return np.asarray(np.searchsorted(self.classes, self.estimator.predict(X)))

    def products(self, A: Any, B: Any, chosen: npt.NDArray[np.intp]) -> Floats:
        """Return K(a, b) of inner rows; ``chosen`` says which rows of the data B are."""
        if self.precomputed:
            return np.asarray(A[:, chosen], dtype=np.float64)
        if isinstance(self.plane, KernelHyperplane):
            return np.asarray(self.plane.kernel.gram(A, B), dtype=np.float64)
        products = A @ B.T
        return np.asarray(products.toarray() if sp.issparse(products) else products, dtype=float)

    def support(self, X: Any, signs: Floats) -> Support | None:
        """Return the support vectors among the rows X, or None if they are not told.

        ``signs`` are ±1, and 0 for rows of neither class.
        """
        if not self.binary or not _has_margins(self.model) or not self._is_training(X):
            return None
        if hasattr(self.model, "support_kind_"):
            return self._own_support()
        rows = getattr(self.model, "support_", np.arange(n_rows(X)))
        rows = rows[signs[rows] != 0]
        slack = 1.0 - signs[rows] * self.scores(taken(X, rows))
        tau = max(_ON_MARGIN, 2.0 * float(self.model.tol))  # what scikit-learn's optimum leaves
        # By the conditions of optimality: at y f > 1 a row has no part in w.
        rows, slack = rows[slack >= -tau], slack[slack >= -tau]
        kinds = np.select([slack <= tau, slack <= 1.0], ["margin", "inside"], "wrong side")
        return Support(rows, kinds, np.maximum(0.0, slack))

    def _own_support(self) -> Support:
        model, k = self.model, self.pair
        kinds, alpha = np.asarray(model.support_kind_), np.atleast_2d(model.alpha_)
        slack = np.atleast_2d(getattr(model, "slack_", np.zeros_like(alpha)))
        kinds = kinds[k or 0] if kinds.ndim == 2 else kinds
        used = alpha[k or 0, model.support_] > 0
        rows = np.asarray(model.support_)[used]
        return Support(rows, kinds[used], slack[k or 0, rows])

    def _is_training(self, X: Any) -> bool:
        """Whether X are the rows that the model was fitted to, as far as it has kept them."""
        model = self.model
        if not hasattr(model, "support_"):
            return type(model).__module__.startswith("sklearn")
        fitted = model.alpha_.shape[-1] if hasattr(model, "alpha_") else model.shape_fit_[0]
        if fitted != n_rows(X):
            return False
        vectors = getattr(model, "support_vectors_", None)
        if vectors is None or not vectors.shape[0]:
            return True
        rows = self.inner(taken(X, model.support_))
        return rows.shape == vectors.shape and float(abs(rows - vectors).max()) == 0.0


def read_machine(estimator: Any, X: Any, pair: tuple[Any, Any] | None) -> Machine:
    """Return what pictures need of a fitted estimator: a model, a search or a pipeline."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    estimator = getattr(estimator, "best_estimator_", estimator)
    model, before = estimator, None
    if isinstance(estimator, Pipeline):
        model = estimator[-1]
        before = estimator[:-1] if len(estimator) > 1 else None
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise TypeError(f"estimator must be a fitted classifier, got {estimator!r:.80}")
    check_is_fitted(model)
    outliers = hasattr(model, "offset_") and not hasattr(model, "classes_")
    if not hasattr(model, "decision_function") or not (outliers or hasattr(model, "classes_")):
        raise TypeError(
            f"estimator must be a classifier with a decision_function, got {type(model).__name__}"
        )
    classes = np.array(["outlier", "inlier"]) if outliers else np.asarray(model.classes_)
    if pair is None or len(classes) == 2:
        _check_pair(pair, classes)
        machine = Machine(estimator, model, before, classes, None, None)
        return _with_plane(machine, X) if len(classes) == 2 else machine
    i, j = _check_pair(pair, classes)
    k, plane = _pair_plane(model, len(classes), i, j)
    # Of a pair the models' f is positive for the first class; here the second is, as always.
    return Machine(estimator, model, before, classes[[i, j]], k, plane.flipped())


def _check_pair(pair: Any, classes: npt.NDArray[Any]) -> tuple[int, int]:
    if pair is None:
        return 0, 1
    places = {label: k for k, label in enumerate(classes.tolist())}
    wrong = not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] == pair[1]
    if wrong or any(label not in places for label in pair):
        names = ", ".join(f"{label!r:.40}" for label in classes.tolist()[:10])
        raise ValueError(f"pair must be two of the classes {names}, got {pair!r:.80}")
    i, j = sorted(places[label] for label in pair)
    return i, j


def _with_plane(machine: Machine, X: Any) -> Machine:
    """Return the machine with its plane, if its scores are those of one."""
    model = machine.model
    if machine.precomputed or not (hasattr(model, "coef_") or hasattr(model, "dual_coef_")):
        return machine
    try:
        plane = hyperplane(model)
    except (ValueError, AttributeError):  # a kernel that cannot be read: contours remain
        return machine
    some = taken(X, np.arange(min(_COMPARED, n_rows(X))))
    f, g = machine.scores(some), plane.decision_function(machine.inner(some))
    # A vote of many planes is not one.
    if not np.allclose(f, g, rtol=1e-3, atol=1e-3 * float(np.abs(f).max())):
        return machine
    return Machine(machine.estimator, model, machine.before, machine.classes, None, plane)


def _pair_plane(
    model: Any, n_classes: int, i: int, j: int
) -> tuple[int, Hyperplane | KernelHyperplane]:
    """Return the number of the pair (i, j) of classes, and its plane."""
    ours = getattr(model, "multi_class", "ovo") == "ovo" and hasattr(model, "n_support_")
    if not ours or getattr(model, "kernel", None) == "precomputed":
        raise ValueError(
            f"pair: {type(model).__name__} has no plane for each pair of classes that can be read; "
            "take SVC, or LinearSVC(multi_class='ovo'), or pair=None for regions"
        )
    k = i * n_classes - i * (i + 1) // 2 + j - i - 1
    b = [float(model.intercept_[k])]
    if hasattr(model, "coef_"):
        return k, hyperplane(SimpleNamespace(coef_=model.coef_[k], intercept_=b))
    duals = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    if hasattr(model, "multi_class"):  # HardMarginSVC has a row of duals for each pair
        a = duals[k]
    else:  # the others have one for each rival class
        own = np.repeat(np.arange(n_classes), model.n_support_)
        a = np.select([own == i, own == j], [duals[j - 1], duals[i]], 0.0)
    known = ("kernel", "kernel_", "_gamma", "degree", "coef0", "support_vectors_")
    parts = {name: getattr(model, name) for name in known if hasattr(model, name)}
    return k, hyperplane(SimpleNamespace(dual_coef_=a, intercept_=b, **parts))


def _has_margins(model: Any) -> bool:
    from sklearn import svm

    from maxmargin.estimators import LinearSVC  # after partial_fit it has no kinds

    machines = LinearSVC, svm.SVC, svm.NuSVC, svm.LinearSVC
    return hasattr(model, "support_kind_") or isinstance(model, machines)
