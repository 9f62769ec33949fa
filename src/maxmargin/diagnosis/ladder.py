"""The ladder: its questions in order, the verdict from the answers, and the advice.

Verdict and advice rest on the same comparisons.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Ints
from maxmargin.diagnosis import families
from maxmargin.diagnosis.families import FAMILIES, TREES, Ladder, ModelFamily
from maxmargin.diagnosis.inputs import (
    Arguments,
    DiagnosedTable,
    check_numbers,
    check_table,
    choose_scoring,
    find_groups,
    is_regression,
)
from maxmargin.diagnosis.learners import Candidate
from maxmargin.diagnosis.planes import GivingUp, Planes, find_conflicts, find_planes, give_up
from maxmargin.diagnosis.regression import diagnose_numbers
from maxmargin.diagnosis.result import Alternative, Diagnosis, Rung
from maxmargin.diagnosis.significance import (
    ChanceTest,
    LearningCurve,
    Metric,
    hopeless,
    names_classes,
)
from maxmargin.runtime.clock import Clock, OutOfTimeError
from maxmargin.validation.data import generator

_OVERLAP = 0.05  # error of every method beyond which classes may overlap for good
_EXPLAINED = 1 / 3  # of the constant's error: with less, structure may just not have been found
_SMALL = 0.15  # of the constant's error: a plane that errs no more predicts nearly all rows
_CV_ROWS = 2500  # rows that are cross-validated when there are 30 seconds
_CV_ROWS_OF_MANY = 2000  # with many classes
_WIDE_CLASSES = 5
_MOST_COMBINATIONS = 1024


def diagnose(
    X: Any,
    y: Any,
    *,
    scoring: str = "auto",
    feature_names: Any = None,
    max_time: float = 30.0,
    random_state: Any = 0,
    task: str | None = None,
    groups: Any = None,
) -> Diagnosis:
    """Say which kind of learner suits the data, with evidence for every step.

    The questions, in this order:

    - Do identical rows have different labels? Then no rule can be right: "inseparable", if that
      forces errors on 2 % of the rows.
    - Does a plane separate the classes ("linearly separable")?
    - Does a kernel predict better than a plane ("non-linearly separable"), or a network better
      than a kernel ("multi-layer separable")? If only neighbours or trees predict better than a
      plane, the verdict is "not linear", and the reason names them.
    - Does anything name classes better than by chance ("no signal" if not)?
    - Do the classes overlap for good? "Inseparable" needs a learning curve that has levelled off:
      with a quarter, half and all of the rows the best method errs so much alike that its error
      cannot be on its way to 0.
    - How many rows must be removed before planes separate the rest? "Almost linearly separable"
      are classes of which at most a tenth of the smallest one must go, if the plane's error on
      held-out rows is at most 15 % of the error of always naming the largest class, and nothing
      predicts better.

    If none of this can be shown, the verdict is "undecided", with what is known. The error that the
    best method reaches bounds the least possible (Bayes) error from above, never from below.

    To predict better means: on held-out rows, with settings chosen without them (nested 5-fold
    cross-validation), with p < 0.01 in a paired sign test. A plane is recommended unless something
    is better in this sense. To be better than chance, p must be below 0.005 in Fisher's exact
    test of predicted and true classes. Nothing is concluded from how well a kernel fits rows it has
    seen, as an RBF kernel separates any distinct rows.

    Numbers with fractions, or many different whole ones, are no classes but a regression (see
    ``task``). The questions are then: does anything predict better than a constant ("no signal" if
    not), an RBF kernel better than a plane ("curved", or "linear" if not), and boosted trees better
    than both ("not linear")? To predict better means smaller absolute errors on held-out rows,
    with p < 0.01 in a paired t-test. R² and mean absolute errors have 95 % intervals. Costs and
    tubes of what is recommended suit the spread of y.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels, two or more classes; or numbers to be predicted.
    scoring : {"auto", "accuracy", "balanced_accuracy"}, default="auto"
        By which models are compared. "auto": balanced accuracy, the mean share of right answers
        over the classes, if the largest class has more than 60 % of the rows; else accuracy.
    feature_names : sequence of str, optional
        What to call the columns; by default those of a frame, else numbers.
    max_time : float, default=30.0
        Seconds it may take, compilation aside. How many rows are cross-validated follows from it
        (2500 at 30 seconds, 2000 with more than four classes); every rung says how many it saw.
        What is tried follows from the numbers of rows, columns and classes. If the clock runs out
        before the questions are answered, the verdict is "undecided".
    random_state : int, Generator, RandomState or None, default=0
        For drawing rows and folds. The same seed gives the same diagnosis.
    task : {None, "classification", "regression"}, default=None
        What y is for. None: regression if y has fractions, or many different whole numbers, by the
        rule of :func:`maxmargin.data.read_labelled`; else classification.
    groups : array-like of shape (n,), optional
        The same value for rows that count as equal, which stay together in folds; those with
        different labels are conflicts. Default: rows of X that are equal.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import maxmargin as mm
    >>> found = mm.diagnose(*mm.datasets.circles(200, random_state=0))
    >>> found.verdict
    'non-linearly separable'
    >>> found = mm.diagnose(*mm.datasets.separable(100, margin=0.5, random_state=0))
    >>> print(found)
    Verdict: linearly separable
    Why: a plane separates the classes with margin 0.5.
    Use: HardMarginSVC(): a plane makes too few errors for anything to be significantly better.
    """
    arguments = Arguments(scoring, max_time, random_state, task)
    arguments.check()
    clock = Clock(float(max_time))
    if is_regression(task, y):
        rows, target = check_numbers(arguments, X, y, feature_names)
        return diagnose_numbers(rows, target, clock, generator(random_state), groups)
    table = check_table(arguments, X, y, feature_names)
    chosen = choose_scoring(scoring, table.y)
    equal = find_groups(table.X, groups)
    rungs = _Rungs(table, equal, clock, generator(random_state), chosen)
    rungs.ask(rungs.questions)
    verdict, reason, witness = _decide(rungs)
    candidate, because = _advise(rungs, verdict)
    ladder = candidate if not rungs.outside else _best_of(rungs, rungs.chosen)
    return rungs.conclude(
        candidate,
        because,
        ladder=ladder,
        verdict=verdict,
        reason=reason,
        witness=witness,
        warnings=tuple(_warnings(rungs, verdict, candidate)),
        alternatives=tuple(_alternatives(rungs, candidate)),
        scoring=chosen,
        classes=tuple(table.label(k) for k in range(table.n_classes)),
        random_state=random_state if isinstance(random_state, int | np.integer) else None,
    )


# ------------------------------------------------------------------------- the questions


class _Rungs(Ladder):
    """The questions about classes, each of which returns its rung, and all that is known."""

    families = FAMILIES
    needed = ("separability", "planes", "kernels", "k-NN", "networks")

    def __init__(
        self,
        table: DiagnosedTable,
        groups: Ints,
        clock: Clock,
        rng: np.random.Generator,
        scoring: str,
    ) -> None:
        self.scoring = scoring
        self.signal: list[ChanceTest] = []
        self.curves: list[LearningCurve] = []
        self.errs, self.bound = False, ""  # what is known of the least possible error
        self.given_up: GivingUp | None = None
        seed = int(rng.integers(2**31))
        most = _CV_ROWS if table.n_classes <= 4 else _CV_ROWS_OF_MANY
        super().__init__(table, groups, clock, rng, most)
        self.draw_sample(table.y, Metric.of(scoring, table.y[self.rows]), seed)

        self.questions: dict[str, Callable[[], Rung]] = {
            "columns": self._describe_columns,
            "conflicts": self._find_conflicts,
            "separability": self._find_planes,
            **self.trials,
            "signal": self._find_signal,
            "overlap": self._estimate_overlap,
            "giving up": self._give_up_rows,
        }

    # ------------------------------------------------------------ facts about all rows

    def _describe_columns(self) -> Rung:
        message = " ".join(self.messages) or "nothing unusual about scales, constants or balance."
        evidence = {**vars(self.columns), "class_counts": np.bincount(self.table.y)}
        return Rung("columns", message, True, len(self.table.y), evidence)

    def _find_conflicts(self) -> Rung:
        """Find equal rows with different labels."""
        group, n = self.groups, len(self.table.y)
        self.conflicts = found = find_conflicts(group, self.table.y)
        copies = n - int(group.max()) - 1
        message = f"no equal rows have different labels ({copies} are copies of other rows)."
        if found.groups:
            message = (
                f"{found.rows} rows have an identical row with a different label: any rule is "
                f"wrong on at least {found.errors} of {n} rows ({found.share:.2%})."
            )
        evidence = {**vars(found), "groups": found.groups[:100], "copies": copies}
        return Rung("conflicts", message, True, n, evidence, found)

    def _find_planes(self) -> Rung:
        """Ask whether planes separate the classes."""
        name = "separability"
        if self.conflicts.groups:
            self.planes = Planes(False, {})
            return Rung.skipped(name, "equal rows with different labels rule it out.")
        self.planes = planes = find_planes(self.table, self.clock)
        if planes.separable is None and self.clock.over:
            raise OutOfTimeError
        self.sample.separable = bool(planes.separable)
        found = planes.decisive
        message = str(found or "undecided at this precision: the classes touch, or nearly so.")
        if planes.separable:
            several = self.table.n_classes > 2
            which = (
                "planes separate every two classes," if several else "a plane separates the classes"
            )
            message = f"{which} with margin {planes.margin:.4g}."
        evidence = {
            "separable": planes.separable,
            "margin": planes.margin,
            "radius": getattr(found, "radius", None),
            "mistake_bound": planes.mistake_bound,
        }
        return Rung(name, message, True, len(self.table.y), evidence, found)

    # ------------------------------------------------------------ rules, cross-validated

    def obstacle(self, family: ModelFamily) -> str:
        """Return why a family is not tried, "" if it is."""
        if found := super().obstacle(family):
            return found
        if self.clock.over:
            raise OutOfTimeError
        if len(np.unique(self.sample.folds)) < 3:
            return "too few different rows to cross-validate."
        rival = self.scored.get(self.chosen)
        if rival is not None and hopeless(~rival.right, rival.metric):
            return (
                f"{rival.name} errs on {np.sum(~rival.right)} of {len(self.rows)} rows, and not "
                "even a rule without errors would be significantly better."
            )
        return ""

    @property
    def curved(self) -> bool:
        """Whether the winner divides the classes by something other than planes."""
        return self.winner not in ("", "planes")

    # ------------------------------------------------------------ what it all amounts to

    def _find_signal(self) -> Rung:
        """Ask whether any rule names classes better than by chance."""
        y, tests = self.sample.y, len(self.scored)
        found = [
            names_classes(one.name, one.scores.argmax(axis=1), y, tests)
            for one in self.scored.values()
        ]
        self.signal = sorted(found, key=lambda test: test.p_value)
        # What was not tried in time might have found some.
        if not self.scored or (self.late and self.silent):
            self.signal = []
            return Rung.skipped("signal", "not all methods could be compared.")
        best, evidence = self.signal[0], {"tests": [test.to_dict() for test in self.signal]}
        return Rung("signal", f"{best}.", True, len(self.rows), evidence, best)

    @property
    def silent(self) -> bool:
        """Whether nothing predicts better than chance, as far as is known."""
        return not (self.signal and self.signal[0].significant)

    @property
    def too_few(self) -> bool:
        """Whether there are so few rows that not even a faultless rule could show signal."""
        if not self.signal:
            return True
        y = self.sample.y
        return not names_classes("", y, y, self.signal[0].tests).significant

    def _estimate_overlap(self) -> Rung:
        """Bound the least possible error from above, and ask whether more rows would lower it."""
        if self.unfinished or not self.scored:
            return Rung.skipped("overlap", "not all methods could be compared.")
        best, count = max(self.scored.values(), key=lambda one: one.score), len(self.scored)
        at_most = 1 - best.metric.interval(best.right, count)[0]
        self.errs = 1 - best.metric.interval(best.right)[1] > _OVERLAP
        name = best.name if count == 1 else f"the best of {count} methods, {best.name},"
        mean = "" if self.scoring == "accuracy" else ", as a mean over the classes"
        self.bound = (
            f"{name} errs on {1 - best.score:.1%} of the held-out rows{mean}, so that the "
            f"least possible (Bayes) error is at most {at_most:.1%}"
        )
        decided = self.silent or self.planes.separable or self.conflicts.decisive
        explained = 1 - best.score <= (1 - _EXPLAINED) * self.constant_error
        if self.errs and explained and not decided:
            # The curve of a method that can learn anything must be level, too.
            able = [self.scored[f.name] for f in FAMILIES if f.flexible and f.name in self.scored]
            asked = (
                [best] if best in able else [best, *sorted(able, key=lambda one: -one.score)[:1]]
            )
            self.curves = [families.draw_curve(found, self.sample) for found in asked]
        evidence = {
            "method": best.name,
            "error": 1 - best.score,
            "at_most": at_most,
            "curves": [dict(vars(curve)) for curve in self.curves],
        }
        message = "; ".join([self.bound, *map(str, self.curves)])
        return Rung("overlap", f"{message}.", True, len(self.rows), evidence)

    @property
    def constant_error(self) -> float:
        """The error of always naming the largest class."""
        return 1 - self.sample.metric.score(self.sample.majority)

    @property
    def overlapping(self) -> bool:
        """Whether the classes overlap for good: errors that more rows would not lower."""
        return bool(self.curves) and all(curve.level for curve in self.curves)

    @cached_property
    def tabulated(self) -> bool:
        """Whether every combination of the columns' values is there, with one label each.

        Twice at least; or the rows are too few to be cross-validated, like the four of XOR.
        """
        copies = np.bincount(self.groups)
        if self.conflicts.groups or sp.issparse(self.table.X) or len(copies) > _MOST_COMBINATIONS:
            return False
        levels = [len(np.unique(column)) for column in self.table.X.T]
        complete = math.prod(levels) == len(copies) and sum(n > 1 for n in levels) > 1
        return complete and (self.too_few or bool(copies.min() > 1))

    def _give_up_rows(self) -> Rung:
        """Bound how many rows keep planes from separating the classes."""
        name, n = "giving up", len(self.table.y)
        if self.planes.separable:
            return Rung.skipped(name, "no row has to be given up.")
        if self.conflicts.decisive or self.overlapping or self.curved or self.silent:
            return Rung.skipped(name, "it cannot change the verdict.")
        if self.sample.wide and self.table.n_classes > _WIDE_CLASSES:
            return Rung.skipped(name, "so many classes of wide rows take too long, two by two.")
        worth = n * Metric.of(self.scoring, self.table.y).weight
        self.given_up = found = give_up(self.table, self.clock, worth)
        evidence = {"at_most": found.at_most, "rows": found.rows}
        return Rung(name, f"{found}.", True, n, evidence, found)


# ------------------------------------------------------------------------- the verdict


def _decide(rungs: _Rungs) -> tuple[str, str, Any]:
    """Return the verdict, the reason and the witness."""
    if rungs.conflicts.decisive or rungs.planes.separable:
        return _proved(rungs)
    if rungs.unfinished or (rungs.late and rungs.silent) or "overlap" in rungs.late:
        return "undecided", _unfinished(rungs), None
    if rungs.silent:
        return _no_signal(rungs)
    if rungs.overlapping:
        curves = "; ".join(map(str, rungs.curves))
        reason = f"the classes overlap: {rungs.bound}; {curves}{_boundary(rungs)}."
        return "inseparable", reason, tuple(rungs.curves)
    if rungs.curved:
        return _not_linear(rungs)
    if "giving up" in rungs.late:
        return "undecided", _unfinished(rungs), None
    found, plane = rungs.given_up, rungs.scored[rungs.chosen]
    if found is not None and found.few and 1 - plane.score <= _SMALL * rungs.constant_error:
        predicted = f"on held-out rows, {plane.name} errs on {1 - plane.score:.1%}"
        if "kernels" in rungs.gain:
            predicted = f"on held-out rows, {rungs.gain['kernels']}"
        return "almost linearly separable", f"{found}; {predicted}.", found
    return "undecided", _open(rungs), found


def _proved(rungs: _Rungs) -> tuple[str, str, Any]:
    """Return what identical rows prove, or a separating plane."""
    answer = {rung.name: rung.answer for rung in rungs.answers}
    if rungs.conflicts.decisive:
        reason = f"{answer['conflicts'].removesuffix('.')}{_boundary(rungs)}."
        return "inseparable", reason, rungs.conflicts
    return "linearly separable", answer["separability"], rungs.planes.decisive


def _unfinished(rungs: _Rungs) -> str:
    known = " ".join(_capitalize(rung.answer) for rung in rungs.answers[1:] if rung.ran)
    return rungs.run_out + (f" What is known: {known}" if known else "")


def _no_signal(rungs: _Rungs) -> tuple[str, str, Any]:
    witness = tuple(rungs.signal)
    if rungs.tabulated:
        reason = (
            "no plane separates the classes, but every combination of the columns' values is "
            "there, each with one label: nothing is left to predict, and a curved boundary "
            "separates them."
        )
        return "non-linearly separable", reason, rungs.planes.decisive
    if rungs.too_few:
        reason = (
            f"{len(rungs.rows)} rows are too few: not even a rule without errors could be shown "
            "to be better than chance."
        )
        return "undecided", reason, witness
    reason = (
        f"none of {len(rungs.scored)} methods is shown to name classes better than by chance. The "
        f"one that comes nearest: {rungs.signal[0]}."
    )
    return "no signal", reason, witness


def _not_linear(rungs: _Rungs) -> tuple[str, str, Any]:
    """Return what is shown by the method that beats planes, and by one that is better still."""
    kernel, gain = rungs.gain.get("kernels"), rungs.gain[rungs.winner]
    if rungs.chosen == "networks":
        verdict, shown = "multi-layer separable", rungs.gain["networks"]
    elif kernel is not None and kernel.significant:
        verdict, shown = "non-linearly separable", kernel
    else:
        reason = (
            f"{rungs.scored[rungs.winner].name} finds structure that planes and RBF kernels do "
            f"not. On held-out rows, {gain}."
        )
        return "not linear", reason, gain
    still = "" if gain is shown else f"; better still, {gain}"
    if rungs.errs:
        still += f"; whether the errors that are left are overlap is open: {rungs.bound}"
    return verdict, f"on held-out rows, {shown}{still}.", gain


def _open(rungs: _Rungs) -> str:
    """Return what is known where nothing beats a plane, and a plane does not do."""
    known = [rungs.bound]
    if rungs.given_up is not None:
        known.append(str(rungs.given_up))
    known += map(str, rungs.curves)
    return (
        "there is signal, and nothing is shown to be better than a plane, but too many errors are "
        "left to call the classes almost linearly separable; whether they overlap, or more rows "
        f"would show a boundary, is open. What is known: {_capitalize('; '.join(known))}."
    )


def _boundary(rungs: _Rungs) -> str:
    """Return whether a plane is the best boundary, as the end of a sentence."""
    if rungs.silent or rungs.unfinished:
        return ""
    if rungs.curved:
        return f"; the best boundary is curved: {rungs.gain[rungs.winner]}"
    return "; no curved boundary is significantly better than a plane"


def _warnings(rungs: _Rungs, verdict: str, advised: Candidate) -> list[str]:
    found = list(rungs.messages)
    if rungs.sample.uneven and advised.scaled:
        found[0] += " The recommended model scales them."
    if verdict == "linearly separable" and not rungs.tabulated:
        varying = rungs.table.X.shape[1] - len(rungs.columns.constant)
        if np.sort(np.bincount(rungs.table.y))[-2:].sum() <= 2 * (varying + 1):
            found.append(
                "With this few rows for this many columns, planes would separate random labels "
                "every other time at least (Cover's theorem): separability means little here."
            )
        if rungs.signal and rungs.silent:
            found.append("In cross-validation, nothing is significantly better than chance.")
    if rungs.scored and rungs.scoring != "accuracy":
        found.append(
            "Models are compared by balanced accuracy, the mean share of right answers over the "
            "classes."
        )
    return found + rungs.describe_rows(verdict)


def _capitalize(message: str) -> str:
    return message[:1].upper() + message[1:]


# -------------------------------------------------------------------------- the advice


def _advise(rungs: _Rungs, verdict: str) -> tuple[Candidate, str]:
    """Return what to use and why: planes, unless something else is better beyond noise."""
    sample, winner = rungs.sample, rungs.winner
    plane = Candidate("linear", (), sample.uneven, sample.sparse, sample.wide)
    if rungs.silent and verdict == "non-linearly separable":
        curved = replace(plane, kind="kernel", settings=(("C", 10.0),))
        return curved, "no plane separates the rows, and an RBF kernel does."
    if not rungs.scored or (verdict == "undecided" and rungs.signal and rungs.too_few):
        if verdict == "linearly separable":
            widest = "a plane separates the rows, and this one has the largest margin."
            return replace(plane, kind="hard margin"), widest
        return replace(plane, scaled=True), "it is the simplest, and nothing could be compared."
    if rungs.signal and rungs.silent and verdict not in ("linearly separable", "undecided"):
        return Candidate("majority", (("strategy", "most_frequent"),)), (
            "nothing is shown to predict better than always naming the largest class; more rows or "
            "other columns are needed."
        )
    best = _best_of(rungs, winner)
    return best, _better(rungs, verdict) if winner != "planes" else _why_a_plane(rungs, verdict)


def _best_of(rungs: _Rungs, name: str) -> Candidate:
    """Return the best setting of a family: of boosting, with all trees."""
    best: Candidate = rungs.scored[name].best
    hurried = ("max_iter", "learning_rate") if name == TREES else ()  # for cross-validation only
    kept = tuple((key, value) for key, value in best.settings if key not in hurried)
    return replace(best, settings=kept)


def _why_a_plane(rungs: _Rungs, verdict: str) -> str:
    found = rungs.scored["planes"]
    if rungs.unfinished:
        return "it is the best of what could be compared in time."
    rivals = list(rungs.gain.values())
    if not rivals or hopeless(~found.right, found.metric):
        few = 1 - found.score <= _SMALL * rungs.constant_error
        if few and verdict != "undecided":  # which says that they are too many
            return "a plane makes too few errors for anything to be significantly better."
        return "there are too few rows to show that anything is significantly better than a plane."
    nearest = max(rivals, key=lambda gain: gain.lead)
    points, where = f"{100 * abs(nearest.lead):.1f}", "ahead" if nearest.lead > 0 else "behind"
    distance = "level with it" if points == "0.0" else f"{points} percentage points {where}"
    return (
        f"no method is significantly better than a plane; the nearest, {nearest.better}, is "
        f"{distance} (p = {nearest.p_value:.2g})."
    )


def _better(rungs: _Rungs, verdict: str) -> str:
    gain = rungs.gain.get(rungs.winner)
    if gain is None:
        return "nothing else could be compared."
    however = "a plane separates these rows, but " if verdict == "linearly separable" else ""
    ladder = f" recommend(family='ladder') returns the best of the ladder, {gain.worse}."
    also = ladder if rungs.outside else ""
    return (
        f"{however}{gain.better} predicts held-out rows better than {gain.worse}, by "
        f"{100 * gain.lead:.1f} percentage points (p = {gain.p_value:.2g}).{also}"
    )


def _alternatives(rungs: _Rungs, advised: Candidate) -> list[Alternative]:
    """Return what each rung offers, with its score if it was tried."""
    sample, bound = rungs.sample, rungs.planes.mistake_bound
    kind, note = "perceptron", f"finds a separating plane after at most {bound:.4g} mistakes."
    if not rungs.planes.separable:
        kind = "averaged perceptron"
        note = "it may make mistakes forever, so use the average of its planes."
    perceptron = Candidate(kind, scaled=sample.uneven, sparse=sample.sparse, wide=sample.wide)
    found = [Alternative("perceptron", perceptron, note=note)]
    for family in FAMILIES:
        name = family.name
        scored, gain = rungs.scored.get(name), rungs.gain.get(name)
        if scored is not None:
            low, high = scored.metric.interval(scored.right)
            best = advised if advised.kind == scored.best.kind else scored.best
            note = "" if gain is None else f"{gain}."
            found.append(Alternative(name, best, scored.score, low, high, note))
            continue
        why = next(rung.answer for rung in rungs.answers if rung.name == name)
        found.append(Alternative(name, family.settings(sample)[0], note=why))
    return found
