"""Dual coordinate descent leaf by leaf: bounds, bits, passes, and going on after a kill."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import maxmargin as mm
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.blocked import BlockedProblem, HingeRule
from maxmargin.problems.problem import Intercept, Point, Status
from maxmargin.rows.blocks import RowsInMemory
from maxmargin.rows.on_disk import RowsOnDisk
from maxmargin.rows.survey import survey
from maxmargin.solvers.dual_cd import BlockDualCD
from maxmargin.solvers.newton import Newton

N, D, WORDS = 6000, 2500, 50  # four leaves, and too many numbers to be polished


def bag_of_words(n: int = N, d: int = D, words: int = WORDS) -> tuple[Any, Any]:
    """Return rows of unit length, with words as frequent as those of texts are, and ±1."""
    rng = np.random.default_rng(5)
    frequency = 1.0 / np.arange(1, d + 1)
    drawn = rng.choice(d, (n, words), p=frequency / frequency.sum())
    X = sp.csr_array((np.ones(drawn.size), drawn.ravel(), np.arange(0, drawn.size + 1, words)))
    X.resize((n, d))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=d)
    X.data *= np.log((1 + n) / (1 + documents[X.indices]))
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    scores = X @ rng.standard_normal(d)
    return X, np.where(scores + 0.1 * scores.std() * rng.standard_normal(n) > 0.01, 1.0, -1.0)


def narrow() -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((9000, 30)) + 0.3
    return X, X @ rng.standard_normal(30) + rng.standard_normal(9000)


@pytest.fixture(scope="module")
def texts() -> tuple[Any, Any]:
    return bag_of_words()


class CountedRows(RowsInMemory):
    """Rows that count how often all of them are read."""

    passes = 0

    def map(self, *args: Any, reads_rows: bool = True, **options: Any) -> Any:
        self.passes += reads_rows
        return super().map(*args, reads_rows=reads_rows, **options)

    def fold(self, *args: Any, **options: Any) -> Any:
        self.passes += 1
        return super().fold(*args, **options)


# ------------------------------------------------------------------- bounds

LOSSES = {
    "hinge": lambda y: losses.hinge(np.sign(y), np.full(len(y), 0.1)),
    "squared_hinge": lambda y: losses.squared_hinge(np.sign(y), np.full(len(y), 1.0)),
    "tube": lambda y: losses.epsilon_insensitive(y, np.full(len(y), 0.1), 0.2),
}


@pytest.mark.parametrize("intercept", Intercept)
@pytest.mark.parametrize("name", LOSSES)
def test_every_iterate_brackets_the_optimum(name: str, intercept: Intercept) -> None:
    X, y = narrow()
    loss: Loss = LOSSES[name](y)
    constant = 0.5 if intercept is Intercept.PENALIZED else 0.0
    problem = BlockedProblem(RowsInMemory(X, loss), intercept, constant)
    found = []
    for iterate in BlockDualCD().iterates(problem, Point()):
        found.append(iterate)
        if iterate.relative_gap < 1e-7 or len(found) > 60:
            break
    assert found[-1].relative_gap < 1e-7
    primal, dual = (
        np.array([getattr(each, side) for each in found]) for side in ("primal", "dual")
    )
    assert np.all(np.diff(primal) <= 0)
    assert np.all(np.diff(dual) >= 0)
    assert np.all(dual <= primal[-1] * (1 + 1e-12))
    for each in (found[2], found[len(found) // 2]):
        assert_bounds_are_true(problem, X, loss, each)


def assert_bounds_are_true(problem: BlockedProblem, X: Any, loss: Loss, iterate: Any) -> None:
    """Compute both bounds again, from the weights and from the duals."""
    beta, w, b, constant = np.asarray(iterate.beta), iterate.w, iterate.b, problem.constant
    own = 0.5 * float(w @ w) + (0.5 * (b / constant) ** 2 if constant else 0.0)
    assert_allclose(own + losses.values(loss, X @ w + b).sum(), iterate.primal, rtol=1e-11)
    implied = X.T @ beta
    square = float(implied @ implied) + (constant * beta.sum()) ** 2
    assert_allclose(losses.dual_value(loss, beta) - 0.5 * square, iterate.dual, rtol=1e-11)
    assert np.all((loss.low <= beta) & (beta <= loss.high))
    if problem.intercept is Intercept.FREE:
        assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()


# ------------------------------------------------------------------- wide rows


def facts(model: Any) -> tuple[Any, ...]:
    return model.coef_.tolist(), model.alpha_.tolist(), model.n_iter_, model.solver_


@pytest.mark.parametrize("order", ["random", "cyclic"])
def test_blocks_do_not_matter(texts: tuple[Any, Any], order: str) -> None:
    model = mm.LinearSVC(order=order, C=3.0, tol=1e-3)
    expected = facts(model.fit(mm.data.open(*texts, rows=1100)))
    for part, memory in ((700, 5_000_000), (6000, 12_000_000)):
        assert facts(model.fit(mm.data.open(*texts, rows=part, memory=memory))) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_have_the_same_bits(texts: tuple[Any, Any], cluster: Any, workers: int) -> None:
    model = mm.LinearSVC(tol=1e-2)
    source = mm.data.open(*texts, rows=1100)
    expected = facts(model.fit(source))
    assert facts(model.fit(source.with_options(client=cluster.ready(workers)))) == expected


def test_disk_and_memory_have_the_same_iterates(texts: tuple[Any, Any]) -> None:
    X, y = texts
    rule = HingeRule(1.0, "hinge", (1.0, 1.0), 1)
    source = mm.data.open(X, y, rows=700, memory=5_000_000)
    labels = (y > 0).astype(np.int64)
    in_memory = BlockedProblem(RowsInMemory(X, rule(labels, np.ones(N))))
    blocks = RowsOnDisk(source, survey(source))
    on_disk = BlockedProblem(blocks.with_loss(rule))
    runs = [BlockDualCD(seed=3).iterates(each, Point()) for each in (in_memory, on_disk)]
    for _ in range(6):
        one, other = (next(run) for run in runs)
        assert (one.primal, one.dual, one.b) == (other.primal, other.dual, other.b)
        assert_array_equal(one.w, other.w)
        assert_array_equal(one.beta, other.beta.array())


def test_few_passes_are_needed(texts: tuple[Any, Any]) -> None:
    X, y = texts
    counts = []
    for solver in (BlockDualCD(), Newton()):
        blocks = CountedRows(X, losses.hinge(y, np.ones(N)))
        for iterate in solver.iterates(BlockedProblem(blocks), Point()):
            if iterate.relative_gap <= 1e-3:
                break
        counts.append(blocks.passes)
    assert counts[0] < counts[1] / 2


@pytest.mark.parametrize(
    "machine",
    [
        mm.LinearSVR(C=0.01, solver="dual_cd"),
        mm.LinearSVC(C=0.01, solver="dual_cd"),
        pytest.param(mm.LinearSVC(), marks=pytest.mark.wide),  # which chooses it for texts
    ],
    ids=repr,
)
def test_it_agrees_with_memory_within_both_gaps(machine: Any, texts: tuple[Any, Any]) -> None:
    X, y = texts if machine.solver == "auto" else narrow()
    y = y if isinstance(machine, mm.LinearSVR) else np.sign(y)
    one = clone(machine).fit(X, y).certificate_
    model = machine.fit(mm.data.open(X, y, rows=1100))
    assert (model.solver_, model.status_) == ("dual_cd", Status.OPTIMAL)
    other = model.certificate_
    assert one.holds(1e-4)
    assert other.holds(1e-4)
    assert other.dual <= one.primal
    assert one.dual <= other.primal


# ------------------------------------------------------------------- going on


class KilledError(Exception):
    """Raised where a process would be killed."""


def kill_at(iteration: int) -> Any:
    def kill(progress: Any) -> None:
        if progress.iteration == iteration:
            raise KilledError

    return kill


@pytest.mark.parametrize("at", [3, 6])
def test_a_killed_fit_goes_on_from_its_checkpoint(
    texts: tuple[Any, Any], tmp_path: Path, at: int
) -> None:
    expected = mm.LinearSVC(tol=1e-3).fit(mm.data.open(*texts, rows=1100))
    assert expected.n_iter_ > at
    source = mm.data.open(*texts, rows=1100, checkpoint=tmp_path).with_options(every=2)
    with pytest.raises(KilledError):
        mm.LinearSVC(tol=1e-3, callback=kill_at(at)).fit(source)
    assert list(tmp_path.glob("*/vectors.json"))
    assert facts(mm.LinearSVC(tol=1e-3).fit(source)) == facts(expected)
    assert not list(tmp_path.glob("*/vectors.json"))


@pytest.mark.wide
def test_a_fit_killed_after_it_handed_over_goes_on_there(
    texts: tuple[Any, Any], tmp_path: Path
) -> None:
    source = mm.data.open(*texts, rows=1100, checkpoint=tmp_path).with_options(every=1)
    machine = mm.LinearSVC(C=10.0, tol=1e-5)
    with pytest.raises(KilledError):
        machine.set_params(callback=kill_at(30)).fit(source)
    model = machine.set_params(callback=None).fit(source)
    assert model.certificate_.holds(1e-5)
    assert model.n_iter_ < 40  # the descent, which took 20, is not made again
