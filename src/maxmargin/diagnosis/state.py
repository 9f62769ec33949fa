"""What is known so far, and the rungs that add to it."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.diagnosis import scores
from maxmargin.diagnosis.clock import Clock
from maxmargin.diagnosis.conflicts import FORCED, find_conflicts
from maxmargin.diagnosis.folds import Scored, make_folds
from maxmargin.diagnosis.giving_up import GivingUp, give_up
from maxmargin.diagnosis.inputs import Table, draw_rows, is_wide
from maxmargin.diagnosis.planes import Planes, find_planes
from maxmargin.diagnosis.remarks import look_at_columns, remarks_on
from maxmargin.diagnosis.result import Rung
from maxmargin.diagnosis.rows import equal_rows
from maxmargin.diagnosis.sample import Sample
from maxmargin.diagnosis.significance import (
    SIGNAL,
    Comparison,
    bayes_bracket,
    chance_separable,
    compare,
    hopeless,
)

Ints = npt.NDArray[np.int64]

_CV_ROWS = 2500  # rows that are cross-validated when there are 30 seconds
_CV_ROWS_OF_MANY = 2000  # with many classes
_NETWORK_COLUMNS = 2000
_WIDE_CLASSES = 5
_TIME = "the time ran out: raise max_time."
_PROVES_NOTHING = (
    "An RBF kernel separates any distinct rows, so that fitting them proves nothing: this is about "
    "rows that were not fitted to."
)


class State:
    """The data, the clock, and every answer so far."""

    def __init__(
        self, table: Table, clock: Clock, rng: np.random.Generator, thorough: bool, seed: int
    ) -> None:
        self.table, self.clock, self.thorough = table, clock, thorough
        self._rng, self._seed = rng, seed
        self.rungs: list[Rung] = []
        self.scored: dict[str, Scored] = {}
        self.gain: dict[str, Comparison] = {}
        self.given_up: GivingUp | None = None
        self.signal: list[Comparison] = []
        self._soon = 0.0
        most = _CV_ROWS if table.n_classes <= 4 else _CV_ROWS_OF_MANY
        size = max(100, int(most * np.sqrt(clock.max_time / 30.0)))
        self.rows = draw_rows(table.y, size, rng)

    def look_at_columns(self) -> None:
        """Measure columns and classes."""
        self.columns = look_at_columns(self.table, self.rows)
        self.remarks = remarks_on(self.table, self.columns)
        said = " ".join(self.remarks) or "nothing to remark on scales, constants or balance."
        evidence = {**vars(self.columns), "class_counts": np.bincount(self.table.y)}
        self.rungs.append(Rung("columns", said, True, len(self.table.y), evidence))

    def look_for_conflicts(self) -> None:
        """Find equal rows with different labels, and draw the folds around equal rows."""
        table = self.table
        group = equal_rows(table.X)
        self.conflicts = find_conflicts(group, table.y, table.n_classes)
        n = len(table.y)
        copies = n - int(group.max()) - 1
        if self.conflicts.groups:
            said = (
                f"{self.conflicts.rows} rows have equals with other labels: any rule errs on "
                f"{self.conflicts.errors} of {n} rows ({self.conflicts.share:.2%}) or more."
            )
        else:
            said = f"no equal rows have different labels ({copies} are copies of other rows)."
        evidence = {**self.conflicts.to_dict(), "copies": copies, "threshold": FORCED}
        self.rungs.append(Rung("conflicts", said, True, n, evidence, self.conflicts))
        self._draw(group)

    def _draw(self, group: Ints) -> None:
        table, rows = self.table, self.rows
        wide = is_wide(table.X)
        X = table.X[rows]
        if sp.issparse(X) and not wide:
            X = X.toarray()
        elif wide:  # some of scikit-learn's learners refuse 64-bit indices
            indices = X.indices.astype(np.int32), X.indptr.astype(np.int32)
            X = sp.csr_array((X.data, *indices), shape=X.shape)
        folds = make_folds(table.y[rows], group[rows], self._rng)
        self.sample = Sample(
            rows, X, table.y[rows], folds, table.n_classes, sp.issparse(table.X), wide,
            self.columns.uneven, lambda: self.clock.seconds > self._soon, lambda: self.clock.over,
        )  # fmt: skip

    @property
    def inseparable(self) -> bool:
        """Whether equal rows with different labels force enough errors to rule."""
        return self.conflicts.share >= FORCED

    def look_for_planes(self) -> None:
        """Ask whether planes separate the classes."""
        if self.conflicts.groups and not self.thorough:
            self.planes = Planes(False, {}, 0)
            self._skip("separability", "not asked: equal rows with different labels rule it out.")
            return
        self.planes = find_planes(self.table, self.clock, self._rng, self.thorough)
        found = self.planes.decisive
        said = _TIME if found is None else str(found)
        if self.planes.separable and found is not None and self.table.n_classes > 2:
            said = f"planes separate every two classes, with margin {self.planes.margin:.4g}."
        self.chance = self._chance()
        evidence = {
            "separable": self.planes.separable,
            "margin": self.planes.margin,
            "radius": getattr(found, "radius", None),
            "mistake_bound": self._mistake_bound(),
            "chance_if_labels_were_random": self.chance,
        }
        seen = self.planes.rows_seen
        self.rungs.append(Rung("separability", said, found is not None, seen, evidence, found))

    def _mistake_bound(self) -> float:
        """Return the most updates a perceptron makes, for any of the pairs (lifted form)."""
        return max((pair.mistake_bound for pair in self.planes.pairs.values()), default=np.inf)

    def _chance(self) -> float:
        """Return how likely planes separate random labels: of the largest pair, at best."""
        rank = self.columns.rank
        dimension = self.table.shape[1] if rank is None else rank
        largest = np.sort(np.bincount(self.table.y))[-2:].sum()
        return chance_separable(int(largest), dimension)

    def try_planes(self) -> None:
        """Cross-validate planes."""
        if not self._cross_validates("planes"):
            return
        self._scored("planes", scores.linear_scores(self.sample, bool(self.planes.separable)))

    def try_kernels(self) -> None:
        """Cross-validate kernels, and compare them with planes on the same folds."""
        if self._cannot_gain("kernels", "planes"):
            return
        self._scored("kernels", scores.kernel_scores(self.sample), "planes", _PROVES_NOTHING)

    def try_local_rules(self) -> None:
        """Cross-validate neighbours and naive Bayes, and bracket the least possible error."""
        best = self.best()
        if best is not None and hopeless(best.errors) and not self.thorough:
            said = f"not asked: {best.name} errs on {best.errors} rows only, too few to gain any."
            self._skip("local rules", said)
            return
        if not self._cross_validates("local rules"):
            return
        neighbours = scores.neighbour_scores(self.sample)
        bayes = scores.bayes_scores(self.sample)
        nearest = neighbours and scores.nearest_scores(self.sample, neighbours.best.scaled)
        if neighbours is None or nearest is None:
            self._skip("local rules", _TIME)
            return
        self.scored["k-NN"] = neighbours
        if bayes is not None:
            self.scored["naive Bayes"] = bayes
        low, high = bayes_bracket(1 - nearest.accuracy, self.table.n_classes)
        said = (
            f"k-NN is right on {neighbours.accuracy:.2%}"
            + (f", naive Bayes on {bayes.accuracy:.2%}" if bayes is not None else "")
            + f"; by the nearest neighbour, no rule errs on less than about {low:.1%} (Cover and "
            "Hart, with rows without end)."
        )
        evidence = {
            "k-NN": neighbours.to_dict(),
            "naive Bayes": None if bayes is None else bayes.to_dict(),
            "nearest_neighbour_error": 1 - nearest.accuracy,
            "least_error_between": [low, high],
        }
        self.rungs.append(Rung("local rules", said, True, len(self.rows), evidence))

    def try_networks(self) -> None:
        """Cross-validate networks, and compare them with the best of planes and kernels."""
        rivals = self._of("planes", "kernels")
        best = max(rivals, key=lambda name: self.scored[name].accuracy, default="")
        if self.sample.X.shape[1] > _NETWORK_COLUMNS:
            self._skip("networks", f"not asked: over {_NETWORK_COLUMNS} columns take too long.")
            return
        decided = self.inseparable or bool(self.planes.separable)
        if decided and not self.thorough:
            self._skip("networks", "not asked: it cannot change the verdict.")
            return
        if self._cannot_gain("networks", best):
            return
        self._scored("networks", scores.network_scores(self.sample, self._seed), best)

    def look_for_signal(self) -> None:
        """Compare every family with naming the largest class; the clearest comes first."""
        tests = max(1, len(self.scored))
        majority = self.sample.majority
        self.signal = sorted(
            (
                compare(scored.name, scored.right, "the largest class", majority, tests, SIGNAL)
                for scored in self.scored.values()
            ),
            key=lambda comparison: comparison.p_value,
        )
        if not self.signal:
            self._skip("signal", "not asked: nothing could be cross-validated.")
            return
        share = f"{majority.mean():.2%} of {len(self.rows)} rows"
        said = f"none of {tests} methods beats naming the largest class, {share}."
        if self.signal[0].significant:
            said = f"{self.signal[0]}, which is {share}."
        evidence = {
            "majority_accuracy": float(majority.mean()),
            "comparisons": [comparison.to_dict() for comparison in self.signal],
        }
        self.rungs.append(Rung("signal", said, True, len(self.rows), evidence, self.signal[0]))

    def give_up_rows(self) -> None:
        """Bound how many rows keep planes from separating the classes."""
        if self.planes.separable:
            self._skip("giving up", "not asked: no row has to be given up.")
            return
        beyond = any(gain.significant for gain in self.gain.values())
        no_signal = not self.signal or not self.signal[0].significant
        if (self.inseparable or beyond or no_signal) and not self.thorough:
            self._skip("giving up", "not asked: it cannot change the verdict.")
            return
        if self.sample.wide and self.table.n_classes > _WIDE_CLASSES:
            said = f"not asked: every two of {self.table.n_classes} wide classes take too long."
            self._skip("giving up", said)
            return
        self.given_up = give_up(self.table, self.clock, self._rng)
        if self.given_up is None:
            self._skip("giving up", _TIME)
            return
        n = len(self.table.y)
        said, evidence = f"{self.given_up}.", self.given_up.to_dict()
        self.rungs.append(Rung("giving up", said, True, n, evidence, self.given_up))

    def best(self) -> Scored | None:
        """Return the family that predicts best so far, the simplest of equals."""
        return max(self.scored.values(), key=lambda scored: scored.accuracy, default=None)

    def _of(self, *names: str) -> list[str]:
        return [name for name in names if name in self.scored]

    def _cannot_gain(self, name: str, rival: str) -> bool:
        if not self._cross_validates(name):
            return True
        errors = self.scored[rival].errors if rival in self.scored else len(self.rows)
        if hopeless(errors) and not self.thorough:
            said = (
                f"not asked: {rival} err on {errors} of {len(self.rows)} rows, and not even a rule "
                "without errors would be significantly better."
            )
            self._skip(name, said)
            return True
        return False

    def _cross_validates(self, name: str) -> bool:
        if self.clock.over:
            self._skip(name, _TIME)
        elif len(np.unique(self.sample.folds)) < 3:
            self._skip(name, "not asked: too few different rows to cross-validate.")
        else:
            # Part of the time left, so that later rungs have some too.
            self._soon = self.clock.seconds + 0.4 * self.clock.left
            return True
        return False

    def _scored(self, name: str, found: Scored | None, rival: str = "", note: str = "") -> None:
        if found is None:
            self._skip(name, _TIME)
            return
        self.scored[name] = found
        said = f"{found.name} is right on {found.accuracy:.2%} of {len(self.rows)} rows"
        evidence: dict[str, Any] = found.to_dict()
        if note:
            evidence["note"] = note
        if rival in self.scored:
            other = self.scored[rival]
            self.gain[name] = compare(found.name, found.right, other.name, other.right)
            said += f"; {self.gain[name]}"
            evidence["comparison"] = self.gain[name].to_dict()
        witness = self.gain.get(name)
        self.rungs.append(Rung(name, said + ".", True, len(self.rows), evidence, witness))

    def _skip(self, name: str, why: str) -> None:
        self.rungs.append(Rung(name, why, ran=False))
