"""The support vector classifier with any kernel."""

from typing import Any, Self

from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.formulations import CSVCForm
from maxmargin.estimators.machine import Formulated
from maxmargin.estimators.reductions import HingeMultipliers
from maxmargin.estimators.svm.base import KernelClassifier
from maxmargin.problems.problem import Intercept
from maxmargin.solve import Callback, Result
from maxmargin.validation.parameters import check_choice, check_cost, check_flag


class SVC(HingeMultipliers, KernelClassifier):
    """Support vector classifier with any kernel, and a proof of how good it is.

    Minimises ½‖w‖² + C Σ ξ with ξ = max(0, 1 − y f(x)) and f(x) = w·φ(x) + b, for every pair of
    classes, or as ``multi_class`` says. Parameters and attributes are those of
    ``sklearn.svm.SVC``, and more; ``tol`` is a relative duality gap here, and ``max_iter`` is
    finite.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slack, > 0. The same machine in terms of λ: (λ/2)‖w‖² + Σ ξ is C = 1/λ, and with the
        mean of the n slacks instead of their sum C = 1/(nλ), n being the rows of a pair, or all.
    kernel : str, Kernel or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "chi2", "intersection",
        "precomputed", any object of ``mm.kernels``, or a function of two blocks of rows (or of two
        lists of whatever X holds: strings, graphs) that returns the matrix of kernel values.
        "linear" is solved by the method of ``LinearSVC``.
    degree : int, default=3
        For "poly", ≥ 0.
    gamma : float, "scale" or "auto", default="scale"
        For kernels given by name: γ ≥ 0, or 1/(d·Var X), or 1/d. Rows count in the variance as
        often as their weight says. A Kernel object has its own.
    coef0 : float, default=0.0
        For "poly" and "sigmoid".
    shrinking : bool, default=True
        Accepted for compatibility with scikit-learn; it has no effect.
    probability : bool, default=False
        Whether to have ``predict_proba``: probabilities that are not random, and of which that of
        the predicted class is the largest. They are fitted to the scores that rows would have had
        if they had been left out, which follow from the span of the support vectors, at about the
        cost of inverting the matrix of those with 0 < α < C. Up to 40 rows are left out in turn.
        More than 6,000 such vectors, linear and indefinite kernels, and models that overfit (by
        these scores) take five more fits instead, each without a fifth of the rows.
    tol : float, default=1e-4
        Relative duality gap at which the answer is good enough, ≥ 0.
    cache_size : float or None, default=None
        Megabytes for kernel values, > 0; used if memory="auto". None: free memory decides.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.
    verbose : int or bool, default=False
        Write a line per iteration.
    max_iter : int, default=10000
        Iterations allowed for each pair of classes; -1 stands for the default.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With more than two classes, what ``decision_function`` returns: a score for each class, or
        for each pair (with multi_class="ovo" only). It has no effect on ``predict``.
    break_ties : bool, default=False
        Has no effect, as ties between classes are always broken by the sums of their scores;
        ``predict`` refuses True with decision_function_shape="ovo", as scikit-learn does.
    random_state : int, Generator, RandomState or None, default=None
        For the linear kernel, where rows may be visited in random order. None is a fixed seed.
    fit_intercept : bool, default=True
        Whether there is an intercept b, which costs nothing, or b = 0.
    multi_class : {"ovo", "ovr"}, default="ovo"
        With more than two classes: a plane for every two of them, or for each class against the
        rest. (One joint problem of all classes: ``LinearSVC(multi_class="crammer_singer")``.)
    memory : int or "auto", default="auto"
        Bytes that kept kernel values may take; "auto": cache_size, or half of what is free.
        The model does not depend on it, only the time. Up to 1,500 rows, or 3,000 of two among
        more classes, all are kept (18 or 72 MB).
    max_time : float or None, default=None
        Seconds allowed for the fit; the best answer so far is kept, with its gap.
    warm_start : bool, default=False
        Start from the last solution: the duals of the rows that are the same as then.
    callback : callable or None, default=None
        Called with a Progress (``iteration``, ``seconds``, ``iterate.relative_gap``) after each
        iteration; returning True ends the fit. scikit-learn's callbacks: ``set_callbacks``.
    trace : bool, default=False
        Keep seconds and gap of each iteration in ``trace_``.
    n_jobs : int or None, default=None
        Threads; None or -1: as many as BLAS uses. The answer does not depend on it.

    Attributes
    ----------
    classes_, class_weight_ : ndarray of shape (n_classes,)
        The labels, and the factors of C. A class whose rows all have weight 0 stays among them and
        is never predicted.
    support_ : ndarray of shape (n_support,)
        Rows with a positive dual, those of the first class first.
    support_vectors_ : array, CSR matrix or array of objects
        Those rows; empty for kernel="precomputed".
    n_support_ : ndarray of shape (n_classes,)
        How many there are in each class.
    dual_coef_ : ndarray of shape (n_classes − 1, n_support), or (n_classes, n_support)
        Their duals times ±1. Row r is about the pair of a vector's own class c with class r, or
        with class r + 1 if r ≥ c; for more than two classes with "ovr", row r is about class r.
    intercept_ : ndarray of shape (n_planes,)
        b of each pair of classes, n_classes·(n_classes − 1)/2 of them, or of each class. Of two
        classes the second is positive, of a pair of more the first.
    coef_ : ndarray of shape (n_planes, n_features)
        w of each pair or class, for the linear kernel only.
    certificate_ : Certificate
        Bounds on the optimum, recomputed from the data; with several problems their sums, and the
        single ones in ``certificate_.parts``.
    status_, stop_reason_, solver_, n_iter_, fit_status_ :
        Why the fit stopped (an enum and a sentence), what solved it, in how many iterations for
        each problem; 0 if optimal, else 1. An indefinite kernel is at best "stationary, not
        certified".
    alpha_, slack_ : ndarray of shape (n_samples,) or (n_planes, n_samples)
        Dual variables ≥ 0, and slacks ξ of the support vectors (other rows have none at the
        optimum).
    bound_multiplier_ : ndarray of the shape of slack_
        C − α ≥ 0, with the weights of rows and classes in C: the multipliers of ξ ≥ 0, whose
        products with the slacks are 0 at the optimum. 0 for rows outside a pair or of weight 0.
    support_kind_ : ndarray of str, of shape (n_support,) or (n_planes, n_support)
        "margin" (ξ ≤ 1e-5), "inside" (ξ ≤ 1) or "wrong side" (ξ > 1); "" where it has no part.
    margin_ : float or ndarray of shape (n_planes,)
        1/‖w‖ in feature space: the distance from f = 0 to f = ±1.
    kernel_ : Kernel
        The kernel with numbers for all its parameters.
    calibration_ : Calibration
        How scores become probabilities: ``slope`` and ``offset``, and the ``source`` of the scores
        they were fitted to ("span", "leave-one-out" or "5 folds"); with probability=True.
    trace_ : list
        If asked for.
    shape_fit_ : tuple
        The shape of X.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(200, random_state=0)
    >>> model = mm.SVC(C=10.0).fit(X, y)
    >>> model.certificate_.holds(1e-4)
    True
    >>> model.score(X, y)
    1.0
    """

    _has_linear_machine = True

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-4,
        cache_size: float | None = None,
        class_weight: Any = None,
        verbose: int | bool = False,
        max_iter: int = 10_000,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        fit_intercept: bool = True,
        multi_class: str = "ovo",
        memory: int | str = "auto",
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        trace: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.memory = memory
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.trace = trace
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            Rows; float32 stays float32, sparse stays sparse. With kernel="precomputed" the square
            matrix of kernel values; with a function, whatever it takes. What ``mm.data.open``
            returns, and collections of Dask, are read into memory, and must fit.
        y : array-like of shape (n_samples,)
            Labels of any kind; two or more classes. A source has its own.
        sample_weight : array-like of shape (n_samples,), optional
            How many times each row counts; a row of weight 0 is absent.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def adopt(self, formulated: Formulated, results: list[Result]) -> Self:
        """Become the model that solutions of the problems stand for."""
        data, form = formulated.data, self._form()
        self._keep_costs(data.y, form.cost(data), data.kept, data.n_rows)
        return super().adopt(formulated, results)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        super().check_parameters()
        check_cost(self)
        check_flag(self, "fit_intercept")
        check_choice(self, "multi_class", ("ovo", "ovr"))
        if self.multi_class != "ovo" and self.decision_function_shape == "ovo":
            raise ValueError(
                f"decision_function_shape='ovo' with multi_class={self.multi_class!r} is not "
                "supported: there are no planes between two classes. Choose multi_class='ovo', or "
                "leave decision_function_shape='ovr'."
            )

    def _form(self) -> CSVCForm:
        intercept = Intercept.FREE if self.fit_intercept else Intercept.NONE
        return CSVCForm(float(self.C), intercept, scheme=self.multi_class)

    def _plane_classes(self) -> list[tuple[int, int]]:
        return self._layout.pairs
