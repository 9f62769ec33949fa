"""The ladder for numbers: constants, planes, RBF kernels, and boosted trees from outside.

Families are compared on held-out rows by absolute errors, since squared ones hang on a few rows far
out.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.diagnosis.families import (
    TREES,
    Ladder,
    ModelFamily,
    Scored,
    cross_validate,
    two_digits,
)
from maxmargin.diagnosis.inputs import DiagnosedTable, Sample, find_groups
from maxmargin.diagnosis.learners import Candidate
from maxmargin.diagnosis.result import Alternative, Diagnosis, Rung
from maxmargin.diagnosis.significance import (
    LEVEL,
    SIGNAL,
    Comparison,
    amount,
    compare_errors,
    explained,
    mean_interval,
)
from maxmargin.runtime.clock import Clock, OutOfTimeError

_ROWS = 2500  # that are cross-validated when there are 30 seconds
_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_KERNEL_COSTS = (1.0, 30.0, 1000.0)
_WIDTHS = (0.03, 0.125, 0.5, 2.0, 8.0)
_TUBES = (0.1, 0.02)
_SOME = 0.1  # R² up to which a method may as well be without use
_MEAN, _MEDIAN = "the mean", "the median"


def diagnose_numbers(
    table: DiagnosedTable, y: Floats, clock: Clock, rng: np.random.Generator, groups: Any = None
) -> Diagnosis:
    """Diagnose a regression; ``table`` has its rows, as if all were of one class."""
    run = _Regression(table, find_groups(table.X, groups), clock, rng, y)
    run.ask(run.questions)
    verdict, reason = run.decide()
    ladder = run.rescaled(run.scored[run.chosen].best) if run.chosen else run.simplest
    candidate, because = ladder, "it is the simplest, and nothing could be compared."
    if verdict == "no signal":
        candidate = ladder = run.scored[_MEDIAN].best
        because = "nothing is shown to predict better; more rows or other columns are needed."
    elif run.winner:
        candidate = run.rescaled(run.scored[run.winner].best)
        because = f"{run.scored[run.winner]}."
    return run.conclude(
        candidate,
        because,
        ladder=ladder,
        verdict=verdict,
        reason=reason,
        witness=tuple(run.gain.values()),
        warnings=tuple(run.warn(verdict)),
        alternatives=tuple(run.offer()),
        scoring="neg_mean_absolute_error",
        classes=(),
        random_state=None,
    )


@dataclass(frozen=True)
class AbsoluteError:
    """The metric of inner folds, for one column of predictions."""

    name: str
    y: Floats
    weight = np.ones(1)

    def lost(self, scores: Floats, rows: Ints) -> Floats:
        """Return what each prediction is off by."""
        return np.abs(scores[:, :1] - self.y[rows, np.newaxis])


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

    def beside(self, rival: "_Fitted", tests: int, level: float = LEVEL) -> Comparison:
        """Compare absolute errors, row by row."""
        own, other = ((one.name, np.abs(one.off)) for one in (self, rival))
        return compare_errors(own, other, tests, level)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        best = self.best.to_dict()
        return {"r2": self.r2, "mean_absolute_error": self.mae, "best": best}


# ------------------------------------------------------------------- the families
#
# Costs of planes and widths of kernels are relative to the spread of the rows.


def _planes(sample: Sample) -> list[Candidate]:
    return [
        _candidate(sample, "linear regression", scaled, C=two_digits(cost / size), epsilon=tube)
        for scaled, size in ((scaled, sample.spread(scaled)) for scaled in sample.forms)
        for tube in _TUBES
        for cost in _COSTS
    ]


def _kernels(sample: Sample) -> list[Candidate]:
    return [
        _candidate(sample, "kernel regression", scaled, gamma=width, C=cost, epsilon=tube)
        for scaled, size in ((scaled, sample.spread(scaled)) for scaled in sample.forms)
        for width in (two_digits(width / size) for width in _WIDTHS)
        for tube in _TUBES
        for cost in _KERNEL_COSTS
    ]


def _boosted_trees(sample: Sample) -> list[Candidate]:
    return [_candidate(sample, "boosted regression", False)]


def _candidate(sample: Sample, kind: str, scaled: bool, **settings: Any) -> Candidate:
    return Candidate(kind, tuple(settings.items()), scaled, sample.sparse, sample.wide)


# ------------------------------------------------------------------- the questions


class _Regression(Ladder):
    """The questions about numbers, each of which returns its rung, and all that is known."""

    families = (
        ModelFamily("planes", "a plane", _planes),
        ModelFamily("kernels", "an RBF kernel", _kernels),
        ModelFamily(TREES, TREES, _boosted_trees, dense=True),
    )

    def __init__(
        self, table: DiagnosedTable, groups: Ints, clock: Clock, rng: np.random.Generator, y: Floats
    ) -> None:
        super().__init__(table, groups, clock, rng, _ROWS)
        # Costs and tubes are for targets of spread 1, and multiplied by this spread in the end.
        low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
        self.spread = float(f"{float(high - low) / 1.35 or float(np.std(y)):.2g}")
        target = (y - middle) / self.spread
        self.draw_sample(target, AbsoluteError("absolute error", target[self.rows]))
        self.questions = {
            "columns": self._describe_columns,
            "constants": self._try_constants,
            **self.trials,
            "signal": self._find_signal,
        }

    def _describe_columns(self) -> Rung:
        if self.columns.uneven:
            self.messages[0] += " All models but trees are fitted to scaled columns."
        message = " ".join(self.messages) or "nothing unusual about scales and constants."
        return Rung("columns", message, True, len(self.table.y), dict(vars(self.columns)))

    def _try_constants(self) -> Rung:
        """Predict every row by the mean and by the median of the rows fitted to."""
        for name in (_MEAN, _MEDIAN):
            constant = Candidate("constant", (("strategy", name.removeprefix("the ")),))
            self.scored[name] = self.keep(cross_validate(name, [constant], self.sample))
        message = f"{self.scored[_MEAN]}; {self.scored[_MEDIAN]}."
        evidence = self.scored[_MEDIAN].to_dict()
        return Rung("constants", message, True, len(self.rows), evidence)

    def keep(self, found: Scored) -> _Fitted:
        """Return the errors of a family in the units of the targets."""
        off = self.spread * (found.metric.y - found.scores[:, 0])
        base = self.scored[_MEAN].off if self.scored else off
        mae = float(np.abs(off).mean()), *mean_interval(np.abs(off))
        return _Fitted(found.name, found.best, off, explained(off, base), mae)

    # ------------------------------------------------------------ what it all amounts to

    @property
    def methods(self) -> list[_Fitted]:
        """What was tried beside constants."""
        return [one for name, one in self.scored.items() if name not in (_MEAN, _MEDIAN)]

    def _find_signal(self) -> Rung:
        """Ask whether anything is nearer than the median."""
        if not self.methods:
            raise OutOfTimeError
        median, count = self.scored[_MEDIAN], len(self.methods)
        tests = [one.beside(median, count, SIGNAL) for one in self.methods]
        best = min(tests, key=lambda test: test.p_value)
        evidence = {"tests": [test.to_dict() for test in tests]}
        return Rung("signal", f"{best}.", True, len(self.rows), evidence, best)

    def decide(self) -> tuple[str, str]:
        """Return the verdict and the reason."""
        signal = next(rung.witness for rung in self.answers if rung.name == "signal")
        if signal is None or (self.unfinished and not self.outside):
            return "undecided", self.run_out
        if not signal.significant:
            nearest = f"The one that comes nearest: {signal}."
            if max(one.r2[2] for one in self.methods) > _SOME:
                few = f"{len(self.rows)} rows are too few to tell whether anything"
                return "undecided", f"{few} predicts better than a constant. {nearest}"
            beaten = f"none of {len(self.methods)} methods predicts significantly better"
            return "no signal", f"{beaten} than a constant, the median. {nearest}"
        if self.outside:
            found = "boosted trees find structure that planes and RBF kernels do not"
            return "not linear", f"{found}: {self.gain[TREES]}."
        if self.chosen == "kernels":
            return "curved", f"on held-out rows, {self.gain['kernels']}."
        others = "; ".join(map(str, self.gain.values()))
        return "linear", f"no curve is significantly nearer than a plane: {others}."

    @property
    def simplest(self) -> Candidate:
        """What to use if nothing could be compared."""
        tube = two_digits(_TUBES[0] * self.spread)
        return _candidate(self.sample, "linear regression", True, C=self.spread, epsilon=tube)

    def rescaled(self, best: Candidate) -> Candidate:
        """Return a candidate for the targets as they are."""
        units = {
            name: two_digits(self.spread * best.get(name))
            for name in ("C", "epsilon")
            if best.get(name)
        }
        return replace(best, settings=tuple({**dict(best.settings), **units}.items()))

    def offer(self) -> list[Alternative]:
        """Return what each rung offers, with R² and how it compares."""
        found = []
        for heading, one in self.scored.items():
            mae, low, high = map(amount, one.mae)
            note = f"mean absolute error {mae} ({low} to {high})"
            note += f"; {self.gain[heading]}" if heading in self.gain else ""
            offered = self.rescaled(one.best)
            r2, least, most = one.r2
            found.append(Alternative(heading, offered, r2, least, most, f"{note}.", "R²"))
        return found

    def warn(self, verdict: str) -> list[str]:
        """Return what could mislead."""
        found = [*self.messages, *self.describe_rows(verdict)]
        if self.outside and self.chosen:
            own = self.scored[self.chosen]
            found.append(f"The best of maxmargin's own: {own}. recommend('ladder') returns it.")
        return found
