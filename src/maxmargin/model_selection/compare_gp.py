"""Support vector machines beside Gaussian processes, with one kernel for both."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.utils import check_array
from sklearn.utils.multiclass import type_of_target

from maxmargin import clock
from maxmargin._typing import Floats
from maxmargin.estimators import SVC, SVR
from maxmargin.html import joined, table, tag
from maxmargin.kernels import Kernel, as_kernel, from_sklearn, to_sklearn
from maxmargin.model_selection.search.search_cv import SVCSearchCV
from maxmargin.progress import Bar, progress
from maxmargin.validation.data import check_classes, check_labels, check_targets, generator

GP = "GP"
SVM_BY_GP = "SVM, the GP's kernel"
SVM_BY_CV = "SVM, kernel by CV"


@dataclass(frozen=True, eq=False, repr=False)
class GPComparison:
    """An SVM beside a Gaussian process; it prints as a small table.

    The keys of dicts are the names of models: "GP", "SVM, the GP's kernel" and "SVM, kernel by CV".

    Attributes
    ----------
    kernel_gp, kernel_cv : Kernel
        The kernel by marginal likelihood, and by cross-validation.
    models : dict
        The fitted models.
    predictions, scores : dict
        Their predictions for the held-out rows, and the accuracy there (R² in regression).
    support_count : dict
        How many training rows a prediction uses; for the process, all.
    seconds : dict
        To choose parameters and fit. The SVMs start from the kernel of the process, so their
        seconds include its search.
    log_marginal_likelihood : dict
        Of the kernels "GP" and "CV", under the process.
    agreement : float
        The share of held-out rows to which the process and the tuned SVM give the same class; in
        regression, the correlation of their predictions.
    n_classes, n_rows : int
        How many classes (0: regression) and training rows there are.
    X_test, y_test : ndarray
        The held-out rows.
    notes : tuple of str
        What else you should know, as sentences.
    """

    kernel_gp: Kernel
    kernel_cv: Kernel
    models: dict[str, Any]
    predictions: dict[str, npt.NDArray[Any]]
    scores: dict[str, float]
    support_count: dict[str, int]
    seconds: dict[str, float]
    log_marginal_likelihood: dict[str, float]
    agreement: float
    n_classes: int
    n_rows: int
    X_test: npt.NDArray[np.float64]
    y_test: npt.NDArray[Any]
    notes: tuple[str, ...] = ()

    def _table(self) -> tuple[str, list[tuple[str, ...]]]:
        """Return a heading, and lines of cells of which the first are the names of columns."""
        kind = f"{self.n_classes} classes" if self.n_classes else "Regression"
        score = "accuracy" if self.n_classes else "R²"
        kernels = {GP: self.kernel_gp, SVM_BY_GP: self.kernel_gp, SVM_BY_CV: self.kernel_cv}
        lines: list[tuple[str, ...]] = [("", score, "rows used", "seconds", "kernel")]
        for name in self.models:
            numbers = f"{self.scores[name]:.3f}", f"{self.support_count[name]}"
            kernel = re.sub(r"\d+\.\d{4,}(e[+-]?\d+)?", _shorten, repr(kernels[name]))
            lines.append((name, *numbers, f"{self.seconds[name]:.2f}", kernel))
        return f"{kind}: {self.n_rows} training rows, {len(self.y_test)} held out", lines

    def _messages(self) -> list[str]:
        likelihood = self.log_marginal_likelihood
        agreement = f"correlate by {self.agreement:.3f} on the held-out rows"
        if self.n_classes:
            agreement = f"agree on {self.agreement:.1%} of the held-out rows"
        return [
            f"Log marginal likelihood: {likelihood['GP']:.4g} (the GP's kernel), "
            f"{likelihood['CV']:.4g} (that of CV).",
            f"GP and SVM {agreement}.",
            *self.notes,
        ]

    def __repr__(self) -> str:
        heading, lines = self._table()
        first, *wide = (max(map(len, column)) for column in zip(*lines, strict=True))
        rows = []
        for name, *numbers, kernel in lines:
            cells = [f"{cell:>{width}}" for cell, width in zip(numbers, wide[:-1], strict=True)]
            rows.append("  ".join([f"{name:<{first}}", *cells, kernel]))
        return "\n".join([heading, *rows, *self._messages()])

    def _repr_html_(self) -> str:
        heading, (columns, *lines) = self._table()
        paragraphs = [tag("p", message) for message in self._messages()]
        return joined([table(columns, lines, heading), *paragraphs])

    def to_dict(self) -> dict[str, Any]:
        """Return all but the models as what JSON can hold; kernels as they print."""
        names = ("scores", "support_count", "seconds", "log_marginal_likelihood", "agreement",
                 "n_classes", "n_rows")  # fmt: skip
        return {
            "kernel_gp": repr(self.kernel_gp),
            "kernel_cv": repr(self.kernel_cv),
            "predictions": {name: values.tolist() for name, values in self.predictions.items()},
            **{name: getattr(self, name) for name in names},
            "y_test": self.y_test.tolist(),
            "notes": list(self.notes),
        }


def _shorten(number: re.Match[str]) -> str:
    return f"{float(number[0]):.4g}"


# ------------------------------------------------------------------- kernels as covariances

_WITHOUT_GAMMA = ("linear", "cosine")  # pairwise kernels that ignore it


def covariance(kernel: Kernel) -> Any:
    """Return the covariance with the values of a kernel, its real parameters free to move."""
    stated = clone(to_sklearn(kernel))  # a copy: it may be the user's own
    for part in [stated, *stated.get_params().values()]:
        if isinstance(part, gp.PairwiseKernel) and part.metric in _WITHOUT_GAMMA:
            part.gamma_bounds = "fixed"
    return stated


def with_theta(kernel: Kernel, theta: Floats) -> Kernel:
    """Return the kernel with the parameters that ``theta`` gives to its covariance."""
    stated = covariance(kernel)
    return from_sklearn(stated.clone_with_theta(theta)) if stated.n_dims else kernel


# ------------------------------------------------------------------- the two ways to a kernel

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
    notes: tuple[str, ...] = ()


def by_marginal_likelihood(kernel: Kernel, data: Data) -> Choice:
    """Return the Gaussian process with the kernel under which the labels are most likely."""
    began = clock.now()
    stated = covariance(kernel)
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            model, theta = _fit_process(stated, data)
        except np.linalg.LinAlgError as failed:
            raise ValueError(
                f"kernel={kernel!r} has a matrix on these rows that is not positive definite, so "
                "it cannot be the covariance of a Gaussian process: see mm.check_kernel."
            ) from failed
    notes = tuple(dict.fromkeys(f"scikit-learn: {each.message}" for each in caught))
    return Choice(model, with_theta(kernel, theta), theta, clock.now() - began, notes)


def _fit_process(stated: Any, data: Data) -> tuple[Any, Floats]:
    if data.regression:
        noisy = stated + gp.WhiteKernel()
        model = GaussianProcessRegressor(noisy, normalize_y=True, random_state=data.seed)
        model.fit(data.X, data.y)
        return model, np.asarray(model.kernel_.theta[: stated.n_dims])
    if len(np.unique(data.y)) == 2:
        model = GaussianProcessClassifier(stated, random_state=data.seed).fit(data.X, data.y)
        return model, np.asarray(model.kernel_.theta)
    theta = _maximise_likelihood(stated, data)
    shared = stated.clone_with_theta(theta) if len(theta) else stated
    model = GaussianProcessClassifier(shared, optimizer=None, random_state=data.seed)
    return model.fit(data.X, data.y), theta


def _maximise_likelihood(stated: Any, data: Data) -> Floats:
    """Return the parameters, shared by all classes, with the largest mean log marginal likelihood.

    scikit-learn by itself fits a different kernel for each class against the rest.
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


def by_cross_validation(
    kernel: Kernel, starts: list[Floats], data: Data, bar: Bar, tune: bool, spent: float
) -> Choice:
    """Return the SVM with the cost, and with ``tune`` the kernel, of the best score by CV.

    One parameter after the other moves over a grid in its logarithm, from the best of ``starts``;
    of equal scores the first wins. ``spent`` is the number of seconds that the starts took.
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
        warnings.simplefilter("ignore")  # a candidate that does not converge just scores badly
        search = SVCSearchCV(machines[0], grid, cv=folds, refit=False, error_score="raise")
        search.fit(data.X, data.y)
    return dict(zip(COSTS, search.cv_results_["mean_test_score"].tolist(), strict=True))


# ------------------------------------------------------------------- the comparison


def compare_gp(
    X: Any,
    y: Any,
    kernel: Any = "rbf",
    *,
    X_test: Any = None,
    y_test: Any = None,
    test_size: float = 0.25,
    task: str = "auto",
    cv: int = 5,
    max_rows: int = 1000,
    random_state: Any = None,
) -> GPComparison:
    """Put an SVM beside a Gaussian process that has the same kernel.

    A kernel is also a covariance. The parameters of the kernel are chosen twice: by marginal
    likelihood, as Gaussian processes do (scikit-learn's), and by cross-validation, as SVMs do.
    Three models are compared on rows that none has seen: the process, the SVM with the kernel of
    the process, and the SVM with the kernel of cross-validation. Both SVMs have their cost C by
    cross-validation.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows; dense, as Gaussian processes are.
    y : array-like of shape (n,)
        Labels of two or more classes, or targets.
    kernel : Kernel or str, default="rbf"
        Any object of ``mm.kernels`` that is positive semidefinite, or a name. Its parameters are
        where the searches start.
    X_test, y_test : array-like, optional
        Rows to compare on. By default a part of X.
    test_size : float, default=0.25
        That part, between 0 and 1.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto": regression if y holds numbers that are not whole.
    cv : int, default=5
        Folds, ≥ 2; fewer if a class has fewer rows.
    max_rows : int, default=1000
        A Gaussian process costs n³ (a thousand rows take up to a minute): if there are more
        training rows, all models are fitted to a sample of this size, and the answer says so.
    random_state : int, Generator, RandomState or None, default=None
        For the split, the sample and the folds. None: a fixed seed.

    Returns
    -------
    GPComparison
        Kernels, models, predictions, scores, support vectors and seconds, side by side.

    Notes
    -----
    With more than two classes the process is one against the rest, with the one kernel that
    maximises the mean of the log marginal likelihoods. In regression the noise is a parameter of
    the process, and ε is a tenth of the spread of y. The search of cross-validation starts from the
    better of the given kernel and that of the process, and moves one parameter at a time. As both
    SVMs rest on the kernel of the process, their seconds count those it took.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(80, random_state=0)
    >>> found = mm.compare_gp(X, y, mm.kernels.RBF(gamma=1.0), cv=3)
    >>> found.support_count["SVM, kernel by CV"] <= found.n_rows
    True
    >>> type(found.kernel_gp).__name__
    'RBF'
    """
    rng = generator(0 if random_state is None else random_state)
    regression = _is_regression(y, task)
    X, y = _check_rows(X, y, regression)
    kernel = _check_kernel(kernel)
    _check_integer("cv", cv, 2)
    _check_integer("max_rows", max_rows, 10)
    X, X_test, y, y_test = _hold_out(X, y, X_test, y_test, test_size, regression, rng)
    notes = []
    if len(y) > max_rows:
        notes.append(f"A sample of {max_rows} of the {len(y)} training rows was taken.")
        X, _, y, _ = _cut(X, y, regression, rng, train_size=max_rows)
    data = Data(X, y, regression, _count_folds(y, cv, regression), int(rng.integers(2**31)))
    kernel = kernel.resolved(X)
    theta = np.asarray(covariance(kernel).theta, dtype=np.float64)
    if not len(theta):
        notes.append(f"{kernel!r} has no parameters to choose: nothing but C is tuned.")
    with progress("Comparing", unit="kernel") as bar:
        bar.update(note=GP)
        process = by_marginal_likelihood(kernel, data)
        bar.update(note=SVM_BY_GP)
        starts, spent = [process.theta], process.seconds
        borrowed = by_cross_validation(kernel, starts, data, bar, False, spent)
        bar.update(note=SVM_BY_CV)
        tuned = by_cross_validation(kernel, [theta, *starts], data, bar, len(theta) > 0, spent)
        choices = {GP: process, SVM_BY_GP: borrowed, SVM_BY_CV: tuned}
        return _join(choices, data, X_test, y_test, (*notes, *process.notes))


def _join(
    choices: dict[str, Choice], data: Data, X_test: Floats, y_test: Any, notes: tuple[str, ...]
) -> GPComparison:
    process, tuned = choices[GP], choices[SVM_BY_CV]
    predictions = {name: one.model.predict(X_test) for name, one in choices.items()}
    support = {name: len(one.model.support_) for name, one in choices.items() if name != GP}
    return GPComparison(
        kernel_gp=process.kernel,
        kernel_cv=tuned.kernel,
        models={name: one.model for name, one in choices.items()},
        predictions=predictions,
        scores={name: float(one.model.score(X_test, y_test)) for name, one in choices.items()},
        support_count={GP: len(data.y), **support},
        seconds={name: one.seconds for name, one in choices.items()},
        log_marginal_likelihood={
            "GP": _log_likelihood(process.model, process.theta),
            "CV": _log_likelihood(process.model, tuned.theta),
        },
        agreement=_agreement(predictions[GP], predictions[SVM_BY_CV], data.regression),
        n_classes=0 if data.regression else len(np.unique(data.y)),
        n_rows=len(data.y),
        X_test=X_test,
        y_test=y_test,
        notes=notes,
    )


def _log_likelihood(model: Any, theta: Floats) -> float:
    """Return that of a kernel with these parameters; the noise of a regression stays as it is."""
    if isinstance(model, GaussianProcessRegressor):
        theta = np.concatenate([theta, model.kernel_.theta[len(theta) :]])
    return float(model.log_marginal_likelihood(theta if len(theta) else None))


def _agreement(one: Any, other: Any, regression: bool) -> float:
    if not regression:
        return float(np.mean(one == other))
    if np.std(one) == 0 or np.std(other) == 0:
        return float(np.allclose(one, other))
    return float(np.corrcoef(one, other)[0, 1])


# ------------------------------------------------------------------- input


def _is_regression(y: Any, task: str) -> bool:
    if not isinstance(task, str) or task not in ("auto", "classification", "regression"):
        raise ValueError(
            f"task={task!r} is not valid: choose 'auto', 'classification' or 'regression'."
        )
    if task != "auto":
        return task == "regression"
    return y is not None and type_of_target(y, input_name="y").startswith("continuous")


def _check_rows(X: Any, y: Any, regression: bool, suffix: str = "") -> tuple[Floats, Any]:
    if sp.issparse(X):
        raise TypeError(f"X{suffix} is sparse, and Gaussian processes are dense: pass X.toarray().")
    X = check_array(X, dtype=np.float64, input_name=f"X{suffix}")
    return X, check_targets(y, len(X)) if regression else check_labels(y, len(X))


def _check_kernel(given: Any) -> Kernel:
    kernel: Kernel = as_kernel(given)
    if kernel.takes_gram or kernel.takes_objects:
        raise ValueError(
            f"kernel={kernel!r} is not a function of two rows with parameters to choose: pass "
            "rows, and a kernel of mm.kernels."
        )
    if kernel.psd is False:
        raise ValueError(
            f"kernel={kernel!r} is not positive semidefinite, so it cannot be the covariance of a "
            "Gaussian process. Choose another, such as RBF()."
        )
    return kernel


def _check_integer(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name}={value!r} is not valid: it must be an integer >= {least}.")


def _hold_out(
    X: Floats, y: Any, X_test: Any, y_test: Any, test_size: float, regression: bool, rng: Any
) -> list[Any]:
    """Return training rows, held-out rows, and the labels or targets of both."""
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together: pass both, or neither.")
    if X_test is not None:
        X_test, y_test = _check_rows(X_test, y_test, regression, "_test")
        if X_test.shape[1] != X.shape[1]:
            raise ValueError(f"X_test has {X_test.shape[1]} columns, and X has {X.shape[1]}.")
    if not regression:
        classes, least = check_classes(SVC(), y), 2 if X_test is not None else 3
        counts = np.unique(y, return_counts=True)[1]
        if counts.min() < least:
            raise ValueError(
                f"Class {classes[counts.argmin()]!r} has {counts.min()} rows, and {least} are "
                "needed to hold some out and cross-validate: drop it, or add rows."
            )
    if X_test is not None:
        return [X, X_test, y, y_test]
    return _cut(X, y, regression, rng, test_size=test_size)


def _cut(X: Floats, y: Any, regression: bool, rng: Any, **size: Any) -> list[Any]:
    """Return rows in two parts, then their labels or targets; classes keep their proportions."""
    seed, by_class = int(rng.integers(2**31)), None if regression else y
    return list(train_test_split(X, y, stratify=by_class, random_state=seed, **size))


def _count_folds(y: Any, cv: int, regression: bool) -> int:
    rarest = len(y) if regression else int(np.unique(y, return_counts=True)[1].min())
    if rarest < 2:
        raise ValueError(
            "A class has only one training row, so cross-validation is impossible: add rows, raise "
            "max_rows or lower test_size."
        )
    return min(int(cv), rarest)
