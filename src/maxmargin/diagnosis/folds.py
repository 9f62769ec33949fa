"""Nested cross-validation whose inner fits serve two outer folds at once.

To predict fold k without having seen it, settings are chosen by fits that leave out k and one more
fold j, judged on j. The same fits, judged on k, serve the choice for fold j. So K(K − 1)/2 fits of
each setting are a full nested cross-validation, and the K fits around a ring still judge each
setting on two inner folds for every outer one. No label of a fold has any part in what predicts it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from maxmargin.diagnosis.candidates import Candidate

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

N_FOLDS = 5


class Machine(Protocol):
    """What can be cross-validated: several settings fitted to the same rows."""

    def predictions(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Ints]:
        """Return the classes that each setting predicts for the test rows."""


@dataclass(frozen=True)
class Scored:
    """A family of rules after cross-validation.

    Attributes
    ----------
    name : str
        What it is called in sentences.
    best : Candidate
        The setting with the best score over all inner folds.
    predicted : ndarray of int
        Out-of-fold class of each row.
    right : ndarray of bool
        Where that is the true one.
    judged, n_settings : int
        How many settings were judged, of how many.
    table : dict
        How many rows of inner folds each setting got right.
    """

    name: str
    best: Candidate
    predicted: Ints
    right: npt.NDArray[np.bool_]
    judged: int
    n_settings: int
    table: dict[Candidate, float]

    @property
    def accuracy(self) -> float:
        """Share of rows predicted correctly."""
        return float(self.right.mean())

    @property
    def errors(self) -> int:
        """Number of rows predicted wrongly."""
        return int((~self.right).sum())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        return {
            "method": self.name,
            "accuracy": self.accuracy,
            "errors": self.errors,
            "rows": len(self.right),
            "best": self.best.to_dict(),
            "settings_judged": self.judged,
            "settings": self.n_settings,
        }


def make_folds(y: Ints, group: Ints, rng: np.random.Generator) -> Ints:
    """Return a fold for each row: classes evenly spread, equal rows always together.

    A copy of a row in the training part would give its answer away.
    """
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    order = rng.permutation(len(first))
    order = order[np.argsort(y[first][order], kind="stable")]
    fold_of_group = np.empty(len(first), dtype=np.int64)
    fold_of_group[order] = np.arange(len(first)) % N_FOLDS
    return np.asarray(fold_of_group[group])


def nested(
    name: str,
    machine: Machine,
    settings: Sequence[Candidate],
    y: Ints,
    folds: Ints,
    hurry: Callable[[], bool],
    over: Callable[[], bool],
    ring: bool,
) -> Scored | None:
    """Cross-validate a family, choosing its setting inside; None if the time ran out.

    With ``ring``, each outer fold has two inner ones; otherwise all others. In a hurry, the choice
    is among the settings judged so far.
    """
    n_folds = int(folds.max()) + 1
    inner = np.zeros((n_folds, len(settings)))
    if len(settings) > 1:
        inner = inner_scores(machine, settings, y, folds, hurry, ring)
    chosen = inner.argmax(axis=1)
    predicted = np.empty(len(y), dtype=np.int64)
    for k in np.argsort(chosen, kind="stable"):
        if over():
            return None
        test, train = np.flatnonzero(folds == k), np.flatnonzero(folds != k)
        predicted[test] = machine.predictions([settings[chosen[k]]], train, test)[0]
    table = dict(zip(settings, inner.sum(axis=0).tolist(), strict=True))
    best = max(settings, key=lambda setting: table[setting])
    judged = int((inner[0] >= 0).sum())
    return Scored(name, best, predicted, predicted == y, judged, len(settings), table)


def inner_scores(
    machine: Machine,
    settings: Sequence[Candidate],
    y: Ints,
    folds: Ints,
    hurry: Callable[[], bool],
    ring: bool,
) -> Floats:
    """Return how many rows of its inner folds each setting got right, for each outer fold.

    −1 stands for settings that were not judged, as there was a hurry.
    """
    n_folds = int(folds.max()) + 1
    inner = np.zeros((n_folds, len(settings)))
    for some in _alike(settings):
        for j, k in _pairs(n_folds, ring):
            if hurry():
                inner[:, some[0] :] = -1
                return inner
            test = np.flatnonzero((folds == j) | (folds == k))
            train = np.flatnonzero((folds != j) & (folds != k))
            found = machine.predictions([settings[s] for s in some], train, test)
            for s, predicted in zip(some, found, strict=True):
                right = predicted == y[test]
                inner[k, s] += right[folds[test] == j].sum()
                inner[j, s] += right[folds[test] == k].sum()
    return inner


def _pairs(n_folds: int, ring: bool) -> list[tuple[int, int]]:
    if ring and n_folds > 2:
        return [(k, (k + 1) % n_folds) for k in range(n_folds)]
    return list(combinations(range(n_folds), 2))


def _alike(settings: Sequence[Candidate]) -> list[list[int]]:
    """Return the positions of settings that can share work, together."""
    keys = [(setting.scaled, setting.get("gamma")) for setting in settings]
    return [list(run) for _, run in groupby(range(len(keys)), key=lambda s: keys[s])]
