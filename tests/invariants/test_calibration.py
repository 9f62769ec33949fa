"""Probabilities on real data beside scikit-learn's, which cost five more fits."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin._typing import Floats

FOLDER = os.environ.get("MAXMARGIN_DATA", "")
SETS = [
    "a9a", "breast-cancer", "diabetes", "fourclass", "german.numer", "higgs-7k", "ijcnn1",
    "magic04", "mushrooms", "pendigits", "satimage", "svmguide1",
]  # fmt: skip
pytestmark = pytest.mark.skipif(
    not all(Path(FOLDER, f"{name}.svm.xz").exists() for name in SETS),
    reason="MAXMARGIN_DATA names no folder of .svm.xz files",
)
LEARNT, HELD_OUT = 2000, 6000  # rows at most


class Losses(NamedTuple):
    """Log-loss and calibration error of ours, and of scikit-learn's."""

    ours: float
    theirs: float
    our_error: float
    their_error: float


def compare(name: str, model: Any, seed: int) -> Losses:
    found = mm.data.read_labelled(Path(FOLDER, f"{name}.svm.xz"))
    X, y = found.X.toarray(), np.asarray(found.y)
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(LEARNT, len(y) // 2)
    learnt, held_out = order[:n], order[n : n + HELD_OUT]
    scaler = StandardScaler().fit(X[learnt])
    rows, y_learnt = scaler.transform(X[learnt]), y[learnt]
    new, y_new = scaler.transform(X[held_out]), y[held_out]
    ours = clone(model).set_params(probability=True).fit(rows, y_learnt)
    theirs = CalibratedClassifierCV(model, method="sigmoid", ensemble=False, cv=5)
    theirs.fit(rows, y_learnt)
    p, q = ours.predict_proba(new), theirs.predict_proba(new)
    assert (ours.classes_[p.argmax(axis=1)] == ours.predict(new)).all()
    right = y_new[:, np.newaxis] == ours.classes_
    return Losses(log_loss(y_new, p), log_loss(y_new, q), error_of(p, right), error_of(q, right))


def error_of(p: Floats, right: Any) -> float:
    """Return how far shares are from probabilities: in ten bins of the class to look at.

    Of two classes that is the second, of more the most probable.
    """
    rows = np.arange(len(p))
    look = np.ones(len(p), int) if p.shape[1] == 2 else p.argmax(axis=1)
    said, true = p[rows, look], right[rows, look]
    bins = np.minimum((10 * said).astype(int), 9)
    return float(np.abs(np.bincount(bins, said - true)).sum() / len(p))


def check(losses: dict[str, Losses]) -> None:
    ratios = [each.ours / each.theirs for each in losses.values()]
    assert np.median(ratios) <= 1.02, losses
    for name, (ours, theirs, our_error, their_error) in losses.items():
        assert ours <= max(1.1 * theirs, theirs + 0.01), name
        assert our_error <= their_error + 0.01, name


def test_one_fit_gives_probabilities_as_good_as_six() -> None:
    names = ["breast-cancer", "diabetes", "fourclass", "german.numer", "svmguide1"]
    check({name: compare(name, mm.SVC(), 0) for name in names})


@pytest.mark.full
def test_one_fit_gives_probabilities_as_good_as_six_on_twelve_sets() -> None:
    means = {}
    for name in SETS:
        splits = np.array([compare(name, mm.SVC(), seed) for seed in range(3)])
        means[name] = Losses(*splits.mean(axis=0))
    check(means)


@pytest.mark.full
@pytest.mark.parametrize(
    "model",
    [mm.LinearSVC(), mm.LinearSVC(loss="squared_hinge"), mm.NuSVC(nu=0.1), mm.SVC(C=10.0)],
    ids=str,
)
def test_other_machines_give_probabilities_as_good(model: Any) -> None:
    names = ["breast-cancer", "german.numer", "magic04", "satimage", "svmguide1"]
    check({name: compare(name, model, 0) for name in names})
