"""Searches on a cluster: the bits of one process; and the tasks that they are made of."""

import os
import pickle
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.cli import main
from maxmargin.errors import DistributedFitError
from maxmargin.rows import cluster as futures
from maxmargin.rows.cluster import Cluster as Tasks
from maxmargin.rows.stored_files import file_of_memmap
from tests.rows.conftest import Cluster, KillAtFile, client_that_forgives_nothing

pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

X, Y = make_classification(660, 8, n_informative=5, n_classes=3, flip_y=0.05, random_state=0)
TARGET = X @ np.arange(8.0) + np.sin(3 * X[:, 0])
GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1]}


@pytest.fixture
def client(cluster: Cluster) -> Any:
    """Return a client of two workers."""
    return cluster.ready()


def assert_same(ours: Any, theirs: Any) -> None:
    """Assert that two searches have the same results but for times."""
    assert ours.best_params_ == theirs.best_params_
    assert ours.cv_results_.keys() == theirs.cv_results_.keys()
    for name, values in theirs.cv_results_.items():
        if "_time" not in name:
            np.testing.assert_array_equal(ours.cv_results_[name], values, err_msg=name)


# ------------------------------------------------------------------- searches


SEARCHES = {
    "kernel": (mm.SVC(), GRID, Y),
    "width of each split": (mm.SVC(), {"C": [1.0, 10.0]}, Y),
    "pipeline": (
        make_pipeline(StandardScaler(), mm.SVC()),
        {f"svc__{name}": values for name, values in GRID.items()},
        Y,
    ),
    "numbers": (mm.SVR(gamma=0.1), {"C": [1.0, 10.0], "epsilon": [0.1, 0.5]}, TARGET),
    "chains": (mm.LinearSVC(), {"C": [0.1, 1.0]}, Y),
    "chains for want of memory": (mm.SVC(gamma=0.1), {"C": [1.0, 10.0]}, Y),
    "weights and several scores": (mm.SVC(), GRID, Y),
    "others": (mm.NuSVC(), {"nu": [0.1, 0.2]}, Y),
}


OPTIONS: dict[str, Any] = {
    "kernel": {"return_train_score": True},
    "chains for want of memory": {"memory": 1},
    "weights and several scores": {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"},
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_the_same_on_a_cluster(client: Any, name: str) -> None:
    estimator, grid, y = SEARCHES[name]
    given = {"cv": 4, "memory": 1 << 28, **OPTIONS.get(name, {})}
    weight = {}
    if name.startswith("weights"):
        weight["sample_weight"] = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
    local = mm.SVCSearchCV(estimator, grid, **given).fit(X, y, **weight)
    found = mm.SVCSearchCV(estimator, grid, client=client, **given).fit(X, y, **weight)
    assert_same(found, local)
    assert found.sharing_.startswith("4 chains") == name.startswith("chains")
    assert "cluster" in found.sharing_
    assert found.best_estimator_.predict(X).tolist() == local.best_estimator_.predict(X).tolist()


def test_bits_do_not_depend_on_how_kernel_settings_are_divided(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maxmargin.model_selection.search import on_cluster

    given = {"cv": 3, "refine": "all"}
    by_split = mm.SVCSearchCV(mm.SVC(), GRID, client=client, **given).fit(X, Y)
    monkeypatch.setattr(on_cluster, "_TASKS_PER_THREAD", 1)  # as many as there are widths
    together = mm.SVCSearchCV(mm.SVC(), GRID, client=client, **given).fit(X, Y)
    assert by_split.sharing_.endswith("6 tasks on a cluster")
    assert together.sharing_.endswith("2 tasks on a cluster")
    assert_same(by_split, together)
    assert_same(by_split, mm.SVCSearchCV(mm.SVC(), GRID, **given).fit(X, Y))


class KillFirst(StandardScaler):  # type: ignore[misc, unused-ignore]
    """A step that has the first processes that fit it killed, one after the other."""

    def __init__(self, folder: str = "", kills: int = 1, victim: int = 0) -> None:
        super().__init__()
        self.folder, self.kills, self.victim = folder, kills, victim

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Ask for the end of this process, or of the victim, unless it is time to learn."""
        for k in range(self.kills):
            try:
                (Path(self.folder) / f"{k}").touch(exist_ok=False)
            except FileExistsError:
                continue
            self._ask()
        return super().fit(X, y, sample_weight)

    def _ask(self) -> None:
        note = Path(self.folder) / f"note {os.getpid()}"
        note.write_text(f"{self.victim or os.getpid()}")
        while True:  # until somebody reads it
            with suppress(FileExistsError):
                os.link(note, Path(self.folder) / "kill")
            time.sleep(0.01)


def test_a_search_survives_the_loss_of_all_its_workers(cluster: Cluster, tmp_path: Path) -> None:
    client = cluster.ready()
    grid = {f"svc__{name}": values for name, values in GRID.items()}
    model = make_pipeline(KillFirst(str(tmp_path), kills=2), mm.SVC())
    with KillAtFile(cluster, tmp_path / "kill") as killer:
        found = mm.SVCSearchCV(model, grid, cv=3, client=client).fit(X, Y)
    assert killer.killed == 2
    local = mm.SVCSearchCV(make_pipeline(KillFirst(kills=0), mm.SVC()), grid, cv=3).fit(X, Y)
    assert_same(found, local)


@pytest.mark.wide
def test_a_lost_scheduler_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    own = Cluster(tmp_path)
    try:
        client = own.ready(1)
        step = KillFirst(str(tmp_path), victim=own.scheduler.pid)
        search = mm.SVCSearchCV(make_pipeline(step, mm.SVC()), {"svc__C": [1.0]}, client=client)
        with (
            KillAtFile(own, tmp_path / "kill"),
            pytest.raises(DistributedFitError, match=r"(?s)is lost .*Repeat the call"),
        ):
            search.fit(X, Y)
        assert not hasattr(search, "cv_results_")
    finally:
        own.close()


def test_errors_of_fits_are_theirs(client: Any) -> None:
    grid = {"C": [1.0, -1.0]}
    with pytest.raises(ValueError, match="C=-1"):
        mm.SVCSearchCV(mm.SVC(), grid, cv=3, error_score="raise", client=client).fit(X, Y)
    with pytest.warns(Warning, match="fits failed"), pytest.warns(UserWarning, match="non-finite"):
        found = mm.SVCSearchCV(mm.SVC(), grid, cv=3, client=client).fit(X, Y)
    assert np.isnan(found.cv_results_["mean_test_score"][1])
    assert found.best_params_ == {"C": 1.0}


def test_what_a_cluster_does_not_do_is_refused(client: Any) -> None:
    with pytest.raises(TypeError, match=r"distributed\.Client"):
        mm.SVCSearchCV(mm.SVC(), GRID, client=3).fit(X, Y)
    with pytest.raises(ValueError, match=r"client='tcp://192\.0\.2\.1:1' .* tls://"):
        mm.SVCSearchCV(mm.SVC(), GRID, client="tcp://192.0.2.1:1").fit(X, Y)


def test_lines_are_printed_here(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    mm.SVCSearchCV(mm.SVC(), GRID, cv=3, refine="all", verbose=2, client=client).fit(X, Y)
    assert capsys.readouterr().out.count("[split ") == 18


# ------------------------------------------------------------------- clones, pickles, files


def test_clones_share_a_client_and_pickles_do_not(client: Any, tmp_path: Path) -> None:
    search = mm.SVCSearchCV(mm.SVC(), {"C": [1.0, 2.0]}, cv=3, client=client)
    copied = clone(search)
    assert copied is not search
    assert copied.client is client
    assert copied.estimator is not search.estimator
    assert clone(Pipeline([("search", search)])).named_steps["search"].client is client
    assert GridSearchCV(search, {"cv": [2]}, cv=2).fit(X, Y).best_estimator_.client is client
    search.fit(X, Y)
    again = pickle.loads(pickle.dumps(search))
    assert again.client is None
    assert again.predict(X).tolist() == search.predict(X).tolist()
    mm.save(search, tmp_path / "best.mmg")
    assert mm.load(tmp_path / "best.mmg").predict(X).tolist() == search.predict(X).tolist()
    assert pickle.loads(pickle.dumps(search.set_params(client="tls://a:1"))).client == "tls://a:1"


# ------------------------------------------------------------------- from the shell


def test_search_from_the_shell(cluster: Cluster, client: Any, tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    np.savetxt(table, np.column_stack([X[:200], Y[:200]]), "%.17g", ",", header="a,b,c,d,e,f,g,h,y",
               comments="")  # fmt: skip
    given = ["search", str(table), "--label", "y", "--C", "0.1,1", "--gamma", "0.1", "--folds", "3"]
    run = CliRunner().invoke
    local, found = (
        run(main, [*given, "--json", *more]) for more in ([], ["--cluster", cluster.address])
    )
    assert found.exit_code == local.exit_code == 0, found.output
    assert found.output == local.output
    refused = run(main, [*given, "--cluster", "tcp://192.0.2.1:8786"])
    assert refused.exit_code == 2
    assert "--insecure" in refused.output
    with dask.config.set({"distributed.comm.timeouts.connect": "100ms"}):
        lost = run(main, [*given, "--cluster", "tcp://127.0.0.1:9"])
    assert lost.exit_code == 1
    assert "no scheduler" in lost.output


# ------------------------------------------------------------------- tasks


def test_results_come_in_the_order_of_tasks(client: Any) -> None:
    assert list(Tasks(client).run(divmod, [(9, k) for k in range(1, 6)], "x")) == [
        divmod(9, k) for k in range(1, 6)
    ]
    with pytest.raises(ZeroDivisionError):
        list(Tasks(client).run(divmod, [(9, 1), (9, 0)], "x"))


def test_arrays_in_files_travel_by_path(client: Any, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((50, 3))
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "columns.npy", np.asfortranarray(rows))
    for name in ("rows", "columns"):
        mapped = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        shared = Tasks(client).share(np.copy, mapped)
        np.testing.assert_array_equal(shared.result(), rows)
        np.testing.assert_array_equal(Tasks(client).share(np.copy, mapped[5:]).result(), rows[5:])
    mapped = file_of_memmap(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    (tmp_path / "rows.npy").unlink()
    with pytest.raises(FileNotFoundError, match="same path on all machines"):
        Tasks(client).share(np.copy, mapped).result()


def test_more_data_than_a_task_carries(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(futures, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match=r"np\.load"):
        mm.SVCSearchCV(mm.SVC(), GRID, client=client).fit(X, Y)


def test_nobody_waits_forever_for_workers(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = cluster.ready(1)
    monkeypatch.setattr(futures, "_NO_WORKERS", 0.1)
    cluster.kill_worker()
    with pytest.raises(DistributedFitError, match=r"x, task 1 of 2: .*no worker for .*Repeat"):
        list(Tasks(client).run(divmod, [(1, 1), (1, 1)], "x"))


def die() -> None:
    os._exit(1)


def test_a_deadly_task_is_named(client: Any) -> None:
    with (
        client_that_forgives_nothing(client),
        pytest.raises(DistributedFitError, match=r"a search, task 1 of 1: 1 workers died .*memory"),
    ):
        list(Tasks(client).run(die, [()], "a search"))
