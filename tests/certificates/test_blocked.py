"""Certificates over blocks of rows: those of the same rows in memory, and true."""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.certificates import Certificate, blocked, certify, certify_with_duals
from maxmargin.certificates.blocked import best_intercept_of
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.blocked import BlockedProblem, HingeRule, TubeRule
from maxmargin.problems.duality import best_intercept, within_groups
from maxmargin.problems.problem import Intercept, LinearProblem, Point, Problem
from maxmargin.rows import blocks as blocks_of_rows
from maxmargin.rows import request
from maxmargin.rows.blocks import RowsInMemory
from maxmargin.rows.on_disk import RowsOnDisk
from maxmargin.rows.survey import survey
from maxmargin.runtime import clock

N, LEAVES = 300, 7


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut a few hundred rows into seven leaves, which threads share."""
    monkeypatch.setattr(blocks_of_rows, "_FEW_NUMBERS", 1)
    monkeypatch.setattr(blocks_of_rows, "_LEAF_ROWS", 1)
    monkeypatch.setattr(blocks_of_rows, "_FEW_LEAVES", LEAVES)
    monkeypatch.setattr(blocks_of_rows, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(request, "_LEAST_MEMORY", 1)


@pytest.fixture
def many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let best intercepts be bracketed as if rows were too many for one place."""
    monkeypatch.setattr(blocked, "_FEW", 20)


class Case:
    """Rows with losses, and a point near the optimum."""

    def __init__(
        self, rule: Any, kind: str = "float64", intercept: Intercept = Intercept.FREE,
        n: int = N, seed: int = 0,
    ) -> None:  # fmt: skip
        rng = np.random.default_rng(seed)
        X: Any = rng.standard_normal((n, 4))
        margin = X @ np.array([1.0, -0.5, 0.2, 0.0]) + 0.3 + 0.5 * rng.standard_normal(n)
        labels = margin if isinstance(rule, TubeRule) else (margin > 0).astype(np.int64)
        weight = np.where(rng.random(n) < 0.1, 0.0, rng.integers(1, 4, n)).astype(np.float64)
        if kind == "far":
            X = X + np.array([1e4, -1e6, 0.0, 3.0])
        elif kind == "sparse":
            X = sp.csr_array(np.where(rng.random(X.shape) < 0.6, X, 0.0))
        else:
            X = X.astype(kind)
        self.labels, self.weight = labels, weight
        self.loss: Loss = rule(labels, weight)
        constant = 2.0 if intercept is Intercept.PENALIZED else 0.0
        self.whole: LinearProblem = Problem.linear(X, self.loss, intercept, constant or 1.0)
        blocks = RowsInMemory(X, self.loss, threads=2)
        assert len(blocks.leaves) == min(LEAVES, n)
        self.problem = BlockedProblem(blocks, intercept, constant)
        duals = losses.best_duals(self.loss, 0.7 * margin)
        most = np.where(np.isfinite(self.loss.high), self.loss.high, 0.3)
        least = np.where(np.isfinite(self.loss.low), self.loss.low, -0.3)
        duals = np.clip(duals, least, most) * rng.choice([1.0, 1.0, 0.5], n)
        self.beta = within_groups(self.loss, duals, self.whole.groups, self.whole.totals)[0]
        self.point = self.whole.implied(self.beta, 0.25)


HINGE: Any = HingeRule(0.5, "hinge", (1.0, 2.0), 1)
SQUARED = HingeRule(0.5, "squared_hinge", (1.0, 2.0), 1)
TUBE = TubeRule(0.5, "epsilon_insensitive", 0.1)
SQUARED_TUBE = TubeRule(0.5, "squared_epsilon_insensitive", 0.1)
RULES = {"hinge": HINGE, "squared": SQUARED, "tube": TUBE, "squared tube": SQUARED_TUBE}


def assert_same(found: Certificate, expected: Certificate) -> None:
    """Assert that two certificates say the same, but for the rounding of sums."""
    size = abs(expected.primal) + abs(expected.dual)
    for name in ("primal", "dual"):
        assert abs(getattr(found, name) - getattr(expected, name)) <= 1e-14 * size, name
    for name in ("drift", "max_kkt_violation", "distance_bound", "intercept"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-13)
    assert_allclose(found.intercepts, expected.intercepts, rtol=1e-12)
    assert_allclose(found.infeasibility, expected.infeasibility, rtol=1e-12, atol=1e-15)
    assert_allclose(found.intercept_cost, expected.intercept_cost, rtol=1e-9, atol=1e-13 * size)
    assert found.rounding <= 1.5 * expected.rounding
    assert expected.rounding <= 1.5 * found.rounding
    assert found.caveat == expected.caveat


# ------------------------------------------------------------------- as in memory


@pytest.mark.parametrize("keep", [False, True], ids=["best", "own"])
@pytest.mark.parametrize("intercept", Intercept, ids=lambda intercept: intercept.value)
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "far"])
@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_it_is_the_certificate_of_the_rows_in_memory(
    rule: Any, kind: str, intercept: Intercept, keep: bool
) -> None:
    case = Case(rule, kind, intercept)
    found, duals = certify_with_duals(case.problem, case.point, keep_intercept=keep)
    assert_same(found, certify(case.whole, case.point, keep_intercept=keep))
    assert_array_equal(duals, case.beta)
    assert np.isfinite(found.dual)


@pytest.mark.usefixtures("many_rows")
@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
@pytest.mark.parametrize("kind", ["float64", "far"])
def test_it_is_the_same_if_no_place_holds_all_kinks(rule: Any, kind: str) -> None:
    case = Case(rule, kind)
    assert_same(certify(case.problem, case.point), certify(case.whole, case.point))


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_leaves_and_threads_change_nothing(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Case(rule)
    several = certify(one.problem, one.point)
    two = Case(rule)
    blocks = RowsInMemory(two.whole.features.X, two.loss, threads=1)
    assert certify(dataclasses.replace(two.problem, blocks=blocks), two.point) == several
    monkeypatch.setattr(blocks_of_rows, "_FEW_LEAVES", 1)
    blocks = RowsInMemory(one.whole.features.X, one.loss)
    single = certify(dataclasses.replace(one.problem, blocks=blocks), one.point)
    # Shorter sums have smaller bounds.
    assert_same(dataclasses.replace(single, rounding=several.rounding), several)
    assert single == certify(one.whole, one.point)  # to the bit


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_few_rows(n: int) -> None:
    case = Case(TUBE, n=n, seed=3)
    assert_same(certify(case.problem, case.point), certify(case.whole, case.point))


# ------------------------------------------------------------------- rows on disk


def on_disk(case: Case, rule: Any, memory: int | None = None) -> RowsOnDisk:
    """Return the rows of a case as a source has them, in parts that are no leaves."""
    targets = isinstance(rule, TubeRule)
    X, y, weight = case.whole.features.X, case.labels, case.weight
    source = mm.data.open(X, y, weight=weight, rows=37, memory=memory)
    return RowsOnDisk(source, survey(source, targets=targets), regression=targets, threads=2)


@pytest.mark.parametrize("few", [1 << 18, 20], ids=["few rows", "many rows"])
@pytest.mark.parametrize("intercept", Intercept, ids=lambda intercept: intercept.value)
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "far"])
@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_rows_on_disk_have_the_same_certificate_to_the_bit(
    rule: Any, kind: str, intercept: Intercept, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocked, "_FEW", few)
    case = Case(rule, kind, intercept)
    expected = certify(case.problem, case.point)
    rows = on_disk(case, rule, memory=40_000)
    blocks = rows.with_loss(rule)
    assert len(blocks.edges) > 3  # several blocks
    blocks.put("beta", case.beta)
    point = dataclasses.replace(case.point, beta=blocks.vector("beta"))
    problem = dataclasses.replace(case.problem, blocks=blocks)
    before = blocks.passes
    found, duals = certify_with_duals(problem, point)
    far = kind == "far" and intercept is Intercept.FREE
    assert blocks.passes == before + 1 + far
    assert found == expected
    assert_array_equal(np.asarray(duals), case.beta)
    assert_array_equal(blocks.vector("score"), case.problem.blocks.vector("score"))


def test_duals_on_disk_are_mended_in_a_vector_of_their_own() -> None:
    case = Case(HINGE)
    given = CHANGES["shifted"](case.beta)
    expected, beta = certify_with_duals(case.problem, dataclasses.replace(case.point, beta=given))
    rows = on_disk(case, HINGE, memory=40_000)
    blocks = rows.with_loss(HINGE)
    blocks.put("beta", given)
    handle = blocks.vector("beta")
    problem = dataclasses.replace(case.problem, blocks=blocks)
    found, duals = certify_with_duals(problem, dataclasses.replace(case.point, beta=handle))
    assert found == expected
    assert_array_equal(np.asarray(duals), beta)
    assert_array_equal(np.asarray(handle), given)


# ------------------------------------------------------------------- duals made feasible

Change = Callable[[Floats], Floats]


def _one_not_a_number(beta: Floats) -> Floats:
    beta = beta.copy()
    beta[5] = np.nan
    return beta


CHANGES: dict[str, Change] = {
    "unbalanced": lambda beta: np.where(beta > 0, 1.2, 1.0) * beta,
    "unbalanced below": lambda beta: np.where(beta < 0, 1.2, 1.0) * beta,
    "outside": lambda beta: 3.0 * beta,
    "of the other sign": lambda beta: -beta,
    "shifted": lambda beta: beta + 0.01,
    "one side alone": lambda beta: np.maximum(beta, 0.0),
    "none": np.zeros_like,
    "off by rounding": lambda beta: beta * (1 + 1e-15 * np.cos(np.arange(len(beta)))),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
@pytest.mark.parametrize("intercept", Intercept, ids=lambda intercept: intercept.value)
def test_infeasible_duals_are_mended_as_in_memory(
    rule: Any, intercept: Intercept, change: Change
) -> None:
    case = Case(rule, intercept=intercept)
    point = dataclasses.replace(case.point, beta=change(case.beta))
    given = point.beta.copy()
    found, duals = certify_with_duals(case.problem, point)
    expected, beta = certify_with_duals(case.whole, point)
    assert_same(found, expected)
    assert_allclose(duals, beta, rtol=1e-14)
    assert_array_equal(point.beta, given)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_duals_that_are_no_numbers_prove_nothing_false() -> None:
    case = Case(HINGE)
    point = dataclasses.replace(case.point, beta=_one_not_a_number(case.beta))
    found, duals = certify_with_duals(case.problem, point)
    assert np.isfinite(duals).all()
    assert found.dual <= found.primal


# ------------------------------------------------------------------- true in exact arithmetic


def exactly(case: Case, point: Point, duals: Floats, b: float) -> tuple[Fraction, Fraction]:
    """Return the primal objective, and the dual one of duals whose sum is mended, exactly."""
    X = case.whole.features.X
    rows = [[Fraction(float(x)) for x in row] for row in (X.toarray() if sp.issparse(X) else X)]
    w, loss = [Fraction(float(each)) for each in point.w], case.loss
    own = Fraction(b) / Fraction(2) if case.whole.intercept is Intercept.PENALIZED else Fraction(0)
    primal, dual = (sum(each * each for each in w) + own * own) / 2, Fraction(0)
    beta = [Fraction(float(each)) for each in duals]
    if case.whole.intercept is Intercept.FREE:
        beta = balanced(beta)
    eps = Fraction(loss.epsilon)
    for k, row in enumerate(rows):
        score = sum((a * x for a, x in zip(w, row, strict=True)), Fraction(b))
        residual, q = Fraction(float(loss.target[k])) - score, Fraction(float(loss.quadratic[k]))
        primal += side(residual - eps, loss.high[k], q) + side(-residual - eps, -loss.low[k], q)
        assert loss.low[k] <= beta[k] <= loss.high[k]
        dual += Fraction(float(loss.target[k])) * beta[k] - eps * abs(beta[k])
        dual -= q * beta[k] * beta[k] / 2
    columns = zip(*rows, strict=True)
    implied = [sum(x * each for x, each in zip(column, beta, strict=True)) for column in columns]
    if case.whole.intercept is Intercept.PENALIZED:
        implied.append(2 * sum(beta))
    return primal, dual - sum(each * each for each in implied) / 2


def balanced(beta: list[Fraction]) -> list[Fraction]:
    """Return duals with the heavier side scaled down until their sum is 0."""
    up = sum((each for each in beta if each > 0), Fraction(0))
    down = -sum((each for each in beta if each < 0), Fraction(0))
    if up == down:
        return beta
    ratio = min(up, down) / max(up, down)
    return [each * ratio if (each > 0) == (up > down) else each for each in beta]


def side(excess: Fraction, bound: float, quadratic: Fraction) -> Fraction:
    """Return the loss on one side."""
    if excess <= 0 or bound <= 0:
        return Fraction(0)
    if not quadratic:
        return Fraction(float(bound)) * excess
    beta = excess / quadratic
    if math.isfinite(bound):
        beta = min(beta, Fraction(float(bound)))
    return beta * (excess - quadratic * beta / 2)


@pytest.mark.parametrize("change", ["unbalanced", "outside", "off by rounding"])
@pytest.mark.parametrize("intercept", Intercept, ids=lambda intercept: intercept.value)
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "far"])
@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_bounds_are_true_in_exact_arithmetic(
    rule: Any, kind: str, intercept: Intercept, change: str
) -> None:
    case = Case(rule, kind, intercept, n=60, seed=1)
    point = dataclasses.replace(case.point, beta=CHANGES[change](case.beta))
    found, duals = certify_with_duals(case.problem, point)
    b = found.intercept if intercept is not Intercept.NONE else 0.0
    primal, dual = exactly(case, point, duals, b)
    off = abs(primal - Fraction(found.primal)) + abs(dual - Fraction(found.dual))
    assert off <= Fraction(found.rounding) * Fraction(found.size)
    assert found.rounding < 1e-8


# ------------------------------------------------------------------- the best intercept


def both(loss: Loss, scores: Floats, near: float) -> tuple[float, float]:
    """Return the best intercept over blocks and in memory."""
    blocks = RowsInMemory(scores[:, None], loss)
    blocks.put("score", scores)
    return best_intercept_of(blocks, near), best_intercept(loss, scores, near)


@pytest.mark.usefixtures("many_rows")
@pytest.mark.parametrize("near", [0.0, 0.3, -2.0, 1e3, -1e6])
@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_the_best_intercept_is_that_of_all_kinks(rule: Any, near: float) -> None:
    for seed in range(10):
        case = Case(rule, seed=seed)
        scores = case.whole.products(case.point.w)
        found, _ = both(case.loss, scores, near)
        # In memory, what is looked for from afar is found to fewer digits.
        expected = best_intercept(case.loss, scores, min(max(near, -2.0), 2.0))
        assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.usefixtures("many_rows")
@pytest.mark.parametrize("near", [0.0, 0.25, -7.0])
@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_kinks_may_all_be_the_same(rule: Any, near: float) -> None:
    labels = np.repeat([0, 1], [100, 200])
    loss = rule(labels, np.ones(300))
    found, expected = both(loss, np.zeros(300), near)
    assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.usefixtures("many_rows")
@pytest.mark.parametrize("near", [0.0, 30.0])
@pytest.mark.parametrize("ones", [0, 300])
def test_one_class_alone_has_many_best_intercepts(ones: int, near: float) -> None:
    rng = np.random.default_rng(0)
    loss = HINGE(np.repeat([0, 1], [300 - ones, ones]), np.ones(300))
    scores = rng.standard_normal(300)
    found, _ = both(loss, scores, near)
    assert losses.values(loss, scores + found).sum() == 0


@pytest.mark.usefixtures("many_rows")
@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_few_kinks_are_gathered_although_some_are_far_away(
    rule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, gathered = Case(rule), []
    scores = case.whole.products(case.point.w)
    scores[:2] = 1e7, -1e9
    between = blocked._best_between

    def counted(*args: Any) -> float:
        gathered.append(len(args[-1].kink))
        return between(*args)

    monkeypatch.setattr(blocked, "_best_between", counted)
    for near in (0.0, 1e3, -1e6):
        found, _ = both(case.loss, scores, near)
        assert_allclose(found, best_intercept(case.loss, scores, 0.0), rtol=1e-12, atol=1e-13)
    assert max(gathered) <= 20


@pytest.mark.usefixtures("many_rows")
def test_the_middle_of_a_flat_is_taken() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.uniform(-3, -1.2, 150), rng.uniform(1.4, 3, 150)])
    loss = HINGE(np.repeat([0, 1], 150), np.ones(300))
    found, expected = both(loss, scores, 0.01)
    assert found == expected
    assert losses.values(loss, scores + found).sum() == 0


def test_it_stops_when_time_is_up() -> None:
    case = Case(HINGE)
    with clock.limited(0.0), pytest.raises(clock.OutOfTimeError):
        certify(case.problem, case.point)
