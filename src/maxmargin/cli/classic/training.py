"""``svm-train`` and ``liblinear-train``: fit, print what scripts read, write a model."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
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
_ENDED = (Status.OPTIMAL, Status.NO_MARGIN, Status.STATIONARY, Status.INEXACT)
_SEED = 0
LAPLACE = (
    "Prob. model for test data: target value = predicted value + z,\n"
    "z: Laplace distribution e^(-|z|/sigma)/(2sigma),{}"
)
_NOISE_FOLDS = 5
_AT_BOUND = 1 - 1e-12  # of the cost, from which on a dual is at its bound


class TrainingRows(NamedTuple):
    """What is learnt from: rows or kernel values, and labels or targets."""

    X: Any
    y: npt.NDArray[Any]
    numbers: Ints | None = None  # of rows of kernel values, from 1


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
        for label in self.weights:
            if not (self.regresses or self.one_class or label in rows.y):
                _warn(f"class label {label:g} specified in weight is not found")
        if self.folds is not None:
            self._cross_validate(rows, self.folds)
            return Exit.DONE
        with _warnings_of_fits():
            model = self._fit(rows)
        if not self.quiet:
            self._describe(model, rows)
        self._save(model, rows)
        # Indefinite kernels have no gap; and what is as good as a model of the original is good.
        done = model.status_ in _ENDED
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
        return {label: self.weights.get(float(label), 1.0) for label in labels.tolist()}

    def _fit(self, rows: TrainingRows, for_fold: bool = False) -> Any:
        raise NotImplementedError

    def _describe(self, model: Any, rows: TrainingRows) -> None:
        raise NotImplementedError

    def _save(self, model: Any, rows: TrainingRows) -> None:
        raise NotImplementedError

    # --------------------------------------------------------------- cross-validation

    def _cross_validate(self, rows: TrainingRows, count: int) -> None:
        predicted = self._predict_folds(rows, count)
        if self.regresses:
            errors = Errors()
            errors.add(predicted, rows.y)
            _say(f"Cross Validation Mean squared error = {errors.mean_squared:g}")
            _say(f"Cross Validation Squared correlation coefficient = {errors.correlation:g}")
        else:
            _say(f"Cross Validation Accuracy = {100.0 * np.mean(predicted == rows.y):g}%")

    def _predict_folds(self, rows: TrainingRows, count: int) -> npt.NDArray[Any]:
        """Return what each row is predicted to be by a model that has not seen it."""
        n = len(rows.y)
        if count > n:
            _warn(
                "# folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross "
                "validation)"
            )
        predicted = np.zeros_like(rows.y)
        stratified = not (self.regresses or self.one_class)
        with _warnings_of_fits():
            for own in draw_folds(rows.y, min(count, n), stratified):
                others = np.setdiff1d(np.arange(n), own)
                predicted[own] = self._predict_fold(rows, others, own)
        return predicted

    def _predict_fold(self, rows: TrainingRows, others: Ints, own: Ints) -> npt.NDArray[Any]:
        y = rows.y[others]
        if not (self.regresses or self.one_class) and (y == y[0]).all():
            return np.full(len(own), y[0])
        learnt, left = rows.X[others], rows.X[own]
        if self.takes_gram:
            learnt, left = learnt[:, others], left[:, others]
        model = self._fit(TrainingRows(learnt, y), for_fold=True)
        return np.asarray(model.predict(left))


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
        v, t = np.asarray(predicted, dtype=np.float64), np.asarray(y, dtype=np.float64)
        self.count += len(t)
        self._sums += [(v - t) @ (v - t), v.sum(), t.sum(), v @ v, t @ t, v @ t]

    @property
    def mean_squared(self) -> float:
        """The mean squared error."""
        return float(self._sums[0]) / self.count if self.count else np.nan

    @property
    def correlation(self) -> float:
        """The squared correlation; NaN if either does not vary."""
        n, (v, y, vv, yy, vy) = self.count, self._sums[1:].tolist()
        root, product = n * vy - v * y, (n * vv - v * v) * (n * yy - y * y)
        return root * root / product if product else np.nan


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
        """Return the kernel values between the rows of the file, which may be some of all rows."""
        width, path = X.shape[1] - 1, self.training_file
        short = np.flatnonzero(np.diff(X.indptr) < width + 1)
        if len(short):
            raise DataFileError(
                f"{path}: row {short[0] + 1} has {X.indptr[short[0] + 1] - X.indptr[short[0]]} of "
                f"the {width + 1} numbers 0:NUMBER 1:VALUE … {width}:VALUE, which rows have with "
                "-t 4. Write zeros, too."
            )
        values = X.toarray()
        numbers = values[:, 0]
        wrong = np.flatnonzero((numbers != np.rint(numbers)) | (numbers < 1) | (numbers > width))
        if len(wrong):
            raise DataFileError(
                f"{path}: row {wrong[0] + 1} has 0:{numbers[wrong[0]]:g}, but with -t 4 feature "
                f"0 is the number of the row among the kernel values, 1 to {width}."
            )
        places = numbers.astype(np.int64)
        if len(np.unique(places)) < len(places):
            raise DataFileError(
                f"{path}: two rows have the same number in 0:NUMBER. Give each row of kernel "
                "values its own."
            )
        return TrainingRows(values[:, places], y, places)

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
        model.fit(rows.X, rows.y)
        if self.regresses and asked:
            model.laplace_scale_ = self._find_laplace_scale(rows)
        return model

    def _find_laplace_scale(self, rows: TrainingRows) -> float:
        """Return the mean error of rows that are left out, as LIBSVM has it: without outliers."""
        errors = np.abs(rows.y - self._predict_folds(rows, _NOISE_FOLDS))
        scale = float(errors[errors <= 5 * np.sqrt(2) * errors.mean()].mean())
        if not self.quiet:
            _say(LAPLACE.format(f"sigma= {scale:g}"))
        return scale

    def _save(self, model: Any, rows: TrainingRows) -> None:
        if rows.numbers is not None:  # by which a model names its support vectors
            model.support_ = rows.numbers[model.support_] - 1
        mm.files.save_libsvm(model, self.model_file)

    # --------------------------------------------------------------- lines

    def _describe(self, model: Any, rows: TrainingRows) -> None:
        if self.regresses or self.one_class:
            self._describe_one(model, rows)
            return
        classes = model.classes_.tolist()
        for one, other in combinations(label_order(rows.y), 2):
            self._describe_pair(model, rows, classes.index(one), classes.index(other))
        _say(f"Total nSV = {len(model.support_)}")

    def _describe_pair(self, model: Any, rows: TrainingRows, one: int, other: int) -> None:
        """Print the lines about a pair of classes, the first of which is positive."""
        count = len(model.classes_)
        pair = min(one, other), max(one, other)
        k = list(combinations(range(count), 2)).index(pair)
        sign = 1.0 if one == pair[1 if count == 2 else 0] else -1.0  # of the class positive here
        part = model.certificate_.parts[k] if count > 2 else model.certificate_
        alpha = np.atleast_2d(model.alpha_)[k]
        total, n = float(alpha.sum()), int(np.isin(rows.y, model.classes_[list(pair)]).sum())
        objective = -part.dual
        if not np.isfinite(objective):
            objective = self._dual_objective(model, rows, k)
        lines = []
        if self.machine == 0:
            costs = self.cost * model.class_weight_
            bound = costs[np.searchsorted(model.classes_, rows.y)]
            if costs[one] == costs[other]:
                lines = [f"nu = {total / (costs[one] * n):f}"]
        else:
            scale = self.nu * n / total if total else 1.0
            bound, objective = np.full(len(alpha), 1 / scale), objective / scale**2
            lines = [f"C = {1 / scale:f}"]
        iterations = int(np.atleast_1d(model.n_iter_)[k])
        rho = -sign * float(model.intercept_[k])
        self._print(iterations, lines, objective, rho, alpha, bound)

    def _describe_one(self, model: Any, rows: TrainingRows) -> None:
        """Print the lines about a machine with one problem."""
        alpha, bound = model.alpha_, 1.0 if self.one_class else self.cost
        lines = {
            2: [],
            3: [f"nu = {alpha.sum() / (self.cost * len(rows.y)):f}"],
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
        positive = 1 if count == 2 else list(combinations(range(count), 2))[k][0]
        signs = np.where(rows.y[support] == model.classes_[positive], 1.0, -1.0)
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
_SOLVERS = (1, 2, 3, 4, 5, 11, 12, 13, 21)
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
        if self.solver not in _SOLVERS:
            known = ", ".join(map(str, _SOLVERS))
            raise click.UsageError(f"-s {self.solver} is no solver: choose one of {known}.")
        if self.find_cost and self.solver != 2:
            raise click.UsageError(
                f"-C is for -s 2 here, not -s {self.solver}: maxmargin search tunes any machine."
            )
        if self.find_cost and (self.cost or 0.0) > _LARGEST_COST:
            raise click.UsageError(f"-C begins at -c and ends at {_LARGEST_COST:g}: lower -c.")
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

    def _save(self, model: Any, rows: TrainingRows) -> None:
        mm.files.save_liblinear(model, self.model_file)

    def _find_cost(self, rows: TrainingRows) -> None:
        """Print the accuracy of each C, and the best."""
        count = self.folds or 5
        _say(f"Doing parameter search with {count}-fold cross validation.")
        squares = np.asarray(rows.X.multiply(rows.X).sum(axis=1)).ravel()
        largest = float(squares.max()) + max(self.bias, 0.0) ** 2
        start = 2.0 ** np.floor(-np.log2(2 * len(rows.y) * largest)) if largest else 1.0
        cost, best = self.cost or start, (0.0, -1.0)
        while cost <= _LARGEST_COST:
            self.cost = cost
            rate = float(np.mean(self._predict_folds(rows, count) == rows.y))
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
