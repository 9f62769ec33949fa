"""Base of all machines that are fitted by solving problems: check, state, solve, adopt."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Ints
from maxmargin.budget import Budget
from maxmargin.certificates import together
from maxmargin.errors import warn
from maxmargin.estimators.callbacks import TakesCallbacks, announced
from maxmargin.estimators.formulations import Formulation, Training
from maxmargin.estimators.kernel_input import count_threads
from maxmargin.problems.problem import Point, Status
from maxmargin.runtime import clock
from maxmargin.solve import Result, Settings, gap_left, ill_scaled, solve_all
from maxmargin.validation.data import generator
from maxmargin.validation.parameters import (
    NamedParameters,
    check_flag,
    check_number,
    check_progress,
    check_threads,
)

UNASKED = (False, "deprecated")  # values of ``probability``; scikit-learn is to drop the parameter
# What no other fit sets again, or none that fails.
OF_THE_LAST_FIT = ("status_", "trace_", "calibration_", "origin_", "_tie_order")
_MAX_ITER = 10_000  # what -1, scikit-learn's word for no limit, stands for


@dataclass(frozen=True)
class Formulated:
    """Training data as problems."""

    data: Training
    form: Formulation
    problems: list[Any]

    @cached_property
    def rows(self) -> list[Ints]:
        """Which of the rows given take part in each problem."""
        return [self.data.kept[rows] for rows in self.form.rows(self.data)]


class Solved(NamedTuple):
    """A problem, its solution as a model has it, and the rows given that take part in it."""

    problem: Any
    point: Point
    rows: Ints


class Machine(TakesCallbacks, NamedParameters, BaseEstimator):
    """Base of the linear and the kernel machines."""

    tol: float
    max_iter: int
    max_time: float | None
    callback: Any
    verbose: Any
    trace: bool
    n_jobs: int | None

    probability: Any = False  # a parameter of classifiers only

    origin_: str  # "LIBSVM file" or "LIBLINEAR file": where a model was read from
    # When a fit begins.
    _forgotten: ClassVar[tuple[str, ...]] = OF_THE_LAST_FIT

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "status_")

    def formulate(self, X: Any, y: Any, sample_weight: Any = None) -> Formulated:
        """Check parameters and data, and state the problems that ``fit`` solves.

        For tools that solve them by other means: ``adopt`` takes the results.
        """
        self.check_parameters()
        return self._state(X, y, sample_weight)

    def _state(self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> Formulated:
        data = self._training(X, y, sample_weight, reset=reset)
        form = self._form()
        return Formulated(data, form, form.problems(data, self._features(data)))

    def adopt(self, formulated: Formulated, results: list[Result]) -> Self:
        """Become the model that solutions of the problems stand for."""
        raise NotImplementedError

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> list[Solved]:
        """Return the problems that were solved, and the model as their solutions."""
        raise NotImplementedError

    def _refuse_unknown_rows(self) -> None:
        """Raise if nothing says which rows the model was fitted to."""
        if hasattr(self, "origin_"):
            raise ValueError(
                f"This {type(self).__name__} was read from a {self.origin_}, which does not say "
                "what its problem was or which rows it was fitted to: mm.certify(model, X, y) "
                "finds them; for anything else fit it again."
            )

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        began = clock.now()
        self.check_parameters()
        last = self._last() if self.warm_start and hasattr(self, "status_") else None
        for name in self._forgotten:  # whatever fails from here on leaves it unfitted
            self.__dict__.pop(name, None)
        formulated = self._state(X, y, sample_weight)
        starts = [Point()] * len(formulated.problems)
        if last is not None:
            starts = self._starts(formulated, last) or starts
        budget = Budget(self.max_time and self._time_to_solve(), began)
        results = solve_all(formulated.problems, starts, solver_settings(self), budget)
        return self.adopt(formulated, results)

    def _time_to_solve(self) -> float | None:
        """Return the seconds of ``max_time`` that are for solving."""
        return self.max_time

    def _calibrate(self, formulated: Formulated, results: list[Result]) -> None:
        """Find what turns scores into probabilities."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        check_number(self, "tol", at_least=0)
        check_number(self, "max_time", above=0, optional=True)
        check_flag(self, "warm_start")
        check_flag(self, "trace")
        check_threads(self)
        check_progress(self)

    def _training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        """Check the data, and leave out the rows without weight."""
        raise NotImplementedError

    def _form(self) -> Formulation:
        """Return the mathematics that the parameters describe."""
        raise NotImplementedError

    def _features(self, data: Training) -> Any:
        """Return the rows as problems see them."""
        raise NotImplementedError

    def _last(self) -> Any:
        """Return what the last fit leaves to a warm start."""
        raise NotImplementedError

    def _starts(self, formulated: Formulated, last: Any) -> list[Point] | None:
        """Return where to start each problem after the last fit; None if that says nothing."""
        raise NotImplementedError

    def _report(self, data: Any, results: list[Result], doubt: str = "") -> Self:
        """Set the attributes about solving, and warn if it stopped short of what was asked for.

        ``doubt`` is a sentence on what is wrong with the optimum itself.
        """
        self.certificate_ = together([result.certificate for result in results])
        statuses = [each.status for each in results if each.status is not Status.OPTIMAL]
        # What stopped the fit early says more than that a kernel is indefinite.
        statuses.sort(key=lambda status: status in (Status.STATIONARY, Status.NO_MARGIN))
        self.status_ = statuses[0] if statuses else Status.OPTIMAL
        self.n_iter_ = self._iterations([result.iterations for result in results])
        self.solver_ = ", ".join(dict.fromkeys([result.solver for result in results]))
        if self.trace:
            traces = [result.trace for result in results]
            self.trace_ = traces[0] if len(traces) == 1 else traces
        most = int(np.max(self.n_iter_))
        times = f"{most} iteration{'' if most == 1 else 's'}"
        self.stop_reason_ = f"After {times} ({self.solver_}): {self.status_.value}.{doubt}"
        if self.status_ in _UNPROVED:
            self.stop_reason_ += f" {self.certificate_.caveat}."
        elif self.status_ not in (Status.OPTIMAL, Status.NO_MARGIN):
            self.stop_reason_ += gap_left(self.certificate_, self.tol)
            if self.status_ in _BADLY_SCALED:
                self.stop_reason_ += self._ill_scaled(data)
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt(self.stop_reason_)
        if doubt or self.status_ not in (Status.OPTIMAL, Status.CALLBACK):
            kind = UserWarning if self.status_ in _UNPROVED else ConvergenceWarning
            warn(self.stop_reason_, kind)
        return self

    def _iterations(self, counts: list[int]) -> Any:
        return max(counts)

    def _ill_scaled(self, data: Training) -> str:
        """Return a clause on columns of very different size, or nothing."""
        return ill_scaled(data.X, getattr(self, "feature_names_in_", None))


_UNPROVED = (Status.STATIONARY, Status.INEXACT)
_BADLY_SCALED = (Status.STALLED, Status.ROUNDING, Status.MAX_ITER)  # may be the cause of these


def solver_settings(machine: Any, *, silent: bool = False) -> Settings:
    """Return what the parameters of a machine say about solving.

    ``silent``: for further solutions of its problems, without time limit, callback, lines or trace.
    """
    seed = getattr(machine, "random_state", None)
    return Settings(
        getattr(machine, "solver", "auto"),
        float(machine.tol),
        _MAX_ITER if machine.max_iter == -1 else int(machine.max_iter),
        None if silent else machine.max_time,
        None if silent else announced(machine, machine.callback),
        not silent and bool(machine.verbose),
        not silent and bool(machine.trace),
        count_threads(machine.n_jobs),
        0 if seed is None else int(generator(seed).integers(2**31)),
        cyclic=getattr(machine, "order", "random") == "cyclic",
    )
