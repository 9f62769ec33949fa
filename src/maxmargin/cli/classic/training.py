"""``svm-train`` and ``liblinear-train``: fit, print what scripts read, write a model."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import numpy.typing as npt

import maxmargin as mm
from maxmargin._typing import Floats, Ints
from maxmargin.cli.output import Exit
from maxmargin.data.svmlight import read_svmlight
from maxmargin.errors import DataFileError
from maxmargin.estimators.machine import Formulated, solver_settings
from maxmargin.problems.problem import Point, Status
from maxmargin.solve import Budget, solve_all

# Violations of optimality conditions of this size, at which LIBSVM and LIBLINEAR stop, leave gaps
# of up to C·n times as much. A relative gap of a thousandth of it was below theirs in all tests.
_GAP = 1e-3
_LEAST_GAP = 1e-9  # asked for: less is hardly ever proved in float64
_GOOD_GAP = 0.1  # times the tolerance: as good as models of LIBSVM and LIBLINEAR usually are
_SEED = 0
LAPLACE = (
    "Prob. model for test data: target value = predicted value + z,\n"
    "z: Laplace distribution e^(-|z|/sigma)/(2sigma),{}"
)
_NOISE_FOLDS = 5
_AT_BOUND = 1 - 1e-12  # of the cost, from which on a dual is at its bound


class TrainingRows(NamedTuple):
    """What is learnt from: rows or kernel values, labels or targets, and weights of rows."""

    X: Any
    y: npt.NDArray[Any]
    weight: Floats | None = None  # None: all are there

    def take(self, rows: Ints, gram: bool) -> "TrainingRows":
        """Return some of the rows; of kernel values, some of the columns, too."""
        weight = None if self.weight is None else self.weight[rows]
        X = self.X[np.ix_(rows, rows)] if gram else self.X[rows]
        return TrainingRows(X, self.y[rows], weight)


def _say(line: str) -> None:
    click.echo(line)


def _warn(message: str) -> None:
    click.echo(f"WARNING: {message}", err=True)


@contextmanager
def _warnings_of_fits() -> Iterator[None]:
    """Print what estimators warn of, in terms of flags."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(each.message) for each in caught):
        message = message.replace("tol=", "and should be at most ")
        _warn(re.sub(r"\btol\b", "-e", message))


@dataclass(kw_only=True)
class _Training:
    """What both programs do: read, then cross-validate, or fit and write a model."""

    files: Sequence[str]
    weights: dict[float, float]  # by label
    folds: int | None
    quiet: bool

    @property
    def training_file(self) -> str:
        """Where rows are read."""
        return self.files[0]

    @property
    def model_file(self) -> str:
        """Where the model is written."""
        return self.files[1] if len(self.files) > 1 else f"{Path(self.files[0]).name}.model"

    @property
    def regresses(self) -> bool:
        """Whether targets are numbers."""
        raise NotImplementedError

    @property
    def one_class(self) -> bool:
        """Whether labels are for testing only."""
        raise NotImplementedError

    @property
    def takes_gram(self) -> bool:
        """Whether the file has kernel values."""
        return False

    @property
    def stopping_tolerance(self) -> float:
        """What -e says, or what the original takes without it."""
        raise NotImplementedError

    @property
    def gap(self) -> float:
        """The relative duality gap to reach."""
        return max(_GAP * self.stopping_tolerance, _LEAST_GAP)

    def run(self) -> int:
        """Do what the flags ask for, and return the exit code."""
        self._check()
        rows = self._read()
        if self.folds is not None:
            self._cross_validate(rows, self.folds)
            return Exit.DONE
        with _warnings_of_fits():
            model = self._fit(rows)
        if not self.quiet:
            self._describe(model, rows)
        self._save(model)
        # Indefinite kernels have no gap; and what is as good as a model of the original is good.
        done = model.status_ in (Status.OPTIMAL, Status.STATIONARY, Status.INEXACT)
        done |= model.certificate_.relative_gap <= _GOOD_GAP * self.stopping_tolerance
        return Exit.DONE if done else Exit.NOT_CONVERGED

    def _check(self) -> None:
        """Refuse flags that do not go together."""

    def _read(self) -> TrainingRows:
        X, y, *_ = read_svmlight(self.training_file)
        if X.shape[1] == 0:
            raise DataFileError(
                f"{self.training_file}: no row has a feature, so nothing is learnt."
            )
        return TrainingRows(X, self._check_labels(y))

    def _check_labels(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return targets as floats; refuse classes that a model file cannot name."""
        if self.regresses:
            return y.astype(np.float64)
        if not self.one_class and y.dtype.kind == "f":
            label = y[y != np.rint(y)][0] if (y != np.rint(y)).any() else y[np.abs(y).argmax()]
            raise DataFileError(
                f"{self.training_file}: the label {label:.17g} is no integer, which the labels of "
                "classes must be. Number the classes; for regression, choose another -s."
            )
        return y

    def _class_weight(self, y: npt.NDArray[Any]) -> dict[Any, float] | None:
        """Return factors of C by class."""
        if not self.weights:
            return None
        labels = np.unique(y)
        for label in self.weights:
            if label not in labels:
                _warn(f"class label {label:g} specified in weight is not found")
        return {label: self.weights.get(float(label), 1.0) for label in labels.tolist()}

    def _fit(self, rows: TrainingRows, for_fold: bool = False) -> Any:
        raise NotImplementedError

    def _describe(self, model: Any, rows: TrainingRows) -> None:
        raise NotImplementedError

    def _save(self, model: Any) -> None:
        raise NotImplementedError

    # --------------------------------------------------------------- cross-validation

    def _cross_validate(self, rows: TrainingRows, count: int) -> None:
        predicted, present = self._predict_folds(rows, count)
        y, predicted = rows.y[present], predicted[present]
        if self.regresses:
            errors = Errors()
            errors.add(predicted, y)
            _say(f"Cross Validation Mean squared error = {errors.mean_squared:g}")
            _say(f"Cross Validation Squared correlation coefficient = {errors.correlation:g}")
        else:
            _say(f"Cross Validation Accuracy = {100.0 * np.mean(predicted == y):g}%")

    def _predict_folds(self, rows: TrainingRows, count: int) -> tuple[npt.NDArray[Any], Ints]:
        """Return what each row is predicted to be by a model that has not seen it.

        Also return the rows that take part.
        """
        present = np.arange(len(rows.y))
        if rows.weight is not None:
            present = np.flatnonzero(rows.weight)
        if count > len(present):
            _warn(
                "# folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross "
                "validation)"
            )
            count = len(present)
        predicted = np.zeros_like(rows.y)
        with _warnings_of_fits():
            for own in draw_folds(rows.y[present], count, not (self.regresses or self.one_class)):
                others = np.setdiff1d(present, present[own])
                predicted[present[own]] = self._predict_fold(rows, others, present[own])
        return predicted, present

    def _predict_fold(self, rows: TrainingRows, others: Ints, own: Ints) -> npt.NDArray[Any]:
        learnt = rows.take(others, self.takes_gram)
        if not (self.regresses or self.one_class) and (learnt.y == learnt.y[0]).all():
            return np.full(len(own), learnt.y[0])
        model = self._fit(learnt, for_fold=True)
        X = rows.X[np.ix_(own, others)] if self.takes_gram else rows.X[own]
        return np.asarray(model.predict(X))


def draw_folds(y: npt.NDArray[Any], count: int, stratified: bool) -> list[Ints]:
    """Return the rows of each fold; each class is spread evenly over them.

    >>> [fold.tolist() for fold in draw_folds(np.array([1, 1, 2, 2]), 2, True)]
    [[0, 2], [1, 3]]
    """
    order = np.random.default_rng(_SEED).permutation(len(y))
    if stratified:
        order = order[np.argsort(y[order], kind="stable")]
    return [np.sort(order[k::count]) for k in range(count)]


class Errors:
    """Sums for the mean squared error and the squared correlation of predictions with targets."""

    def __init__(self) -> None:
        self.count, self._sums = 0, np.zeros(6)

    def add(self, predicted: Floats, y: Floats) -> None:
        """Take more rows into account."""
        v, error = np.asarray(predicted, dtype=np.float64), np.asarray(predicted - y)
        self.count += len(y)
        self._sums += [error @ error, v.sum(), y.sum(), v @ v, y @ y, v @ y]

    @property
    def mean_squared(self) -> float:
        """The mean squared error."""
        return float(self._sums[0]) / self.count if self.count else np.nan

    @property
    def correlation(self) -> float:
        """The squared correlation; NaN if either does not vary."""
        n, (v, y, vv, yy, vy) = self.count, self._sums[1:].tolist()
        product = (n * vv - v * v) * (n * yy - y * y)
        return (n * vy - v * y) ** 2 / product if product else np.nan


# ------------------------------------------------------------------- LIBSVM


@dataclass(kw_only=True)
class SvmTraining(_Training):
    """What the flags of ``svm-train`` ask for."""

    machine: int
    kernel: int
    degree: int
    gamma: float  # 0: one over the number of features
    coef0: float
    cost: float
    nu: float
    epsilon: float
    cache: float | None
    tolerance: float
    shrinking: int
    probability: int

    @property
    def regresses(self) -> bool:
        """Whether targets are numbers."""
        return self.machine in (3, 4)

    @property
    def one_class(self) -> bool:
        """Whether labels are for testing only."""
        return self.machine == 2

    @property
    def takes_gram(self) -> bool:
        """Whether the file has kernel values."""
        return self.kernel == 4

    @property
    def stopping_tolerance(self) -> float:
        """What -e says."""
        return self.tolerance

    def _check(self) -> None:
        if self.probability and self.one_class:
            raise click.UsageError("-b 1 is not for one-class machines (-s 2): leave it out.")
        if self.weights and self.machine != 0:
            _warn(f"-w is for C-SVC (-s 0) only, and has no effect with -s {self.machine}")

    def _read(self) -> TrainingRows:
        if not self.takes_gram:
            return super()._read()
        X, y, *_ = read_svmlight(self.training_file, zero_based=True)
        return self._square(X, self._check_labels(y))

    def _square(self, X: Any, y: npt.NDArray[Any]) -> TrainingRows:
        """Return kernel values between all rows in the order of their numbers.

        Numbers without a row stay as rows without weight: a model names rows by numbers.
        """
        values = X.toarray()
        numbers, values = values[:, 0], values[:, 1:]
        width = values.shape[1]
        for line, number in enumerate(numbers, 1):
            if not (number == int(number) and 1 <= number <= width):
                raise DataFileError(
                    f"{self.training_file}: row {line} has 0:{number:g}, but with -t 4 the feature "
                    f"0 is the number of the row among the kernel values, 1 to {width}."
                )
        places = numbers.astype(np.intp) - 1
        if len(np.unique(places)) < len(places):
            raise DataFileError(
                f"{self.training_file}: two rows have the same number in 0:NUMBER. Give each row "
                "of kernel values its own."
            )
        square, labels, weight = np.zeros((width, width)), np.full(width, y[0]), np.zeros(width)
        square[np.ix_(places, places)] = values[:, places]
        labels[places], weight[places] = y, 1.0
        return TrainingRows(square, labels, None if weight.all() else weight)

    def _fit(self, rows: TrainingRows, for_fold: bool = False) -> Any:
        name = ("linear", "poly", "rbf", "sigmoid", "precomputed")[self.kernel]
        given: dict[str, Any] = {
            "kernel": name,
            "degree": self.degree,
            "gamma": self.gamma or 1.0 / max(rows.X.shape[1], 1),
            "coef0": self.coef0,
            "cache_size": self.cache,
            "tol": self.gap,
        }
        asked = bool(self.probability) and not for_fold
        model: Any
        if self.machine == 0:
            weights = self._class_weight(rows.y)
            model = mm.SVC(C=self.cost, class_weight=weights, probability=asked, **given)
        elif self.machine == 1:
            model = mm.NuSVC(nu=self.nu, probability=asked, **given)
        elif self.machine == 2:
            model = mm.OneClassSVM(nu=self.nu, **given)
        elif self.machine == 3:
            model = mm.SVR(C=self.cost, epsilon=self.epsilon, **given)
        else:
            model = mm.NuSVR(C=self.cost, nu=self.nu, **given)
        model.fit(rows.X, rows.y, rows.weight)
        if self.regresses and asked:
            model.laplace_scale_ = self._find_laplace_scale(rows)
        return model

    def _find_laplace_scale(self, rows: TrainingRows) -> float:
        """Return the mean error of rows that are left out, as LIBSVM has it: without outliers."""
        predicted, present = self._predict_folds(rows, _NOISE_FOLDS)
        errors = np.abs(rows.y[present] - predicted[present])
        scale = float(errors[errors <= 5 * np.sqrt(2) * errors.mean()].mean())
        if not self.quiet:
            _say(LAPLACE.format(f"sigma= {scale:g}"))
        return scale

    def _save(self, model: Any) -> None:
        mm.files.save_libsvm(model, self.model_file)

    # --------------------------------------------------------------- lines

    def _describe(self, model: Any, rows: TrainingRows) -> None:
        if self.regresses or self.one_class:
            self._describe_one(model, rows)
            return
        order = label_order(rows.y if rows.weight is None else rows.y[rows.weight > 0])
        classes = model.classes_.tolist()
        place = [classes.index(label) for label in order]
        for a in range(len(place)):
            for b in range(a + 1, len(place)):
                self._describe_pair(model, rows, place[a], place[b])
        _say(f"Total nSV = {len(model.support_)}")

    def _describe_pair(self, model: Any, rows: TrainingRows, one: int, other: int) -> None:
        """Print the lines about a pair of classes, the first of which is positive."""
        count = len(model.classes_)
        low, high = min(one, other), max(one, other)
        k = low * count - low * (low + 1) // 2 + high - low - 1
        positive = high if count == 2 else low
        sign = 1.0 if one == positive else -1.0
        part = model.certificate_.parts[k] if count > 2 else model.certificate_
        alpha = model.alpha_[k] if count > 2 else model.alpha_
        own = np.isin(rows.y, model.classes_[[one, other]])
        if rows.weight is not None:
            own &= rows.weight > 0
        total, n = float(alpha.sum()), int(own.sum())
        bound, objective = np.full(len(alpha), self.cost), -part.dual
        rho = -sign * float(model.intercept_[k])
        if not np.isfinite(objective):
            objective = self._dual_objective(model, rows, k)
        lines = []
        if self.machine == 0:
            factors = dict(zip(model.classes_.tolist(), model.class_weight_.tolist(), strict=True))
            bound = self.cost * np.array([factors[label] for label in rows.y.tolist()])
            if len({factors[label] for label in model.classes_[[one, other]].tolist()}) == 1:
                lines = [f"nu = {total / (bound[own][0] * n):f}"]
        else:
            scale = self.nu * n / total if total else 1.0
            bound, objective = np.full(len(alpha), 1 / scale), objective / scale**2
            lines = [f"C = {1 / scale:f}"]
        iterations = int(np.atleast_1d(model.n_iter_)[k])
        self._print(iterations, lines, objective, rho, alpha, bound)

    def _describe_one(self, model: Any, rows: TrainingRows) -> None:
        """Print the lines about a machine with one problem."""
        alpha, bound = model.alpha_, 1.0 if self.one_class else self.cost
        n = len(rows.y) if rows.weight is None else int(rows.weight.sum())
        lines = {
            2: [],
            3: [f"nu = {alpha.sum() / (self.cost * n):f}"],
            4: [f"epsilon = {getattr(model, 'epsilon_', 0.0):f}"],
        }[self.machine]
        objective = -model.certificate_.dual
        if not np.isfinite(objective):
            objective = self._dual_objective(model, rows, 0)
        iterations = int(np.max(model.n_iter_))
        self._print(iterations, lines, objective, -float(model.intercept_[0]), alpha, bound)

    def _print(
        self,
        iterations: int,
        lines: list[str],
        objective: float,
        rho: float,
        alpha: Floats,
        bound: Any,
    ) -> None:
        _say(f"*\noptimization finished, #iter = {iterations}")
        for line in lines:
            _say(line)
        _say(f"obj = {objective:f}, rho = {rho:f}")
        bounded = int((alpha >= _AT_BOUND * bound).sum())
        _say(f"nSV = {int((alpha > 0).sum())}, nBSV = {bounded}")

    def _dual_objective(self, model: Any, rows: TrainingRows, k: int) -> float:
        """Return the objective of an indefinite kernel, which no certificate bounds."""
        support, alpha = model.support_, np.atleast_2d(model.alpha_)[k]
        X = rows.X[support]
        scores = model.pairwise_scores(X)[:, k] - model.intercept_[k]
        own = alpha[support]
        if self.regresses:
            beta = model.dual_coef_[0]
            linear = -rows.y[support] @ beta
            if self.machine == 3:
                linear += self.epsilon * own.sum()
            return float(0.5 * beta @ scores + linear)
        if self.one_class:
            return float(0.5 * own @ scores)
        count = len(model.classes_)
        pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
        positive = model.classes_[1] if count == 2 else model.classes_[pairs[k][0]]
        signs = np.where(rows.y[support] == positive, 1.0, -1.0)
        linear = own.sum() if self.machine == 0 else 0.0
        return float(0.5 * (own * signs) @ scores - linear)


def label_order(y: npt.NDArray[Any]) -> list[Any]:
    """Return labels in LIBSVM's order: as they first appear, but 1 before -1.

    >>> label_order(np.array([3, 1, 3, 2])), label_order(np.array([-1, 1]))
    ([3, 1, 2], [1, -1])
    """
    labels, first = np.unique(y, return_index=True)
    found: list[Any] = labels[np.argsort(first)].tolist()
    return [1, -1] if found == [-1, 1] else found


# ------------------------------------------------------------------- LIBLINEAR

_LOGISTIC = (0, 6, 7)
_NAMES = {
    1: "L2R_L2LOSS_SVC_DUAL",
    2: "L2R_L2LOSS_SVC",
    3: "L2R_L1LOSS_SVC_DUAL",
    4: "MCSVM_CS",
    5: "L1R_L2LOSS_SVC",
    11: "L2R_L2LOSS_SVR",
    12: "L2R_L2LOSS_SVR_DUAL",
    13: "L2R_L1LOSS_SVR_DUAL",
    21: "ONECLASS_SVM",
}
_TOLERANCES = {2: 0.01, 5: 0.01, 11: 1e-4, 21: 0.01}
_TOLERANCE = 0.1  # of all others
_PRIMAL = (2, 5, 11)  # whose objective is that of the primal problem
_LARGEST_COST = 1024.0  # that -C tries


@dataclass(kw_only=True)
class LinearTraining(_Training):
    """What the flags of ``liblinear-train`` ask for."""

    machine: int | None
    cost: float | None
    epsilon: float
    nu: float
    tolerance: float | None
    bias: float
    free_bias: bool
    find_cost: bool

    @property
    def solver(self) -> int:
        """LIBLINEAR's number of the machine."""
        default = 2 if self.find_cost else 1
        return default if self.machine is None else self.machine

    @property
    def regresses(self) -> bool:
        """Whether targets are numbers."""
        return self.solver in (11, 12, 13)

    @property
    def one_class(self) -> bool:
        """Whether labels are for testing only."""
        return self.solver == 21

    @property
    def stopping_tolerance(self) -> float:
        """What -e says, or what the original takes without it."""
        return self.tolerance or _TOLERANCES.get(self.solver, _TOLERANCE)

    def run(self) -> int:
        """Do what the flags ask for, and return the exit code."""
        if not self.find_cost:
            return super().run()
        self._check()
        if self.machine is None:
            click.echo("Solver not specified. Using -s 2", err=True)
        self._find_cost(self._read())
        return Exit.DONE

    def _check(self) -> None:
        if self.solver in _LOGISTIC:
            raise click.UsageError(
                f"-s {self.solver} is logistic regression, which is no large-margin machine. "
                "Choose -s 1, 2, 3 or 5, or scikit-learn's LogisticRegression."
            )
        if self.solver not in _NAMES:
            known = ", ".join(map(str, _NAMES))
            raise click.UsageError(f"-s {self.solver} is no solver: choose one of {known}.")
        if self.find_cost and self.solver != 2:
            raise click.UsageError(
                f"-C is for -s 2 here, not -s {self.solver}: maxmargin search tunes any machine."
            )
        if self.free_bias and (self.bias != 1.0 or self.one_class):
            raise click.UsageError("-R needs -B 1, which is the bias that is not penalised.")
        if self.one_class and self.bias >= 0:
            _warn("-B has no effect with -s 21: one-class machines have an offset of their own")
        if self.weights and (self.regresses or self.one_class):
            _warn(f"-w is for classes only, and has no effect with -s {self.solver}")

    def _fit(self, rows: TrainingRows, for_fold: bool = False) -> Any:
        solver, C = self.solver, self.cost or 1.0
        if self.one_class:
            model = mm.OneClassSVM(kernel="linear", nu=self.nu, tol=self.gap)
            return model.fit(rows.X)
        given: dict[str, Any] = {"C": C, "tol": self.gap, "max_iter": 10_000}
        if self.free_bias:
            given["intercept"] = "free"
        elif self.bias > 0:
            given |= {"intercept": "penalized", "intercept_scaling": self.bias}
        else:
            given["intercept"] = "none"
        if self.regresses:
            loss = "epsilon_insensitive" if solver == 13 else "squared_epsilon_insensitive"
            return mm.LinearSVR(loss=loss, epsilon=self.epsilon, **given).fit(rows.X, rows.y)
        machine = mm.LinearSVC(
            penalty="l1" if solver == 5 else "l2",
            loss="hinge" if solver in (3, 4) else "squared_hinge",
            multi_class="crammer_singer" if solver == 4 else "ovr",
            **given,
        )
        weights = self._class_weight(rows.y)
        if weights is not None and len(weights) > 2 and solver != 4:
            return _fit_weighted(machine, rows, weights)
        return machine.set_params(class_weight=weights).fit(rows.X, rows.y)

    def _save(self, model: Any) -> None:
        mm.files.save_liblinear(model, self.model_file)

    def _find_cost(self, rows: TrainingRows) -> None:
        """Print the accuracy of each C, and the best."""
        count = self.folds or 5
        _say(f"Doing parameter search with {count}-fold cross validation.")
        squares = np.asarray(rows.X.multiply(rows.X).sum(axis=1)).ravel()
        largest = float(squares.max()) + max(self.bias, 0.0) ** 2
        start = 2.0 ** np.floor(-np.log2(2 * len(rows.y) * largest))
        cost, best = self.cost or start, (0.0, -1.0)
        while cost <= _LARGEST_COST:
            self.cost = cost
            predicted, _ = self._predict_folds(rows, count)
            rate = float(np.mean(predicted == rows.y))
            if not self.quiet:
                _say(f"log2c={np.log2(cost):7.2f}\trate={100 * rate:g}")
            if rate > best[1]:
                best = cost, rate
            cost *= 2
        _say(f"Best C = {best[0]:g}  CV accuracy = {100 * best[1]:g}%")

    # --------------------------------------------------------------- lines

    def _describe(self, model: Any, rows: TrainingRows) -> None:
        if self.regresses or self.one_class or len(model.classes_) == 2 or self.solver == 4:
            self._describe_problem(model, model.certificate_, np.asarray(model.alpha_), 0)
            return
        classes = model.classes_.tolist()
        for label in label_order(rows.y):
            k = classes.index(label)
            self._describe_problem(model, model.certificate_.parts[k], model.alpha_[k], k)

    def _describe_problem(self, model: Any, certificate: Any, alpha: Floats, k: int) -> None:
        _say(f"\noptimization finished, #iter = {int(np.max(model.n_iter_))}")
        objective = certificate.primal if self.solver in _PRIMAL else -certificate.dual
        support = int((alpha > 0).sum())
        if self.solver == 4 and len(model.classes_) == 2:
            # One plane w for two: ½‖w/2‖² twice, and each row has a dual for either class.
            objective, support = objective / 2, 2 * support
        _say(f"Objective value = {objective:f}")
        if self.solver == 5:
            intercept = [] if self.bias < 0 else [model.intercept_[k]]
            weights = np.concatenate([model.coef_[k], intercept])
            _say(f"#nonzeros/#features = {np.count_nonzero(weights)}/{len(weights)}")
        elif self.solver not in _PRIMAL:
            _say(f"nSV = {support}")


def _fit_weighted(machine: Any, rows: TrainingRows, weights: dict[Any, float]) -> Any:
    """Fit one class against the rest, where weights are those of LIBLINEAR.

    There the weight of a class counts in its own problem only: as a part of the rest, its rows have
    weight 1.
    """
    stated = machine.formulate(rows.X, rows.y)
    problems = []
    for k, problem in enumerate(stated.problems):
        weight = weights[machine.classes_[k].item()]
        factors = np.where(stated.data.y == k, weight, 1.0)
        loss: Any = problem.loss
        problems.append(replace(problem, loss=loss.scaled(factors)))
    stated = Formulated(stated.data, stated.form, problems)
    starts = [Point()] * len(problems)
    return machine.adopt(
        stated, solve_all(problems, starts, solver_settings(machine), Budget(None))
    )
