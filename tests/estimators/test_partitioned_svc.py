"""Machines on cells: each is exact, one cell is SVC itself, and borders are soft."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.estimators.partitioned import cell_machine, partitioned_svc
from maxmargin.estimators.partitioned.cell_machine import (
    CellCandidates,
    CellTask,
    choose,
    split_folds,
)
from maxmargin.problems.problem import Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 3))
F = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * RNG.normal(size=1200)
Y = np.where(F > 0, "yes", "no")
THREE = np.digitize(F, [-0.5, 0.5])
NEW = RNG.normal(size=(500, 3))


@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    "rows", [X, X.astype(np.float32), sp.csr_array(X)], ids=["64", "32", "csr"]
)
def test_one_cell_is_svc(rows: Any, y: Any) -> None:
    weight = RNG.integers(0, 3, len(y)) + 0.5
    given: dict[str, Any] = {"C": 3.0, "class_weight": "balanced"}
    model = mm.PartitionedSVC(**given).fit(rows, y, weight)
    whole = mm.SVC(**given).fit(rows, y, weight)
    assert model.n_cells_ == 1
    assert np.array_equal(model.decision_function(NEW), whole.decision_function(NEW))
    assert np.array_equal(model.predict(NEW), whole.predict(NEW))
    assert model.certificate_ == whole.certificate_


def test_each_cell_is_solved_and_the_sum_says_what_it_is_about() -> None:
    model = mm.PartitionedSVC(size=150).fit(X, Y)
    assert model.n_cells_ > 4
    assert model.status_ is Status.OPTIMAL
    assert len(model.certificates_) == len(model.machines_) == model.n_cells_
    assert all(each.holds(1e-4) for each in model.certificates_)
    total = model.certificate_
    assert total.primal == pytest.approx(sum(each.primal for each in model.certificates_))
    assert "not about one machine on all rows" in str(total)
    again: Any = mm.certify(model, X, Y)
    assert again.primal == pytest.approx(total.primal, rel=1e-4)
    assert again.holds(1.1e-4)
    with pytest.raises(ValueError, match="not the rows"):
        mm.certify(model, X[::2], Y[::2])


def test_without_overlap_a_cell_is_svc_on_its_rows() -> None:
    model = mm.PartitionedSVC(size=200, overlap=0.0, C=5.0).fit(X, Y)
    own, new = model.cell_of(X), model.cell_of(NEW)
    assert np.array_equal(np.bincount(own), model.cell_sizes_)
    for cell in range(model.n_cells_):
        alone = mm.SVC(C=5.0).fit(X[own == cell], Y[own == cell])
        rows = NEW[new == cell]
        assert np.allclose(model.decision_function(rows), alone.decision_function(rows), atol=1e-8)


def test_scores_hardly_jump_at_soft_borders() -> None:
    line = np.linspace(-1.5, 1.5, 4001)[:, np.newaxis] * [1.0, 0.3, 0.2]

    def jump(overlap: float) -> float:
        model = mm.PartitionedSVC(size=150, overlap=overlap, gamma=0.3).fit(X, Y)
        assert len(np.unique(model.cell_of(line))) > 2
        return float(np.abs(np.diff(model.decision_function(line))).max())

    assert jump(0.5) < 0.25 * jump(0.0)


def test_neither_threads_nor_the_order_of_rows_change_what_is_predicted() -> None:
    order = RNG.permutation(len(X))
    settings: dict[str, Any] = {
        "size": 200,
        "C": [1.0, 10.0],
        "tol": 1e-8,
        "random_state": 3,
    }
    one = mm.PartitionedSVC(n_jobs=1, **settings).fit(X, Y)
    two = mm.PartitionedSVC(n_jobs=2, **settings).fit(X, Y)
    assert np.array_equal(one.decision_function(NEW), two.decision_function(NEW))
    first, other = (
        mm.PartitionedSVC(**{**settings, "C": 10.0}).fit(X[rows], Y[rows])
        for rows in (np.arange(len(X)), order)
    )
    assert np.allclose(first.decision_function(NEW), other.decision_function(NEW), atol=1e-4)


def test_cells_of_one_class_need_no_machine() -> None:
    apart = np.vstack([X[:300], X[:300] + 50, X[:300] + 100])
    y = np.repeat(["a", "b", "c"], 300)
    model = mm.PartitionedSVC(size=150, overlap=0.0).fit(apart, y)
    assert model.machines_.count(None) == model.n_cells_
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.gap == 0
    assert np.array_equal(model.predict(apart), y)
    two = mm.PartitionedSVC(size=150, overlap=0.0).fit(apart[:600], y[:600])
    assert np.array_equal(np.abs(two.decision_function(apart)), np.ones(900))
    with pytest.raises(ValueError, match="No cell has a machine"):
        mm.certify(model, apart, y)


def test_a_class_that_a_cell_has_not_loses_there() -> None:
    y = np.where(X[:, 0] > 1.5, 2, (F > 0).astype(int))
    model = mm.PartitionedSVC(size=150, overlap=0.1).fit(X, y)
    sizes = {None if m is None else len(m.classes_) for m in model.machines_}
    assert {2, 3} & sizes
    assert model.decision_function(NEW).shape == (500, 3)
    assert np.array_equal(
        model.classes_[model.decision_function(NEW).argmax(axis=1)], model.predict(NEW)
    )
    assert model.score(X, y) > 0.85


def test_balanced_weights_are_those_of_all_rows() -> None:
    y = (F > 1.0).astype(int)
    model = mm.PartitionedSVC(size=200, class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    assert np.allclose(model.class_weight_, len(y) / (2 * counts))
    for machine in filter(None, model.machines_):
        assert machine.class_weight == dict(enumerate(model.class_weight_))


def test_rows_without_weight_are_absent_and_weights_are_repetitions_in_a_cell() -> None:
    weight = np.r_[np.ones(900), np.zeros(300)]
    model = mm.PartitionedSVC(size=150).fit(X, Y, weight)
    same = mm.PartitionedSVC(size=150).fit(X[:900], Y[:900])
    assert np.array_equal(model.decision_function(NEW), same.decision_function(NEW))
    found: Any = mm.certify(model, X, Y, weight)
    assert found.holds(1.1e-4)


# ------------------------------------------------------------------- choosing


@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_choice_is_that_of_cross_validation(y: Any, kernel: str) -> None:
    rows, labels = X[:200], np.unique(y[:200], return_inverse=True)[1]
    weight = RNG.integers(1, 3, 200).astype(float)
    costs, gammas = (0.01, 1.0, 100.0), ((0.01, 1.0, 30.0) if kernel == "rbf" else ("scale",))
    candidates = CellCandidates(costs, gammas, 3, 7)
    chosen = choose(CellTask(rows, y[:200], weight, None, mm.SVC(kernel=kernel)), candidates)
    folds = split_folds(rows, labels, 3, 7)
    right: dict[Any, float] = {}
    assert sorted(np.bincount(folds)) == [66, 67, 67]
    for cost in costs:
        for gamma in gammas:
            right[cost, gamma] = 0.0
            for fold in range(3):
                train, test = folds != fold, folds == fold
                model = mm.SVC(kernel=kernel, C=cost, gamma=gamma, tol=1e-6)
                model.fit(rows[train], y[:200][train], weight[train])
                right[cost, gamma] += weight[test] @ (model.predict(rows[test]) == y[:200][test])
    # Fits to rough gaps may differ in a row or two.
    assert right[chosen] >= max(right.values()) - 4


def test_cells_choose_for_themselves() -> None:
    plain = (X[:, 1] > 0) ^ (RNG.random(len(X)) < 0.15)
    wavy = np.where(X[:, 0] > 0, np.sin(6 * X[:, 1]) > 0, plain)
    rows = X * [5.0, 1.0, 0.1]  # so that cells are on one side of X[:, 0] = 0 or the other
    model = mm.PartitionedSVC(size=300, C=[1.0, 100.0], gamma=[0.01, 10.0]).fit(rows, wavy)
    machines: list[Any] = [machine for machine in model.machines_ if machine is not None]
    chosen = {(machine.C, machine.kernel_.gamma) for machine in machines}
    assert len(chosen) > 1
    assert {gamma for _, gamma in chosen} == {0.01, 10.0}


def test_a_single_row_of_a_class_is_never_held_out() -> None:
    labels = np.r_[np.zeros(10, int), [1], np.full(5, 2)]
    folds = split_folds(X[:16], labels, 3, 0)
    assert folds[10] == -1
    assert set(folds[labels != 1]) == {0, 1, 2}
    task = CellTask(X[:16], labels, None, None, mm.SVC())
    assert choose(task, CellCandidates((1.0, 10.0), (0.1, 1.0), 3, 0))[0] in (1.0, 10.0)


# ------------------------------------------------------------------- where it runs, and how long


class Future:
    def __init__(self, value: Any) -> None:
        self.value = value


class FakeClient:
    """Does at once what is submitted, with arguments and results that have been pickled."""

    def __init__(self) -> None:
        self.submitted = 0

    def submit(self, function: Callable[..., Any], *arguments: Any, pure: bool) -> Future:
        assert not pure
        self.submitted += 1
        function, arguments = pickle.loads(pickle.dumps((function, arguments)))
        return Future(pickle.dumps(function(*arguments)))

    def gather(self, futures: list[Future]) -> list[Any]:
        return [pickle.loads(future.value) for future in futures]

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError("a connection cannot be copied")


def test_workers_of_a_cluster_train_the_same_machines(tmp_path: Path) -> None:
    client = FakeClient()
    there = clone(mm.PartitionedSVC(size=100, C=[1.0, 10.0], client=client)).fit(X, Y)
    here = mm.PartitionedSVC(size=100, C=[1.0, 10.0]).fit(X, Y)
    assert client.submitted > 1
    assert np.array_equal(there.decision_function(NEW), here.decision_function(NEW))
    with pytest.raises(TypeError, match=r"set_params\(client=None\)"):
        mm.save(there, tmp_path / "model.mmg")
    assert pickle.loads(pickle.dumps(there)).client is None
    with pytest.raises(TypeError, match="client"):
        mm.PartitionedSVC(client="tcp://127.0.0.1:8786").fit(X, Y)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_dask_client_trains_the_same_machines() -> None:
    distributed = pytest.importorskip("distributed")
    options = {
        "processes": False,
        "n_workers": 1,
        "dashboard_address": ":0",
        "set_as_default": False,
    }
    with distributed.Client(**options) as client:
        there = mm.PartitionedSVC(size=100, client=client).fit(X, Y)
    here = mm.PartitionedSVC(size=100).fit(X, Y)
    assert np.array_equal(there.decision_function(NEW), here.decision_function(NEW))


def test_a_time_limit_leaves_a_model_that_says_so() -> None:
    model = mm.PartitionedSVC(size=20, max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match="not reached and predict the most frequent class"):
        model.fit(X, Y)
    assert model.status_ is Status.MAX_TIME
    assert not np.isfinite(model.certificate_.gap)
    assert set(model.predict(NEW)) <= {"no", "yes"}


def test_cells_that_stop_early_are_counted() -> None:
    model = mm.PartitionedSVC(size=300, C=1e6, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="not solved to tol"):
        model.fit(X, THREE)
    assert model.status_ is Status.MAX_ITER
    assert not all(each.holds(1e-4) for each in model.certificates_)


def test_ctrl_c_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    train = cell_machine.train_cell
    calls: list[int] = []

    def interrupted(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(*arguments)

    monkeypatch.setattr(partitioned_svc, "train_cell", interrupted)
    model = mm.PartitionedSVC(size=150, n_jobs=1)
    with pytest.raises(KeyboardInterrupt, match="not reached"):
        model.fit(X, Y)
    assert model.status_ is Status.INTERRUPTED
    assert sum(machine is not None for machine in model.machines_) == 2
    assert len(model.predict(NEW)) == 500


def test_verbose_prints_a_line_for_each_cell(capsys: pytest.CaptureFixture[str]) -> None:
    model = mm.PartitionedSVC(size=300, verbose=1).fit(X, Y)
    assert capsys.readouterr().out.count("cell ") == model.n_cells_


# ------------------------------------------------------------------- what it takes and refuses


def test_sources_are_read_into_memory() -> None:
    model = mm.PartitionedSVC(size=200).fit(X, THREE)
    source = mm.data.open(X, THREE, rows=250)
    same = mm.PartitionedSVC(size=200).fit(source)
    assert np.array_equal(model.decision_function(NEW), same.decision_function(NEW))
    assert np.array_equal(same.predict(source), model.predict(X))
    with pytest.raises(ValueError, match="RowSource"):
        mm.PartitionedSVC().fit(source, THREE)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cells": "voronoi"}, "no parameter 'cells'. Cells are those of a tree"),
        ({"size": 1}, "size=1"),
        ({"overlap": -0.1}, "overlap=-0.1"),
        ({"C": []}, r"C=\[\]"),
        ({"C": [1.0, -1.0]}, "C=-1.0"),
        ({"gamma": ["scale", "scaled"]}, "gamma must be .*got 'scaled'"),
        ({"folds": 1}, "folds=1"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"max_time": 0}, "max_time=0"),
    ],
    ids=str,
)
def test_errors_name_the_argument(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        mm.PartitionedSVC(**wrong).fit(X, Y)
