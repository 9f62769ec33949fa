"""Kernel machines on rows in blocks: the machine in memory, its certificate, and the same bits."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import maxmargin as mm
from maxmargin.certificates import certify
from maxmargin.errors import DataFileError
from maxmargin.kernels import RBF, Laplacian, Polynomial
from maxmargin.problems.blocked import HingeRule
from maxmargin.problems.blocked_kernel import BlockedKernelProblem, SupportDuals
from maxmargin.problems.problem import Intercept, Point, Status
from maxmargin.rows.blocks import RowsInMemory
from maxmargin.solve import Budget, Settings, solve
from maxmargin.solvers.blocked_decomposition import BlockedDecomposition, Violators, worst_of

N, D = 8000, 40
TIGHT = 6_200_000  # bytes: less than twice what the rows take, so that they are read in blocks


def make_rows(n: int = N, d: int = D, seed: int = 0) -> tuple[Any, Any]:
    """Return rows of two classes that few support vectors tell apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 4:] *= 0.05
    return X, np.where(X[:, 0] + X[:, 1] * X[:, 3] > 0, "yes", "no")


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    return make_rows()


@pytest.fixture(scope="module")
def in_memory(rows: tuple[Any, Any]) -> Any:
    return mm.SVC(C=10.0).fit(*rows)


@pytest.fixture(scope="module")
def in_blocks(rows: tuple[Any, Any]) -> Any:
    X, y = rows
    return mm.SVC(C=10.0).fit(mm.data.open(X, y, memory=TIGHT))


def agree(one: Any, other: Any) -> bool:
    """Return whether either objective is within what both certificates leave open."""
    left = one.certificate_.proved_gap + other.certificate_.proved_gap
    return bool(abs(one.certificate_.primal - other.certificate_.primal) <= left)


def prove(model: Any, X: Any, y: Any = None) -> mm.Certificate:
    """Return the certificate of a model on rows, or on a source."""
    found = mm.certify(model, X, y)
    assert isinstance(found, mm.Certificate)
    return found


# ------------------------------------------------------------------- SVC


def test_blocks_give_the_machine_of_the_rows_in_memory(
    rows: tuple[Any, Any], in_memory: Any, in_blocks: Any
) -> None:
    X, _ = rows
    assert in_blocks.solver_ == "working_set"
    assert in_blocks.status_ is Status.OPTIMAL
    assert in_blocks.certificate_.holds(1e-4)
    assert agree(in_memory, in_blocks)
    assert in_blocks.kernel_.gamma == pytest.approx(in_memory.kernel_.gamma, rel=1e-13)
    assert in_blocks.shape_fit_ == X.shape
    assert in_blocks.alpha_.shape == (N,)
    assert (in_blocks.predict(X) == in_memory.predict(X)).all()
    np.testing.assert_array_equal(in_blocks.support_vectors_, X[in_blocks.support_])
    np.testing.assert_allclose(in_blocks.alpha_ + in_blocks.bound_multiplier_, 10.0)


def test_the_certificate_is_that_of_the_rows_in_memory(
    rows: tuple[Any, Any], in_blocks: Any
) -> None:
    X, y = rows
    blocks, memory = in_blocks.certificate_, prove(in_blocks, X, y)
    assert blocks.primal == pytest.approx(memory.primal, rel=1e-11)
    assert blocks.dual == pytest.approx(memory.dual, rel=1e-11)
    assert blocks.intercept == pytest.approx(memory.intercept, abs=1e-9)
    assert blocks.max_kkt_violation == pytest.approx(memory.max_kkt_violation, abs=1e-9)
    assert 0 < blocks.rounding < 1e-8
    again = prove(in_blocks, mm.data.open(X, y, memory=TIGHT))
    assert again.primal == pytest.approx(blocks.primal, rel=1e-12)
    assert again.dual == pytest.approx(blocks.dual, rel=1e-12)


def test_predictions_are_made_by_parts(rows: tuple[Any, Any], in_blocks: Any) -> None:
    X, y = rows
    source = mm.data.open(X, y, rows=777)
    assert (in_blocks.predict(source) == in_blocks.predict(X)).all()
    scores = in_blocks.decision_function(source)
    np.testing.assert_allclose(scores, in_blocks.decision_function(X), atol=1e-10)


def test_columns_keep_their_names(rows: tuple[Any, Any]) -> None:
    pd = pytest.importorskip("pandas")
    X, y = rows
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)])
    source = mm.data.open(frame.assign(label=y), label="label", memory=TIGHT)
    model = mm.SVC(C=10.0, gamma=0.5).fit(source)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert (model.predict(source) == model.predict(frame)).all()
    other = frame.rename(columns={"x3": "z"}).assign(label=y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(mm.data.open(other, label="label"))


def test_rows_that_fit_are_fitted_in_memory(rows: tuple[Any, Any], in_memory: Any) -> None:
    X, y = rows
    model = mm.SVC(C=10.0).fit(mm.data.open(X, y, rows=999))
    np.testing.assert_array_equal(model.dual_coef_, in_memory.dual_coef_)
    np.testing.assert_array_equal(model.intercept_, in_memory.intercept_)
    few = mm.data.open(X[:500], X[:500, 0])
    assert mm.SVR(gamma=0.5).fit(few).status_ is Status.OPTIMAL


@pytest.mark.wide
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_several_classes(rows: tuple[Any, Any], scheme: str) -> None:
    X, y = rows
    y = np.where(X[:, 2] > 1, "third", y)
    asked = mm.SVC(C=3.0, gamma=0.5, multi_class=scheme, class_weight={"third": 2.0})
    one, other = clone(asked).fit(X, y), clone(asked).fit(mm.data.open(X, y, memory=TIGHT))
    assert other.status_ is Status.OPTIMAL
    assert agree(one, other)
    assert len(other.certificate_.parts) == 3
    assert np.mean(one.predict(X) == other.predict(X)) > 0.999
    assert prove(other, X, y).primal == pytest.approx(other.certificate_.primal, rel=1e-9)


def test_weights_count_as_in_memory(rows: tuple[Any, Any]) -> None:
    X, y = rows
    weight = np.random.default_rng(1).integers(0, 3, N).astype(float)
    asked = mm.SVC(C=2.0, fit_intercept=False)
    one = clone(asked).fit(X, y, weight)
    other = clone(asked).fit(mm.data.open(X, y, weight=weight, memory=TIGHT))
    assert other.kernel_.gamma == pytest.approx(one.kernel_.gamma, rel=1e-13)
    assert agree(one, other)
    assert (weight[other.support_] > 0).all()


@pytest.mark.wide
def test_sparse_rows_and_float32() -> None:
    X, y = make_rows(n=4000)
    thin = sp.csr_array(np.where(np.abs(X) > 0.03, X, 0.0))
    for given in (thin, X.astype(np.float32)):
        one = mm.SVC(C=3.0, gamma=0.5).fit(given, y)
        other = solved_on(RowsInMemory(given), y, RBF(0.5), 3.0)
        left = one.certificate_.proved_gap + other.certificate.proved_gap
        assert other.certificate.holds(1e-4)
        assert abs(one.certificate_.primal - other.certificate.primal) <= left


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"probability": True}, "probability=True"),
        ({"kernel": "precomputed"}, "kernel='precomputed'"),
        ({"kernel": "linear"}, "LinearSVC"),
        ({"warm_start": True}, "warm_start=True"),
    ],
)
def test_what_needs_all_rows_is_refused_by_name(
    rows: tuple[Any, Any], asked: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        mm.SVC(**asked).fit(mm.data.open(*rows, memory=TIGHT))
    with pytest.raises(ValueError, match="NuSVC needs all rows in memory"):
        mm.NuSVC().fit(mm.data.open(*rows, memory=TIGHT))


def test_support_vectors_must_fit(rows: tuple[Any, Any]) -> None:
    X, _ = rows
    y = np.random.default_rng(0).integers(0, 2, N)  # nothing to learn: all rows are needed
    with pytest.raises(ValueError, match="support vectors found so far fill the"):
        mm.SVC(gamma=20.0).fit(mm.data.open(X, y, memory=TIGHT))


# ------------------------------------------------------------------- the solver


def stated_on(blocks: Any, y: Any, kernel: Any, C: float, free: bool = True) -> Any:
    labels = np.asarray(y == "yes").astype(np.int64)
    blocks.loss = HingeRule(C, "hinge", (1.0, 1.0), 1, 0)(labels, np.ones(len(labels)))
    return BlockedKernelProblem(blocks, kernel, Intercept.FREE if free else Intercept.NONE)


def solved_on(blocks: Any, y: Any, kernel: Any, C: float, free: bool = True) -> Any:
    problem = stated_on(blocks, y, kernel, C, free)
    return solve(problem, Settings(), Budget(None), Point())


@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.2), Polynomial(2, 0.5, 1.0)], ids=str)
@pytest.mark.parametrize("free", [True, False])
def test_the_gap_closes(kernel: Any, free: bool) -> None:
    X, y = make_rows(n=4000, d=10)
    found = solved_on(RowsInMemory(X), y, kernel, 1.0, free)
    assert found.status is Status.OPTIMAL
    assert found.certificate.holds(1e-4)
    assert found.iterations <= 12


def test_classes_that_the_sample_misses_are_found() -> None:
    X, _ = make_rows(n=6000, d=5)
    y = np.full(6000, "no", dtype="<U3")
    y[-3:] = "yes"
    found = solved_on(RowsInMemory(X), y, RBF(0.5), 10.0)
    assert found.certificate.holds(1e-4)
    assert set(found.point.beta.rows) & {5997, 5998, 5999}


def test_forged_duals_prove_little() -> None:
    X, y = make_rows(n=3000, d=10)
    problem = stated_on(RowsInMemory(X), y, RBF(0.3), 1.0)
    found = solve(problem, Settings(), Budget(None), Point())
    beta, b = found.point.beta, found.point.b
    doubled = SupportDuals(beta.rows, 2 * beta.values)
    assert certify(problem, Point(doubled.values, b, doubled)).infeasibility > 0.1
    turned = SupportDuals(beta.rows, beta.values[::-1].copy())
    assert not certify(problem, Point(turned.values, b, turned)).holds(1e-2)
    nothing = SupportDuals(np.zeros(0, np.int64), np.zeros(0))
    empty = certify(problem, Point(np.zeros(0), 0.0, nothing))
    assert empty.dual == 0.0
    assert empty.primal == pytest.approx(2 * min(np.sum(y == "yes"), np.sum(y == "no")))


def test_far_intercepts_cost_digits_but_no_truth() -> None:
    X, y = make_rows(n=5000, d=10)
    problem = stated_on(RowsInMemory(X), y, RBF(0.3), 1.0)
    point = solve(problem, Settings(), Budget(None), Point()).point
    near, far = (certify(problem, replace(point, b=b)) for b in (point.b, 50.0))
    assert far.primal == pytest.approx(near.primal, rel=1e-5)
    assert far.dual == near.dual
    assert near.rounding <= far.rounding < 1e-3
    kept = certify(problem, replace(point, b=50.0), keep_intercept=True)
    assert kept.primal > 10 * near.primal


def test_limits_end_a_fit_with_what_was_reached(rows: tuple[Any, Any]) -> None:
    X, y = rows
    source = mm.data.open(X, y, memory=TIGHT)
    with pytest.warns(match="max_iter"):
        model = mm.SVC(C=10.0, max_iter=1).fit(source)
    assert model.status_ is Status.MAX_ITER
    assert not model.certificate_.holds(1e-4)
    assert model.certificate_.dual <= model.certificate_.primal
    stopped = mm.SVC(C=10.0, callback=lambda progress: True).fit(source)
    assert stopped.status_ is Status.CALLBACK
    assert stopped.n_iter_[0] == 1


def test_a_working_set_lets_go_of_idle_rows_if_memory_is_short() -> None:
    X, y = make_rows(n=6000, d=10)
    problem = stated_on(RowsInMemory(X), y, RBF(0.3), 10.0)
    free = solve(problem, Settings(), Budget(None), Point())
    enough = (len(free.point.beta.rows) + 600) * (80 + 64)
    small = replace(problem, memory=enough)
    steps = BlockedDecomposition(1e-4, sample=400).iterates(small, Point())
    last = next(it for it in steps if it.finished and it.relative_gap <= 1e-4)
    assert last.dual <= free.certificate.primal * (1 + 1e-6)


def test_violators_are_merged_whatever_the_leaves() -> None:
    violation = np.array([0.5, 2.0, 2.0, 0.1, 2.0])
    assert worst_of(violation, 2).tolist() == [1, 2]
    X = np.arange(5.0)[:, np.newaxis]
    loss = HingeRule(1.0, "hinge", (1.0, 1.0), 1, 0)(np.ones(5, np.int64), np.ones(5))
    all_of = Violators(3, violation, np.arange(5), X, loss)
    for cut in range(6):
        merged = all_of.take(np.arange(cut)).plus(all_of.take(np.arange(cut, 5)))
        assert merged.rows.tolist() == [1, 2, 4]
        assert merged.X.ravel().tolist() == [1.0, 2.0, 4.0]


# ------------------------------------------------------------------- equal bits


def test_disk_and_cluster_have_equal_bits(rows: tuple[Any, Any], cluster: Any) -> None:
    X, y = rows
    asked = mm.SVC(C=10.0)
    disk = [
        clone(asked).fit(mm.data.open(X, y, memory=memory, rows=part))
        for memory, part in ((TIGHT, 900), (4_400_000, 2100))
    ]
    remote = clone(asked).fit(mm.data.open(X, y, client=cluster.ready(2), rows=1000))
    for model in (disk[1], remote):
        assert model.kernel_.gamma == disk[0].kernel_.gamma
        np.testing.assert_array_equal(model.support_, disk[0].support_)
        np.testing.assert_array_equal(model.dual_coef_, disk[0].dual_coef_)
        assert model.intercept_ == disk[0].intercept_
        assert model.certificate_ == disk[0].certificate_


def test_a_killed_worker_changes_no_bit(
    rows: tuple[Any, Any], in_blocks: Any, cluster: Any
) -> None:
    X, y = rows

    def kill(progress: Any) -> None:
        if progress.iteration == 2:
            cluster.kill_worker()
            cluster.start_worker()

    model = mm.SVC(C=10.0, callback=kill)
    model.fit(mm.data.open(X, y, client=cluster.ready(2), rows=1000))
    np.testing.assert_array_equal(model.dual_coef_, in_blocks.dual_coef_)
    assert model.certificate_ == in_blocks.certificate_


def test_blocks_in_memory_have_the_bits_of_those_on_disk(rows: tuple[Any, Any]) -> None:
    X, y = rows
    model = mm.SVC(C=10.0, kernel=RBF(0.1)).fit(mm.data.open(X, y, memory=TIGHT))
    found = solved_on(RowsInMemory(X), y, RBF(0.1), 10.0)
    beta, order = found.point.beta, np.argsort(model.support_)
    np.testing.assert_array_equal(model.support_[order], beta.rows)
    np.testing.assert_array_equal(model.dual_coef_[0, order], beta.values)
    assert model.certificate_.primal == found.certificate.primal


# ------------------------------------------------------------------- checkpoints


class KilledError(Exception):
    """Stands for the end of a process in the middle of a fit."""


def test_a_fit_goes_on_from_its_checkpoint_to_the_same_bits(
    rows: tuple[Any, Any], in_blocks: Any, tmp_path: Path
) -> None:
    X, y = rows
    source = mm.data.open(X, y, memory=TIGHT, checkpoint=tmp_path)

    def die(progress: Any) -> None:
        if progress.iteration == 3:
            raise KilledError

    with pytest.raises(KilledError):
        mm.SVC(C=10.0, callback=die).fit(source)
    assert (tmp_path / "problem-0" / "working-set.npz").exists()
    model = mm.SVC(C=10.0).fit(source)
    np.testing.assert_array_equal(model.n_iter_, in_blocks.n_iter_)
    np.testing.assert_array_equal(model.dual_coef_, in_blocks.dual_coef_)
    assert model.certificate_ == in_blocks.certificate_
    assert not list(tmp_path.iterdir())


def test_checkpoints_of_other_fits_are_not_used(rows: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = rows
    source = mm.data.open(X, y, memory=TIGHT, checkpoint=tmp_path)

    def die(progress: Any) -> None:
        if progress.iteration == 2:
            raise KilledError

    with pytest.raises(KilledError):
        mm.SVC(C=10.0, gamma=0.5, callback=die).fit(source)
    file = tmp_path / "problem-0" / "working-set.npz"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataFileError, match="this checkpoint cannot be read"):
        mm.SVC(C=10.0, gamma=0.5).fit(source)
    file.unlink()
    with pytest.raises(KilledError):
        mm.SVC(C=10.0, gamma=0.5, callback=die).fit(source)
    with pytest.raises(ValueError, match="holds a fit that was not finished"):
        mm.SVC(C=3.0, gamma=0.5).fit(source)


# ------------------------------------------------------------------- feature maps

MAPS = [
    mm.Nystroem(n_components=40, error_rows=900),
    mm.Nystroem(n_components=30, landmarks="leverage", gamma=0.4),
    mm.Nystroem(n_components=20, landmarks="kmeans", gamma=0.4),
]


@pytest.mark.wide
@pytest.mark.parametrize("phi", MAPS, ids=str)
@pytest.mark.parametrize("form", ["dense", "float32", "csr"])
def test_maps_of_sources_are_those_of_rows(rows: tuple[Any, Any], phi: Any, form: str) -> None:
    X, y = rows
    X = {"dense": X, "float32": X.astype(np.float32), "csr": sp.csr_array(X * (X > -1))}[form]
    source = mm.data.open(X, y, memory=12_000_000, rows=1500)
    one, other = clone(phi).fit(X), clone(phi).fit(source)
    assert other.n_features_in_ == D
    assert other.kernel_.gamma == pytest.approx(one.kernel_.gamma, rel=1e-13)
    assert other.error_bound_ == pytest.approx(one.error_bound_, rel=1e-6)
    np.testing.assert_array_equal(one.landmark_indices_, other.landmark_indices_)
    view = other.transform(source)
    assert view.shape == (N, one.n_components_)
    found = np.concatenate([part.X for part in view])
    np.testing.assert_allclose(found, one.transform(X), atol=1e-3 if form == "float32" else 1e-9)


def test_a_map_and_a_linear_machine_by_blocks(rows: tuple[Any, Any]) -> None:
    X, y = rows
    route = make_pipeline(mm.Nystroem(gamma=0.5, n_components=50), mm.LinearSVC())
    source = mm.data.open(X, y, memory=12_000_000)
    one, other = clone(route).fit(X, y), clone(route).fit(source)
    np.testing.assert_allclose(one[-1].coef_, other[-1].coef_, rtol=1e-10, atol=1e-10)
    assert other[-1].certificate_.holds(1e-4)
    assert (one.predict(X) == other.predict(source)).all()
    phi = other[0]
    same = mm.LinearSVC().fit(source.mapped(phi))
    np.testing.assert_array_equal(same.coef_, other[-1].coef_)


def test_what_maps_cannot_learn_from_a_source_is_refused(rows: tuple[Any, Any]) -> None:
    source = mm.data.open(*rows)
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        mm.Nystroem("precomputed").fit(source)
    huge = mm.data.open(np.array([[1.0], [1e200]]), ["a", "b"])
    with pytest.raises(ValueError, match="Column 0 of X reaches 1e\\+200"):
        mm.Nystroem().fit(huge)
