"""How good a fitted model is: its objective, a bound on the best possible one, and the gap."""

from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from maxmargin.certificates import Certificate, together
from maxmargin.certificates import certify as certify_point
from maxmargin.estimators.linear.blocked import as_source, is_source
from maxmargin.inspection.foreign import READERS, PerceptronFacts, Reader, TrainingData
from maxmargin.inspection.foreign.from_file import describe_training
from maxmargin.inspection.foreign.linear import ENOUGH, certify_by_bound, find_duals
from maxmargin.inspection.model_view import view_model
from maxmargin.problems.blocked import BlockedProblem
from maxmargin.problems.problem import Point, Status
from maxmargin.structured.problem import StructuredProblem
from maxmargin.validation.data import check_rows, refuse_swapped, regression_weights


def certify(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None, *, max_time: float | None = 60.0
) -> Certificate | PerceptronFacts:
    """Bound how far a fitted model is from the optimum of the objective it was fitted to.

    The model's own figures are not trusted: the objective is computed from its weights *and its
    own intercept*, as it predicts, on the training data; the bound from dual variables, its own or
    the best that can be found.

    Parameters
    ----------
    model : fitted estimator
        Of maxmargin, those read from files of LIBSVM and LIBLINEAR included; or SVC, SVR, NuSVC,
        NuSVR, OneClassSVM, LinearSVC, LinearSVR, SGDClassifier (with a hinge loss) or Perceptron of
        scikit-learn or sklearn-intelex; or a pipeline that ends with one, or a search for one.
    X : array-like or sparse matrix of shape (n, d), or source
        The rows the model was fitted to, in the same order (for a pipeline, those given to it);
        for kernel="precomputed" the square matrix of kernel values. What ``mm.data.open`` returns,
        and collections of Dask, are read block by block, or by the workers of a cluster, for
        maxmargin's LinearSVC, LinearSVR and kernel machines.
    y : array-like of shape (n,), optional
        Their labels or targets; ignored for an outlier detector. A source has its own.
    sample_weight : array-like of shape (n,), optional
        Their weights, if the model was given any. (It remembers its class_weight itself.)
    max_time : float or None, default=60.0
        Seconds allowed for finding a bound if the model has no dual variables, for each of its
        binary problems. None: no limit.

    Returns
    -------
    Certificate
        With ``parts`` for several classes, one for each binary problem. Its ``intercept`` is the
        best one for the weights, and ``intercept_cost`` the part of the gap that it would save.
        For models without dual variables, ``drift`` and ``max_kkt_violation`` compare the weights
        with the duals of the bound. An indefinite kernel has no bound: its gap is infinite.
    PerceptronFacts
        For a perceptron, which has no objective: mistakes, margin and whether the classes are
        separable.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from sklearn.svm import SVC
    >>> X, y = mm.datasets.gaussians(100, random_state=0)
    >>> loose, tight = (SVC(tol=tol).fit(X, y) for tol in (1e-1, 1e-6))
    >>> mm.certify(tight, X, y).holds(1e-6)
    True
    >>> mm.certify(loose, X, y).gap > mm.certify(tight, X, y).gap
    True

    Rows that are read in blocks:

    >>> source = mm.data.open(X, y, rows=30)
    >>> mm.certify(mm.LinearSVC().fit(source), source).holds(1e-4)
    True
    """
    refuse_swapped("certify(model, X, y)", model, X, y)
    view = view_model(model)
    machine = view.machine
    if is_source(X):
        _refuse_in_blocks(machine)
        X, y, sample_weight = as_source(X, y, sample_weight), None, None
    seen = view.transform(X)
    if hasattr(machine, "origin_"):  # ours by its class, but solved by another program
        described, data = describe_training(machine, seen, y, sample_weight, max_time)
        return READERS["sklearn"][type(machine).__name__](described, data)
    if hasattr(machine, "solution"):  # ours, or made to be checked
        check_is_fitted(machine)
        solved = machine.solution(seen, y, sample_weight)
        return together([_certify_point(problem, point, max_time) for problem, point, _ in solved])
    reader = _find_reader(machine)
    check_is_fitted(machine)
    rows = check_rows(machine, seen, reset=False)
    weight = regression_weights(sample_weight, rows.shape[0])  # readers add class_weight themselves
    return reader(machine, TrainingData(rows, y, weight, max_time))


def _certify_point(problem: Any, point: Any, max_time: float | None) -> Certificate:
    """Certify a point of one of our models; without duals for these rows, find a bound."""
    if isinstance(problem, StructuredProblem):
        return certify_point(problem, point)
    if isinstance(problem, BlockedProblem):
        return _certify_blocks(problem, point, max_time)
    if point.beta is None or len(point.beta) != problem.variables:
        return certify_by_bound(problem, point.w, float(point.b), max_time)
    return certify_point(problem, point, keep_intercept=True)


def _certify_blocks(problem: BlockedProblem, point: Point, max_time: float | None) -> Certificate:
    """Certify a plane on rows in blocks; without duals, find some from this plane on."""
    if point.beta is not None:
        return certify_point(problem, point, keep_intercept=True)
    problem = replace(problem, checkpoint=None)  # which is that of a fit
    found = find_duals(problem, max_time, point)
    own = replace(point, beta=found.point.beta)
    certificate = certify_point(problem, own, keep_intercept=True)
    if found.run.status is Status.OPTIMAL or certificate.holds(ENOUGH):
        return certificate
    late = "was not found in time" if found.run.status is Status.MAX_TIME else "was not found"
    return replace(certificate, caveat=f"a better bound, which there may be, {late}")


def _refuse_in_blocks(machine: Any) -> None:
    """Raise if a model needs all rows in memory."""
    ours = type(machine).__module__.startswith("maxmargin.")
    if not ours or hasattr(machine, "origin_"):
        read = " read from a file of another program" if ours else ""
        raise TypeError(
            f"A {type(machine).__name__}{read} is certified with all rows in memory, but these are "
            "read in blocks: pass arrays X and y."
        )


def _find_reader(model: Any) -> Reader:
    for kind in type(model).__mro__:
        readers = READERS.get(kind.__module__.partition(".")[0], {})
        if kind.__name__ in readers:
            return readers[kind.__name__]
    known = ", ".join(READERS["sklearn"])
    raise TypeError(
        f"certify cannot read {type(model).__name__}: it knows maxmargin's models that minimise an "
        f"objective, and {known} of scikit-learn and sklearn-intelex, alone or in a pipeline or "
        "search. If another object contains such a model, give that model, and X as it sees it."
    )
