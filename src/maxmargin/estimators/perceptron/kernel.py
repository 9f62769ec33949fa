"""The perceptron in dual form, for any kernel."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.errors import warn
from maxmargin.estimators.kernel_input import KernelInput
from maxmargin.estimators.perceptron.base import Evidence, MistakeDriven, margins_of
from maxmargin.kernels import Linear, Precomputed, check_kernel
from maxmargin.kernels.prepared import is_numeric
from maxmargin.solve import Callback
from maxmargin.solvers.perceptron import Counts, DualFunction, KernelLearner, length
from maxmargin.validation.data import stacked

# Rows up to which an unknown Gram matrix is tested for positive semidefiniteness (0.2 s); of a
# larger one, a block of this size is.
_LARGEST_EIGENPROBLEM = 1000


class KernelPerceptron(KernelInput, MistakeDriven):
    """The perceptron with f(x) = Σ aᵢK(xᵢ, x) + b: mistakes are added as support vectors.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "chi2", "intersection",
        "precomputed", any object of ``mm.kernels``, or a function of two blocks of rows (or of two
        lists of whatever X holds: strings, graphs) that returns the matrix of kernel values.
    gamma : float, "scale" or "auto", default="scale"
        For kernels given by name: γ, or 1/(d·Var X), or 1/d. A Kernel object has its own. In a
        stream the first chunk determines "scale".
    degree : int, default=3
        For "poly".
    coef0 : float, default=0.0
        For "poly" and "sigmoid".
    eta : float > 0, default=1.0
        Step length η. With ``margin=0`` it only rescales the scores.
    margin : float ≥ 0, default=0.0
        Update where y f(x) ≤ margin: a *functional* threshold, in units of f.
    fit_intercept : bool, default=True
        Learn b, which is the same as adding 1 to the kernel.
    stop : {"all_correct", "epochs", "one_pass", "small_change", "held_out"}, default="all_correct"
        As for :class:`Perceptron`.
    max_epochs : int or "auto", default="auto"
        Epochs allowed; running out of them while making mistakes is a ConvergenceWarning. "auto"
        is a million visits altogether, but at least 10 epochs and at most 1000.
    shuffle : bool, default=True
        Visit rows in a new random order each epoch, otherwise in the order given.
    keep : {"last", "best"}, default="last"
        "best" is the pocket, as for :class:`Perceptron`.
    class_weight : dict, "balanced" or None, default=None
        Multiplies sample_weight, by class.
    change_tol : float, default=1e-3
        For ``stop="small_change"``.
    validation_fraction : float in (0, 1), default=0.1
        Part of each class held out for ``stop="held_out"``.
    n_iter_no_change : int, default=5
        Epochs without a better held-out score before stopping.
    max_time : float or None, default=None
        Seconds allowed.
    warm_start : bool, default=False
        Start from the previous fit: its kernel, support vectors and coefficients.
    callback : callable or None, default=None
        Called with a Progress after each epoch; returning True stops.
    verbose : int, default=0
        If positive, print a line per epoch.
    trace : bool, default=False
        Keep ``trace_``: mistakes, updates and the perceptron criterion per epoch.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the shuffling and the held-out rows.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with numbers for all its parameters.
    support_ : ndarray of shape (n_support,)
        Rows of X with a coefficient (after ``fit`` from scratch only).
    support_vectors_ : array, CSR matrix or array of objects
        Those rows; empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        Their coefficients a, for the second of two classes, or for each class.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        b.
    coef_ : ndarray
        w, for the linear kernel only.
    classes_, mistakes_, updates_, epochs_, n_iter_, status_, stop_reason_, margin_,
    mistake_bound_, trace_
        As for :class:`Perceptron`, in the feature space of the kernel. The bound needs a positive
        semidefinite kernel and is ``inf`` where that is not known.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(200, random_state=0)
    >>> model = mm.KernelPerceptron(kernel="rbf").fit(X, y)
    >>> model.score(X, y)
    1.0
    >>> model.updates_ <= model.mistake_bound_
    True
    """

    support_vectors_: Any
    _kept_rows = "support_vectors_"
    _advice = "use keep='best' or another kernel, or raise max_epochs"
    _auto_visits = 1e6

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        eta: float = 1.0,
        margin: float = 0.0,
        fit_intercept: bool = True,
        stop: str = "all_correct",
        max_epochs: int | str = "auto",
        shuffle: bool = True,
        keep: str = "last",
        class_weight: Any = None,
        change_tol: float = 1e-3,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: int = 0,
        trace: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.eta = eta
        self.margin = margin
        self.fit_intercept = fit_intercept
        self.stop = stop
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.keep = keep
        self.class_weight = class_weight
        self.change_tol = change_tol
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.trace = trace
        self.random_state = random_state

    @property
    def coef_(self) -> Floats:
        """The weights w, which exist for the linear kernel only."""
        check_is_fitted(self)
        if type(self.kernel_) is not Linear:
            raise AttributeError("coef_ is only available when using a linear kernel")
        return np.asarray(self.dual_coef_ @ self.support_vectors_)

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        X = super()._check_input(X, reset=reset)
        if reset or self.kernel_.takes_gram:
            return X
        # Rows must be of the same type as the support vectors they are compared with.
        return X.astype(self.support_vectors_.dtype, copy=False)

    def _selected(self, X: Any, rows: Ints) -> Any:
        return X[np.ix_(rows, rows)] if isinstance(self._named_kernel(), Precomputed) else X[rows]

    def _begin(
        self, X: Any, labels: Ints, weight: Floats, _rng: np.random.Generator
    ) -> KernelLearner:
        outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        if not (self.warm_start and hasattr(self, "_counts")):
            kernel = self._named_kernel(not is_numeric(X)).resolved(X, weight)
            start = DualFunction.zero(kernel, outputs)
            return KernelLearner(start, self._rule(), X, labels, weight, Counts())
        if outputs != len(self.intercept_):
            raise ValueError(
                f"warm_start=True, but the last fit had {len(self.intercept_)} column(s) of "
                f"coefficients and these labels need {outputs}: fit a new estimator instead."
            )
        self._refuse_gram("warm_start=True")
        return self._continue(X, labels, weight, Counts())

    def _resume(self, X: Any, labels: Ints, weight: Floats) -> KernelLearner:
        return self._continue(X, labels, weight, self._counts)

    def _continue(self, X: Any, labels: Ints, weight: Floats, counts: Counts) -> KernelLearner:
        X = X.astype(self.support_vectors_.dtype, copy=False)
        return KernelLearner(self._function(), self._rule(), X, labels, weight, counts)

    def _function(self) -> DualFunction:
        """Return the fitted function; rebuilt each time, so that edits of attributes count."""
        support = self.kernel_.prepare(self.support_vectors_)
        return DualFunction(
            self.kernel_, support, self.dual_coef_.T, self.intercept_, self._squared_norm
        )

    def _refuse_in_streams(self) -> None:
        super()._refuse_in_streams()
        self._refuse_gram("partial_fit")

    def _refuse_gram(self, what: str) -> None:
        if isinstance(self._named_kernel(), Precomputed):
            raise ValueError(
                f"{what} cannot be used with kernel='precomputed': the kernel values of earlier "
                "rows with the new ones are missing. Use a kernel of rows."
            )

    def _scores(self, X: Any) -> Floats:
        if isinstance(self.kernel_, Precomputed):
            return np.asarray(X[:, self.support_] @ self.dual_coef_.T) + self.intercept_
        function = self._function()
        return function.scores(self.kernel_.prepare(X, like=function.support))

    def _scores_of(self, learner: KernelLearner, rows: Ints) -> Floats:
        return learner.now.scores[rows]

    def _adopt(self, learner: KernelLearner, rows: Ints, resumed: bool) -> None:
        self.kernel_ = learner.start.kernel
        support = np.flatnonzero(learner.now.coefficients.any(axis=1))
        vectors, coefficients = learner.X[support], learner.now.coefficients[support]
        self._forget("support_")
        if learner.start.support is None:
            self.support_ = rows[support]
        else:
            vectors = stacked([self.support_vectors_, vectors])
            coefficients = np.concatenate([learner.start.coefficients, coefficients])
        self.support_vectors_ = vectors[:0] if isinstance(self.kernel_, Precomputed) else vectors
        self.dual_coef_ = coefficients.T.copy()
        self.intercept_ = learner.now.intercept.copy()
        self._counts, self._squared_norm = learner.counts, learner.squared_norm()

    def _evidence(self, learner: KernelLearner, labels: Ints, rows: Ints) -> list[Evidence]:
        if self._positive_semidefinite(learner):
            learner.squared_radius = float(np.max(self.kernel_.diag(learner.gram.prepared)))
        smallest = float(margins_of(learner.now.scores, labels)[rows].min())
        norm = float(np.sqrt(learner.squared_norm()))
        return [Evidence(smallest, norm, length(learner.now.intercept))]

    def _positive_semidefinite(self, learner: KernelLearner) -> bool:
        """Return whether the Gram matrix is known to be so; warn if it is known not to be."""
        if self.kernel_.psd:
            return True
        n = len(learner.gram)
        # A block can show that the whole matrix is not, but not that it is.
        some = np.unique(np.linspace(0, n - 1, _LARGEST_EIGENPROBLEM).astype(int))
        prepared = learner.gram.prepared
        found = check_kernel(self.kernel_.block(prepared[some], prepared[some]))
        if not found.psd:
            fault = f"indefinite on these rows (smallest eigenvalue {found.lambda_min:.3g})"
            if not found.symmetric:
                fault = f"not symmetric on these rows (by {found.asymmetry:.2g})"
            warn(
                f"The kernel is {fault}: there is no mistake bound, and margins are not lengths.",
                UserWarning,
            )
        return found.psd and len(some) == n
