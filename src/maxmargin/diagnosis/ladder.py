"""The ladder: its questions in order, the verdict from the answers, and the advice.

Verdict and advice rest on the same comparisons.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from maxmargin._typing import Ints
from maxmargin.diagnosis import families
from maxmargin.diagnosis.families import FAMILIES, TREES, Ladder, Scored
from maxmargin.diagnosis.inputs import (
    Arguments,
    DiagnosedTable,
    check_numbers,
    check_table,
    choose_scoring,
    find_groups,
    is_regression,
    is_truth_table,
)
from maxmargin.diagnosis.learners import Candidate
from maxmargin.diagnosis.planes import (
    FORCED,
    GivingUp,
    Planes,
    find_conflicts,
    find_planes,
    give_up,
)
from maxmargin.diagnosis.regression import diagnose_numbers
from maxmargin.diagnosis.result import Alternative, Diagnosis, Rung
from maxmargin.diagnosis.significance import (
    SIGNAL,
    Comparison,
    LearningCurve,
    Metric,
    RankTest,
    chance_separable,
    compare,
    hopeless,
    rank,
)
from maxmargin.inspection.code import describe
from maxmargin.runtime.clock import Clock, OutOfTimeError
from maxmargin.validation.data import generator

_OVERLAP = 0.05  # error of every method beyond which classes may overlap for good
_EXPLAINED = 1 / 3  # of the constant's error: with less, structure may just not have been found
_SMALL = 0.15  # of the constant's error: a plane that errs no more predicts nearly all rows
_CV_ROWS = 2500  # rows that are cross-validated when there are 30 seconds
_CV_ROWS_OF_MANY = 2000  # with many classes
_DENSE_COLUMNS = 2000  # beyond, networks and trees are not asked
_TREE_CLASSES = 30
_WIDE_CLASSES = 5
# Without these the verdict could be another one.
_NEEDED = ("separability", "planes", "kernels", "local rules", "networks")
_LADDER = tuple(family.name for family in FAMILIES if family.name != TREES)
_RULES = tuple(dict.fromkeys(family.rung for family in FAMILIES))  # rungs that try some
_PROVES_NOTHING = (
    "An RBF kernel separates any distinct rows, so that fitting them proves nothing: this is about "
    "held-out rows."
)
_WORTH_A_TRY = 0.01  # gain over naming the largest class, where no gain is significant
_PROMISING = 0.1  # p, for how many tests were made


def diagnose(
    X: Any,
    y: Any,
    *,
    scoring: str = "auto",
    feature_names: Any = None,
    max_time: float = 30.0,
    thorough: bool = False,
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
      than a kernel ("multi-layer separable")? If only neighbours, naive Bayes or trees predict
      better than a plane, the verdict is "not linear", and the reason names them.
    - Does anything rank rows, or name classes, better than chance ("no signal" if not)?
    - Do the classes overlap for good? "Inseparable" needs a learning curve that has levelled off:
      with a quarter, half and all of the rows the best method errs so much alike that its error
      cannot be on its way to 0.
    - How many rows must be removed before planes separate the rest? The number is bounded from
      both sides. "Almost linearly separable" are classes of which at most a tenth of the smallest
      one must go, if the plane's error on held-out rows is at most 15 % of the error of always
      naming the largest class, and nothing predicts better.

    If none of this can be shown, the verdict is "undecided", with what is known. The error that the
    best method reaches bounds the least possible (Bayes) error from above, never from below.

    To predict better means: on held-out rows, with settings chosen without them (nested 5-fold
    cross-validation), with p < 0.01 in a paired sign test. A plane is recommended unless something
    is better in this sense. To be better than chance, p must be below 0.005, times the number of
    tests, for the ranking of rows (AUC) or for accuracy beside the largest class. Nothing is
    concluded from how well a kernel fits rows it has seen, as an RBF kernel separates any distinct
    rows.

    Numbers with fractions, or many different whole ones, are no classes but a regression (see
    ``task``). The questions are then: does anything predict better than a constant ("no signal" if
    not), an RBF kernel better than a plane ("curved", or "linear" if not), and boosted trees better
    than both ("not linear")? To predict better means smaller absolute errors on held-out rows,
    with p < 0.01 in a paired t-test. R² and mean absolute errors have 95 % intervals; the noise is
    bounded from above only. Costs and tubes of what is recommended suit the spread of y.

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
    thorough : bool, default=False
        Whether to ask all questions, also those that cannot change verdict or advice any more.
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
    arguments = Arguments(scoring, max_time, thorough, random_state, task)
    arguments.check()
    clock = Clock(float(max_time))
    if is_regression(task, y):
        rows, target = check_numbers(arguments, X, y, feature_names)
        return diagnose_numbers(rows, target, clock, generator(random_state), groups)
    table = check_table(arguments, X, y, feature_names)
    chosen = choose_scoring(scoring, table.y)
    equal = find_groups(table.X, groups)
    rungs = _Rungs(table, equal, clock, generator(random_state), chosen, bool(thorough))
    rungs.ask(rungs.questions)
    verdict, reason, witness = _decide(rungs)
    candidate, because = _advise(rungs, verdict)
    ladder = candidate if not rungs.outside else _best_of(rungs, rungs.chosen)
    return Diagnosis(
        verdict=verdict,
        reason=reason,
        witness=witness,
        rungs=tuple(rungs.answers),
        warnings=tuple(_warnings(rungs, verdict, candidate)),
        advice=f"{describe(candidate.estimator())}: {because}",
        alternatives=tuple(_alternatives(rungs, candidate)),
        scoring=chosen,
        n_rows=table.X.shape[0],
        n_features=table.X.shape[1],
        classes=tuple(table.label(k) for k in range(table.n_classes)),
        random_state=random_state if isinstance(random_state, int | np.integer) else None,
        seconds=clock.seconds,
        candidate=candidate,
        ladder=ladder,
    )


# ------------------------------------------------------------------------- the questions


class _Rungs(Ladder):
    """The questions about classes, each of which returns its rung, and all that is known."""

    def __init__(
        self,
        table: DiagnosedTable,
        groups: Ints,
        clock: Clock,
        rng: np.random.Generator,
        scoring: str,
        thorough: bool,
    ) -> None:
        self.scoring, self._thorough = scoring, thorough
        self.scored: dict[str, Scored] = {}
        self.gain: dict[str, Comparison] = {}
        self.signal: list[Comparison | RankTest] = []
        self.chance = 0.0
        self.curves: list[LearningCurve] = []
        self.given_up: GivingUp | None = None
        seed = int(rng.integers(2**31))
        most = _CV_ROWS if table.n_classes <= 4 else _CV_ROWS_OF_MANY
        super().__init__(table, groups, clock, rng, most)
        self.draw_sample(table.y, Metric.of(scoring, table.y[self.rows]), seed)

    @property
    def questions(self) -> dict[str, Callable[[], Rung]]:
        """All questions in the order in which they are to be asked."""
        return {
            "columns": self._describe_columns,
            "conflicts": self._find_conflicts,
            "separability": self._find_planes,
            **{name: partial(self._try, name) for name in _RULES},
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
        self.conflicts = found = find_conflicts(group, self.table.y, self.table.n_classes)
        copies = n - int(group.max()) - 1
        message = f"no equal rows have different labels ({copies} are copies of other rows)."
        if found.groups:
            message = (
                f"{found.rows} rows have an identical row with a different label: any rule is "
                f"wrong on at least {found.errors} of {n} rows ({found.share:.2%})."
            )
        evidence = {**found.to_dict(), "copies": copies, "threshold": FORCED}
        return Rung("conflicts", message, True, n, evidence, found)

    def _find_planes(self) -> Rung:
        """Ask whether planes separate the classes."""
        name = "separability"
        if self.conflicts.groups and not self._thorough:
            self.planes = Planes(False, {}, 0)
            return Rung.skipped(name, "equal rows with different labels rule it out.")
        self.planes = planes = find_planes(self.table, self.clock, self.rng, self._thorough)
        if planes.separable is None and self.clock.over:
            raise OutOfTimeError
        self.sample.separable = bool(planes.separable)
        found = planes.decisive
        message = str(found or "undecided at this precision: the classes touch, or nearly so.")
        if planes.separable and self.table.n_classes > 2:
            message = f"planes separate every two classes, with margin {planes.margin:.4g}."
        # How likely planes separate random labels: of the largest pair, at best.
        largest = int(np.sort(np.bincount(self.table.y))[-2:].sum())
        dimension = self.columns.rank
        if dimension is None:
            dimension = self.table.X.shape[1]
        self.chance = chance_separable(largest, dimension)
        evidence = {
            "separable": planes.separable,
            "margin": planes.margin,
            "radius": getattr(found, "radius", None),
            "mistake_bound": planes.mistake_bound,
            "chance_if_labels_were_random": self.chance,
        }
        return Rung(name, message, True, planes.rows_seen, evidence, found)

    # ------------------------------------------------------------ rules, cross-validated

    def _try(self, name: str) -> Rung:
        """Cross-validate the families of a rung, and compare them with the best below."""
        if obstacle := self._obstacle(name):
            return Rung.skipped(name, obstacle)
        tried = [family for family in FAMILIES if family.rung == name]
        found = {family.name: family.score(self.sample) for family in tried}
        scored = {each: one for each, one in found.items() if one is not None}
        message = "; ".join([self._compare_with_rival(*each) for each in scored.items()])
        gain, evidence = None, dict[str, Any]()
        if len(tried) > 1:
            evidence = {each: one and one.to_dict() for each, one in found.items()}
        else:
            gain, evidence = self.gain.get(name), scored[name].to_dict()
            evidence |= {"note": _PROVES_NOTHING} if name == "kernels" else {}
            evidence |= {} if gain is None else {"comparison": gain.to_dict()}
        return Rung(name, f"{message}.", True, self.n_compared, evidence, gain)

    def _obstacle(self, name: str) -> str:
        """Return why the families of a rung are not tried, "" if they are."""
        dense = any(family.dense for family in FAMILIES if family.rung == name)
        if dense and self.sample.X.shape[1] > _DENSE_COLUMNS:
            return f"more than {_DENSE_COLUMNS} columns take too long."
        if name == TREES and self.sample.wide:
            return "the rows are too sparse for it."
        if name == TREES and self.table.n_classes > _TREE_CLASSES:
            return f"more than {_TREE_CLASSES} classes take too long."
        if self.clock.over:
            raise OutOfTimeError
        if len(np.unique(self.sample.folds)) < 3:
            return "too few different rows to cross-validate."
        rival = None if self._thorough else self.scored.get(self.chosen)
        if rival is not None and hopeless(~rival.right, rival.metric):
            return (
                f"{rival.name} errs on {np.sum(~rival.right)} of {self.n_compared} rows, and not "
                "even a rule without errors would be significantly better."
            )
        return ""

    def _compare_with_rival(self, name: str, found: Scored) -> str:
        """Compare a family with the best rung so far, and describe its score."""
        rival = self.chosen
        self.scored[name] = found
        message = f"{found.name} is right on {found.score:.2%} of {self.n_compared} rows"
        if self.scoring != "accuracy":
            message = (
                f"{found.name} has a balanced accuracy of {found.score:.2%} on {self.n_compared} "
                "rows"
            )
        if not rival:
            return message
        self.gain[name] = self._compare(name, rival)
        return f"{message}; {self.gain[name]}"

    def _compare(self, name: str, rival: str) -> Comparison:
        better, worse = self.scored[name], self.scored[rival]
        tests = 1 if name == "kernels" else len(_LADDER) - 2  # rules that are not large margins
        named = (better.name, better.right), (worse.name, worse.right)
        return compare(*named, self.sample.compared, tests)

    @property
    def chosen(self) -> str:
        """The rung of the ladder to use: the first, unless a later one is better beyond noise."""
        current = ""
        for name in (name for name in _LADDER if name in self.scored):
            if not current or self._compare(name, current).significant:
                current = name
        return current

    @property
    def outside(self) -> bool:
        """Whether gradient boosting is better than the ladder's best beyond noise."""
        return TREES in self.gain and self.gain[TREES].significant

    @property
    def winner(self) -> str:
        """What to use: the rung of the ladder, unless gradient boosting is better."""
        return TREES if self.outside else self.chosen

    @property
    def curved(self) -> bool:
        """Whether the winner divides the classes by something other than planes."""
        return bool(self.winner) and not self.scored[self.winner].best.linear

    @property
    def unfinished(self) -> bool:
        """Whether the time ran out before a question that the verdict rests on."""
        return any(name in _NEEDED for name in self.late)

    # ------------------------------------------------------------ what it all amounts to

    def _find_signal(self) -> Rung:
        """Ask whether any rule ranks rows, or names classes, better than by chance."""
        tests, majority, metric = 2 * len(self.scored), self.sample.majority, self.sample.compared
        accuracy = Metric.of("accuracy", metric.y, self.table.n_classes)
        for found in self.scored.values():
            named = (found.name, found.right), ("naming the largest class", majority)
            self.signal += [
                rank(found.name, found.scores, metric.y, self.sample.strata, tests),
                compare(*named, accuracy, tests, SIGNAL),
            ]
        self.signal.sort(key=lambda test: test.p_value)
        # What was not tried in time might have found some.
        if not self.scored or (self.late and self.silent):
            self.signal = []
            return self._not_compared("signal")
        share = f"{majority.mean():.2%} of {self.n_compared} rows"
        message = (
            f"none of {len(self.scored)} methods is shown to rank rows better than chance, or to "
            f"be right more often than naming the largest class, {share}."
        )
        if self.signal[0].significant:
            message = f"{self.signal[0]}; the largest class has {share}."
        evidence = {
            "majority_accuracy": float(majority.mean()),
            "tests": [test.to_dict() for test in self.signal],
        }
        return Rung("signal", message, True, self.n_compared, evidence, self.signal[0])

    def _not_compared(self, name: str) -> Rung:
        why = "nothing could be cross-validated."
        if self.late:
            why = "the time ran out before all methods were compared."
        return Rung.skipped(name, why)

    @property
    def silent(self) -> bool:
        """Whether nothing predicts better than chance, as far as is known."""
        return not (self.signal and self.signal[0].significant)

    @property
    def too_few(self) -> bool:
        """Whether there are so few rows that not even a faultless rule could show signal."""
        if not self.signal:
            return True
        y, tests = self.sample.compared.y, self.signal[0].tests
        faultless = np.asarray(y[:, np.newaxis] == np.arange(self.table.n_classes), dtype=float)
        ranked = rank("", faultless, y, self.sample.strata, tests)
        accuracy = Metric.of("accuracy", y, self.table.n_classes)
        return not ranked.significant and hopeless(~self.sample.majority, accuracy, tests, SIGNAL)

    def _estimate_overlap(self) -> Rung:
        """Bound the least possible error from above, and ask whether more rows would lower it."""
        best = self.best
        if self.unfinished or best is None:
            return self._not_compared("overlap")
        if self._may_overlap:
            self.curves = [families.draw_curve(found, self.sample) for found in self._decisive]
        evidence = {
            "method": best.name,
            "error": 1 - best.score,
            "at_most": self.least_error,
            "curves": [curve.to_dict() for curve in self.curves],
        }
        message = "; ".join([self.bound, *map(str, self.curves)])
        return Rung("overlap", f"{message}.", True, self.n_compared, evidence)

    @property
    def best(self) -> Scored | None:
        """The family that predicts best, the simplest of equals, trees included."""
        return max(self.scored.values(), key=lambda scored: scored.score, default=None)

    @property
    def least_error(self) -> float:
        """What the least possible error is at most: the best method's, for having chosen it."""
        assert self.best is not None
        return 1 - self.best.metric.interval(self.best.right, len(self.scored))[0]

    @property
    def bound(self) -> str:
        """What is known of the least possible error, as a sentence."""
        assert self.best is not None
        mean = "" if self.scoring == "accuracy" else ", as a mean over the classes"
        count, name = len(self.scored), self.best.name
        best = name if count == 1 else f"the best of {count} methods, {name},"
        return (
            f"{best} errs on {1 - self.best.score:.1%} of the held-out rows{mean}, so that the "
            f"least possible (Bayes) error is at most {self.least_error:.1%}"
        )

    @property
    def constant_error(self) -> float:
        """The error of always naming the largest class."""
        return 1 - self.sample.compared.score(self.sample.majority)

    @property
    def _may_overlap(self) -> bool:
        """Whether errors are so many, and so much else is explained, that a curve may tell."""
        best = self.best
        if best is None or self.silent or self.planes.separable or self.conflicts.decisive:
            return False
        explained = 1 - best.score <= (1 - _EXPLAINED) * self.constant_error
        return explained and self.errs

    @property
    def errs(self) -> bool:
        """Whether even the best method makes more than a few errors, beyond noise."""
        best = self.best
        return best is not None and 1 - best.metric.interval(best.right)[1] > _OVERLAP

    @property
    def _decisive(self) -> list[Scored]:
        """The methods whose curves must be level: the best, and one that can learn anything."""
        assert self.best is not None
        flexible = [self.scored[f.name] for f in FAMILIES if f.flexible and f.name in self.scored]
        if not flexible or self.best in flexible:
            return [self.best]
        return [self.best, max(flexible, key=lambda scored: scored.score)]

    @property
    def overlapping(self) -> bool:
        """Whether the classes overlap for good: errors that more rows would not lower."""
        return bool(self.curves) and all(curve.level for curve in self.curves)

    @cached_property
    def tabulated(self) -> bool:
        """Whether every combination of the columns' values is there, with one label each.

        Twice at least; or the rows are too few to be cross-validated, like the four of XOR.
        """
        if self.conflicts.groups or not is_truth_table(self.table.X, self.groups):
            return False
        return self.too_few or bool(np.bincount(self.groups).min() > 1)

    def _give_up_rows(self) -> Rung:
        """Bound how many rows keep planes from separating the classes."""
        name, n, classes = "giving up", len(self.table.y), self.table.n_classes
        if self.planes.separable:
            return Rung.skipped(name, "no row has to be given up.")
        decided = self.conflicts.decisive or self.overlapping or self.curved or self.silent
        if decided and not self._thorough:
            return Rung.skipped(name, "it cannot change the verdict.")
        if self.sample.wide and classes > _WIDE_CLASSES:
            return Rung.skipped(name, f"{classes} classes of wide rows take too long, two by two.")
        worth = n * Metric.of(self.scoring, self.table.y).weight
        self.given_up = found = give_up(self.table, self.clock, self.rng, worth)
        return Rung(name, f"{found}.", True, n, found.to_dict(), found)


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
    conflicts, planes = rungs.conflicts, rungs.planes
    if conflicts.decisive:
        reason = (
            f"{conflicts.rows} rows have an identical row with a different label, which forces "
            f"errors on {conflicts.errors} of {len(rungs.table.y)} rows ({conflicts.share:.2%})"
            f"{_boundary(rungs)}."
        )
        return "inseparable", reason, conflicts
    reason = f"a plane separates the classes with margin {planes.margin:.4g}."
    if rungs.table.n_classes > 2:
        reason = f"planes separate every two classes, with margin {planes.margin:.4g} or more."
    return "linearly separable", reason, planes.decisive


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
    if not rungs.signal:
        few = f"{len(rungs.table.y)} rows are too few to cross-validate anything."
        return "undecided", few, witness
    if rungs.too_few:
        reason = (
            f"{rungs.n_compared} rows are too few: not even a rule without errors could be shown "
            "to be better than chance."
        )
        return "undecided", reason, witness
    reason = (
        f"none of {len(rungs.scored)} methods is shown to rank rows better than chance, or to be "
        f"right more often than naming the largest class. The one that comes "
        f"nearest: {rungs.signal[0]}."
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
            f"{rungs.scored[rungs.winner].name} finds structure that "
            f"{_beaten(rungs)} do not. On held-out rows, {gain}."
        )
        return "not linear", reason, gain
    still = "" if gain is shown else f"; better still, {gain}"
    if rungs.errs:
        still += f"; whether the errors that are left are overlap is open: {rungs.bound}"
    return verdict, f"on held-out rows, {shown}{still}.", gain


def _beaten(rungs: _Rungs) -> str:
    names = {"planes": "planes", "kernels": "RBF kernels", "networks": "networks"}
    *some, last = (word for name, word in names.items() if name in rungs.scored)
    return f"{', '.join(some)} and {last}" if some else last


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
    if rungs.sample.uneven:
        found[0] = f"{found[0]} {_scaling(advised)}"
    if verdict == "linearly separable" and not rungs.tabulated:
        if rungs.chance > 0.01:
            found.append(
                "With this few rows for this many columns, planes would separate random labels "
                f"with probability {rungs.chance:.2g} (Cover's theorem): separability means little "
                "here."
            )
        if rungs.signal and rungs.silent:
            found.append("In cross-validation, nothing is significantly better than chance.")
    if rungs.scored and rungs.scoring != "accuracy":
        uneven = choose_scoring("auto", rungs.table.y) != "accuracy"
        why = "The classes are of unequal size, so models" if uneven else "Models"
        found.append(
            f"{why} are compared by balanced accuracy, the mean share of right answers over the "
            "classes."
        )
    if rungs.scored:
        found += rungs.describe_rows()
    if rungs.late and verdict != "undecided":
        found.append(_capitalize(rungs.run_out))
    return found


def _scaling(advised: Candidate) -> str:
    """Return what the recommended model makes of uneven columns."""
    if advised.scaled:
        return "The recommended model scales them."
    if advised.kind in ("gradient boosting", "Gaussian naive Bayes", "majority"):
        return "The recommended model does not depend on that."
    return "The recommended model is significantly better without scaling them."


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
        # A learner may still be worth more than naming the largest class.
        gained = rungs.constant_error - 1 + rungs.scored[winner].score
        if rungs.signal[0].p_value >= _PROMISING or gained <= _WORTH_A_TRY:
            return Candidate("majority", (("strategy", "most_frequent"),)), (
                "nothing is shown to predict better than always naming the largest class; more "
                "rows or other columns are needed."
            )
    best = _best_of(rungs, winner)
    return best, _better(rungs, verdict) if winner != "planes" else _why_a_plane(rungs, verdict)


def _best_of(rungs: _Rungs, name: str) -> Candidate:
    """Return the best setting of a family: of a kernel, refined; of boosting, with all trees."""
    found = rungs.scored[name]
    if name == "kernels":
        return families.refine_kernel(rungs.sample, found)
    hurried = ("max_iter", "learning_rate") if name == TREES else ()  # for cross-validation only
    kept = tuple((key, value) for key, value in found.best.settings if key not in hurried)
    return replace(found.best, settings=kept)


def _why_a_plane(rungs: _Rungs, verdict: str) -> str:
    found = rungs.scored["planes"]
    if rungs.unfinished:
        return "it is the best of what could be compared in time."
    rivals = list(rungs.gain.values())
    if not rivals or hopeless(~found.right, found.metric):
        few = 1 - found.score <= _SMALL * rungs.constant_error
        if few and verdict != "undecided":  # which says that they are too many
            return "a plane makes too few errors for anything to be significantly better."
        if rungs.planes.separable:
            return "a plane separates the rows, which are too few to compare it with others."
        least = np.bincount(found.metric.y, minlength=rungs.table.n_classes).min()
        return (
            f"with only {least} held-out rows in the smallest class, nothing could be shown to be "
            "significantly better than a plane."
        )
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
    also = "" if rungs.curved else " Its boundary is a plane as well."
    if rungs.outside:
        also = f" recommend(family='ladder') returns the best of the ladder, {gain.worse}."
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
    order = [*_RULES[:2], "networks", "local rules", TREES]
    for family in sorted(FAMILIES, key=lambda family: order.index(family.rung)):
        name = family.name
        scored, gain = rungs.scored.get(name), rungs.gain.get(name)
        if scored is not None:
            low, high = scored.metric.interval(scored.right)
            best = advised if advised.kind == scored.best.kind else scored.best
            note = "" if gain is None else f"{gain}."
            found.append(Alternative(name, best, scored.score, low, high, note))
            continue
        rung = next(rung for rung in rungs.answers if rung.name == family.rung)
        why = rung.answer
        if rung.ran:
            why = "not tried: it is for counts, and some entries are negative."
        candidate = family.offered
        if sample.wide and name == "naive Bayes":
            candidate = Candidate("multinomial naive Bayes")
        candidate = replace(candidate, sparse=sample.sparse, wide=sample.wide)
        found.append(Alternative(name, candidate, note=why))
    return found
