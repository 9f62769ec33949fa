"""The questions of the ladder, in order, and what their answers add up to so far."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Ints
from maxmargin.clock import Clock
from maxmargin.diagnosis import families
from maxmargin.diagnosis.cross_validation import Scored, make_folds
from maxmargin.diagnosis.inputs import (
    DiagnosedTable,
    Sample,
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
    LEVEL,
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
    """The data, the clock, and every answer so far."""

    def __init__(
        self,
        table: DiagnosedTable,
        scoring: str,
        clock: Clock,
        rng: np.random.Generator,
        thorough: bool,
    ) -> None:
        self.table, self.scoring, self.clock, self.thorough = table, scoring, clock, thorough
        self._rng, self._seed = rng, int(rng.integers(2**31))
        self.answers: list[Rung] = []
        self.late: list[str] = []
        self.scored: dict[str, Scored] = {}
        self.gain: dict[str, Comparison] = {}
        self.signal: list[Comparison | Ranking] = []
        self.chance = 0.0
        self.given_up: GivingUp | None = None
        most = _CV_ROWS if table.n_classes <= 4 else _CV_ROWS_OF_MANY
        size = max(100, int(most * np.sqrt(clock.max_time / 30.0)))
        self.rows = draw_rows(table.y, size, rng)

    # ------------------------------------------------------------ facts about all rows

    def describe_columns(self) -> None:
        """Measure columns and classes."""
        self.columns = measure_columns(self.table, self.rows)
        self.messages = describe_columns(self.table, self.columns)
        message = " ".join(self.messages) or "nothing unusual about scales, constants or balance."
        evidence = {**vars(self.columns), "class_counts": np.bincount(self.table.y)}
        self._answer("columns", message, len(self.table.y), evidence)

    def find_conflicts(self) -> None:
        """Find equal rows with different labels, and draw the folds around equal rows."""
        table = self.table
        group = equal_rows(table.X)
        self.conflicts = find_conflicts(group, table.y, table.n_classes)
        n = len(table.y)
        copies = n - int(group.max()) - 1
        if self.conflicts.groups:
            message = (
                f"{self.conflicts.rows} rows have equals with other labels: any rule is wrong on "
                f"at least {self.conflicts.errors} of {n} rows ({self.conflicts.share:.2%})."
            )
        else:
            message = f"no equal rows have different labels ({copies} are copies of other rows)."
        evidence = {**self.conflicts.to_dict(), "copies": copies, "threshold": FORCED}
        self._answer("conflicts", message, n, evidence, self.conflicts)
        self._draw_sample(group)

    def _draw_sample(self, group: Ints) -> None:
        table, rows = self.table, self.rows
        wide, y = is_wide(table.X), table.y[rows]
        folds = make_folds(y, group[rows], self._rng)
        fresh = self._draw_fresh_rows(group)
        self.sample = Sample(
            X=_as_learnt(table.X[rows], wide),
            y=y,
            folds=folds,
            X_fresh=None if fresh is None else _as_learnt(table.X[fresh], wide),
            y_fresh=None if fresh is None else table.y[fresh],
            metric=Metric.of(self.scoring, y),
            sparse=sp.issparse(table.X),
            wide=wide,
            uneven=self.columns.uneven,
            over=lambda: self.clock.over,
        )

    def _draw_fresh_rows(self, group: Ints) -> Ints | None:
        """Return rows to score on, none of them equal to one that is cross-validated; or None."""
        others = np.flatnonzero(~np.isin(group, group[self.rows]))
        if len(others) < _FRESH * len(self.rows):
            return None
        return others[draw_rows(self.table.y[others], _MOST_FRESH, self._rng)]

    def find_planes(self) -> None:
        """Ask whether planes separate the classes."""
        if self.conflicts.groups and not self.thorough:
            self.planes = Planes(False, {}, 0)
            self._skip("separability", "not asked: equal rows with different labels rule it out.")
            return
        self.planes = find_planes(self.table, self.clock, self._rng, self.thorough)
        if self.planes.separable is None and self.clock.over:
            self._run_out("separability")
            return
        found = self.planes.decisive
        message = str(found or "undecided at this precision: the classes touch, or nearly so.")
        if self.planes.separable and self.table.n_classes > 2:
            message = f"planes separate every two classes, with margin {self.planes.margin:.4g}."
        self.chance = self._estimate_chance()
        evidence = {
            "separable": self.planes.separable,
            "margin": self.planes.margin,
            "radius": getattr(found, "radius", None),
            "mistake_bound": self.mistake_bound,
            "chance_if_labels_were_random": self.chance,
        }
        self._answer("separability", message, self.planes.rows_seen, evidence, found)

    @property
    def mistake_bound(self) -> float:
        """The most updates a perceptron makes, for any of the pairs (lifted form)."""
        return max((pair.mistake_bound for pair in self.planes.pairs.values()), default=np.inf)

    def _estimate_chance(self) -> float:
        """Return how likely planes separate random labels: of the largest pair, at best."""
        rank = self.columns.rank
        dimension = self.table.shape[1] if rank is None else rank
        largest = np.sort(np.bincount(self.table.y))[-2:].sum()
        return chance_separable(int(largest), dimension)

    @property
    def forced(self) -> bool:
        """Whether equal rows with different labels force so many errors that they decide."""
        return self.conflicts.share >= FORCED

    # ------------------------------------------------------------ rules, cross-validated

    def try_planes(self) -> None:
        """Cross-validate planes."""
        if self._cross_validates("planes"):
            self._score("planes", families.score_planes(self.sample, bool(self.planes.separable)))

    def try_kernels(self) -> None:
        """Cross-validate kernels, and compare them with planes on the same folds."""
        if not self._cannot_gain("kernels"):
            found = families.score_kernels(self.sample)
            self._score("kernels", found, note=_PROVES_NOTHING)

    def try_local_rules(self) -> None:
        """Cross-validate neighbours and naive Bayes, and bracket the least possible error."""
        if self._cannot_gain("local rules"):
            return
        neighbours = families.score_neighbours(self.sample)
        nearest = neighbours and families.score_nearest(self.sample, neighbours.best.scaled)
        bayes = families.score_naive_bayes(self.sample)
        if neighbours is None or nearest is None or (bayes is None and self.clock.over):
            self._run_out("local rules")
            return
        messages = [self._compare_with_rival("k-NN", neighbours)]
        if bayes is not None:
            messages.append(self._compare_with_rival("naive Bayes", bayes))
        low, high = bayes_bracket(1 - float(nearest.right.mean()), self.table.n_classes)
        messages.append(
            f"judging by the nearest neighbour, no rule errs on less than about {low:.1%} (the "
            "bound of Cover and Hart, which holds for infinitely many rows)."
        )
        evidence = {
            "k-NN": neighbours.to_dict(),
            "naive Bayes": None if bayes is None else bayes.to_dict(),
            "nearest_neighbour_error": 1 - float(nearest.right.mean()),
            "least_error_between": [low, high],
        }
        self._answer("local rules", "; ".join(messages), self.n_compared, evidence)

    def _compare_with_rival(self, name: str, found: Scored) -> str:
        """Compare a family with the best rung so far, and describe its score."""
        rival = self.chosen
        self.scored[name] = found
        message = f"{found.name} {self._describe_score(found)}"
        if not rival:
            return message
        self.gain[name] = self._compare(name, rival)
        return f"{message}; {self.gain[name]}"

    def try_networks(self) -> None:
        """Cross-validate networks, and compare them with the best rung below."""
        if not self._too_wide("networks") and not self._cannot_gain("networks"):
            self._score("networks", families.score_networks(self.sample, self._seed))

    def try_trees(self) -> None:
        """Cross-validate gradient boosting, a yardstick from outside, beside the ladder's best."""
        name = "gradient boosting"
        if self._too_wide(name):
            return
        if self.table.n_classes > _TREE_CLASSES:
            self._skip(name, f"not asked: more than {_TREE_CLASSES} classes take too long.")
        elif not self._cannot_gain(name):
            self._score(name, families.score_gradient_boosting(self.sample))

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

    def _compare(self, name: str, rival: str) -> Comparison:
        better, worse = self.scored[name], self.scored[rival]
        tests = 1 if name == "kernels" else len(_LADDER) - 2  # rules that are not large margins
        return compare(
            (better.name, better.right),
            (worse.name, worse.right),
            self.sample.compared,
            tests,
            LEVEL,
        )

    # ------------------------------------------------------------ what it all amounts to

    def find_signal(self) -> None:
        """Ask whether any rule ranks rows, or names classes, better than by chance."""
        if not self.scored:
            self._skip("signal", self._nothing)
            return
        tests, majority, metric = 2 * len(self.scored), self.sample.majority, self.sample.compared
        accuracy = Metric.of("accuracy", metric.y, self.table.n_classes)
        for scored in self.scored.values():
            named = (scored.name, scored.right)
            self.signal += [
                rank(scored.name, scored.scores, metric.y, self._strata, tests),
                compare(named, ("naming the largest class", majority), accuracy, tests, SIGNAL),
            ]
        self.signal.sort(key=lambda found: found.p_value)
        if self.unfinished and self.silent:  # what was not tried in time might have found some
            self.signal = []
            self._skip("signal", self._nothing)
            return
        share = f"{majority.mean():.2%} of {self.n_compared} rows"
        message = (
            f"none of {len(self.scored)} methods ranks rows better than chance, or is right more "
            f"often than naming the largest class, {share}."
        )
        if self.signal[0].significant:
            message = f"{self.signal[0]}; the largest class has {share}."
        evidence = {
            "majority_accuracy": float(majority.mean()),
            "tests": [found.to_dict() for found in self.signal],
        }
        self._answer("signal", message, self.n_compared, evidence, self.signal[0])

    @property
    def _strata(self) -> Ints:
        """Which rows were scored by the same fit."""
        fresh = self.sample.y_fresh
        return self.sample.folds if fresh is None else np.zeros(len(fresh), dtype=np.int64)

    @property
    def n_compared(self) -> int:
        """How many rows families are compared by."""
        return len(self.sample.compared.y)

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
        ranked = rank("", faultless, y, self._strata, tests)
        accuracy = Metric.of("accuracy", y, self.table.n_classes)
        return not ranked.significant and hopeless(~self.sample.majority, accuracy, tests, SIGNAL)

    def estimate_overlap(self) -> None:
        """Estimate the least error that any rule can reach, by the best of those tried."""
        if self.unfinished or self.best is None:
            self._skip("overlap", self._nothing)
            return
        best, (low, high) = self.best, self.bayes_error
        message = (
            f"the best rule, {best.name}, errs on {1 - best.score:.1%} of rows that it was not "
            f"fitted to, between {low:.1%} and {high:.1%}"
            f"{'' if self.scoring == 'accuracy' else ' (the mean over classes)'}: an estimate of "
            "the least possible error."
        )
        evidence = {"method": best.name, "error": 1 - best.score, "interval": [low, high]}
        self._answer("overlap", message, self.n_compared, evidence)

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

    def give_up_rows(self) -> None:
        """Bound how many rows keep planes from separating the classes."""
        if self.planes.separable:
            self._skip("giving up", "not asked: no row has to be given up.")
            return
        if (self.forced or self.overlapping or self.curved or self.silent) and not self.thorough:
            self._skip("giving up", "not asked: it cannot change the verdict.")
            return
        if self.sample.wide and self.table.n_classes > _WIDE_CLASSES:
            message = (
                f"not asked: {self.table.n_classes} classes of wide rows take too long, two by two."
            )
            self._skip("giving up", message)
            return
        n = len(self.table.y)
        worth = n * Metric.of(self.scoring, self.table.y).weight
        self.given_up = found = give_up(self.table, self.clock, self._rng, worth)
        if found is None:
            self._run_out("giving up")
        else:
            self._answer("giving up", f"{found}.", n, found.to_dict(), found)

    @property
    def unfinished(self) -> bool:
        """Whether the time ran out before a question that the verdict rests on."""
        return any(name in self.late for name in _NEEDED)

    # ------------------------------------------------------------ bookkeeping

    @property
    def _nothing(self) -> str:
        if self.unfinished:
            return "not asked: the time ran out before all methods were compared."
        return "not asked: nothing could be cross-validated."

    def _too_wide(self, name: str) -> bool:
        wide = bool(self.sample.X.shape[1] > _DENSE_COLUMNS)
        if wide:
            self._skip(name, f"not asked: more than {_DENSE_COLUMNS} columns take too long.")
        return wide

    def _cannot_gain(self, name: str) -> bool:
        if not self._cross_validates(name):
            return True
        if not self.chosen or self.thorough:
            return False
        scored = self.scored[self.chosen]
        if hopeless(~scored.right, self.sample.compared):
            message = (
                f"not asked: {scored.name} errs on {scored.errors} of {self.n_compared} rows, and "
                "not even a rule without errors would be significantly better."
            )
            self._skip(name, message)
            return True
        return False

    def _cross_validates(self, name: str) -> bool:
        if self.clock.over:
            self._run_out(name)
        elif len(np.unique(self.sample.folds)) < 3:
            self._skip(name, "not asked: too few different rows to cross-validate.")
        else:
            return True
        return False

    def _score(self, name: str, found: Scored | None, note: str = "") -> None:
        if found is None:
            self._run_out(name)
            return
        message, gain = self._compare_with_rival(name, found), self.gain.get(name)
        evidence = found.to_dict() | ({"note": note} if note else {})
        if gain is not None:
            evidence["comparison"] = gain.to_dict()
        self._answer(name, f"{message}.", self.n_compared, evidence, gain)

    def _describe_score(self, found: Scored) -> str:
        if self.scoring == "accuracy":
            return f"is right on {found.score:.2%} of {self.n_compared} rows"
        return f"has a balanced accuracy of {found.score:.2%} on {self.n_compared} rows"

    def _answer(
        self, name: str, message: str, rows: int, evidence: dict[str, Any], witness: Any = None
    ) -> None:
        self.answers.append(Rung(name, message, True, rows, evidence, witness))

    def _skip(self, name: str, why: str) -> None:
        self.answers.append(Rung(name, why, ran=False))

    def _run_out(self, name: str) -> None:
        self.late.append(name)
        self._skip(name, _TIME)


def _as_learnt(X: Any, wide: bool) -> Any:
    """Return rows as learners get them: sparse only if they are wide."""
    if not sp.issparse(X):
        return X
    if not wide:
        return X.toarray()
    # Some of scikit-learn's learners refuse 64-bit indices.
    indices = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_array((X.data, *indices), shape=X.shape)
