"""Base of the kernel machines: from rows to problems, and from solutions to a model.

Duals and coefficients of a model lie in arrays (side, row): a row has a dual for each pair of
classes that its own is in, or one for either edge of a tube.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.formulations import Formulation, SolvedPlane, Training
from maxmargin.estimators.kernel_input import count_threads
from maxmargin.estimators.linear.blocked import (
    as_source,
    by_parts,
    is_source,
    nameless_rows,
    read_into_memory,
)
from maxmargin.estimators.machine import UNASKED, Formulated, Solved
from maxmargin.estimators.probabilities import Probabilistic
from maxmargin.estimators.reductions import (
    ClassPlanes,
    Pairs,
    Rest,
    best_classes,
    combined_scores,
    lay_out,
    refuse_other_scheme,
)
from maxmargin.estimators.row_marks import mark_labelled, pair_up
from maxmargin.estimators.svm.expansion import KernelExpansion, WeightedVectors
from maxmargin.kernels import Kernel, Linear
from maxmargin.problems.duality import within_groups
from maxmargin.problems.features import KernelFeatures, LinearFeatures
from maxmargin.problems.gram import Gram
from maxmargin.problems.losses import ON_EDGE, support_kinds
from maxmargin.problems.problem import Point, Status
from maxmargin.solve import Result
from maxmargin.validation.data import (
    check_classification,
    check_targets,
    generator,
    regression_weights,
)
from maxmargin.validation.parameters import check_choice, check_flag


class KernelMachine(KernelExpansion):
    """Base of SVC, NuSVC, SVR, NuSVR, QuantileSVR and OneClassSVM."""

    warm_start: bool
    _scales: Floats  # by which the solutions were divided
    _duals: Floats  # of the support vectors, before that

    # ------------------------------------------------------------ for subclasses

    def _check_targets(
        self, y: Any, n_rows: int, sample_weight: Any, reset: bool
    ) -> tuple[Any, Floats, Any]:
        """Return labels or targets, weights, and the factors that classes put on these."""
        raise NotImplementedError

    def _keep_planes(self, data: Training, planes: list[SolvedPlane]) -> None:
        """Set the intercepts, and what else planes say."""
        self.intercept_ = np.array([plane.b for plane in planes])
        self._scales = np.array([plane.scale for plane in planes])
        self._solved = np.arange(len(planes))

    def _lay_out(self, data: Training, values: list[Floats]) -> Floats:
        """Return values by variable, one array per problem, as values by (side, row)."""
        return values[0].reshape(-1, len(data))

    def _gather(self, data: Training, values: Floats) -> list[Floats]:
        """Return values by (side, row) as values by variable, one array per problem."""
        del data
        return [values.ravel()]

    def _support_labels(self) -> Ints:
        return np.zeros(len(self.support_), dtype=np.int64)

    # ------------------------------------------------------------ check and state

    def _training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        """Check the data, resolve the kernel's parameters, and leave out rows without weight."""
        if is_source(X):
            rows = read_into_memory(self, as_source(X, y, sample_weight))
            with nameless_rows():
                X = self._check_input(rows.X, reset=reset)
            rows.opened.check(self, reset=reset)
            y, sample_weight = rows.y, rows.weight
        else:
            X = self._check_input(X, reset=reset)
        targets, weight, factors = self._check_targets(y, X.shape[0], sample_weight, reset)
        present = np.flatnonzero(weight > 0)
        if reset:
            self.shape_fit_ = tuple(X.shape)
            self.kernel_ = self._named_kernel(X.dtype.kind == "O")
            if not (self.kernel_.takes_gram or self.kernel_.takes_objects):
                repeated = weight[present]  # weights are repetitions
                even = (repeated == repeated[0]).all()
                rows = X if len(present) == X.shape[0] else X[present]
                self.kernel_ = self.kernel_.resolved(rows, None if even else repeated)
        weight = weight * factors
        kept = present[weight[present] > 0]
        classes = getattr(self, "classes_", None)
        if classes is not None and len(classes) > 2 and not self.kernel_.takes_gram:
            # Then the columns of a pair of classes are two runs.
            kept = kept[np.argsort(targets[kept], kind="stable")]
        rows = X
        if not np.array_equal(kept, np.arange(X.shape[0])):
            rows = X[np.ix_(kept, kept)] if self.kernel_.takes_gram else X[kept]
        targets = None if targets is None else targets[kept]
        return Training(rows, targets, weight[kept], kept, X.shape[0], classes)

    def _features(self, data: Training) -> LinearFeatures | KernelFeatures:
        """Return the rows as problems see them; they share one Gram matrix."""
        if self._is_linear(self.kernel_):
            return LinearFeatures(data.X)
        memory, threads = self._bytes(), count_threads(self.n_jobs)
        gram = Gram(self.kernel_, data.X, memory=memory, threads=threads)
        return KernelFeatures(gram, np.arange(len(data)))

    # ------------------------------------------------------------ adopt

    def adopt(self, formulated: Formulated, results: list[Result]) -> Self:
        """Become the model that solutions of the problems stand for."""
        data, form, problems = formulated.data, formulated.form, formulated.problems
        planes = [form.plane(*pair) for pair in zip(problems, results, strict=True)]
        self._keep_planes(data, planes)
        self._keep_support(data, problems, planes)
        self._report(data, *self._as_stored(problems, results))
        if self.probability not in UNASKED:
            self._calibrate(formulated, results)
        return self

    def _as_stored(self, problems: list[Any], results: list[Result]) -> tuple[list[Result], str]:
        """Return the results certified with the model's intercepts, and a doubt about them."""
        del problems
        return results, ""

    @property
    def fit_status_(self) -> int:
        """0 if the fit is optimal, else 1."""
        check_is_fitted(self)
        return int(self.status_ is not Status.OPTIMAL)

    @property
    def _gamma(self) -> float:
        """scikit-learn's name for γ of the kernel."""
        return float(getattr(self.kernel_, "gamma", 0.0))

    def _keep_support(self, data: Training, problems: list[Any], planes: list[SolvedPlane]) -> Ints:
        """Keep the rows that have a part in f or in the bound, by class; return which they are."""
        by_row = [
            problem.by_row(plane.beta) / (plane.scale or 1.0)
            for problem, plane in zip(problems, planes, strict=True)
        ]
        duals = self._lay_out(data, [plane.beta for plane in planes])
        coefficients = self._lay_out(data, by_row)
        used = np.flatnonzero((duals != 0).any(axis=0) | (coefficients != 0).any(axis=0))
        labels = np.zeros(len(data), dtype=np.int64) if data.classes is None else data.y
        used = used[np.lexsort((data.kept[used], labels[used]))]
        self.support_ = data.kept[used]
        self._duals, self.dual_coef_ = duals[:, used], coefficients[:, used]
        self.support_vectors_ = data.X[:0] if self.kernel_.takes_gram else data.X[used]
        n_classes = 1 if data.classes is None else len(data.classes)
        self.n_support_ = np.bincount(labels[used], minlength=n_classes).astype(np.int32)
        self.__dict__.pop("_weights", None)
        if self._is_linear(self.kernel_):
            # The weights that were certified; the duals give them back up to the gap.
            self._weights = np.zeros((len(self.intercept_), data.X.shape[1]))
            self._weights[self._solved] = np.vstack([plane.w.T for plane in planes])
            self._weights_of = self.dual_coef_.copy()
        elif self.kernel_.takes_gram or not len(used):
            products = problems[0].features.gram.block(used, used) @ self._coefficients()
            self._given_products = products
        return used

    def _ill_scaled(self, data: Training) -> str:
        rows_of_numbers = not (self.kernel_.takes_gram or self.kernel_.takes_objects)
        return super()._ill_scaled(data) if rows_of_numbers else ""

    # ------------------------------------------------------------ and back

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> list[Solved]:
        """Return the problems that were solved, and the model as their solutions."""
        check_is_fitted(self)
        self._refuse_unknown_rows()
        self._refuse_altered()
        data = self._training(X, y, sample_weight, reset=False)
        place = np.full(max(data.n_rows, int(self.support_.max(initial=0)) + 1), -1)
        place[data.kept] = np.arange(len(data))
        places = place[self.support_]
        if data.n_rows != self.shape_fit_[0] or (places < 0).any():
            raise ValueError(
                f"{type(self).__name__} was trained on {self.shape_fit_[0]} rows, but X has "
                f"{data.n_rows}, or some of its support vectors have no weight: certify needs the "
                "training rows, all of them, and their weights."
            )
        form = self._form()
        stated = Formulated(data, form, form.problems(data, self._features(data)))
        points = map(form.point, self._planes(data, form, places))
        return list(map(Solved, stated.problems, points, stated.rows))

    def _planes(self, data: Training, form: Formulation, places: Ints) -> list[SolvedPlane]:
        """Return the planes as the model predicts with them."""
        duals = np.zeros((len(self._duals), len(data)))
        duals[:, places] = self._duals
        coefficients = np.zeros((len(data), len(self.intercept_)))
        coefficients[places] = self._coefficients()
        linear, epsilon = self._is_linear(self.kernel_), getattr(self, "epsilon_", 0.0)
        betas, rows = self._gather(data, duals), form.rows(data)
        return [
            SolvedPlane(
                self.coef_[k] if linear else coefficients[own, k],
                float(self.intercept_[k]), beta, float(self._scales[k]), epsilon,
            )
            for k, own, beta in zip(self._solved, rows, betas, strict=True)
        ]  # fmt: skip

    # ------------------------------------------------------------ going on from the last fit

    def _kind(self, scheme: str) -> tuple[list[Any], str]:
        """Return what must be equal for the duals of one fit to start another."""
        return list(np.asarray(getattr(self, "classes_", [])).tolist()), scheme

    def _last(self) -> "Last":
        linear = type(self.kernel_) is Linear
        return Last(
            self.support_vectors_,
            self._support_labels(),
            self.support_,
            self._duals,
            self.shape_fit_[0],
            self._kind(getattr(self, "_scheme", "")),
            (self.coef_, self.intercept_) if linear else None,
            self.intercept_,
        )

    def _starts(self, formulated: Formulated, last: "Last") -> list[Point] | None:
        """Return the last solution as far as rows are the same."""
        data, problems = formulated.data, formulated.problems
        if last.kind != self._kind(getattr(self, "multi_class", "")):
            return None
        labels = np.zeros(len(data), dtype=np.int64) if data.classes is None else data.y
        duals = known_duals(data, self.kernel_, labels, last)
        if duals is None:
            return None
        starts = []
        for k, (problem, own) in enumerate(zip(problems, self._gather(data, duals), strict=True)):
            # Rows that came, went or changed their weight leave duals that are not feasible.
            beta, _ = within_groups(problem.loss, own, problem.groups, problem.totals)
            w, b = last.plane(k, data) if self._is_linear(self.kernel_) else (None, 0.0)
            starts.append(Point(w, b, beta))
        return starts


# ------------------------------------------------------------------- warm starts


class Last(NamedTuple):
    """What the last fit leaves to a warm start."""

    vectors: Any
    labels: Ints
    support: Ints
    duals: Floats  # by (side, support vector)
    n_rows: int
    kind: tuple[list[Any], str]  # classes and scheme: duals of others mean something else
    planes: tuple[Floats, Floats] | None  # of the linear kernel
    intercept: Floats

    def plane(self, k: int, data: Training) -> tuple[Floats | None, float]:
        """Return the weights and intercept of a plane, if they are for rows of this width."""
        if self.planes is None or self.planes[0].shape[1] != data.X.shape[1]:
            return None, 0.0
        return np.array(self.planes[0][k]), float(self.planes[1][k])


def known_duals(data: Training, kernel: Kernel, labels: Ints, last: Last) -> Floats | None:
    """Return the duals of the last fit by (side, row), 0 for new rows; None if none is known.

    Rows are the same if their numbers and labels are; if none is, and there are as many rows as
    before, they go by position. (Kernel values and objects always do.)
    """
    old, new = _same_rows(data, kernel, labels, last)
    if not len(old) and last.n_rows == data.n_rows:
        place = np.full(data.n_rows, -1)
        place[data.kept] = np.arange(len(data))
        old = np.flatnonzero(place[last.support] >= 0)
        new = place[last.support[old]]
    if not len(old):
        return None
    duals = np.zeros((len(last.duals), len(data)))
    duals[:, new] = last.duals[:, old]
    return duals


def _same_rows(data: Training, kernel: Kernel, labels: Ints, last: Last) -> tuple[Ints, Ints]:
    X, vectors = data.X, last.vectors
    comparable = (
        not (kernel.takes_gram or kernel.takes_objects)
        and sp.issparse(vectors) == sp.issparse(X)
        and vectors.dtype == X.dtype
    )
    if not comparable:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return pair_up(mark_labelled(vectors, last.labels), mark_labelled(X, labels))


# ------------------------------------------------------------------- classes


class KernelClassifier(Probabilistic, ClassifierMixin, KernelMachine):
    """Base of SVC and NuSVC: pairs of classes, votes, and how duals are laid out."""

    class_weight: Any
    decision_function_shape: str
    break_ties: bool
    multi_class: str = "ovo"
    _scheme: str = "ovo"  # that of the last fit
    _tie_order: Ints | None = None  # the rank of each class in ties of votes; None: sums of scores

    @property
    def _layout(self) -> Pairs | Rest:
        """Which planes there are, and where duals of each class are."""
        return lay_out(len(self.classes_), self._scheme)

    def class_planes(self) -> ClassPlanes:
        """Return between which classes the planes are that were solved for."""
        check_is_fitted(self)
        pairs = [self._layout.pairs[k] for k in self._solved]
        return ClassPlanes(self._scheme, pairs, self._solved, self._tie_order)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        super().check_parameters()
        check_choice(self, "probability", (True, *UNASKED))
        check_choice(self, "decision_function_shape", ("ovr", "ovo"))
        check_flag(self, "break_ties")
        if getattr(self, "random_state", None) is not None:
            generator(self.random_state)

    def _check_targets(
        self, y: Any, n_rows: int, sample_weight: Any, reset: bool
    ) -> tuple[Ints, Floats, Floats]:
        labels, weight, factors = check_classification(self, y, n_rows, sample_weight, reset=reset)
        if reset:
            self.class_weight_ = factors
        return labels, weight, factors[labels]

    # ------------------------------------------------------------ pairs

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> list[Solved]:
        """Return the problems that were solved, and the model as their solutions."""
        check_is_fitted(self)
        refuse_other_scheme(self, self._scheme)
        return super().solution(X, y, sample_weight)

    def _places(self, data: Training) -> list[tuple[Any, Ints]]:
        """Return sides and rows of the duals of each subproblem."""
        found = []
        for subproblem in data.subproblems(self._scheme):
            one, other = subproblem.positive, subproblem.negative
            sides: Any = one
            if other >= 0:
                sides = np.where(subproblem.signs > 0, other - (other > one), one - (one > other))
            found.append(
                (sides, np.arange(len(data)) if subproblem.rows is None else subproblem.rows)
            )
        return found

    def _lay_out(self, data: Training, values: list[Floats]) -> Floats:
        out = np.zeros((self._layout.sign.shape[1], len(data)))
        for place, own in zip(self._places(data), values, strict=True):
            out[place] = own
        return out

    def _gather(self, data: Training, values: Floats) -> list[Floats]:
        return [values[place] for place in self._places(data)]

    def _keep_planes(self, data: Training, planes: list[SolvedPlane]) -> None:
        self._scheme = self.multi_class
        # Against a class without weight any other wins; scores of classes leave it out.
        present = np.append(np.bincount(data.y, minlength=len(self.classes_)) > 0, True)
        there = present[np.array(self._layout.pairs)]
        self.intercept_ = there.astype(np.float64) @ [1.0, -1.0]
        self._scales = np.ones(len(there))
        self._solved = np.flatnonzero(there.all(axis=1))
        self.intercept_[self._solved] = np.ravel([plane.b for plane in planes])
        self._scales[self._solved] = [plane.scale for plane in planes]

    def _support_labels(self) -> Ints:
        return np.repeat(np.arange(len(self.classes_)), self.n_support_)

    def _coefficients(self) -> Floats:
        coefficients = np.asarray(self.dual_coef_, dtype=np.float64)
        return self._layout.spread(coefficients, self._support_labels()).T

    def _blocks(self) -> list[WeightedVectors]:
        if not isinstance(self._layout, Pairs) or len(self.classes_) == 2:
            return super()._blocks()
        ends = np.cumsum(self.n_support_)
        duals = np.asarray(self.dual_coef_, dtype=np.float64)
        return [
            WeightedVectors(
                slice(end - size, end), planes, np.ascontiguousarray(duals[:, end - size : end].T)
            )
            for planes, size, end in zip(self._layout.number, self.n_support_, ends, strict=True)
            if size
        ]

    @property
    def _slacks(self) -> Floats:
        """ξ by (side, support vector)."""
        layout, labels = self._layout, self._support_labels()
        by_side = layout.gather((self._products() + self.intercept_).T, labels)
        return np.asarray(np.maximum(0.0, 1 - layout.sign[labels].T * by_side))

    def _iterations(self, counts: list[int]) -> Any:
        iterations = np.zeros(len(self.intercept_), dtype=np.int64)
        iterations[self._solved] = counts
        return iterations

    def _by_pair(self, values: Any) -> Any:
        """Return values by (side, support vector) by plane; of two classes there is one."""
        pairs = self._layout.spread(values, self._support_labels())
        return pairs[0] if len(self.classes_) == 2 else pairs

    @property
    def alpha_(self) -> Floats:
        """Dual variables ≥ 0 of all rows, in each problem."""
        check_is_fitted(self)
        return self._among_rows(self._by_pair(np.abs(self.dual_coef_)))

    @property
    def slack_(self) -> Floats:
        """Slacks ξ of the support vectors, 0 for other rows, in each problem."""
        check_is_fitted(self)
        return self._among_rows(self._by_pair(self._slacks))

    @property
    def support_kind_(self) -> npt.NDArray[np.str_]:
        """What kind of support vector each is, in each problem."""
        check_is_fitted(self)
        kinds = np.where(self.dual_coef_ == 0, "", support_kinds(self._slacks))
        return np.asarray(self._by_pair(kinds))

    @property
    def margin_(self) -> Any:
        """1/‖w‖ in feature space, in each problem."""
        check_is_fitted(self)
        return float(self._margins()[0]) if len(self.classes_) == 2 else self._margins()

    # ------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of rows: neither distances (see ``distance``) nor probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with kernel="precomputed" their kernel values with all training rows, or with
            the support vectors only.

        Returns
        -------
        ndarray
            For two classes f, of shape (n_samples,). For more, with decision_function_shape="ovr",
            the number of pairs that each class wins, plus less than a half for the sum of its
            scores, which breaks ties: of shape (n_samples, n_classes). With "ovo" the scores of the
            pairs (0, 1), (0, 2), … (1, 2), …, positive for the first class of a pair. With a plane
            for each class (multi_class="ovr"): its score.
        """
        scores = self.pairwise_scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        return scores if self.decision_function_shape == "ovo" else self._votes(scores)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row: the best score; with two classes the second iff f > 0.

        Scores are those of decision_function_shape="ovr", whatever that parameter is; of classes
        with the very same score the first is taken.
        """
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'.")
        if is_source(X):
            return np.asarray(by_parts(as_source(X, None), self.predict))
        X = self._check_new_rows(X)
        if (rough := self._rough_scores(X)) is None:
            return best_classes(self._totals(self._scores(X)), self.classes_)
        totals = self._totals(rough[0])
        open_rows = np.flatnonzero(~self._decided(*rough, totals))
        if len(open_rows):  # what float32 leaves open is decided in float64
            totals[open_rows] = self._totals(self._scores(X[open_rows]))
        return best_classes(totals, self.classes_)

    def _totals(self, scores: Floats) -> Floats:
        """Return what the best class is chosen by."""
        return scores[:, 0] if len(self.classes_) == 2 else self._votes(scores)

    def _decided(self, scores: Floats, errors: Floats, totals: Floats) -> npt.NDArray[np.bool_]:
        """Return for which rows the best class does not depend on errors, given by block."""
        if not isinstance(self._layout, Pairs):
            first_two = np.partition(totals, -2, axis=1)[:, -2:]
            return np.asarray(first_two[:, 1] - first_two[:, 0] > 2 * errors[:, 0])
        # A class that wins all of its pairs has more votes than any other, whoever wins the rest.
        best = (totals > 0).astype(int) if totals.ndim == 1 else totals.argmax(axis=1)
        own = np.take_along_axis(scores, self._layout.number[best], axis=1)
        if len(self.classes_) > 2:
            by_class = np.zeros((len(scores), len(self.classes_)))
            by_class[:, self.n_support_ > 0] = errors
            rivals = np.take_along_axis(by_class, self._layout.rival[best], axis=1)
            errors = rivals + np.take_along_axis(by_class, best[:, np.newaxis], axis=1)
        return np.asarray((self._layout.sign[best] * own > errors).all(axis=1))

    def _plane_scores(self, X: Any) -> Floats:
        return self.pairwise_scores(X)[:, self._solved]

    def _votes(self, scores: Floats) -> Floats:
        n_classes, every = len(self.classes_), self._layout.pairs
        pairs = [every[k] for k in self._solved]
        return combined_scores(scores[:, self._solved], pairs, n_classes, self._tie_order)


# ------------------------------------------------------------------- numbers


class KernelRegressor(RegressorMixin, KernelMachine):
    """Base of SVR, NuSVR and QuantileSVR."""

    def _check_targets(
        self, y: Any, n_rows: int, sample_weight: Any, reset: bool
    ) -> tuple[Floats, Floats, Any]:
        return check_targets(y, n_rows), regression_weights(sample_weight, n_rows), 1.0

    def _half_width(self) -> float:
        """Return ε."""
        raise NotImplementedError

    def _keep_support(self, data: Training, problems: list[Any], planes: list[SolvedPlane]) -> Ints:
        used = super()._keep_support(data, problems, planes)
        self._support_targets = data.y[used]
        self._spread = float(data.y.std()) or 1.0
        return used

    @property
    def _slacks(self) -> Floats:
        check_is_fitted(self)
        errors = np.abs(self._support_targets - self._products()[:, 0] - self.intercept_[0])
        return np.asarray(np.maximum(0.0, errors - self._half_width()))

    @property
    def support_kind_(self) -> npt.NDArray[np.str_]:
        """What kind of support vector each is."""
        return np.where(self._slacks <= ON_EDGE * self._spread, "on the tube", "outside")

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
        return self.pairwise_scores(X)[:, 0]
