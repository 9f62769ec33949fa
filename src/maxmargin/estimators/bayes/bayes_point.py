"""The Bayesian hard classifier: the vote of all separators instead of the widest one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.errors import warn
from maxmargin.estimators.bayes.sampler import Draws, Sampler, Walls, scattered, standard_errors
from maxmargin.estimators.callbacks import TakesCallbacks, announced, with_callbacks
from maxmargin.estimators.formulations import Training
from maxmargin.estimators.kernel_input import KernelInput, count_threads, named_kernel
from maxmargin.estimators.probabilities import couple_pairs
from maxmargin.estimators.reductions import Subproblem, best_classes
from maxmargin.estimators.row_marks import mark_rows
from maxmargin.kernels import Kernel, Linear, Precomputed
from maxmargin.problems import losses
from maxmargin.problems.features import LinearFeatures
from maxmargin.problems.gram import Gram, free_memory
from maxmargin.problems.problem import Intercept, Problem, Run, Status
from maxmargin.runtime import clock
from maxmargin.runtime.progress import progress
from maxmargin.separability.max_margin import (
    FeatureSpaceRows,
    LinearRows,
    NoPlane,
    find_widest,
    refusal,
)
from maxmargin.solve import Callback, drive, run_solver
from maxmargin.solvers.newton import Newton
from maxmargin.validation.data import check_classification, generator
from maxmargin.validation.parameters import (
    NamedParameters,
    check_memory,
    check_number,
    check_progress,
    check_threads,
)

_MIXED = 1.05  # R̂ up to which chains count as mixed
_PROBES = 200  # points at which the precision is measured, at most
_BLOCK = 1 << 22  # votes that are counted at a time
_LEAST = 100  # rows from which on rounding grows with their number
_START, _SEARCHES = 1e-3, 1000  # relative gap, and searches among all rows, of the first plane
_SOFT = 100.0  # cost of a unit of slack there, by the cost of a wall
_COPIES = 4  # of the rows: as vectors, as walls, and while both are made
_ADVICE = "Set label_noise to the share of labels that may be wrong, or choose another kernel."


@dataclass(frozen=True)
class Posterior:
    """Draws of z for two classes, and where z lives.

    In weight space z = (w, b/intercept_scaling). Otherwise f(x) = a·z + s·g with a new g ~ N(0, 1),
    where a solves triangle·a = k(landmarks, x) and s² = K(x, x) − ‖a‖².
    """

    draws: Floats  # of shape (chains, draws, dim)
    effective: float
    landmarks: Ints | None = None  # places among all landmarks
    triangle: Floats | None = None
    precision: float = 0.0  # the part of K(x, x) below which s² is rounding

    @property
    def mean(self) -> Floats:
        """The mean of z."""
        return np.asarray(self.draws.mean(axis=(0, 1)))


@dataclass(frozen=True)
class _Space:
    """Rows of two classes in coordinates in which the prior is N(0, I)."""

    rows: LinearRows | FeatureSpaceRows
    vectors: Floats
    landmarks: Ints | None  # rows of the training data that span the others
    triangle: Floats | None
    precision: float
    residual: float

    @classmethod
    def of(cls, rows: LinearRows | FeatureSpaceRows, pair: Subproblem) -> "_Space":
        """Return rows in weight space, or as a factor of their Gram matrix."""
        if isinstance(rows, LinearRows):
            return cls(rows, rows.X, None, None, 0.0, 0.0)
        Z, pivots = rows.factored
        diagonal = rows.K.diagonal()
        left = np.maximum(diagonal - (Z * Z).sum(axis=1), 0.0)
        residual = float((left / np.where(diagonal > 0, diagonal, 1.0)).max())
        triangle = Z[pivots].copy()
        if not len(pivots):  # all rows are 0 in feature space
            pivots, triangle = np.zeros(1, np.int64), np.ones((1, 1))
        numbers = pivots if pair.rows is None else pair.rows[pivots]
        return cls(rows, Z, numbers, triangle, rows.precision, residual)

    def coordinates(self, w: Floats) -> Floats:
        """Return z of a plane through the origin, given as in ``Point``."""
        return np.asarray(w if self.landmarks is None else self.vectors.T @ w)


class _Limits(NamedTuple):
    """What may end the sampling of a pair: seconds, a callback; and what was made before."""

    seconds: float | None
    callback: Any
    runs: list[Run]

    @property
    def before(self) -> Run:
        """The runs before as one."""
        iterations, seconds = (sum(getattr(run, name) for run in self.runs)
                               for name in ("iterations", "seconds"))  # fmt: skip
        return Run(self.runs[-1].status if self.runs else Status.DRAWN, iterations, seconds)


class _Sampled(NamedTuple):
    """What was drawn for a pair."""

    space: _Space
    draws: Draws
    run: Run


class BayesPointClassifier(KernelInput, ClassifierMixin, TakesCallbacks, NamedParameters,
                           BaseEstimator):  # fmt: skip
    """The vote of all functions that separate the classes, weighed by a Gaussian prior.

    Weights w ~ N(0, I) and an intercept b ~ N(0, intercept_scaling²), or a Gaussian process f with
    any kernel, are conditioned on being right about every training row: y f(x) > 0. What is left is
    the version space, of which a hard-margin machine takes one point. Here it is sampled, and the
    probability of a class is the share of the functions in it that vote for it. Where the rows say
    little, the vote is close; the curve P = ½ is in general not a line, even for linear functions.

    Apart from the noise of finitely many draws, sampling is exact: particles follow the elliptical
    paths of free motion under the Gaussian and are reflected where y f(x) = 0 (Pakman & Paninski
    2014). Several chains start at different places; ``standard_error`` says how far a probability
    may be off.

    If no function separates the classes, ``fit`` raises ``NotSeparableError`` with a witness. With
    ``label_noise=ε`` labels may be wrong, each with probability ε, and any rows will do.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="linear"
        As in ``SVC``. It must be positive semidefinite: others are refused. With "precomputed",
        K(x, x) of new rows is unknown: what f has there beyond the span of the training rows is
        left out.
    gamma : float, "scale" or "auto", default="scale"
        For kernels given by name: γ ≥ 0, or 1/(d·Var X), or 1/d.
    degree : int, default=3
        For "poly".
    coef0 : float, default=0.0
        For "poly" and "sigmoid".
    intercept_scaling : float, default=1.0
        Standard deviation of the intercept, where that of each weight is 1 (kernels: where the
        variance of f is K(x, x)). 0: no intercept.
    label_noise : float, default=0.0
        Probability ε < ½ that a label is wrong. 0: every label must be explained.
    n_samples : int or "auto", default="auto"
        Draws to keep for each pair of classes, over all chains, which get equal numbers. "auto":
        until the largest standard error at the probe points is at most ``tol`` and the chains
        agree. Probe points are midpoints, in feature space, between a row and the nearest row of
        the other class; on the training rows themselves all draws agree.
    tol : float, default=0.01
        For ``n_samples="auto"``: the standard error allowed.
    max_samples : int, default=50000
        For ``n_samples="auto"``: draws at which it stops in any case, with a warning.
    n_chains : int, default=4
        Chains, which start at different places. Two or more, as their agreement is what shows that
        they have forgotten them.
    max_time : float or None, default=None
        Seconds allowed for the fit. The draws made by then are kept, with their standard errors. If
        not even a separating function was found, NotSeparableError says that it is undecided.
    callback : callable or None, default=None
        Called with a Progress after each round of draws (``iterate.count``, ``iterate.effective``,
        ``iterate.r_hat``, ``iterate.standard_error``); returning True ends the fit.
    verbose : int, default=0
        Write a line per round.
    memory : int or "auto", default="auto"
        Bytes that the rows in their feature space may take; more are refused. "auto": half of what
        is free.
    n_jobs : int or None, default=None
        Threads that compute kernel values; None or -1: as many as BLAS uses.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the draws.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (m, n_features) and (m,)
        The posterior means of weights and intercept of each of the m pairs of classes, the Bayes
        point (for the linear kernel only). There is one for two classes, and then ``classes_[1]``
        is positive; in a pair (i, j) class i is. ``predict`` does not use them.
    samples_ : list of m ndarrays of shape (n_draws, dim)
        The draws, chain after chain. For the linear kernel with at least as many rows as columns
        a draw is (w, b/intercept_scaling); else it has standard normal coordinates in the span of
        ``landmarks_``.
    landmarks_ : array, CSR matrix or array of objects
        Training rows that span the others in feature space; none in weight space and for
        kernel="precomputed".
    n_samples_ : int
        Draws of the pair that has the fewest.
    effective_sample_size_ : float
        How many independent draws would be worth as much: the smallest number over the scores of
        all probe points, and over all pairs.
    r_hat_ : float
        How much wider the scores at a probe point spread over all chains than within one; the
        largest. Above 1.05, the chains have not forgotten where they started.
    standard_error_ : float
        The largest standard error of a probability of a pair at its probe points.
    rejected_ : float
        Share of the paths that met too many walls and were not taken.
    residual_ : float
        The largest part of a K(x, x) that the factor of the Gram matrix leaves out; 0 in weight
        space.
    status_, stop_reason_ : Status, str
        Why it stopped, as a word and as a sentence.
    n_iter_ : int
        Rounds of draws; the largest number of all pairs.
    kernel_ : Kernel
        The kernel with numbers for all its parameters.
    shape_fit_ : tuple
        The shape of X.
    classes_ : ndarray
        The labels.

    Examples
    --------
    >>> import maxmargin as mm
    >>> model = mm.BayesPointClassifier(intercept_scaling=0, tol=0.005)
    >>> model = model.fit([[1, 0], [-1, 0]], [1, 0])
    >>> x = [[1, 1]]  # 45° from the first row: a quarter of all lines put it on the other side
    >>> round(float(model.predict_proba(x)[0, 1]), 1), bool(model.standard_error(x)[0] < 0.01)
    (0.7, True)
    >>> mm.BayesPointClassifier().fit([[0], [1], [2]], [0, 1, 0])
    Traceback (most recent call last):
    ...
    maxmargin.errors.NotSeparableError: No plane separates 0 from 1: 3 rows of both meet in one \
point (see the witness). Set label_noise to the share of labels that may be wrong, or choose \
another kernel.
    """

    _instead: ClassVar = {
        "C": "It allows no slack: label_noise is the share of labels that may be wrong.",
        "fit_intercept": "Set intercept_scaling=0 to go without an intercept.",
        "class_weight": "A separator is right about every row, whatever the class weighs.",
        "max_iter": "It is called n_samples here, and max_samples if that is 'auto'.",
    }
    _kept_rows = "landmarks_"
    class_weight = None
    landmarks_: Any
    gamma: Any

    def __init__(
        self,
        *,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        intercept_scaling: float = 1.0,
        label_noise: float = 0.0,
        n_samples: int | str = "auto",
        tol: float = 0.01,
        max_samples: int = 50_000,
        n_chains: int = 4,
        max_time: float | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
        memory: int | str = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.intercept_scaling = intercept_scaling
        self.label_noise = label_noise
        self.n_samples = n_samples
        self.tol = tol
        self.max_samples = max_samples
        self.n_chains = n_chains
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    # ------------------------------------------------------------ fit

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Sample the functions that separate each pair of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows. With kernel="precomputed" the square matrix of kernel values; with a function,
            whatever it takes.
        y : array-like of shape (n_samples,)
            Labels of any kind; two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 0 is absent. With label_noise, a row of weight k counts as k labels at
            the same place; without, any other weight changes nothing, as a function is right about
            a row or is not, and only gamma="scale" counts rows by it.

        Returns
        -------
        self

        Raises
        ------
        NotSeparableError
            If no function separates two classes and label_noise is 0; its ``witness`` proves it.
            Without a witness, it could not be decided: at this precision, or in time.
        """
        self.check_parameters()
        self.__dict__.pop("status_", None)  # whatever fails from here on leaves it unfitted
        data = self._training(X, y, sample_weight)
        pairs = data.subproblems("ovo")
        end = None if self.max_time is None else clock.now() + self.max_time
        rows = self._rows(data, pairs)
        streams = generator(self.random_state).spawn(len(pairs))
        callback = announced(self, self.callback)
        sampled: list[_Sampled] = []
        for k, pair in enumerate(pairs):
            left = None if end is None else max(end - clock.now(), 0.0) / (len(pairs) - k)
            space = _Space.of(rows if pair.rows is None else rows[pair.rows], pair)
            walls = Walls.of(space.vectors * pair.signs[:, np.newaxis], self._costs(data, pair))
            began = clock.now()
            centre = self._centre(data, pair, space, walls, left)
            left = None if left is None else max(left - (clock.now() - began), 0.0)
            limits = _Limits(left, callback, [each.run for each in sampled])
            sampled.append(self._sample(space, walls, centre, pair, streams[k], limits))
            if sampled[-1].run.status is Status.INTERRUPTED and k + 1 < len(pairs):
                raise KeyboardInterrupt("interrupted before every pair of classes had draws")
        self._keep(data, pairs, sampled)
        return self._report(sampled)

    def check_parameters(self) -> None:
        """Raise if a parameter has no value that it may have."""
        self._named_kernel()
        check_number(self, "intercept_scaling", at_least=0)
        check_number(self, "label_noise", at_least=0, below=0.5)
        if not (isinstance(self.n_samples, str) and self.n_samples == "auto"):
            check_number(self, "n_samples", at_least=1, integer=True)
        check_number(self, "tol", above=0)
        check_number(self, "max_samples", at_least=1, integer=True)
        check_number(self, "n_chains", at_least=2, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        check_memory(self)
        check_threads(self)
        check_progress(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "status_")

    def _named_kernel(self, objects: bool = False) -> Kernel:
        return named_kernel(self, objects)

    def _training(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Check the data, resolve the kernel's parameters, and leave out rows without weight."""
        X = self._check_input(X, reset=True)
        labels, weight, _ = check_classification(self, y, X.shape[0], sample_weight, reset=True)
        kept = np.flatnonzero(weight > 0)
        self.shape_fit_ = tuple(X.shape)
        kernel = self._named_kernel(X.dtype.kind == "O")
        rows = X
        if len(kept) < X.shape[0]:
            rows = X[np.ix_(kept, kept)] if kernel.takes_gram else X[kept]
        if not (kernel.takes_gram or kernel.takes_objects):
            even = (weight[kept] == weight[kept[0]]).all()
            kernel = kernel.resolved(rows, None if even else weight[kept])
        self.kernel_ = kernel
        data = Training(rows, labels[kept], weight[kept], kept, X.shape[0], self.classes_)
        return data if kernel.takes_gram or kernel.takes_objects else _distinct(data)

    def _rows(self, data: Training, pairs: list[Subproblem]) -> LinearRows | FeatureSpaceRows:
        """Return the rows with the constant feature whose weight is the intercept."""
        constant = float(self.intercept_scaling)
        memory = None if isinstance(self.memory, str) else int(self.memory)
        width = data.X.shape[1] + (constant > 0) if type(self.kernel_) is Linear else np.inf
        most = max(len(pair.signs) for pair in pairs)
        if width > most:
            X = data.X
            if not (self.kernel_.takes_gram or self.kernel_.takes_objects):
                X = X.astype(np.float64, copy=False)  # which float32 is exact in
            gram = Gram(self.kernel_, X, memory=memory, threads=count_threads(self.n_jobs))
            rows = FeatureSpaceRows.of(gram, X, type(self).__name__, "use SVC with a large C")
            return rows.with_constant(constant) if constant else rows
        n = data.X.shape[0]
        needed, allowed = 8 * _COPIES * n * width, memory or free_memory()
        if needed > allowed:
            raise ValueError(
                f"BayesPointClassifier holds {n} rows of {width} numbers {_COPIES} times, which "
                f"takes {1e-9 * needed:.3g} GB, and {1e-9 * allowed:.3g} GB are allowed. Raise "
                "memory (in bytes), or take fewer rows or columns."
            )
        return LinearRows(_with_constant(data.X, constant))

    def _costs(self, data: Training, pair: Subproblem) -> Floats:
        """Return what contradicting each label costs: −log of the ratio of its likelihoods."""
        if self.label_noise == 0:
            return np.full(len(pair.signs), np.inf)
        weight = data.weight if pair.rows is None else data.weight[pair.rows]
        noise = float(self.label_noise)
        return np.asarray(weight * (np.log1p(-noise) - np.log(noise)))  # a ratio might overflow

    def _centre(
        self, data: Training, pair: Subproblem, space: _Space, walls: Walls, left: float | None
    ) -> Floats:
        """Return about where chains begin: at the widest separator, if there has to be one."""
        if self.label_noise > 0:
            z = _fewest_mistakes(walls, left)
        else:
            widest = find_widest(
                space.rows,
                pair.signs,
                Intercept.NONE,
                tol=_START,
                max_iter=_SEARCHES,
                max_time=left,
            )
            if widest.run.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if not isinstance(widest, NoPlane):
                z = space.coordinates(widest.point.w)
                if not walls.clear(z):
                    widest = NoPlane(None, "undecided at this precision", widest.run)
            if isinstance(widest, NoPlane):
                numbers = data.kept if pair.rows is None else data.kept[pair.rows]
                raise refusal(widest, self._names(pair), numbers, _ADVICE)
        z = z / np.abs(z).max()  # whose square may be too large for float64
        return np.asarray(z * (np.sqrt(len(z)) / np.linalg.norm(z)))

    def _names(self, pair: Subproblem) -> tuple[Any, Any]:
        two = len(self.classes_) == 2  # then the second is positive
        one, other = (0, 1) if two else (pair.positive, pair.negative)
        return self.classes_.tolist()[one], self.classes_.tolist()[other]

    def _sample(
        self, space: _Space, walls: Walls, centre: Floats, pair: Subproblem,
        rng: np.random.Generator, limits: _Limits,
    ) -> _Sampled:  # fmt: skip
        """Draw until it is enough, or until a limit is reached."""
        auto = isinstance(self.n_samples, str)
        starts = scattered(walls, centre, int(self.n_chains), rng)
        sampler = Sampler(walls, starts, probe_points(space.vectors, pair.signs), rng)
        most = int(self.max_samples if auto else self.n_samples)
        before, last = limits.before, list[Draws]()
        if before.status is Status.CALLBACK:  # which ended the fit: chains stay where they start
            return _Sampled(space, next(sampler.iterates(most)), Run(Status.CALLBACK, 0, 0.0))

        def seen() -> Iterator[Draws]:
            for draws in sampler.iterates(most):
                last[:] = [draws]
                yield draws

        def enough(draws: Draws) -> Status | None:
            precise = draws.standard_error <= self.tol and draws.r_hat <= _MIXED
            return Status.PRECISE if auto and precise else None

        rounds = len(sampler.sizes(most))
        bar = progress(
            "Sampling", rounds, unit="round", max_time=limits.seconds, even=False,
            quiet=bool(self.verbose),
        )  # fmt: skip
        with bar as shown:
            run = drive(
                seen(),
                rules=[enough],
                max_iter=rounds,
                at_max_iter=Status.MAX_SAMPLES if auto else Status.DRAWN,
                max_time=limits.seconds,
                callback=limits.callback,
                verbose=bool(self.verbose),
                bar=shown,
                before=before,
            )
        if not last:
            raise KeyboardInterrupt("interrupted before there was anything to keep")
        return _Sampled(space, last[0], run)

    def _keep(self, data: Training, pairs: list[Subproblem], sampled: list[_Sampled]) -> None:
        """Keep the draws and the landmarks that they refer to."""
        self._pairs = [(pair.positive, pair.negative) for pair in pairs]
        self._constant, self._noise = float(self.intercept_scaling), float(self.label_noise)
        own = [each.space.landmarks for each in sampled]
        numbers = np.unique(
            np.concatenate([np.zeros(0, np.int64), *(o for o in own if o is not None)])
        )
        self._landmark_rows = data.kept[numbers]
        self.landmarks_ = data.X[:0] if self.kernel_.takes_gram else data.X[numbers]
        self._posteriors = [
            Posterior(
                draws.z,
                draws.effective,
                None if space.landmarks is None else np.searchsorted(numbers, space.landmarks),
                space.triangle,
                space.precision,
            )
            for space, draws, _ in sampled
        ]
        self.residual_ = max(each.space.residual for each in sampled)

    def _report(self, sampled: list[_Sampled]) -> Self:
        """Set the attributes about sampling, and warn if it ended early."""
        draws = [each.draws for each in sampled]
        self.n_samples_ = min(each.count for each in draws)
        self.effective_sample_size_ = min(each.effective for each in draws)
        self.r_hat_ = max(each.r_hat for each in draws)
        self.standard_error_ = max(each.standard_error for each in draws)
        self.rejected_ = max(each.rejected for each in draws)
        self.n_iter_ = max(each.run.iterations for each in sampled)
        statuses = [each.run.status for each in sampled]
        good = (Status.PRECISE, Status.DRAWN)
        self.status_ = next((status for status in statuses if status not in good), statuses[0])
        count = draws[statuses.index(self.status_)].count
        self.stop_reason_ = (
            f"After {count} draws: {_SENTENCES.get(self.status_, self.status_.value)}."
        )
        mixed = self.r_hat_ <= _MIXED
        if any(each.too_few for each in draws):
            self.stop_reason_ += (
                " They are too few to tell whether the chains have forgotten where they started: "
                "take more."
            )
        elif not mixed:
            self.stop_reason_ += (
                f" The chains have not forgotten where they started (R̂ = {self.r_hat_:.3g}): "
                "take more draws, and scale columns of very different size."
            )
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt(self.stop_reason_)
        if self.status_ is not Status.CALLBACK and not (self.status_ in good and mixed):
            warn(self.stop_reason_, ConvergenceWarning)
        return self

    # ------------------------------------------------------------ prediction

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, of shape (n, n_classes), in the order of classes_.

        For two classes it is the share of the draws that vote for a class (with label noise, the
        probability that a label would be that class). The probabilities of pairs of more classes
        are coupled as by Wu, Lin and Weng (2004).
        """
        pairwise, _ = self._pairwise(X, errors=False)
        return self._coupled(pairwise)

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def decision_function(self, X: Any) -> Floats:
        """Return how the vote ends: the difference of the two probabilities, of shape (n,).

        For more than two classes it is ``predict_proba``, of shape (n, n_classes).
        """
        probabilities = self.predict_proba(X)
        if len(self.classes_) > 2:
            return probabilities
        return np.asarray(probabilities[:, 1] - probabilities[:, 0])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row; the first of equals."""
        return best_classes(self.decision_function(X), self.classes_)

    def standard_error(self, X: Any) -> Floats:
        """Return the standard error of the probabilities that sampling leaves.

        Of shape (n,) for two classes, (n, n_classes) for more. Where all draws agree it is not 0:
        another draw might have disagreed. Draws of a chain resemble each other, which counts.
        """
        pairwise, errors = self._pairwise(X, errors=True)
        if len(self.classes_) == 2:
            return errors[:, 0]
        centre = self._coupled(pairwise)
        squares = np.zeros_like(centre)
        for k in range(pairwise.shape[1]):
            moved = pairwise.copy()
            # Inwards, where a probability cannot leave [0, 1].
            moved[:, k] += np.where(moved[:, k] < 0.5, errors[:, k], -errors[:, k])
            squares += (self._coupled(moved) - centre) ** 2
        return np.asarray(np.sqrt(squares))

    def _coupled(self, pairwise: Floats) -> Floats:
        """Return probabilities of classes from those of the positive class of each pair."""
        if len(self.classes_) == 2:
            return np.column_stack([1 - pairwise[:, 0], pairwise[:, 0]])
        return couple_pairs(pairwise, self._pairs, len(self.classes_))

    def _pairwise(self, X: Any, *, errors: bool) -> tuple[Floats, Floats]:
        """Return the probability of the positive class of each pair, and its standard error."""
        check_is_fitted(self)
        X = self._check_input(X, reset=False)
        n, m = X.shape[0], len(self._posteriors)
        found, off = np.empty((n, m)), np.zeros((n, m))
        most = max(each.draws.shape[0] * each.draws.shape[1] for each in self._posteriors)
        step = max(1, _BLOCK // most)
        scale = 1 - 2 * self._noise
        for start in range(0, n, step):
            rows = slice(start, start + step)
            products, diagonal = self._products(X[rows])
            for k, posterior in enumerate(self._posteriors):
                votes = _votes(posterior, products, diagonal)
                found[rows, k] = votes.mean(axis=(0, 1))
                if errors:
                    off[rows, k] = standard_errors(votes, posterior.effective)
        return self._noise + scale * found, scale * off

    def _products(self, X: Any) -> tuple[Floats, Floats | None]:
        """Return the products of rows with the axes of weight space, or with all landmarks.

        And their own with themselves, as far as they are needed and known.
        """
        constant = self._constant
        if self._posteriors[0].landmarks is None:
            return _with_constant(X, constant), None
        if isinstance(self.kernel_, Precomputed):
            return X[:, self._landmark_rows].astype(np.float64) + constant**2, None
        landmarks, rows = self.landmarks_, X
        if not self.kernel_.takes_objects:
            landmarks, rows = (part.astype(np.float64, copy=False) for part in (landmarks, rows))
        right = self.kernel_.prepare(landmarks)
        left = self.kernel_.prepare(rows, like=right)
        values = self.kernel_.block(left, right, threads=count_threads(self.n_jobs)) + constant**2
        diagonal = self.kernel_.diag(left) + constant**2
        return values.astype(np.float64, copy=False), diagonal.astype(np.float64, copy=False)

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Refuse: there is no problem whose solution the model is (see ``mm.certify``)."""
        raise TypeError(
            f"{type(self).__name__} minimises no objective, so there is nothing to certify: "
            "standard_error(X) says how far its probabilities may be off."
        )

    # ------------------------------------------------------------ the Bayes point

    @property
    def samples_(self) -> list[Floats]:
        """The draws of each pair, chain after chain."""
        check_is_fitted(self)
        return [each.draws.reshape(-1, each.draws.shape[2]) for each in self._posteriors]

    @property
    def coef_(self) -> Floats:
        """The means of the weights, which exist for the linear kernel only."""
        return self._means()[0]

    @property
    def intercept_(self) -> Floats:
        """The means of the intercepts, for the linear kernel only."""
        return self._means()[1]

    def _means(self) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        if type(self.kernel_) is not Linear:
            raise AttributeError(
                "coef_ and intercept_ are only available when using a linear kernel"
            )
        constant, width = self._constant, self.n_features_in_
        w, b = np.empty((len(self._posteriors), width)), np.zeros(len(self._posteriors))
        for k, posterior in enumerate(self._posteriors):
            z = posterior.mean
            if posterior.landmarks is None:
                w[k] = z[:width]
                b[k] = constant * z[-1] if constant else 0.0
            else:
                a = solve_triangular(posterior.triangle, z, lower=True, trans="T")
                w[k] = self.landmarks_[posterior.landmarks].T @ a
                b[k] = constant**2 * a.sum()
        return w, b


def _distinct(data: Training) -> Training:
    """Return the distinct rows of each class, in an order of their own, with the sums of weights.

    So neither the order of the rows nor how often one is there changes the draws.
    """
    keys = np.column_stack([mark_rows(data.X), data.y.astype(np.uint64)])
    _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    weight = np.bincount(place.ravel(), data.weight).astype(np.float64)
    return Training(
        data.X[first], data.y[first], weight, data.kept[first], data.n_rows, data.classes
    )


def _with_constant(X: Any, constant: float) -> Floats:
    """Return rows as a dense array, with one more column unless the constant is 0."""
    dense = (X.toarray() if sp.issparse(X) else X).astype(np.float64, copy=False)
    if not constant:
        return np.asarray(dense)
    return np.hstack([dense, np.full((len(dense), 1), constant)])


def _fewest_mistakes(walls: Walls, left: float | None) -> Floats:
    """Return a point that is on the right side of most walls: that of a soft margin."""
    n, dim = walls.normals.shape
    if not n:
        return np.ones(dim)
    loss = losses.hinge(np.ones(n), _SOFT * walls.cost)
    problem = Problem(
        LinearFeatures(walls.normals), loss, np.arange(n), np.full(n, -1), np.zeros(0)
    )
    found = run_solver(problem, Newton(), tol=_START, max_time=left)
    if found.run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    w = np.asarray(found.point.w)
    return w if w.any() else walls.cost @ walls.normals + 1e-9


def _votes(posterior: Posterior, products: Floats, diagonal: Floats | None) -> Floats:
    """Return for each draw and row the probability of f > 0, of shape (chains, draws, rows)."""
    if posterior.landmarks is None or posterior.triangle is None:
        return _steps(posterior.draws @ products.T)
    own = products[:, posterior.landmarks].T
    a = solve_triangular(posterior.triangle, own, lower=True)
    scores = posterior.draws @ a
    if diagonal is None:
        return _steps(scores)
    variance = diagonal - (a * a).sum(axis=0)
    known = variance <= posterior.precision * diagonal
    spread = np.sqrt(np.where(known, 1.0, variance))
    return np.asarray(np.where(known, _steps(scores), ndtr(scores / spread)))


def _steps(scores: Floats) -> Floats:
    """Return 1 where f > 0, 0 where f < 0, and ½ where f = 0: there is nothing to vote on."""
    return np.asarray(0.5 * (np.sign(scores) + 1))


def probe_points(vectors: Floats, signs: Floats) -> Floats:
    """Return midpoints between rows and the nearest row of the other class.

    Nothing can be said of f(0), so that the axes take their place if all of them are 0.
    """
    some = np.unique(np.linspace(0, len(signs) - 1, _PROBES).astype(int))
    squares = (vectors * vectors).sum(axis=1)
    points = []
    for sign in (-1.0, 1.0):
        own, others = some[signs[some] == sign], np.flatnonzero(signs == -sign)
        distances = squares[others] - 2 * vectors[own] @ vectors[others].T
        nearest = others[distances.argmin(axis=1)]
        points.append(0.5 * (vectors[own] + vectors[nearest]))
    found = np.concatenate(points)
    found = found[np.linalg.norm(found, axis=1) > 0]
    return found if len(found) else np.eye(vectors.shape[1])[:_PROBES]


_SENTENCES = {
    Status.MAX_TIME: "stopped at max_time; raise it for smaller standard errors",
    Status.INTERRUPTED: "interrupted from the keyboard; the draws made so far are kept",
}
