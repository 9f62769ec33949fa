"""Support vector machines beside Gaussian processes, with one kernel for both."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array
from sklearn.utils.multiclass import type_of_target

from maxmargin.estimators import SVC
from maxmargin.estimators.inputs import check_classes, check_labels, check_targets, generator
from maxmargin.kernels import Kernel, as_kernel
from maxmargin.model_selection.compare_gp_answers import GP, SVM_BY_CV, SVM_BY_GP, GPComparison
from maxmargin.model_selection.compare_gp_fits import (
    Choice,
    Data,
    by_cross_validation,
    by_marginal_likelihood,
    log_marginal_likelihood,
)
from maxmargin.model_selection.compare_gp_kernels import covariance
from maxmargin.progress import progress

Floats = npt.NDArray[np.float64]

_TASKS = ("auto", "classification", "regression")


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
        A Gaussian process costs n³ (a thousand rows, up to a minute): of more training rows than
        these a sample is taken, for all models, and the answer says so.
    random_state : int, Generator, RandomState or None, default=None
        For the split, the sample and the folds. None is a fixed seed.

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
    X, y = _checked(X, y, regression, "")
    kernel = _checked_kernel(kernel)
    _refuse_numbers(test_size, cv, max_rows)
    X, y, X_test, y_test = _split(X, y, X_test, y_test, test_size, regression, rng)
    notes = []
    if len(y) > max_rows:
        notes.append(f"A sample of {max_rows} of the {len(y)} training rows was taken.")
        X, y = _sample(X, y, max_rows, regression, rng)
    data = Data(X, y, regression, _folds(y, cv, regression), int(rng.integers(2**31)))
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
        return _compared(choices, data, X_test, y_test, (*notes, *process.remarks))


def _compared(
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
            "GP": log_marginal_likelihood(process.model, process.theta),
            "CV": log_marginal_likelihood(process.model, tuned.theta),
        },
        agreement=_agreement(predictions[GP], predictions[SVM_BY_CV], data.regression),
        n_classes=0 if data.regression else len(np.unique(data.y)),
        n_rows=len(data.y),
        X_test=X_test,
        y_test=y_test,
        notes=notes,
    )


def _agreement(one: Any, other: Any, regression: bool) -> float:
    if not regression:
        return float(np.mean(one == other))
    if np.std(one) == 0 or np.std(other) == 0:
        return float(np.allclose(one, other))
    return float(np.corrcoef(one, other)[0, 1])


# ------------------------------------------------------------------- input


def _is_regression(y: Any, task: str) -> bool:
    if not isinstance(task, str) or task not in _TASKS:
        raise ValueError(
            f"task={task!r} is not valid: choose one of {', '.join(map(repr, _TASKS))}."
        )
    if task != "auto":
        return task == "regression"
    return y is not None and type_of_target(y, input_name="y").startswith("continuous")


def _checked(X: Any, y: Any, regression: bool, suffix: str) -> tuple[Floats, Any]:
    if sp.issparse(X):
        raise TypeError(f"X{suffix} is sparse, and Gaussian processes are dense: pass X.toarray().")
    X = check_array(X, dtype=np.float64, input_name=f"X{suffix}")
    if regression:
        return X, check_targets(y, len(X))
    return X, check_labels(y, len(X))


def _checked_kernel(given: Any) -> Kernel:
    kernel: Kernel = as_kernel(given)
    if kernel.takes_gram or kernel.takes_objects:
        raise ValueError(
            f"kernel={kernel!r} is not a function of two rows with parameters to choose, which is "
            "what is compared here: pass rows, and a kernel of mm.kernels."
        )
    if kernel.psd is False:
        raise ValueError(
            f"kernel={kernel!r} is not positive semidefinite: no Gaussian process has it for a "
            "covariance. Choose another, such as RBF()."
        )
    return kernel


def _refuse_numbers(test_size: Any, cv: Any, max_rows: Any) -> None:
    if not isinstance(test_size, float) or not 0 < test_size < 1:
        raise ValueError(f"test_size={test_size!r} is not valid: it must be a number in (0, 1).")
    for name, value, least in (("cv", cv, 2), ("max_rows", max_rows, 10)):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least:
            raise ValueError(f"{name}={value!r} is not valid: it must be an integer >= {least}.")


def _split(
    X: Floats, y: Any, X_test: Any, y_test: Any, test_size: float, regression: bool, rng: Any
) -> tuple[Floats, Any, Floats, Any]:
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together: pass both, or neither.")
    if X_test is not None:
        X_test, y_test = _checked(X_test, y_test, regression, "_test")
        if X_test.shape[1] != X.shape[1]:
            raise ValueError(f"X_test has {X_test.shape[1]} columns, and X has {X.shape[1]}.")
    if not regression:
        check_classes(SVC(), y)
        _refuse_rare(y, 2 if X_test is not None else 3)
    if X_test is not None:
        return X, y, X_test, y_test
    if len(y) < 8:
        raise ValueError(f"X has {len(y)} rows: too few to hold some out. Pass X_test and y_test.")
    chosen = train_test_split(
        X,
        y,
        test_size=test_size,
        stratify=None if regression else y,
        random_state=int(rng.integers(2**31)),
    )
    return chosen[0], chosen[2], chosen[1], chosen[3]


def _refuse_rare(y: Any, least: int) -> None:
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < least:
        rare = classes[counts.argmin()]
        raise ValueError(
            f"Class {rare!r} has {counts.min()} rows, and {least} are needed to hold some out and "
            "cross-validate: drop it, or add rows."
        )


def _sample(X: Floats, y: Any, size: int, regression: bool, rng: Any) -> tuple[Floats, Any]:
    chosen = train_test_split(
        X,
        y,
        train_size=size,
        stratify=None if regression else y,
        random_state=int(rng.integers(2**31)),
    )
    return chosen[0], chosen[2]


def _folds(y: Any, cv: int, regression: bool) -> int:
    rarest = len(y) if regression else int(np.unique(y, return_counts=True)[1].min())
    if rarest < 2:
        raise ValueError(
            "A class has only one training row, so that nothing can be cross-validated: add rows, "
            "raise max_rows or lower test_size."
        )
    return min(int(cv), rarest)
