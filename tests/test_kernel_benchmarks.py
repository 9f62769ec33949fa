"""The benchmarks of kernel machines: that they run, compare what they say, and do their sums right.

Nothing here asserts on seconds.
"""

import gc
import json
import lzma
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from benchmarks.datasets import Dataset
from benchmarks.measure import Sample, Timings, spread
from benchmarks.options import Options
from benchmarks.run import main
from benchmarks.solvers import kernel_worker
from benchmarks.solvers.kernel import TOOLS, Machine, Ours
from benchmarks.solvers.kernel_worker import FailedError, Session, SlowError, Worker, store
from benchmarks.suite import kernel_cases, kernel_growth, kernel_race, kernel_table
from benchmarks.suite.kernel_cells import Found, Kept, Key
from benchmarks.suite.kernel_race import BARE, FIT, PREDICT, Race, Ratio, geometric_mean

needs_ours = pytest.mark.skipif(
    TOOLS[Ours.name].refusal() is not None, reason="maxmargin has no SVC yet"
)


@pytest.fixture(autouse=True)
def without_data_folder_and_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)
    monkeypatch.setattr(kernel_worker, "SETTLING", 0.0)
    gc.freeze()  # else every sample would look through all that the test run has loaded
    yield
    gc.unfreeze()


def blobs(n: int = 60, classes: int = 2) -> Dataset:
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, 3)) + y[:, np.newaxis]
    return Dataset("blobs", X, y.astype(float), X[:10], y[:10].astype(float))


# ------------------------------------------------------------ those who are compared


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_tool_answers_and_is_certified(name: str, classes: int) -> None:
    if refusal := TOOLS[name].refusal():
        pytest.skip(refusal)
    session = Session(blobs(classes=classes), Machine(1.0, 0.3), name, 1)
    session.warm()
    fitted = session.fit(tol=1e-6)
    assert fitted["wall"] > 0
    proof = session.certify()
    assert -1e-9 <= proof["gap"] <= proof["worst"] <= 1e-3
    predicted = session.predict()
    assert predicted["rows"] == 70
    assert predicted["score"] > 0.4
    if name == Ours.name:
        assert fitted["status"] == "OPTIMAL"
        assert fitted["certifying"] > 0
        assert session.bare()["wall"] > 0


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_regresses(name: str) -> None:
    if refusal := TOOLS[name].refusal():
        pytest.skip(refusal)
    dataset = blobs()
    dataset = replace(dataset, y=dataset.X[:, 0], X_test=None, y_test=None)
    session = Session(dataset, Machine(1.0, 0.3, epsilon=0.1), name, 1)
    session.fit()
    assert session.certify()["gap"] <= 1e-2
    assert session.predict()["score"] > 0.5


def test_a_slow_worker_is_killed_and_one_that_fails_says_why(tmp_path: Path) -> None:
    file = store(tmp_path / "problem.pickle", blobs(), Machine(1.0, 0.3))
    with Worker(file, "LIBSVM", 1) as worker:
        assert worker.ask("fit", machine={"C": 2.0, "gamma": 0.1})["wall"] > 0
        with pytest.raises(FailedError, match="TypeError"):
            worker.ask("fit", tol=1e-3, no_such_parameter=1)
        assert worker.ask("fit")["wall"] > 0  # the next request is answered
        with pytest.raises(SlowError, match="more than"):
            worker.ask("fit", 1e-6)
        with pytest.raises(FailedError, match="ended"):
            worker.ask("peak")


# ------------------------------------------------------------ cases


@pytest.mark.parametrize("how", kernel_cases.SCALINGS)
def test_test_rows_are_scaled_by_what_training_rows_say(how: str) -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(30, 2)) * 9 + 5, np.ones(30)])
    found = kernel_cases.scaled(Dataset("d", X, X[:, 0], X[:5], X[:5, 0]), how)
    assert np.array_equal(found.X[:5], found.X_test)
    assert np.isfinite(found.X).all()
    if how == "[-1,1]":
        assert (found.X[:, :2].min(), found.X[:, :2].max()) == pytest.approx((-1, 1))
    if how == "standardised":
        assert found.X[:, :2].std(axis=0) == pytest.approx(1)


def test_the_default_gamma_is_scikit_learns() -> None:
    import scipy.sparse as sp

    X = np.random.default_rng(2).normal(size=(20, 4))
    expected = 1 / (4 * X.var())
    assert kernel_table.default_gamma(X) == pytest.approx(expected)
    assert kernel_table.default_gamma(sp.csr_matrix(X)) == pytest.approx(expected)


# ------------------------------------------------------------ sums


def raced(seconds: dict[str, float], slow: set[str] = frozenset()) -> Race:  # type: ignore[assignment]
    found = Race(kernel_cases.CASES[0], "2×2", [1, 2], limit=100.0)
    samples = {}
    for tool, wall in seconds.items():
        for threads in found.counts if TOOLS[tool].threaded else [1]:
            samples[tool, threads, FIT] = [Sample(wall, 2 * wall)] * 3
    samples[Ours.name, 1, BARE] = [Sample(0.5, 0.5)] * 3
    found.timings = Timings(samples)
    found.slow = {(*found.who(tool, threads), FIT) for tool in slow for threads in (1, 2)}
    return found


def test_ratios_are_to_the_better_of_the_others_and_libsvm_has_one_thread() -> None:
    found = raced({"maxmargin": 2.0, "oneDAL": 6.0, "LIBSVM": 20.0})
    for threads in (1, 2):
        better = found.better(threads)
        assert better is not None
        assert (better.values.median, better.bounded) == (3.0, False)
        libsvm = found.ratio("LIBSVM", threads)
        assert libsvm is not None
        assert libsvm.values.median == 10.0
    above = found.above_bare(1)
    assert above is not None
    assert above.median == 4.0
    assert found.ratio("oneDAL", 1, PREDICT) is None


def test_who_was_killed_took_at_least_the_limit() -> None:
    found = raced({"maxmargin": 2.0}, slow={"LIBSVM"})
    assert found.seconds("LIBSVM", 2) == "≥ 100"
    ratio = found.ratio("LIBSVM", 2)
    assert ratio is not None
    assert ratio.cell == "≥ 50"
    assert found.better(1) == ratio


def test_one_bound_makes_the_mean_a_bound() -> None:
    exact, bound = Ratio(spread([2.0]), False), Ratio(spread([8.0]), True)
    mean = geometric_mean([exact, bound])
    assert mean is not None
    assert mean.values.median == pytest.approx(4.0)
    assert mean.bounded
    assert geometric_mean([]) is None


@pytest.mark.parametrize(("primal", "holds"), [(100.001, True), (99.0, False), (200.0, True)])
def test_a_contradiction_to_what_is_proved_is_found(primal: float, holds: bool) -> None:
    found = raced({"maxmargin": 1.0, "LIBSVM": 1.0})
    found.proofs = {
        ("maxmargin", 1): {"primal": 100.001, "dual": 100.0, "gap": 1e-5},
        ("LIBSVM", 1): {"primal": primal, "dual": primal - 100.0, "gap": 1.0},
    }
    same, better = found.checks()
    assert (same.holds, better.holds) == (holds, True)


def test_the_exponent_is_the_slope() -> None:
    rows = [10, 100, 1000]
    assert kernel_growth.exponent(rows, [3.0 * n**1.5 for n in rows]) == pytest.approx(1.5)
    assert math.isnan(kernel_growth.exponent([10], [1.0]))


def test_the_largest_step_counts_both_ways() -> None:
    walls = {2**20: 4.0, 2**21: 2.0, 2**22: 5.0}
    timings = Timings({cap: [Sample(wall, wall)] for cap, wall in walls.items()})
    caps = kernel_growth.Caps("2×2", 1, timings)
    assert caps.largest_step() == pytest.approx(2.5)
    assert caps.check().holds is False


# ------------------------------------------------------------ the table's cells

KEY = Key("sonar", "as it is", 1.0, 1.0, 1e-6)


def test_a_run_that_was_ended_goes_on(tmp_path: Path) -> None:
    found = Found(*KEY, "2×2", "this", status="OPTIMAL", gap=0.0)
    Kept(tmp_path, "all rows").add(found)
    with (tmp_path / "kernel-table.cells.jsonl").open("a") as file:
        file.write('{"of": "all')  # killed while it wrote
    for _ in range(2):
        kept = Kept(tmp_path, "all rows")
        assert kept.get(KEY, "this") == found
    assert kept.get(KEY, "another source") is None
    assert Kept(tmp_path, "few rows").get(KEY, "this") is None
    newer = replace(found, source="another source")
    kept.add(newer)
    assert kept.cells() == Kept(tmp_path, "all rows").cells() == [newer]
    assert kept.get(KEY, "this") == found
    assert kept.cells() == [found]  # it is taken over: the source is that of before again


def test_a_claim_without_proof_is_found() -> None:
    for status, gap, verdicts in (
        ("OPTIMAL", 1e-7, [True, True]),
        ("MAX_TIME", 1e-2, [True, False]),
        ("OPTIMAL", 1e-2, [False, False]),
    ):
        cell = Found(*KEY, "2×2", "this", status=status, gap=gap)
        claimed, loose, tight, libsvm = kernel_table.checks([cell])
        assert [claimed.holds, tight.holds] == verdicts
        assert loose.holds is libsvm.holds is None


@pytest.mark.parametrize(("lead", "holds"), [(1e-7, True), (-1e-12, True), (-1e-7, False)])
def test_a_dual_below_libsvms_is_found(lead: float, holds: bool) -> None:
    cell = Found(*KEY, "2×2", "this", status="OPTIMAL", gap=0.0, lead=lead, compared="1 s")
    assert kernel_table.checks([cell])[-1].holds is holds


# ------------------------------------------------------------ whole runs


class InThisProcess:
    """A worker without a process."""

    def __init__(self, file: Path, tool: str, threads: int) -> None:
        dataset, machine = pickle.loads(file.read_bytes())
        self._session = Session(dataset, machine, tool, threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, what: str, _limit: float = 0.0, **settings: Any) -> Any:
        return self._session.answer({"do": what, **settings})

    def close(self) -> None:
        pass


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that runs a benchmark on generated sets and reads what it wrote."""
    for module in (kernel_race, kernel_growth, kernel_table):
        monkeypatch.setattr(module, "Worker", InThisProcess)
    rng = np.random.default_rng(3)
    sizes = {"svmguide1": 2, "satimage": 3, "abalone": 9, "magic04": 2, "covtype": 4}
    for name, labels in sizes.items():
        points = rng.normal(size=(450 if name == "covtype" else 80, 2)) * 2
        lines = (f"{k % labels} 1:{x + k % labels} 2:{z}\n" for k, (x, z) in enumerate(points))
        (tmp_path / f"{name}.svm.xz").write_bytes(lzma.compress("".join(lines).encode()))

    def run(name: str, *arguments: str) -> Any:
        given = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path), "--repeats", "1"]
        comparable = main([name, *given, *arguments]) == 0
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "| data" in (tmp_path / f"{name}.md").read_text("utf-8")
        content = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
        # Whether fits keep their promises is for the benchmark to say, not for this test.
        same = [check["holds"] for check in content["checks"] if check["kind"] == "same problem"]
        assert comparable == (False not in same)
        return content

    return run


@needs_ours
def test_kernel_runs(tiny: Callable[..., Any]) -> None:
    names = ("satimage", "svmguide1", "abalone")
    content = tiny("kernel", "--threads", "1", "--only", *names, "growth", "memory")
    means, fits, clocks, answers, ours, predictions, growth, memory = (
        table["rows"] for table in content["tables"]
    )
    assert [row["of"] for row in means] == [FIT, PREDICT]
    for rows in (fits, clocks, ours, predictions):
        assert [row["data"] for row in rows] == list(names)
    assert all(row["LIBSVM / maxmargin"]["median"] > 0 for row in fits)
    assert {row["solver"] for row in answers} >= {"maxmargin", "LIBSVM"}
    assert growth[-1]["rows"] == "exponent of n"
    assert all(row["peak MB"] > 0 for row in growth[:-1])
    assert len(memory) == len(kernel_growth.QUICK_CAPS)
    assert all(check["holds"] for check in content["checks"] if check["kind"] == "same problem")


@needs_ours
def test_kernel_table_runs_and_goes_on(
    tiny: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    cells = len(kernel_table.COSTS) * len(kernel_table.FACTORS)
    content = tiny("kernel-table", "--compare", "--only", "svmguide1", "tol=1e-6")
    assert len(content["tables"][0]["rows"]) == 2 * cells  # scaled and as it is
    content = tiny("kernel-table", "--only", "abalone", "svmguide1", "tol=1e-6")
    rows = content["tables"][0]["rows"]
    assert len(rows) == 4 * cells  # those known from before are there too
    assert all(row["LIBSVM"] != "–" for row in rows if row["data"] == "svmguide1")
    assert "svmguide1 scaled, C=1000, γ×100, tol=1e-06: OPTIMAL" in capsys.readouterr().out


def test_unknown_cases_are_refused() -> None:
    with pytest.raises(SystemExit, match="this benchmark has a9a"):
        main(["kernel", "--only", "no-such-set"])
    with pytest.raises(SystemExit, match="tol=1e-6"):
        kernel_table.run(Options(only=("tol=1e-9",)))
