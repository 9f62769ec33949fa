"""The questions of the ladder, in order, and what their answers add up to so far."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Ints
from maxmargin.clock import Clock
from maxmargin.diagnosis import families
from maxmargin.diagnosis.families import Scored, make_folds
from maxmargin.diagnosis.inputs import (
    DiagnosedTable,
    Sample,
    as_learnt,
    describe_columns,
    draw_rows,
    equal_rows,
    is_wide,
    measure_columns,
)
from maxmargin.diagnosis.planes import (
    FORCED,
    GivingUp,
    Planes,
    find_conflicts,
    find_planes,
    give_up,
)
from maxmargin.diagnosis.result import Rung
from maxmargin.diagnosis.significance import (
    SIGNAL,
    Comparison,
    Metric,
    Ranking,
    bayes_bracket,
    chance_separable,
    compare,
    hopeless,
    rank,
)

OVERLAP = 0.1  # error of every rule beyond which classes overlap for good
_CV_ROWS = 2500  # rows that are cross-validated when there are 30 seconds
_CV_ROWS_OF_MANY = 2000  # with many classes
_FRESH = 2  # times as many fresh rows as are cross-validated, on which families are compared
_MOST_FRESH = 10_000
_DENSE_COLUMNS = 2000  # beyond, networks and trees are not asked
_TREE_CLASSES = 30
_WIDE_CLASSES = 5
_TIME = "the time ran out: raise max_time."
# Without these the verdict could be another one; the yardstick from outside changes no verdict.
_NEEDED = ("separability", "planes", "kernels", "local rules", "networks")
_LADDER = ("planes", "kernels", "k-NN", "naive Bayes", "networks")
_PROVES_NOTHING = (
    "An RBF kernel separates any distinct rows, so that fitting them proves nothing: this is about "
    "rows that were not fitted to."
)


class Rungs:
    """The data, the clock, and every answer so far. Each question returns its rung."""

    def __init__(
        self,
        table: DiagnosedTable,
        scoring: str,
        clock: Clock,
        rng: np.random.Generator,
        thorough: bool,
    ) -> None:
        self.table, self.scoring, self.clock, self._thorough = table, scoring, clock, thorough
        self._rng, self._seed = rng, int(rng.integers(2**31))
        self.answers: list[Rung] = []
        self.scored: dict[str, Scored] = {}
        self.gain: dict[str, Comparison] = {}
        self.signal: list[Comparison | Ranking] = []
        self.chance = 0.0
        self.given_up: GivingUp | None = None
        most = _CV_ROWS if table.n_classes <= 4 else _CV_ROWS_OF_MANY
        size = max(100, int(most * np.sqrt(clock.max_time / 30.0)))
        self.rows = draw_rows(table.y, size, rng)

    @property
    def questions(self) -> dict[str, Callable[[], Rung]]:
        """All questions in the order in which they are to be asked."""
        return {
            "columns": self._describe_columns,
            "conflicts": self._find_conflicts,
            "separability": self._find_planes,
            "planes": self._try_planes,
            "kernels": self._try_kernels,
            "local rules": self._try_local_rules,
            "networks": self._try_networks,
            "gradient boosting": self._try_trees,
            "signal": self._find_signal,
            "overlap": self._estimate_overlap,
            "giving up": self._give_up_rows,
        }

    # ------------------------------------------------------------ facts about all rows

    def _describe_columns(self) -> Rung:
        """Measure columns and classes."""
        self._columns = measure_columns(self.table.X, self.rows)
        self.messages = describe_columns(self.table, self._columns)
        message = " ".join(self.messages) or "nothing unusual about scales, constants or balance."
        evidence = {**vars(self._columns), "class_counts": np.bincount(self.table.y)}
        return Rung("columns", message, True, len(self.table.y), evidence)

    def _find_conflicts(self) -> Rung:
        """Find equal rows with different labels, and draw the folds around equal rows."""
        group, n = equal_rows(self.table.X), len(self.table.y)
        self._draw_sample(group)
        self.conflicts = found = find_conflicts(group, self.table.y, self.table.n_classes)
        copies = n - int(group.max()) - 1
        message = f"no equal rows have different labels ({copies} are copies of other rows)."
        if found.groups:
            message = (
                f"{found.rows} rows have equals with other labels: any rule is wrong on at least "
                f"{found.errors} of {n} rows ({found.share:.2%})."
            )
        evidence = {**found.to_dict(), "copies": copies, "threshold": FORCED}
        return Rung("conflicts", message, True, n, evidence, found)

    def _draw_sample(self, group: Ints) -> None:
        """Draw rows to cross-validate, and others to score on, none of them equal to one of those.

        ``group`` has the same number for equal rows.
        """
        X, y, rows = self.table.X, self.table.y, self.rows
        wide = is_wide(X)
        self.sample = Sample(
            X=as_learnt(X[rows], wide),
            y=y[rows],
            folds=make_folds(y[rows], group[rows], self._rng),
            metric=Metric.of(self.scoring, y[rows]),
            sparse=sp.issparse(X),
            wide=wide,
            uneven=self._columns.uneven,
            over=lambda: self.clock.over,
        )
        others = np.flatnonzero(~np.isin(group, group[rows]))
        if len(others) >= _FRESH * len(rows):
            fresh = others[draw_rows(y[others], _MOST_FRESH, self._rng)]
            self.sample.X_fresh, self.sample.y_fresh = as_learnt(X[fresh], wide), y[fresh]

    def _find_planes(self) -> Rung:
        """Ask whether planes separate the classes."""
        name = "separability"
        if self.conflicts.groups and not self._thorough:
            self.planes = Planes(False, {}, 0)
            return Rung(name, "not asked: equal rows with different labels rule it out.", ran=False)
        self.planes = planes = find_planes(self.table, self.clock, self._rng, self._thorough)
        if planes.separable is None and self.clock.over:
            return Rung(name, _TIME, ran=False)
        found = planes.decisive
        message = str(found or "undecided at this precision: the classes touch, or nearly so.")
        if planes.separable and self.table.n_classes > 2:
            message = f"planes separate every two classes, with margin {planes.margin:.4g}."
        # How likely planes separate random labels: of the largest pair, at best.
        largest = int(np.sort(np.bincount(self.table.y))[-2:].sum())
        rank = self._columns.rank
        self.chance = chance_separable(largest, self.table.X.shape[1] if rank is None else rank)
        evidence = {
            "separable": planes.separable,
            "margin": planes.margin,
            "radius": getattr(found, "radius", None),
            "mistake_bound": planes.mistake_bound,
            "chance_if_labels_were_random": self.chance,
        }
        return Rung(name, message, True, planes.rows_seen, evidence, found)

    # ------------------------------------------------------------ rules, cross-validated

    def _try_planes(self) -> Rung:
        separable = bool(self.planes.separable)
        return self._try("planes", lambda: families.score_planes(self.sample, separable))

    def _try_kernels(self) -> Rung:
        score = families.score_kernels
        return self._try("kernels", lambda: score(self.sample), note=_PROVES_NOTHING)

    def _try_networks(self) -> Rung:
        return self._try("networks", lambda: families.score_networks(self.sample, self._seed))

    def _try_trees(self) -> Rung:
        """Cross-validate gradient boosting, a yardstick from outside, beside the ladder's best."""
        score = families.score_gradient_boosting
        return self._try("gradient boosting", lambda: score(self.sample))

    def _try(self, name: str, score: Callable[[], Scored | None], note: str = "") -> Rung:
        """Cross-validate a family, and compare it with the best rung below on the same folds."""
        if obstacle := self._obstacle(name):
            return Rung(name, obstacle, ran=False)
        found = score()
        if found is None:
            return Rung(name, _TIME, ran=False)
        message, gain = self._compare_with_rival(name, found), self.gain.get(name)
        evidence = found.to_dict() | ({"note": note} if note else {})
        if gain is not None:
            evidence["comparison"] = gain.to_dict()
        return Rung(name, f"{message}.", True, self.n_compared, evidence, gain)

    def _obstacle(self, name: str) -> str:
        """Return why a family is not tried, "" if it is."""
        dense = name in ("networks", "gradient boosting")
        if dense and self.sample.X.shape[1] > _DENSE_COLUMNS:
            return f"not asked: more than {_DENSE_COLUMNS} columns take too long."
        if name == "gradient boosting" and self.table.n_classes > _TREE_CLASSES:
            return f"not asked: more than {_TREE_CLASSES} classes take too long."
        if self.clock.over:
            return _TIME
        if len(np.unique(self.sample.folds)) < 3:
            return "not asked: too few different rows to cross-validate."
        rival = None if self._thorough else self.scored.get(self.chosen)
        if rival is not None and hopeless(~rival.right, rival.metric):
            return (
                f"not asked: {rival.name} errs on {np.sum(~rival.right)} of {self.n_compared} "
                "rows, and not even a rule without errors would be significantly better."
            )
        return ""

    def _try_local_rules(self) -> Rung:
        """Cross-validate neighbours and naive Bayes, and bracket the least possible error."""
        name = "local rules"
        if obstacle := self._obstacle(name):
            return Rung(name, obstacle, ran=False)
        neighbours = families.score_neighbours(self.sample)
        nearest = neighbours and families.score_nearest(self.sample, neighbours.best.scaled)
        bayes = families.score_naive_bayes(self.sample)
        if neighbours is None or nearest is None or (bayes is None and self.clock.over):
            return Rung(name, _TIME, ran=False)
        messages = [self._compare_with_rival("k-NN", neighbours)]
        if bayes is not None:
            messages.append(self._compare_with_rival("naive Bayes", bayes))
        error = 1 - float(nearest.right.mean())
        low, high = bayes_bracket(error, self.table.n_classes)
        messages.append(
            f"judging by the nearest neighbour, no rule errs on less than about {low:.1%} (the "
            "bound of Cover and Hart, which holds for infinitely many rows)."
        )
        evidence = {
            "k-NN": neighbours.to_dict(),
            "naive Bayes": None if bayes is None else bayes.to_dict(),
            "nearest_neighbour_error": error,
            "least_error_between": [low, high],
        }
        return Rung(name, "; ".join(messages), True, self.n_compared, evidence)

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
    def n_compared(self) -> int:
        """How many rows families are compared by."""
        return len(self.sample.compared.y)

    @property
    def chosen(self) -> str:
        """The rung of the ladder to use: the first, unless a later one is better beyond noise."""
        current = ""
        for name in (name for name in _LADDER if name in self.scored):
            if not current or self._compare(name, current).significant:
                current = name
        return current

    @property
    def curved(self) -> bool:
        """Whether the rung to use divides the classes by something other than planes."""
        return bool(self.chosen) and not self.scored[self.chosen].best.linear

    @property
    def late(self) -> list[str]:
        """The questions that the time ran out for."""
        return [rung.name for rung in self.answers if rung.answer == _TIME]

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
        if not self.scored or (self.unfinished and self.silent):
            self.signal = []
            return self._not_compared("signal")
        share = f"{majority.mean():.2%} of {self.n_compared} rows"
        message = (
            f"none of {len(self.scored)} methods ranks rows better than chance, or is right more "
            f"often than naming the largest class, {share}."
        )
        if self.signal[0].significant:
            message = f"{self.signal[0]}; the largest class has {share}."
        evidence = {
            "majority_accuracy": float(majority.mean()),
            "tests": [test.to_dict() for test in self.signal],
        }
        return Rung("signal", message, True, self.n_compared, evidence, self.signal[0])

    def _not_compared(self, name: str) -> Rung:
        why = "not asked: nothing could be cross-validated."
        if self.unfinished:
            why = "not asked: the time ran out before all methods were compared."
        return Rung(name, why, ran=False)

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
        """Estimate the least error that any rule can reach, by the best of those tried."""
        if self.unfinished or self.best is None:
            return self._not_compared("overlap")
        best, (low, high) = self.best, self.bayes_error
        message = (
            f"the best rule, {best.name}, errs on {1 - best.score:.1%} of rows that it was not "
            f"fitted to, between {low:.1%} and {high:.1%}"
            f"{'' if self.scoring == 'accuracy' else ' (the mean over classes)'}: an estimate of "
            "the least possible error."
        )
        evidence = {"method": best.name, "error": 1 - best.score, "interval": [low, high]}
        return Rung("overlap", message, True, self.n_compared, evidence)

    @property
    def best(self) -> Scored | None:
        """The family that predicts best, the simplest of equals, trees included."""
        return max(self.scored.values(), key=lambda scored: scored.score, default=None)

    @property
    def bayes_error(self) -> tuple[float, float]:
        """A 95 % interval of the best rule's error."""
        assert self.best is not None
        low, high = self.sample.compared.interval(self.best.right)
        return 1 - high, 1 - low

    @property
    def overlapping(self) -> bool:
        """Whether the classes overlap for good: every rule errs on more than a tenth."""
        return self.best is not None and self.bayes_error[0] > OVERLAP

    def _give_up_rows(self) -> Rung:
        """Bound how many rows keep planes from separating the classes."""
        name, n, classes = "giving up", len(self.table.y), self.table.n_classes
        if self.planes.separable:
            return Rung(name, "not asked: no row has to be given up.", ran=False)
        decided = self.conflicts.decisive or self.overlapping or self.curved or self.silent
        if decided and not self._thorough:
            return Rung(name, "not asked: it cannot change the verdict.", ran=False)
        if self.sample.wide and classes > _WIDE_CLASSES:
            why = f"not asked: {classes} classes of wide rows take too long, two by two."
            return Rung(name, why, ran=False)
        worth = n * Metric.of(self.scoring, self.table.y).weight
        self.given_up = found = give_up(self.table, self.clock, self._rng, worth)
        if found is None:
            return Rung(name, _TIME, ran=False)
        return Rung(name, f"{found}.", True, n, found.to_dict(), found)
