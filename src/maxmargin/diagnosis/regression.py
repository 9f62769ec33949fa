"""The ladder for numbers: constants, planes, RBF kernels, and boosted trees from outside.

Families are compared on held-out rows by absolute errors, since squared ones hang on a few rows far
out. An error that a method reaches bounds the noise from above; nothing bounds it from below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.diagnosis.families import TREES, Ladder, cross_validate, two_digits
from maxmargin.diagnosis.inputs import (
    DiagnosedTable,
    Sample,
    find_groups,
)
from maxmargin.diagnosis.learners import Candidate, FoldMatrix, fit_each
from maxmargin.diagnosis.result import Alternative, Diagnosis, Rung
from maxmargin.diagnosis.significance import (
    LEVEL,
    SIGNAL,
    ErrorComparison,
    amount,
    compare_errors,
    explained,
    mean_interval,
)
from maxmargin.inspection.code import describe
from maxmargin.kernels import RBF, Linear
from maxmargin.problems import losses
from maxmargin.runtime.clock import Clock, OutOfTimeError
from maxmargin.runtime.threads import one_blas_thread

_ROWS = 2500  # that are cross-validated when there are 30 seconds
_DENSE_COLUMNS = 2000  # beyond, trees are not asked
_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_KERNEL_COSTS = (1.0, 30.0, 1000.0)
_WIDTHS = (0.03, 0.125, 0.5, 2.0, 8.0)
_TUBES = (0.1, 0.02)
_BAND = (0.5, 0.1, 0.9)  # quantiles
_SOME = 0.1  # R² up to which a method may as well be without use
_MEAN, _MEDIAN = "the mean", "the median"


def diagnose_numbers(
    table: DiagnosedTable,
    y: Floats,
    clock: Clock,
    rng: np.random.Generator,
    groups: Any = None,
) -> Diagnosis:
    """Diagnose a regression; ``table`` has its rows, as if all were of one class."""
    run = _Regression(table, find_groups(table.X, groups), clock, rng, y)
    run.ask(run.questions)
    verdict, reason = run.decide()
    ladder = run.rescaled(run.scored[run.chosen].best) if run.chosen else run.simplest
    candidate, advised = ladder, "it is the simplest, and nothing could be compared."
    if verdict == "no signal":
        candidate = ladder = run.scored[_MEDIAN].best
        advised = "nothing is shown to predict better; more rows or other columns are needed."
    elif run.trees_win:
        candidate, advised = run.scored[TREES].best, f"{run.scored[TREES]}."
    elif run.chosen:
        advised = f"{run.scored[run.chosen]}."
    return Diagnosis(
        verdict=verdict,
        reason=reason,
        witness=tuple(run.gain.values()),
        rungs=tuple(run.answers),
        warnings=tuple(run.warn(verdict)),
        advice=f"{describe(candidate.estimator())}: {advised}",
        alternatives=tuple(run.offer()),
        scoring="neg_mean_absolute_error",
        n_rows=table.X.shape[0],
        n_features=table.X.shape[1],
        classes=(),
        random_state=None,
        seconds=clock.seconds,
        candidate=candidate,
        ladder=ladder,
    )


# ------------------------------------------------------------------- fits to some of the rows


@dataclass(frozen=True)
class AbsoluteError:
    """The metric of inner folds, for one column of predictions."""

    name: str
    y: Floats
    weight = np.ones(1)

    @classmethod
    def of(cls, name: str, y: Floats, n_classes: int) -> "AbsoluteError":
        """Return the metric for rows with these targets."""
        del n_classes
        return cls(name, y)

    def lost(self, scores: Floats, rows: Ints) -> Floats:
        """Return what each prediction is off by."""
        return np.abs(scores[:, :1] - self.y[rows, np.newaxis])


def fit_tubes(
    sample: Sample, settings: Sequence[Candidate], train: Ints, test: Ints
) -> list[Floats]:
    """Fit kernel regressors that share one kernel matrix for all folds, tubes and costs."""
    first = settings[0]
    kernel = Linear() if first.get("gamma") is None else RBF(gamma=first.get("gamma"))
    matrix = sample.share(first.shared, lambda: FoldMatrix(kernel, sample, first.scaled))
    y, cost = np.asarray(sample.y[train], dtype=np.float64), np.ones(len(train))
    found: dict[Candidate, Floats] = {}
    for epsilon in dict.fromkeys(setting.get("epsilon") for setting in settings):
        some = [setting for setting in settings if setting.get("epsilon") == epsilon]
        loss = losses.pinball(y, cost, first.get("quantile") or 0.5)
        if epsilon is not None:
            loss = losses.epsilon_insensitive(y, cost, epsilon)
        costs = np.array([setting.get("C") for setting in some])
        with one_blas_thread():
            found.update(zip(some, matrix.follow(loss, costs, train, test), strict=True))
    return [found[setting][:, np.newaxis] for setting in settings]


@dataclass(frozen=True)
class _Fitted:
    """A family: the best of its settings, and its errors on held-out rows."""

    name: str
    best: Candidate
    off: Floats  # target − prediction
    r2: tuple[float, float, float]  # with a 95 % interval
    mae: tuple[float, float, float]

    def __str__(self) -> str:
        (r2, low, high), (mae, least, most) = self.r2, map(amount, self.mae)
        return (
            f"{self.name} has R² {r2:.3f} ({low:.3f} to {high:.3f}) and a mean absolute error of "
            f"{mae} ({least} to {most})"
        )

    def beside(
        self, rival: "_Fitted", tests: int, level: float = LEVEL, squared: bool = False
    ) -> ErrorComparison:
        """Compare absolute or squared errors, row by row."""
        own, other = ((of.name, np.abs(of.off) ** (1 + squared)) for of in (self, rival))
        return compare_errors(own, other, tests, level, "squared" if squared else "absolute")

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        best = self.best.to_dict()
        return {"r2": self.r2, "mean_absolute_error": self.mae, "best": best}


# ------------------------------------------------------------------- the questions


class _Regression(Ladder):
    """The questions about numbers, each of which returns its rung, and all that is known."""

    def __init__(
        self, table: DiagnosedTable, groups: Ints, clock: Clock, rng: np.random.Generator, y: Floats
    ) -> None:
        super().__init__(table, groups, clock, rng, _ROWS)
        self.scored: dict[str, _Fitted] = {}
        self.gain: dict[str, ErrorComparison] = {}
        # Costs and tubes are for targets of spread 1, and multiplied by this spread in the end.
        low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
        self.spread = float(f"{float(high - low) / 1.35 or float(np.std(y)):.2g}")
        target = (y - middle) / self.spread
        self.draw_sample(target, AbsoluteError("absolute error", target[self.rows]))
        tubes: list[dict[str, Any]] = [{"epsilon": tube} for tube in _TUBES]
        planes = [{"C": cost, **tube} for tube in tubes for cost in _COSTS]
        kernels = [{"gamma": width, "C": cost, "epsilon": tube} for width in _WIDTHS
                   for tube in _TUBES for cost in _KERNEL_COSTS]  # fmt: skip
        self.questions: dict[str, Callable[[], Rung]] = {
            "columns": self._describe_columns,
            "constants": self._try_constants,
            "planes": partial(self._try, "planes", "a plane", "linear regression", planes),
            "kernels": partial(self._try, "kernels", "an RBF kernel", "kernel regression", kernels),
            TREES: partial(self._try, TREES, TREES, "boosted regression", [{}]),
            "quantiles": self._try_quantiles,
            "signal": self._find_signal,
            "noise": self._bound_noise,
        }

    def _describe_columns(self) -> Rung:
        if self.columns.uneven:
            self.messages[0] += " All models but trees are fitted to scaled columns."
        message = " ".join(self.messages) or "nothing unusual about scales and constants."
        return Rung("columns", message, True, len(self.table.y), dict(vars(self.columns)))

    def _try_constants(self) -> Rung:
        """Predict every row by the mean and by the median of the rows fitted to."""
        sample, n = self.sample, len(self.sample.strata)
        for name, constant in ((_MEAN, np.mean), (_MEDIAN, np.median)):
            found = np.full(n, constant(sample.y))
            for k in np.unique(sample.folds) if sample.y_fresh is None else ():
                found[sample.folds == k] = constant(sample.y[sample.folds != k])
            strategy = ("strategy", name.removeprefix("the "))
            self._keep(name, name, Candidate("constant", (strategy,)), found)
        message = f"{self.scored[_MEAN]}; {self.scored[_MEDIAN]}."
        return Rung("constants", message, True, n, self.scored[_MEDIAN].to_dict())

    def _keep(self, heading: str, name: str, best: Candidate, predicted: Floats) -> _Fitted:
        off = self.spread * (self.sample.compared.y - predicted)
        base = self.scored[_MEAN].off if self.scored else off
        mae = float(np.abs(off).mean()), *mean_interval(np.abs(off))
        self.scored[heading] = found = _Fitted(name, best, off, explained(off, base), mae)
        return found

    def _settings(self, kind: str, tried: list[dict[str, Any]]) -> list[Candidate]:
        """Return candidates whose costs and widths are relative to the spread of the rows."""
        sample, found = self.sample, []
        for scaled in [False] if kind == "boosted regression" else sample.forms:
            size = sample.spread(scaled)
            relative = {"linear regression": "C", "kernel regression": "gamma"}.get(kind)
            for one in tried:
                units = {relative: two_digits(one[relative] / size)} if relative else {}
                given = tuple({**one, **units}.items())
                found.append(Candidate(kind, given, scaled, sample.sparse, sample.wide))
        return found

    def _try(self, heading: str, name: str, kind: str, tried: list[dict[str, Any]]) -> Rung:
        """Cross-validate a family, and compare it with the best rung below."""
        if heading == TREES and (self.sample.wide or self.table.X.shape[1] > _DENSE_COLUMNS):
            return Rung.skipped(TREES, "the rows are too wide for it.")
        rival = self.scored.get(self.chosen)
        # Planes on wide rows are found sooner by their kernel matrix.
        by_matrix = heading == "kernels" or (heading == "planes" and self.sample.wide)
        learn = fit_tubes if by_matrix else fit_each
        found = cross_validate(name, learn, self._settings(kind, tried), self.sample, ring=True)
        kept = self._keep(heading, name, found.best, found.scores[:, 0])
        message, evidence = str(kept), kept.to_dict()
        if rival is not None:
            tests = 1 if heading == "kernels" else 2  # trees meet the better of two
            self.gain[heading] = gain = kept.beside(rival, tests)
            message, evidence = f"{message}; {gain}", {**evidence, "comparison": gain.to_dict()}
        return Rung(heading, f"{message}.", True, len(kept.off), evidence, self.gain.get(heading))

    @property
    def chosen(self) -> str:
        """The rung to use: planes, unless kernels have smaller errors beyond noise."""
        gain = self.gain.get("kernels")
        if gain is not None and gain.significant:
            return "kernels"
        return "planes" if "planes" in self.scored else ""

    @property
    def trees_win(self) -> bool:
        """Whether boosted trees have smaller errors, beyond noise, than planes and kernels."""
        return TREES in self.gain and self.gain[TREES].significant

    def _try_quantiles(self) -> Rung:
        """Fit three quantiles with the settings of the best rung, for a band around the median."""
        if not self.chosen:
            raise OutOfTimeError
        best, predicted = self.scored[self.chosen].best, []
        form = {"gamma": best.get("gamma")} if self.chosen == "kernels" else {"kernel": "linear"}
        for quantile in _BAND:  # at q = ½ an error costs C/2
            settings = {"quantile": quantile, "C": 2 * best.get("C"), **form}
            one = replace(best, kind="quantile", settings=tuple(settings.items()))
            found = cross_validate("QuantileSVR", fit_tubes, [one], self.sample, ring=True)
            predicted.append(found.scores[:, 0])
            if quantile == _BAND[0]:
                median = self._keep("quantiles", "a median", one, predicted[0])
        y, (_, low, high) = self.sample.compared.y, predicted
        held, width = float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low))
        message = (
            f"{median}; {held:.0%} of the rows lie between the quantiles {_BAND[1]} and {_BAND[2]} "
            f"(80 % should), which are {amount(self.spread * width)} apart on average."
        )
        return Rung("quantiles", message, True, len(y), {**median.to_dict(), "between": held})

    # ------------------------------------------------------------ what it all amounts to

    @property
    def methods(self) -> list[_Fitted]:
        """What was tried beside constants."""
        return [one for name, one in self.scored.items() if name not in (_MEAN, _MEDIAN)]

    def _find_signal(self) -> Rung:
        """Ask whether anything is nearer than the best constant, by absolute or squared errors."""
        if not self.methods:
            raise OutOfTimeError
        tests = [
            one.beside(self.scored[constant], 2 * len(self.methods), SIGNAL, squared)
            for one in self.methods
            for constant, squared in ((_MEDIAN, False), (_MEAN, True))
        ]
        best = min(tests, key=lambda test: test.p_value)
        evidence = {"tests": [test.to_dict() for test in tests]}
        return Rung("signal", f"{best}.", True, len(self.methods[0].off), evidence, best)

    def _bound_noise(self) -> Rung:
        """Bound from above the error that the best possible rule has."""
        tried = self.methods or [self.scored[_MEDIAN]]
        best = min(tried, key=lambda one: one.mae[0])
        most = mean_interval(np.abs(best.off), len(tried))[1]
        message = (
            f"{best.name} is off by {amount(best.mae[0])} on average, so that the best possible "
            f"rule is off by at most {amount(most)} (95 %, as the best of {len(tried)} methods). "
            "How much less is possible cannot be known from data."
        )
        evidence = {"method": best.name, "mean_absolute_error_at_most": most}
        return Rung("noise", message, True, len(best.off), evidence)

    def decide(self) -> tuple[str, str]:
        """Return the verdict and the reason."""
        signal = next(rung.witness for rung in self.answers if rung.name == "signal")
        unfinished = not {"planes", "kernels"} <= self.scored.keys()
        if signal is None or (unfinished and not self.trees_win):
            return "undecided", self.run_out
        if not signal.significant:
            nearest = f"The one that comes nearest: {signal}."
            if max(one.r2[2] for one in self.methods) > _SOME:
                few = f"{len(self.methods[0].off)} rows are too few to tell whether anything"
                return "undecided", f"{few} predicts better than a constant. {nearest}"
            beaten = f"none of {len(self.methods)} methods predicts significantly better"
            return "no signal", f"{beaten} than a constant, the mean or the median. {nearest}"
        if self.trees_win:
            found = "boosted trees find structure that planes and RBF kernels do not"
            return "not linear", f"{found}: {self.gain[TREES]}."
        if self.chosen == "kernels":
            return "curved", f"on held-out rows, {self.gain['kernels']}."
        others = "; ".join(map(str, self.gain.values()))
        return "linear", f"no curve is significantly nearer than a plane: {others}."

    @property
    def simplest(self) -> Candidate:
        """What to use if nothing could be compared."""
        settings = (("C", self.spread), ("epsilon", two_digits(_TUBES[0] * self.spread)))
        sample = self.sample
        return Candidate("linear regression", settings, True, sample.sparse, sample.wide)

    def rescaled(self, best: Candidate) -> Candidate:
        """Return a candidate for the targets as they are."""
        units = {name: two_digits(self.spread * best.get(name)) for name in ("C", "epsilon")
                 if best.get(name)}  # fmt: skip
        return replace(best, settings=tuple({**dict(best.settings), **units}.items()))

    def offer(self) -> list[Alternative]:
        """Return what each rung offers, with R² and how it compares."""
        found = []
        for heading, one in self.scored.items():
            mae, low, high = map(amount, one.mae)
            note = f"mean absolute error {mae} ({low} to {high})"
            note += f"; {self.gain[heading]}" if heading in self.gain else ""
            offered = self.rescaled(one.best)
            found.append(Alternative(heading, offered, *one.r2, f"{note}.", "R²"))
        return found

    def warn(self, verdict: str) -> list[str]:
        """Return what could mislead."""
        found = [*self.messages, *self.describe_rows()]
        if self.late and verdict != "undecided":
            found.append(f"T{self.run_out[1:]}")
        if self.trees_win and self.chosen:
            own = self.scored[self.chosen]
            found.append(f"The best of maxmargin's own: {own}. recommend('ladder') returns it.")
        return found
