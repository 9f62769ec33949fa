"""The ladder for numbers: constants, planes, RBF kernels, and boosted trees as a yardstick.

Families are compared on rows that they were not fitted to, by absolute errors: squared ones hang on
a few rows far out. R² and the mean absolute error of each are reported with intervals. An error
that a method reaches bounds the noise from above, and nothing bounds it from below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from maxmargin._typing import Floats, Ints
from maxmargin.clock import Clock
from maxmargin.diagnosis import families
from maxmargin.diagnosis.inputs import (
    DiagnosedTable,
    Sample,
    as_learnt,
    describe_columns,
    draw_rows,
    find_groups,
    is_wide,
    measure_columns,
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
from maxmargin.progress import progress
from maxmargin.threads import one_blas_thread

_ROWS = 2500  # that are cross-validated when there are 30 seconds
_FRESH = 2  # times as many others, on which families are compared where there are so many rows
_MOST_FRESH = 10_000
_DENSE_COLUMNS = 2000  # beyond, trees are not asked
_COSTS = (0.1, 1.0, 10.0, 100.0)
_KERNEL_COSTS = (1.0, 10.0, 100.0, 1000.0)
_WIDTHS = (0.03, 0.125, 0.5, 2.0, 8.0)
_TUBE = 0.1  # times the spread of the targets
_BAND = (0.1, 0.5, 0.9)  # quantiles
_SOME = 0.1  # R² up to which a method may as well be one without use
_TIME = "the time ran out: raise max_time."
_TREES = "gradient boosting"
_CONSTANTS = ("the mean", "the median")
_MEASURES = {1: "absolute", 2: "squared"}  # errors to a power


def diagnose_numbers(
    table: DiagnosedTable,
    y: Floats,
    clock: Clock,
    rng: np.random.Generator,
    client: Any = None,
    groups: Any = None,
) -> Diagnosis:
    """Diagnose a regression; ``table`` has its rows, as if all were of one class."""
    run = _Run(table, y, clock, rng, find_groups(table.X, groups))
    run.sample.client = client
    with progress("Diagnosing", len(run.questions), unit="question", even=False) as bar:
        for done, (name, ask) in enumerate(run.questions.items()):
            bar.update(done, note=name)
            run.answers.append(ask())
    verdict, reason = run.decide()
    own, because = run.advise(verdict)
    candidate = run.scored[_TREES].best if run.trees_win else own
    return Diagnosis(
        verdict=verdict,
        reason=reason,
        witness=tuple(run.gain.values()),
        rungs=tuple(run.answers),
        warnings=tuple(run.warn(verdict)),
        advice=f"{describe(candidate.estimator())}: {because}",
        alternatives=tuple(run.offer(own)),
        scoring="neg_mean_absolute_error",
        n_rows=table.X.shape[0],
        n_features=table.X.shape[1],
        classes=(),
        random_state=None,
        seconds=clock.seconds,
        candidate=candidate,
        ladder=own,
    )


# ------------------------------------------------------------------- fits to some of the rows


@dataclass(frozen=True)
class AbsoluteError:
    """The metric of inner folds, for one column of predictions."""

    name: str
    y: Floats
    weight: Floats = field(default_factory=lambda: np.ones(1))

    @classmethod
    def of(cls, name: str, y: Floats, n_classes: int = 1) -> "AbsoluteError":
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
    y, one = np.asarray(sample.y[train], dtype=np.float64), np.ones(len(train))
    found: dict[Candidate, Floats] = {}
    for shape in dict.fromkeys((one.get("quantile"), one.get("epsilon")) for one in settings):
        quantile, epsilon = shape
        loss = losses.epsilon_insensitive(y, one, epsilon or 0.0)
        if quantile is not None:
            loss = losses.pinball(y, one, quantile)
        some = [s for s in settings if (s.get("quantile"), s.get("epsilon")) == shape]
        costs = np.array([setting.get("C") for setting in some])
        with one_blas_thread():
            found.update(zip(some, matrix.follow(loss, costs, train, test), strict=True))
    return [found[setting][:, np.newaxis] for setting in settings]


@dataclass(frozen=True)
class _Fitted:
    """A family: the best of its settings, and its errors on rows that were not fitted to."""

    name: str
    best: Candidate
    off: Floats  # target − prediction
    r2: tuple[float, float, float]  # with a 95 % interval
    mae: tuple[float, float, float]

    def __str__(self) -> str:
        return f"{self.name} {self.figures}"

    @property
    def figures(self) -> str:
        """R² and mean absolute error, with intervals."""
        (r2, low, high), (mae, least, most) = self.r2, self.mae
        return (
            f"has R² {r2:.3f} ({low:.3f} to {high:.3f}) and a mean absolute error of {amount(mae)} "
            f"({amount(least)} to {amount(most)})"
        )


# ------------------------------------------------------------------- the questions


class _Run:
    """The data, the clock, and every answer so far; each question returns its rung."""

    def __init__(
        self, table: DiagnosedTable, y: Floats, clock: Clock, rng: np.random.Generator, group: Ints
    ) -> None:
        self.table, self.clock, self.answers = table, clock, list[Rung]()
        self.scored: dict[str, _Fitted] = {}
        self.gain: dict[str, ErrorComparison] = {}
        self.signal: list[ErrorComparison] = []
        # Costs and tubes are for targets of spread 1, and multiplied by this spread in the end.
        low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
        spread = float(high - low) / 1.35 or float(np.std(y))
        self.spread = float(f"{spread:.2g}") if spread > 0 else 1.0
        target = (y - middle) / self.spread
        size = max(100, int(_ROWS * np.sqrt(clock.max_time / 30.0)))
        self.rows = rows = draw_rows(table.y, size, rng)
        self.columns = measure_columns(table.X, rows)
        wide = is_wide(table.X)
        self.sample = Sample(
            X=as_learnt(table.X[rows], wide),
            y=target[rows],
            folds=families.make_folds(target[rows], group[rows], rng),
            metric=cast(Any, AbsoluteError("absolute error", target[rows])),
            sparse=sp.issparse(table.X),
            wide=wide,
            uneven=self.columns.uneven,
            seed=int(rng.integers(2**31)),
            over=lambda: clock.over,
        )
        others = np.flatnonzero(~np.isin(group, group[rows]))
        if len(others) >= _FRESH * len(rows):
            fresh = others[draw_rows(table.y[others], _MOST_FRESH, rng)]
            self.sample.X_fresh, self.sample.y_fresh = (
                as_learnt(table.X[fresh], wide),
                target[fresh],
            )

    @property
    def questions(self) -> dict[str, Callable[[], Rung]]:
        """All questions in the order in which they are asked."""
        return {
            "columns": self._describe_columns,
            "constants": self._try_constants,
            "planes": self._try_planes,
            "kernels": self._try_kernels,
            _TREES: self._try_trees,
            "quantiles": self._try_quantiles,
            "signal": self._find_signal,
            "noise": self._bound_noise,
        }

    def _describe_columns(self) -> Rung:
        self.messages = describe_columns(self.table, self.columns)
        message = " ".join(self.messages) or "nothing unusual about scales and constants."
        return Rung("columns", message, True, len(self.table.y), dict(vars(self.columns)))

    def _try_constants(self) -> Rung:
        """Predict every row by the mean and by the median of the rows fitted to."""
        sample, n = self.sample, len(self.sample.strata)
        constants: tuple[Callable[[Any], Any], ...] = (np.mean, np.median)
        for name, constant in zip(_CONSTANTS, constants, strict=True):
            found = np.full(n, constant(sample.y))
            if sample.y_fresh is None:
                for k in np.unique(sample.folds):
                    found[sample.folds == k] = constant(sample.y[sample.folds != k])
            best = Candidate("constant", (("strategy", name.removeprefix("the ")),))
            self._keep(name, name, best, found)
        mean, median = (self.scored[name] for name in _CONSTANTS)
        message = f"{mean}; the median is off by {amount(median.mae[0])} on average."
        return Rung("constants", message, True, n, self._evidence(mean, median))

    def _keep(self, heading: str, name: str, best: Candidate, predicted: Floats) -> _Fitted:
        y = self.sample.compared.y
        off = self.spread * (y - predicted)
        base = self.scored[_CONSTANTS[0]].off if self.scored else off
        errors = np.abs(off)
        mae = float(errors.mean()), *mean_interval(errors)
        self.scored[heading] = _Fitted(name, best, off, explained(off, base), mae)
        return self.scored[heading]

    def _try_planes(self) -> Rung:
        settings = []
        for scaled in self.sample.forms:
            size = self.sample.spread(scaled)
            settings += [
                self._candidate("linear regression", scaled, C=_round(cost / size), epsilon=_TUBE)
                for cost in _COSTS
            ]
        return self._try("planes", "a plane", fit_each, settings)

    def _try_kernels(self) -> Rung:
        settings = []
        for scaled in self.sample.forms:
            size = self.sample.spread(scaled)
            settings += [
                self._candidate(
                    "kernel regression", scaled, C=C, epsilon=_TUBE, gamma=_round(width / size)
                )
                for width in _WIDTHS
                for C in _KERNEL_COSTS
            ]
        return self._try("kernels", "an RBF kernel", fit_tubes, settings)

    def _try_trees(self) -> Rung:
        if self.sample.wide or self.table.X.shape[1] > _DENSE_COLUMNS:
            return Rung(_TREES, "not asked: the rows are too wide for it.", ran=False)
        settings = [self._candidate("boosted regression", False, random_state=0)]
        return self._try(_TREES, _TREES, fit_each, settings)

    def _candidate(self, kind: str, scaled: bool, **settings: Any) -> Candidate:
        sample = self.sample
        return Candidate(kind, tuple(settings.items()), scaled, sample.sparse, sample.wide)

    def _predict(self, name: str, learn: Any, settings: list[Candidate]) -> Any:
        with threadpool_limits(1):
            return families.cross_validate(name, learn, settings, self.sample, ring=True)

    def _try(self, heading: str, name: str, learn: Any, settings: list[Candidate]) -> Rung:
        """Cross-validate a family, and compare it with the best rung below."""
        rival = self.scored.get(self.chosen)
        found = self._predict(name, learn, settings)
        if found is None:
            return Rung(heading, _TIME, ran=False)
        kept = self._keep(heading, name, found.best, found.scores[:, 0])
        message, evidence = f"{kept}", self._evidence(kept)
        if rival is not None:
            tests = 1 if heading == "kernels" else 2  # trees meet the better of two
            self.gain[heading] = gain = self._compare(kept, rival, tests)
            message, evidence = f"{message}; {gain}", {**evidence, "comparison": gain.to_dict()}
        return Rung(heading, f"{message}.", True, len(kept.off), evidence, self.gain.get(heading))

    def _compare(
        self, own: _Fitted, rival: _Fitted, tests: int, power: int = 1, level: float = LEVEL
    ) -> ErrorComparison:
        better, worse = ((one.name, np.abs(one.off) ** power) for one in (own, rival))
        return compare_errors(better, worse, tests, level, _MEASURES[power])

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
        return _TREES in self.gain and self.gain[_TREES].significant

    def _evidence(self, *found: _Fitted) -> dict[str, Any]:
        return {
            one.name: {"r2": list(one.r2), "mean_absolute_error": list(one.mae)} for one in found
        }

    def _try_quantiles(self) -> Rung:
        """Fit three quantiles with the settings of the best rung, for a band around the median."""
        if not self.chosen:
            return Rung("quantiles", _TIME, ran=False)
        best, predicted = self.scored[self.chosen].best, []
        form = {"gamma": best.get("gamma")} if self.chosen == "kernels" else {"kernel": "linear"}
        for quantile in _BAND:
            one = self._candidate(
                "quantile", best.scaled, quantile=quantile, C=2 * best.get("C"), **form
            )  # at q = ½ an error costs C/2
            found = self._predict("QuantileSVR", fit_tubes, [one])
            if found is None:
                return Rung("quantiles", _TIME, ran=False)
            predicted.append(found.scores[:, 0])
            if quantile == 0.5:
                median = self._keep("quantiles", "a median", one, predicted[-1])
        y, width = self.sample.compared.y, self.spread * float(np.mean(predicted[2] - predicted[0]))
        held = float(np.mean((predicted[0] <= y) & (y <= predicted[2])))
        message = (
            f"{median}; {held:.0%} of the rows lie between the quantiles {_BAND[0]} and {_BAND[2]} "
            f"(80 % should), which are {amount(width)} apart on average."
        )
        evidence = {**self._evidence(median), "between": held, "width": width}
        return Rung("quantiles", message, True, len(y), evidence)

    # ------------------------------------------------------------ what it all amounts to

    @property
    def methods(self) -> dict[str, _Fitted]:
        """What was tried beside constants."""
        return {name: one for name, one in self.scored.items() if name not in _CONSTANTS}

    @property
    def late(self) -> list[str]:
        """The questions that the time ran out for."""
        return [rung.name for rung in self.answers if rung.answer == _TIME]

    def _find_signal(self) -> Rung:
        """Ask whether anything is nearer than the best constant, by absolute or squared errors."""
        if not self.methods:
            return Rung("signal", _TIME, ran=False)
        mean, median = (self.scored[name] for name in _CONSTANTS)
        tests = 2 * len(self.methods)
        for one in self.methods.values():
            self.signal += [
                self._compare(one, median, tests, level=SIGNAL),
                self._compare(one, mean, tests, 2, level=SIGNAL),
            ]
        self.signal.sort(key=lambda test: test.p_value)
        evidence = {"tests": [test.to_dict() for test in self.signal]}
        return Rung("signal", f"{self.signal[0]}.", True, len(mean.off), evidence, self.signal[0])

    @property
    def silent(self) -> bool:
        """Whether nothing predicts better than a constant, as far as is known."""
        return not (self.signal and self.signal[0].significant)

    @property
    def best(self) -> _Fitted:
        """The method with the smallest mean absolute error, the simplest of equals."""
        return min(self.methods.values() or self.scored.values(), key=lambda one: one.mae[0])

    def _bound_noise(self) -> Rung:
        """Bound from above the error that the best possible rule has."""
        best, count = self.best, max(1, len(self.methods))
        most = mean_interval(np.abs(best.off), count)[1]
        message = (
            f"{best.name} is off by {amount(best.mae[0])} on average, so that the best possible "
            f"rule is off by at most {amount(most)} (95 %, as the best of {count} methods). How "
            "much less is possible cannot be known from data."
        )
        evidence = {"method": best.name, "mean_absolute_error_at_most": most}
        return Rung("noise", message, True, len(best.off), evidence)

    def decide(self) -> tuple[str, str]:
        """Return the verdict and the reason."""
        if "planes" in self.late or ("kernels" in self.late and not self.trees_win):
            missing = " and ".join(self.late)
            return "undecided", f"the time ran out: raise max_time. Missing: {missing}."
        if self.silent:
            nearest = f"The one that comes nearest: {self.signal[0]}"
            if max(one.r2[2] for one in self.methods.values()) > _SOME:
                few = f"{len(self.best.off)} rows are too few to tell whether anything predicts"
                return "undecided", f"{few} better than a constant. {nearest}."
            count = len(self.methods)
            beaten = f"none of {count} methods predicts significantly better than a constant"
            return "no signal", f"{beaten}, the mean or the median. {nearest}."
        if self.trees_win:
            found = "boosted trees find structure that planes and RBF kernels do not"
            return "not linear", f"{found}: {self.gain[_TREES]}."
        if self.chosen == "kernels":
            return "curved", f"on rows that were not fitted to, {self.gain['kernels']}."
        others = [str(gain) for gain in self.gain.values()]
        return "linear", f"no curve is significantly nearer than a plane: {'; '.join(others)}."

    def advise(self, verdict: str) -> tuple[Candidate, str]:
        """Return the best of our own, and why it, or boosted trees, are to be used."""
        if verdict == "no signal" or not self.chosen:
            constant = self.scored["the median"].best
            return constant, "nothing predicts better; more rows or other columns are needed."
        found = self.scored[self.chosen]
        because = f"{found}."
        if self.trees_win:
            because = (
                f"{self.scored[_TREES]}. The best of maxmargin's own, {found.name}, "
                f"{found.figures}: recommend(family='ladder') returns it."
            )
        best = self._refine(found.best)
        scaled = {"C": _round(self.spread * best.get("C")),
                  "epsilon": _round(self.spread * best.get("epsilon"))}  # fmt: skip
        return replace(best, settings=tuple({**dict(best.settings), **scaled}.items())), because

    def _refine(self, best: Candidate) -> Candidate:
        """Return the best with another tube, if that is better in inner folds."""
        tubes = [best.get("epsilon") * factor for factor in (1.0, 0.2, 3.0)]
        settings = [
            replace(best, settings=tuple({**dict(best.settings), "epsilon": tube}.items()))
            for tube in tubes
        ]
        learn = fit_tubes if self.chosen == "kernels" else fit_each
        with threadpool_limits(1):
            inner = families.inner_mistakes(learn, settings, self.sample, ring=True)
        return best if inner is None else settings[int(inner.sum(axis=(0, 2)).argmin())]

    def offer(self, advised: Candidate) -> list[Alternative]:
        """Return what each rung offers, with R² and how it compares."""
        found = []
        for heading, one in self.scored.items():
            best = advised if heading == self.chosen else one.best
            rescaled = {name: _round(self.spread * best.get(name)) for name in ("C", "epsilon")
                        if best is one.best and best.get(name)}  # fmt: skip
            best = replace(best, settings=tuple({**dict(best.settings), **rescaled}.items()))
            mae, low, high = one.mae
            note = f"mean absolute error {amount(mae)} ({amount(low)} to {amount(high)})"
            note += f"; {self.gain[heading]}" if heading in self.gain else ""
            found.append(Alternative(heading, best, *one.r2, f"{note}.", "R²"))
        return found

    def warn(self, verdict: str) -> list[str]:
        """Return what could mislead."""
        found, n, seen = list(self.messages), len(self.table.y), len(self.rows)
        if self.sample.y_fresh is not None:
            others = len(self.sample.y_fresh)
            found.append(
                f"Models were fitted to {seen} of {n} rows, and compared on {others} others."
            )
        elif seen < n:
            found.append(f"Models were cross-validated on {seen} of {n} rows.")
        if self.late and verdict != "undecided":
            found.append(f"The time ran out: raise max_time. Missing: {' and '.join(self.late)}.")
        return found


def _round(value: float) -> float:
    """Return the value to two digits: more would be noise in a recommendation."""
    return float(f"{value:.1e}")
