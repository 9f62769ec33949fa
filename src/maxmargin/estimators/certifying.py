"""How good is a fitted model? Its own objective, a bound on the best possible one, and the gap."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from maxmargin.certificates import Certificate, together
from maxmargin.certificates import certify as certify_point
from maxmargin.estimators.foreign import READERS, PerceptronFacts, Reader, Training
from maxmargin.estimators.foreign.linear_machines import bounded
from maxmargin.estimators.inputs import check_rows, refuse_swapped, regression_weights
from maxmargin.problems.problem import KernelProblem


def certify(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, max_time: float | None = 60.0
) -> Certificate | PerceptronFacts:
    """Say how far a fitted model is from the optimum of the objective it was fitted to.

    Nothing that the model says of itself is trusted: the objective is computed from its weights
    *and its own intercept*, as it predicts, on the training data; the bound from dual variables,
    its own or the best that can be found.

    Parameters
    ----------
    model : fitted estimator
        Of maxmargin; or SVC, SVR, NuSVC, NuSVR, OneClassSVM, LinearSVC, LinearSVR, SGDClassifier
        (with a hinge loss) or Perceptron of scikit-learn or sklearn-intelex; or a pipeline that
        ends with one, or a search for one.
    X : array-like or sparse matrix of shape (n, d)
        The rows the model was fitted to, in the same order (of a pipeline, those given to it); for
        kernel="precomputed" the square matrix of kernel values.
    y : array-like of shape (n,)
        Their labels or targets; of an outlier detector, anything.
    sample_weight : array-like of shape (n,), optional
        Their weights, if the model was given some. (class_weight it remembers.)
    max_time : float or None, default=60.0
        Seconds allowed for finding a bound where a model has no dual variables, for each of its
        binary problems. None is no limit.

    Returns
    -------
    Certificate
        With ``parts`` for several classes, one for each binary problem. Its ``intercept`` is the
        best one for the weights, and ``intercept_cost`` the part of the gap that this would save.
        Of models without dual variables, ``drift`` and ``max_kkt_violation`` compare the weights
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
    """
    refuse_swapped("certify(model, X, y)", model, X, y)
    model, X = _last_step(model, X)
    if hasattr(model, "_problems"):
        check_is_fitted(model)
        pairs = model._problems(X, y, sample_weight)
        return together([_certified(problem, point, max_time) for problem, point in pairs])
    reader = _reader(model)
    check_is_fitted(model)
    rows = check_rows(model, X, reset=False)
    weight = regression_weights(sample_weight, rows.shape[0])  # class_weight is the reader's affair
    return reader(model, Training(rows, y, weight, max_time))


def _last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the machine inside pipelines and fitted searches, and the rows as it sees them."""
    while hasattr(model, "steps") or _is_search(model):
        if _is_search(model):
            check_is_fitted(model)
            if not hasattr(model, "best_estimator_"):
                raise ValueError(
                    f"{type(model).__name__}(refit=False) has no fitted model to certify: fit one "
                    "with its best_params_."
                )
            model = model.best_estimator_
        else:
            check_is_fitted(model)
            X, model = model[:-1].transform(X) if len(model.steps) > 1 else X, model.steps[-1][1]
    return model, X


def _is_search(model: Any) -> bool:
    return hasattr(model, "cv_results_") or hasattr(model, "param_grid")


def _certified(problem: Any, point: Any, max_time: float | None) -> Certificate:
    """Return the certificate of a point of ours; without duals for these rows it gets a bound."""
    if isinstance(problem, KernelProblem):
        return certify_point(problem, point, keep_intercept=True)
    if point.beta is None or len(point.beta) != problem.X.shape[0]:
        return bounded(problem, point.w, float(point.b), max_time)
    return certify_point(problem, point, keep_intercept=True)


def _reader(model: Any) -> Reader:
    for kind in type(model).__mro__:
        readers = READERS.get(kind.__module__.partition(".")[0], {})
        if kind.__name__ in readers:
            return readers[kind.__name__]
    known = ", ".join(READERS["sklearn"])
    raise TypeError(
        f"certify cannot read {type(model).__name__}: it knows maxmargin's models, and {known} of "
        "scikit-learn and sklearn-intelex, alone or in a pipeline or search. Of what else contains "
        "a model, give that one and X as it sees it."
    )
