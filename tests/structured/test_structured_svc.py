"""StructuredSVC: its optimum against independent solutions, and what its certificate refuses."""

import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import clarabel  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.certificates import certify
from maxmargin.problems.problem import Status
from maxmargin.structured.model import as_vector
from maxmargin.structured.problem import OutputDuals

TIGHT = 1e-7


def sequences(seed: int, n: int = 12, longest: int = 4) -> tuple[list[Any], list[Any]]:
    """Return noisy sequences of three states that follow each other in turn, mostly."""
    rng = np.random.default_rng(seed)
    Y = [np.cumsum(rng.random(rng.integers(1, longest + 1)) < 0.7) % 3 for _ in range(n)]
    return [np.eye(3)[y] + 0.7 * rng.standard_normal((len(y), 3)) for y in Y], Y


def classes(seed: int, n: int = 30, count: int = 3) -> tuple[Any, Any]:
    """Return overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, count, n)
    return rng.standard_normal((n, 4)) + 1.2 * np.eye(count, 4)[y], y


class Interval(mm.structured.Model):
    """A user's model: the interval of a row of numbers with the highest sum."""

    exact = True

    def features(self, x: Any, y: Any) -> Any:
        return np.array([x[y[0] : y[1]].sum(), y[1] - y[0]])

    def decode(self, x: Any, w: Any, truth: Any = None) -> Any:
        def score(y: Any) -> float:
            extra = 0.0 if truth is None else self.loss(truth, y)
            return float(w @ self.features(x, y) + extra)

        return max(self.all(x), key=score)

    def all(self, x: Any) -> list[Any]:
        return [(b, e) for b in range(len(x)) for e in range(b + 1, len(x) + 1)]

    def loss(self, y: Any, other: Any) -> float:
        return float(abs(y[0] - other[0]) + abs(y[1] - other[1]))


class Unsure(Interval):
    exact = False


class Liar(Interval):
    """Decodes only what begins at 0, and says that it is exact."""

    def all(self, x: Any) -> list[Any]:
        return [(0, e) for e in range(1, len(x) + 1)]


def intervals(seed: int, n: int = 15) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        b = int(rng.integers(0, 4))
        e = int(rng.integers(b + 1, 6))
        x = 0.8 * rng.standard_normal(6) - 1
        x[b:e] += 2
        X.append(x)
        Y.append((b, e))
    return X, Y


def all_outputs(model: Any, x: Any) -> list[Any]:
    if isinstance(model, mm.structured.Chain):
        return [np.array(path) for path in product(range(3), repeat=len(x))]
    if isinstance(model, mm.structured.Multiclass):
        return list(model.classes_)
    return Interval.all(model, x)


def optimum(model: Any, X: Any, Y: Any, cost: Any) -> float:
    """Return the optimal objective by Clarabel, with a constraint for every output."""
    rows: list[Any] = []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        for other in all_outputs(model, x):
            rows.append((i, model.loss(y, other), as_vector(model.difference(x, y, other))))
    size, n = len(rows[0][2]), len(Y)
    left = np.zeros((len(rows) + n, size + n))  # −δ·w − ξ ≤ −loss, −ξ ≤ 0
    right = np.zeros(len(rows) + n)
    for k, (i, loss, difference) in enumerate(rows):
        left[k, :size], left[k, size + i], right[k] = -difference, -1.0, -loss
    left[len(rows) :, size:] = -np.eye(n)
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    squares = sp.diags(np.r_[np.ones(size), np.zeros(n)], format="csc")
    price = np.r_[np.zeros(size), np.broadcast_to(cost, n)]
    cones = [clarabel.NonnegativeConeT(len(right))]
    found = clarabel.DefaultSolver(squares, price, sp.csc_matrix(left), right, cones, options)
    return float(found.solve().obj_val)


def again(machine: Any, *data: Any) -> Any:
    """Certify a fitted machine from its data."""
    return mm.certify(machine, *data)


CASES: dict[str, Any] = {
    "chain": (mm.structured.Chain(3, weight=[1, 2, 0.5]), sequences),
    "multiclass": (mm.structured.Multiclass([[0, 1, 3], [2, 0, 1], [1, 1, 0]]), classes),
    "interval": (Interval(), intervals),
}


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_that_of_all_constraints(name: str, C: float) -> None:
    model, make = CASES[name]
    X, Y = make(1)
    weight = np.random.default_rng(2).integers(1, 4, len(Y)).astype(float)
    machine = mm.StructuredSVC(model, C=C, tol=TIGHT).fit(X, Y, sample_weight=weight)
    expected = optimum(machine.model_, X, Y, C * weight)
    assert machine.status_ is Status.OPTIMAL
    assert machine.certificate_.holds(TIGHT)
    assert_allclose(machine.certificate_.primal, expected, rtol=1e-6)
    assert machine.certificate_.dual <= expected * (1 + 1e-8)
    assert again(machine, X, Y, weight).holds(TIGHT)
    slack = machine.slack(X, Y)
    value = 0.5 * machine.coef_ @ machine.coef_ + C * weight @ slack
    assert_allclose(value, machine.certificate_.primal, rtol=1e-12)
    held = np.zeros(len(machine.coef_))
    for i, output, alpha in zip(
        machine.support_, machine.support_outputs_, machine.dual_coef_, strict=True
    ):
        held += alpha * as_vector(machine.model_.difference(X[i], Y[i], output))
    away = np.linalg.norm(held - machine.coef_) / np.linalg.norm(machine.coef_)
    assert_allclose(away, machine.certificate_.drift, atol=1e-12)
    assert away < 1e-2


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("sparse", [False, True])
def test_classes_are_the_machine_of_crammer_and_singer(count: int, sparse: bool) -> None:
    X, y = classes(3, 60, count)
    X = sp.csr_matrix(X) if sparse else X
    names = np.array(["ant", "bee", "cat", "dog", "elk"])[y]
    machine = mm.StructuredSVC(mm.structured.Multiclass(), C=0.5, tol=TIGHT).fit(X, names)
    linear = mm.LinearSVC(multi_class="crammer_singer", intercept="none", C=0.5, tol=1e-9)
    other = linear.fit(X, names).certificate_.primal
    assert_allclose(machine.certificate_.primal, other * (0.5 if count == 2 else 1), rtol=1e-6)
    assert (machine.predict(X) == linear.predict(X)).mean() > 0.95
    assert_allclose(machine.score(X, names), (machine.predict(X) == names).mean(), rtol=1e-12)


def test_where_there_is_nothing_to_choose_zero_is_certified() -> None:
    X, Y = [np.eye(2), np.ones((3, 2))], [["a", "a"], ["a", "a", "a"]]
    machine = mm.StructuredSVC(mm.structured.Chain(), tol=0).fit(X, Y)
    assert not machine.coef_.any()
    assert machine.certificate_.holds(0)
    assert machine.score(X, Y) == 1.0


@pytest.mark.parametrize("name", ["classes", "chain"])
def test_unscaled_columns_are_solved_in_few_rounds(name: str) -> None:
    rng = np.random.default_rng(0)
    scale, n = 10.0 ** np.array([-4.0, -1.0, 0.0, 2.0, 5.0]), 24
    X: Any = (rng.normal(size=(n, 6, 5)) + 10) * scale
    model: Any
    Y: Any
    if name == "classes":
        X, Y = X[:, 0], rng.integers(0, 3, n)
        model = mm.structured.Multiclass()
    else:
        X, Y = list(X), [rng.permutation([0, 0, 0, 1, 1, 1]) for _ in range(n)]
        model = mm.structured.Chain(n_states=2)
    found = mm.StructuredSVC(model, C=1e3, tol=1e-6).fit(X, Y)
    assert found.certificate_.holds(1e-6)
    assert found.n_iter_ <= 60


def test_other_examples_are_certified_without_the_duals() -> None:
    X, Y = sequences(15)
    machine = mm.StructuredSVC(mm.structured.Chain(3)).fit(X, Y)
    longer = [np.concatenate([x, x]) for x in X], [np.concatenate([y, y]) for y in Y]
    found = again(machine, *longer)
    assert found.dual == 0.0 < found.primal
    slack = machine.slack(*longer)
    assert_allclose(found.primal, 0.5 * machine.coef_ @ machine.coef_ + slack.sum(), rtol=1e-12)


def test_scores_are_what_predictions_compare() -> None:
    X, y = classes(16)
    machine = mm.StructuredSVC(mm.structured.Multiclass()).fit(X, y)
    assert_array_equal(
        machine.classes_[machine.decision_function(X).argmax(axis=1)], machine.predict(X)
    )
    two = mm.StructuredSVC(mm.structured.Multiclass()).fit(X[y < 2], y[y < 2])
    assert_array_equal((two.decision_function(X) > 0).astype(int), two.predict(X))
    with pytest.raises(AttributeError) as absent:
        mm.StructuredSVC(mm.structured.Chain(3)).decision_function(sequences(16)[0])
    assert "Chain has no decision_function" in str(absent.value.__cause__)


@pytest.mark.full
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_many_sequences_take_few_passes(C: float) -> None:
    rng = np.random.default_rng(0)
    follows, means = rng.dirichlet(0.3 * np.ones(10), 10), rng.standard_normal((10, 16))
    Y = [rng.integers(10, size=10) for _ in range(5000)]
    for y in Y:
        for t in range(1, 10):
            y[t] = rng.choice(10, p=follows[y[t - 1]])
    X = [means[y] + 1.5 * rng.standard_normal((10, 16)) for y in Y]
    machine = mm.StructuredSVC(mm.structured.Chain(10), C=C).fit(X, Y)
    assert machine.certificate_.holds(1e-3)
    assert machine.n_iter_ <= 15


# ------------------------------------------------------------------- weights, starts, copies


@pytest.mark.parametrize("name", ["chain", "multiclass"])
def test_weights_are_repetitions_and_zero_is_absence(name: str) -> None:
    model, make = CASES[name]
    X, Y = make(7)
    weight = np.arange(len(Y)) % 3
    repeated = np.repeat(np.arange(len(Y)), weight)
    weighted = mm.StructuredSVC(model, tol=TIGHT).fit(X, Y, sample_weight=weight)
    listed = mm.StructuredSVC(model, tol=TIGHT)
    listed.fit([X[i] for i in repeated], [Y[i] for i in repeated])
    assert_allclose(weighted.certificate_.primal, listed.certificate_.primal, rtol=1e-6)
    assert (weight[weighted.support_] > 0).all()
    assert again(weighted, X, Y, weight).holds(TIGHT)


def test_a_warm_start_ends_where_a_cold_one_does() -> None:
    X, Y = sequences(8, 60)
    machine = mm.StructuredSVC(mm.structured.Chain(3), C=1.0, tol=1e-6, warm_start=True)
    passes = machine.fit(X, Y).n_iter_
    assert machine.fit(X, Y).n_iter_ < passes / 2
    machine.set_params(C=2.0).fit(X, Y)
    cold = clone(machine).set_params(warm_start=False).fit(X, Y)
    assert_allclose(machine.certificate_.primal, cold.certificate_.primal, rtol=1e-5)
    machine.fit(X[:30], Y[:30])  # of other examples: nothing to start from
    assert machine.certificate_.holds(1e-6)


def test_the_same_seed_gives_the_same_bits_and_models_travel() -> None:
    X, Y = sequences(9, 300, 6)
    first, again = (mm.StructuredSVC(mm.structured.Chain(3)).fit(X, Y) for _ in range(2))
    assert_array_equal(first.coef_, again.coef_)
    read = pickle.loads(pickle.dumps(first))
    for one, other in zip(read.predict(X), first.predict(X), strict=True):
        assert_array_equal(one, other)
    assert first.get_params()["model__n_states"] == 3
    assert clone(first).set_params(model__n_states=4).model.n_states == 4
    assert not hasattr(first.model, "classes_")
    assert "Chain(n_states=3)" in repr(first)
    assert_allclose(
        first.score(X, Y),
        1 - np.sum([np.sum(a != b) for a, b in zip(first.predict(X), Y, strict=True)])
        / np.sum([len(y) for y in Y]),
        rtol=1e-12,
    )  # fmt: skip


def test_limits_and_callbacks() -> None:
    X, Y = sequences(10, 400, 6)
    machine = mm.StructuredSVC(mm.structured.Chain(3), C=10.0, tol=1e-9, trace=True)
    seen: list[float] = []

    def enough(progress: Any) -> bool:
        seen.append(progress.iterate.relative_gap)
        return len(seen) == 3

    stopping = clone(machine).set_params(callback=enough).fit(X, Y)
    assert stopping.status_ is Status.CALLBACK
    assert len(seen) == 3 == stopping.n_iter_ == len(stopping.trace_)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clone(machine).set_params(max_iter=2).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        hurried = clone(machine).set_params(max_time=1e-6).fit(X, Y)
    assert hurried.certificate_.dual >= 0 or not np.isfinite(hurried.certificate_.dual)
    assert len(hurried.predict(X)) == len(X)


# ------------------------------------------------------------------- what is proved, and what not


def solved(model: Any, X: Any, Y: Any) -> tuple[Any, Any, Any]:
    machine = mm.StructuredSVC(model, tol=1e-6).fit(X, Y)
    problem, point, _ = machine.solution(X, Y)[0]
    return machine, problem, point


def test_corrupted_solutions_are_not_certified() -> None:
    _, problem, point = solved(mm.structured.Chain(3), *sequences(11))
    assert certify(problem, point).holds(1e-6)
    duals = point.beta
    optimal = certify(problem, point).dual
    rng = np.random.default_rng(0)
    for beta in (
        replace(duals, alpha=duals.alpha * 3),
        replace(duals, alpha=-duals.alpha),
        replace(duals, alpha=np.full(len(duals), np.nan)),
        replace(
            duals, rows=duals.rows[::-1], outputs=duals.outputs[::-1], alpha=rng.random(len(duals))
        ),
        OutputDuals.none(),
    ):
        found = certify(problem, replace(point, beta=beta))
        assert not found.holds(1e-3)
        assert found.dual <= optimal * (1 + 1e-6)  # whatever the duals: D is a lower bound
    for w in (1.1 * point.w, -point.w, point.w + 0.1):
        assert not certify(problem, replace(point, w=w)).holds(1e-3)
    assert not certify(problem, replace(point, w=np.full(len(point.w), np.nan))).holds(1e-3)


def chain_score(x: Any, path: Any, w: Any) -> Fraction:
    """Return the score of a path of three states in exact arithmetic."""
    W = [Fraction(value) for value in w.tolist()]
    d = x.shape[1]
    total: Fraction = W[3 * d + 9 + path[0]] + W[3 * d + 12 + path[-1]]
    for t, state in enumerate(path):
        total += sum(Fraction(float(x[t, j])) * W[3 * j + state] for j in range(d))
        total += W[3 * d + 3 * path[t - 1] + state] if t else 0
    return total


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("far", [1.0, 1e4])
def test_rounding_is_what_exact_arithmetic_says(seed: int, far: float) -> None:
    X, Y = sequences(seed, 6, 3)
    X = [far * (x + 1) for x in X]
    machine = mm.StructuredSVC(mm.structured.Chain(3), C=0.7, tol=1e-3).fit(X, Y)
    w, found = machine.coef_, machine.certificate_
    half, C = Fraction(1, 2), Fraction(0.7)
    primal = half * sum(Fraction(value) ** 2 for value in w.tolist())
    for x, y in zip(X, Y, strict=True):
        own = chain_score(x, y, w)
        paths = product(range(3), repeat=len(y))
        primal += C * max(
            sum(a != b for a, b in zip(path, y, strict=True)) + chain_score(x, path, w) - own
            for path in paths
        )
    implied = np.zeros(len(w), dtype=object)
    gained = Fraction(0)
    unit = np.eye(len(w))
    for i, path, alpha in zip(
        machine.support_, machine.support_outputs_, machine.dual_coef_.tolist(), strict=True
    ):
        gained += Fraction(alpha) * int((path != Y[i]).sum())
        for j, axis in enumerate(unit):
            away = chain_score(X[i], Y[i], axis) - chain_score(X[i], path, axis)
            implied[j] += Fraction(alpha) * away
    dual = gained - half * sum(value**2 for value in implied)
    off = abs(Fraction(found.primal) - primal) + abs(Fraction(found.dual) - dual)
    assert 0 < found.rounding < 1e-4
    assert off <= Fraction(found.rounding) * Fraction(found.size)


def test_without_an_exact_decoder_the_gap_is_unknown() -> None:
    X, Y = intervals(12)
    with pytest.warns(UserWarning, match="set exact = True"):
        machine = mm.StructuredSVC(Unsure(), tol=1e-6).fit(X, Y)
    found: Any = machine.certificate_
    best = mm.StructuredSVC(Interval(), tol=1e-6).fit(X, Y).certificate_
    assert machine.status_ is Status.INEXACT
    assert found.primal == found.gap == found.relative_gap == np.inf
    assert not found.holds(1.0)
    assert "unknown" in str(found)
    assert found.beaten == ()  # the decoder claims nothing
    assert_allclose(found.least_primal, best.primal, rtol=1e-5)
    assert found.dual <= best.primal * (1 + 1e-12)


def test_a_decoder_that_lies_is_found_out() -> None:
    X, Y = intervals(14)
    machine, problem, point = solved(Interval(), X, Y)
    lying = replace(problem, examples=Liar().examples(X, Y))
    found = certify(lying, point)
    assert len(found.beaten) > 0  # type: ignore[attr-defined]
    assert found.primal == np.inf
    assert "does not find the highest score, although exact = True" in str(found)
    machine.model_ = Liar()
    assert not again(machine, X, Y).holds(1.0)


def test_a_user_model_must_be_consistent() -> None:
    class Odd(Interval):
        def loss(self, y: Any, other: Any) -> float:
            return -1.0

    class Short(Interval):
        def features(self, x: Any, y: Any) -> Any:
            return np.ones(2 + (y[0] > 0))

    class Picky(Interval):
        def check(self, x: Any, y: Any = None) -> None:
            if y is not None and y[1] > 3:
                raise ValueError(f"the interval {y} ends too late")

    class Charging(Interval):
        def loss(self, y: Any, other: Any) -> float:
            return 1.0

    X, Y = [np.ones(6), np.ones(6)], [(0, 2), (1, 4)]
    with pytest.raises(ValueError, match=r"Example \d: Odd.loss gives -1"):
        mm.StructuredSVC(Odd()).fit(X, Y)
    with pytest.raises(ValueError, match=r"length|mismatch"):
        mm.StructuredSVC(Short()).fit(X, Y)
    with pytest.raises(ValueError, match="Example 1: the interval"):
        mm.StructuredSVC(Picky()).fit(X, Y)
    with pytest.raises(ValueError, match=r"Example 0: Charging.loss gives 1 for the true output"):
        mm.StructuredSVC(Charging()).fit(X, Y)
    with pytest.raises(NotImplementedError, match="must define loss"):
        mm.StructuredSVC(mm.structured.Model()).fit(X, Y)


def test_parameters_are_checked() -> None:
    X, Y = classes(15)
    with pytest.raises(TypeError, match="must be an instance of mm"):
        mm.StructuredSVC("chain").fit(X, Y)
    with pytest.raises(ValueError, match="C="):
        mm.StructuredSVC(mm.structured.Multiclass(), C=-1).fit(X, Y)
    with pytest.raises(ValueError, match="sample_weight"):
        mm.StructuredSVC(mm.structured.Multiclass()).fit(X, Y, sample_weight=[1.0])
    with pytest.raises(TypeError, match="no parameter 'loss'"):
        mm.StructuredSVC(mm.structured.Multiclass(), loss="hinge")  # type: ignore[call-arg]
