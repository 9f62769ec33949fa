"""The two ways to a kernel: by marginal likelihood, and by cross-validation."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.optimize
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.model_selection import KFold, StratifiedKFold

from maxmargin import clock
from maxmargin.estimators import SVC, SVR
from maxmargin.kernels import Kernel
from maxmargin.model_selection.compare_gp_kernels import covariance, with_theta
from maxmargin.model_selection.search import SVCSearchCV
from maxmargin.progress import Bar

Floats = npt.NDArray[np.float64]

# Of equal scores the first counts: with a small cost every row would be a support vector.
COSTS = (10.0, 1.0, 100.0, 1000.0, 0.1)
_STEPS = np.log(10.0) * np.array([-1.5, -1.0, -0.5, 0.5, 1.0, 1.5])
_SWEEPS = 2
_TUBE = 0.1  # of the spread of the targets: the half-width ε of SVR's tube


@dataclass(frozen=True)
class Data:
    """Training rows with labels or targets, and how to split them."""

    X: Floats
    y: npt.NDArray[Any]
    regression: bool
    folds: int
    seed: int


@dataclass(frozen=True)
class Choice:
    """A fitted model with the kernel that was chosen for it."""

    model: Any
    kernel: Kernel
    theta: Floats
    seconds: float
    remarks: tuple[str, ...] = ()


# ------------------------------------------------------------------- by marginal likelihood


def by_marginal_likelihood(kernel: Kernel, data: Data) -> Choice:
    """Return the Gaussian process with the kernel under which the labels are most likely."""
    began = clock.now()
    stated = covariance(kernel)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model, theta = _process(stated, data)
        except np.linalg.LinAlgError as failed:
            raise ValueError(
                f"kernel={kernel!r} has a matrix on these rows that is not positive definite, so "
                "that no Gaussian process has it for a covariance: mm.check_kernel tells more."
            ) from failed
    remarks = tuple(dict.fromkeys(f"scikit-learn: {one.message}" for one in caught))
    found = with_theta(kernel, theta)
    return Choice(model, found, theta, clock.now() - began, remarks)


def _process(stated: Any, data: Data) -> tuple[Any, Floats]:
    if data.regression:
        noisy = stated + WhiteKernel()
        model = GaussianProcessRegressor(noisy, normalize_y=True, random_state=data.seed)
        model.fit(data.X, data.y)
        return model, np.asarray(model.kernel_.theta[: stated.n_dims])
    if len(np.unique(data.y)) == 2:
        model = GaussianProcessClassifier(stated, random_state=data.seed).fit(data.X, data.y)
        return model, np.asarray(model.kernel_.theta)
    theta = _shared(stated, data)
    settled = stated.clone_with_theta(theta) if len(theta) else stated
    model = GaussianProcessClassifier(settled, optimizer=None, random_state=data.seed)
    return model.fit(data.X, data.y), theta


def _shared(stated: Any, data: Data) -> Floats:
    """Return the one kernel for all classes: of the largest mean log marginal likelihood.

    By itself scikit-learn takes another kernel for each class against the rest.
    """
    if not stated.n_dims:
        return np.empty(0)
    model = GaussianProcessClassifier(stated, optimizer=None, random_state=data.seed)
    processes = model.fit(data.X, data.y).base_estimator_.estimators_

    def loss(theta: Floats) -> tuple[float, Floats]:
        each = [one.log_marginal_likelihood(theta, eval_gradient=True) for one in processes]
        values, slopes = zip(*each, strict=True)
        return -float(np.mean(values)), -np.mean(slopes, axis=0)

    found = scipy.optimize.minimize(
        loss, stated.theta, jac=True, bounds=stated.bounds, method="L-BFGS-B"
    )
    return np.asarray(found.x)


def log_marginal_likelihood(model: Any, theta: Floats) -> float:
    """Return it for a kernel of these parameters; the noise of a regression stays as it is."""
    if isinstance(model, GaussianProcessRegressor):
        theta = np.concatenate([theta, model.kernel_.theta[len(theta) :]])
        return float(model.log_marginal_likelihood(theta))
    if not len(theta):
        return float(model.log_marginal_likelihood())
    return float(model.log_marginal_likelihood(theta))


# ------------------------------------------------------------------- by cross-validation


def by_cross_validation(
    kernel: Kernel, starts: list[Floats], data: Data, bar: Bar, tune: bool, spent: float
) -> Choice:
    """Return the SVM with the cost and, if asked, the kernel of the best cross-validated score.

    One coordinate after the other moves over a grid in its logarithm, from the best of ``starts``;
    of equal scores the first is kept. ``spent`` are the seconds that the starts took.
    """
    began = clock.now()
    scores: dict[tuple[float, ...], dict[float, float]] = {}
    bounds = covariance(kernel).bounds

    def score(cost: float, theta: Floats) -> float:
        key = tuple(theta.tolist())
        if key not in scores:
            scores[key] = _scores(with_theta(kernel, theta), data)
            bar.advance()
        return scores[key][cost]

    theta = max(starts, key=lambda start: score(1.0, start))
    cost = max(COSTS, key=lambda C: score(C, theta))
    for _ in range(_SWEEPS if tune else 0):
        before = score(cost, theta)
        for k in range(len(theta)):
            steps = np.append(0.0, _STEPS)[:, np.newaxis] * np.eye(len(theta))[k]
            moved = list(np.clip(theta + steps, *bounds.T))
            theta = max(moved, key=lambda one: score(cost, one))
        cost = max((cost, *COSTS), key=lambda C: score(C, theta))
        if score(cost, theta) == before:
            break
    found = with_theta(kernel, theta)
    model = _machine(found, cost, data).fit(data.X, data.y)
    return Choice(model, found, theta, spent + clock.now() - began)


def _machine(kernel: Kernel, cost: float, data: Data) -> Any:
    if data.regression:
        spread = float(np.std(data.y)) or 1.0
        return SVR(kernel=kernel, C=cost * spread, epsilon=_TUBE * spread)
    return SVC(kernel=kernel, C=cost)


def _scores(kernel: Kernel, data: Data) -> dict[float, float]:
    """Return the mean score of each cost."""
    split: Any = KFold if data.regression else StratifiedKFold
    folds = split(data.folds, shuffle=True, random_state=data.seed)
    machines = [_machine(kernel, cost, data) for cost in COSTS]
    grid = {"C": [machine.C for machine in machines]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a candidate that does not converge only scores badly
        search = SVCSearchCV(machines[0], grid, cv=folds, refit=False, error_score="raise")
        search.fit(data.X, data.y)
    return dict(zip(COSTS, search.cv_results_["mean_test_score"].tolist(), strict=True))
