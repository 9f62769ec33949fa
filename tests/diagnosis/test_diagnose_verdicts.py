"""Verdicts on data whose truth is known, seed after seed; and on real data where there are some."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin as mm

FOLDER = os.environ.get("MAXMARGIN_DATA", "")

Draw = Callable[[int], tuple[Any, Any]]
D = mm.datasets


def gap(n: int, d: int) -> Draw:
    return lambda seed: D.separable(n, d, margin=0.2, random_state=seed)


def clouds(n: int) -> Draw:
    return lambda seed: D.gaussians(n, variance=0.02, random_state=seed)


def flipped(draw: Draw, fraction: float) -> Draw:
    return lambda seed: D.flipped(*draw(seed), fraction, random_state=seed + 1)


def rare_clouds(n: int, balance: float) -> Draw:
    """Two unit clouds 1.35 apart: whatever their sizes, the AUC of the best plane is 0.83."""
    means = ((0.675, 0.0), (-0.675, 0.0))
    return lambda seed: D.gaussians(n, means, 1.0, balance=balance, random_state=seed)


def drawn(generator: Any, *arguments: Any, **options: Any) -> Draw:
    return lambda seed: generator(*arguments, random_state=seed, **options)


LINEAR, ALMOST, NON_LINEAR, NOISE, INSEPARABLE = (
    "linearly separable", "almost linearly separable", "non-linearly separable", "no signal",
    "inseparable",
)  # fmt: skip
MULTI_LAYER, UNDECIDED = "multi-layer separable", "undecided"
# Rare positives that overlap the others: which of these it is depends on how errors are counted,
# and on whether they are enough for a learning curve; but there is signal.
A_PLANE = (ALMOST, INSEPARABLE, UNDECIDED)

CASES: dict[str, tuple[str | tuple[str, ...], Draw]] = {
    "gap": (LINEAR, gap(200, 5)),
    "gap in a plane": (LINEAR, gap(100, 2)),
    "clouds": (LINEAR, clouds(200)),
    "2 % flipped": (ALMOST, flipped(gap(200, 5), 0.02)),
    "1 % flipped": (ALMOST, flipped(gap(500, 5), 0.01)),
    "clouds, 2 % flipped": (ALMOST, flipped(clouds(200), 0.02)),
    "one row flipped": (ALMOST, flipped(clouds(500), 1 / 500)),
    "circles": (NON_LINEAR, drawn(D.circles, 200)),
    "xor": (NON_LINEAR, drawn(D.xor, 200)),
    "moons": (NON_LINEAR, drawn(D.moons, 200)),
    "moons without noise": (NON_LINEAR, drawn(D.moons, 200, 0.0)),
    "spirals": (NON_LINEAR, drawn(D.spirals, 200)),
    # Several lines, in more columns than a kernel can do with.
    "xor in 2 of 10": (MULTI_LAYER, drawn(D.xor, 300, 0.9, n_features=10)),
    "noise 100 x 2": (NOISE, drawn(D.noise, 100, 2)),
    "noise 200 x 10": (NOISE, drawn(D.noise, 200, 10)),
    "noise 500 x 20": (NOISE, drawn(D.noise, 500, 20)),
    "noise 1000 x 5": (NOISE, drawn(D.noise, 1000, 5)),
    "noise, 30 % positive": (NOISE, drawn(D.noise, 200, 5, balance=0.3)),
    "5 % conflicts": (INSEPARABLE, drawn(D.conflicts, 200, 0.05)),
    "30 % conflicts": (INSEPARABLE, drawn(D.conflicts, 200, 0.3)),
    # Planes under imbalance, with an AUC of 0.91 to 0.94; at 0.83 below.
    "rare plane, 2 %": (A_PLANE, drawn(D.overlapping, 1000, 2, 0.017, balance=0.02)),
    "rare plane, 5 %": (A_PLANE, drawn(D.overlapping, 1000, 2, 0.04, balance=0.05)),
    "rare plane, 8 %": (A_PLANE, drawn(D.overlapping, 600, 2, 0.06, balance=0.08)),
    "rare plane, 17 %": (A_PLANE, drawn(D.overlapping, 400, 2, 0.1, balance=0.17)),
    "rare plane, 20 %": (A_PLANE, drawn(D.overlapping, 400, 2, 0.12, balance=0.2)),
    "rare plane, 8 %, weak": (A_PLANE, rare_clouds(600, 0.08)),
    "rare plane, 17 %, weak": (A_PLANE, rare_clouds(600, 0.17)),
    "rare positives, noise": (NOISE, drawn(D.noise, 600, 5, balance=0.08)),
    "rare circle, 10 %": (NON_LINEAR, drawn(D.circles, 400, balance=0.1)),
    "rare circle, 5 %": (NON_LINEAR, drawn(D.circles, 600, balance=0.05)),
    # Classes that overlap for good, and classes that hardly do.
    "Bayes error 25 %, 500 x 2": (INSEPARABLE, drawn(D.overlapping, 500, 2, 0.25)),
    "Bayes error 25 %, 1000 x 5": (INSEPARABLE, drawn(D.overlapping, 1000, 5, 0.25)),
    "Bayes error 3 %": (ALMOST, drawn(D.overlapping, 500, 2, 0.03)),
}
LONG = 300.0  # seconds, so that a busy machine is no reason for "undecided"
VERDICTS = (LINEAR, ALMOST, NON_LINEAR, NOISE, INSEPARABLE, MULTI_LAYER, UNDECIDED, "not linear")
QUICK = ["gap", "2 % flipped", "circles", "xor in 2 of 10", "noise 100 x 2",
         "5 % conflicts", "rare plane, 8 %", "rare circle, 10 %",
         "Bayes error 25 %, 500 x 2", "Bayes error 3 %"]  # fmt: skip


def wrong_verdict(name: str, seed: int) -> str:
    """Return the verdict if it is not the one that the generator was made for, else "".

    A flipped row next to the gap can leave the classes separable: then the plane is the truth.
    """
    expected, draw = CASES[name]
    X, y = draw(seed)
    found = mm.diagnose(X, y, max_time=LONG)
    if expected == ALMOST and found.verdict == LINEAR:
        plane = found.witness.witness
        return "" if (plane.functional_margin(X, y) > 0).all() else found.verdict
    allowed = (expected,) if isinstance(expected, str) else expected
    return "" if found.verdict in allowed else str(found.verdict)


@pytest.mark.parametrize("name", QUICK)
def test_generators_get_their_verdict(name: str) -> None:
    assert not wrong_verdict(name, 0)


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_ninety_eight_of_a_hundred_seeds(name: str, seeds: range) -> None:
    """Others than the first hundred: ``pytest -k "hundred and rare" --seeds 100:120``."""
    wrong = {seed: said for seed in seeds if (said := wrong_verdict(name, seed))}
    assert len(wrong) <= 0.02 * len(seeds), wrong


def board(n: int, cells: int, d: int = 2) -> Draw:
    """A checkerboard without noise."""

    def draw(seed: int) -> tuple[Any, Any]:
        X = np.random.default_rng(seed).uniform(0, cells, (n, d))
        return X, np.floor(X).sum(axis=1) % 2

    return draw


def rule(n: int, d: int, kind: str) -> Draw:
    """Labels that are a function of the columns: a wave, a quadratic form, or both with a plane."""

    def draw(seed: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)
        X, u, A = rng.uniform(-1, 1, (n, d)), rng.standard_normal(d), rng.standard_normal((d, d))
        wave, form = np.sin(5 * X @ u / np.linalg.norm(u)), np.einsum("ij,jk,ik->i", X, A, X)
        f = {"wave": wave, "form": form, "wavy plane": X[:, 0] + 0.5 * wave}[kind]
        return X, f > np.median(f)

    return draw


def mixture(n: int, spread: float) -> Draw:
    """Four clouds around the axes, two of each class; its Bayes error is ``mixed_error``."""

    def draw(seed: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)
        y, side = rng.integers(0, 2, n), rng.choice([-1.5, 1.5], n)
        means = np.where(y[:, None] == [0, 1], side[:, None], 0.0)
        return means + spread * rng.standard_normal((n, 2)), y

    return draw


def mixed_error(spread: float) -> float:
    """The mean, over the mixture, of the smaller posterior."""
    X, _ = mixture(100_000, spread)(0)
    means = 1.5 * np.array([[[-1, 0], [1, 0]], [[0, -1], [0, 1]]])
    distances = ((X[:, None, None] - means) ** 2).sum(axis=-1)
    density = np.exp(-distances / (2 * spread**2)).sum(axis=2)
    return float((density.min(axis=1) / density.sum(axis=1)).mean())


# The least possible error, which no bound may be below; 0 means that no verdict may be INSEPARABLE.
KNOWN: dict[str, tuple[float, Draw]] = {
    "board of 4": (0.0, board(250, 4)),
    "board of 8": (0.0, board(400, 8)),
    "board of 20": (0.0, board(300, 20)),
    "board of 3 in 3-D": (0.0, board(400, 3, 3)),
    "wave": (0.0, rule(300, 6, "wave")),
    "quadratic form": (0.0, rule(250, 12, "form")),
    "wavy plane": (0.0, rule(250, 10, "wavy plane")),
    "mixture": (mixed_error(1.0), mixture(300, 1.0)),
    "close mixture": (mixed_error(1.6), mixture(300, 1.6)),
    "overlapping": (0.15, drawn(D.overlapping, 300, 3, 0.15)),
    "flipped moons": (0.2, flipped(drawn(D.moons, 300), 0.2)),
    "flipped plane": (0.1, flipped(gap(300, 4), 0.1)),
}


def wrong_bound(name: str, seed: int) -> str:
    """Return what is wrong about the least possible error, "" if nothing is."""
    least, draw = KNOWN[name]
    found = mm.diagnose(*draw(seed), max_time=LONG)
    bound = found.evidence["overlap"]["at_most"]
    if least == 0 and found.verdict == INSEPARABLE:
        return found.reason
    if least > 0.02 and found.verdict in (LINEAR, NOISE):
        return found.verdict
    return "" if least <= bound else f"{bound} < {least}"


@pytest.mark.parametrize(
    "name", ["board of 8", "wave", "quadratic form", "mixture", "overlapping", "flipped moons"]
)
def test_the_least_possible_error_is_bounded_from_above_only(name: str) -> None:
    assert not wrong_bound(name, 0)


@pytest.mark.full
@pytest.mark.parametrize("name", KNOWN)
def test_ninety_eight_of_a_hundred_bounds_hold(name: str, seeds: range) -> None:
    wrong = {seed: said for seed in seeds if (said := wrong_bound(name, seed))}
    assert len(wrong) <= 0.02 * len(seeds), wrong


@pytest.mark.full
def test_a_product_of_columns_among_many_needs_layers() -> None:
    """In 30 columns a kernel of distances drowns in those that do not matter; a network learns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2500, 30))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    found = mm.diagnose(X, y)
    assert found.verdict == "multi-layer separable"
    assert "MLPClassifier" in str(found.recommend("ladder"))


def load(name: str) -> tuple[Any, Any]:
    found = mm.data.read_labelled(Path(FOLDER, f"{name}.svm.xz"))
    return found.X, found.y


real = pytest.mark.skipif(
    not Path(FOLDER, "a1a.svm.xz").exists(),
    reason="MAXMARGIN_DATA names no folder of .svm.xz files",
)


@real
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mushrooms", LINEAR),
        ("sonar", LINEAR),
        ("fourclass", NON_LINEAR),
        ("diabetes", INSEPARABLE),
    ],
)
def test_real_sets_get_a_verdict(name: str, expected: str) -> None:
    X, y = load(name)
    found = mm.diagnose(X, y)
    assert found.verdict == expected
    assert found.recommend().fit(X, y).score(X, y) > np.unique(y, return_counts=True)[1].max() / (
        len(y)
    )


@real
@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["covtype", "20newsgroups-bydate", "ijcnn1", "shuttle", "usps", "kddcup99-10pct"]
)
def test_large_sets_return(name: str) -> None:
    X, y = load(name)
    found = mm.diagnose(X, y)
    assert found.verdict in VERDICTS
    assert found.verdict != NOISE
    assert all(rung.rows_seen <= len(y) for rung in found.rungs)
