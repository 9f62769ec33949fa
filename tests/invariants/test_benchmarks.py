"""The benchmark harness: that it runs, compares what it says, and does its sums right.

Nothing here asserts on seconds: clocks are fake, or only the form of the result is looked at.
"""

import gc
import importlib
import json
import lzma
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

import maxmargin as mm
from benchmarks import contest, datasets
from benchmarks.against.checkouts import Trial, agreement, targets
from benchmarks.beside import fitting, kernel, objective, perceptron, race, startup
from benchmarks.beside.fitting import Crew, Fitting
from benchmarks.beside.objective import Objective
from benchmarks.beside.race import Case, Point, Race
from benchmarks.beside.solvers import OURS, TOOLS
from benchmarks.children import Child, FailedError, SlowError, call
from benchmarks.contest import Contest, Outcome
from benchmarks.datasets import Dataset
from benchmarks.measure import (
    Clocks,
    Sample,
    Timings,
    interleave,
    ratio,
    spread,
    timed,
)
from benchmarks.report import Check, Report, Table
from benchmarks.run import AGAINST, BENCHMARKS, main


@pytest.fixture(autouse=True)
def without_data_folder_and_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)
    monkeypatch.setattr(fitting, "SETTLING", 0.0)
    gc.freeze()  # else every sample would look through all that the test run has loaded
    yield
    gc.unfreeze()


class FakeTime:
    """A clock that only work moves; CPU time runs at half its pace."""

    def __init__(self) -> None:
        self.now = 0.0
        self.clocks = Clocks(lambda: self.now, lambda: self.now / 2)

    def work(self, seconds: float) -> Callable[[], None]:
        def call() -> None:
            self.now += seconds

        return call


def blobs(n: int = 60, classes: int = 2) -> Dataset:
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, 3)) + y[:, np.newaxis]
    return Dataset("blobs", X, y.astype(float), X[:10], y[:10].astype(float))


# ------------------------------------------------------------ measuring


def test_candidates_take_turns_and_the_warm_up_is_not_counted() -> None:
    calls: list[str] = []

    def sampler(name: str) -> Callable[[], Sample]:
        def sample() -> Sample:
            calls.append(name)
            return Sample(float(len(calls)), 0.0)

        return sample

    timings = interleave({name: sampler(name) for name in "abc"}, repeats=2, warm_ups=1)
    assert "".join(calls) == "abccbaabc"  # nobody always comes first
    assert timings.wall("a").tolist() == [6.0, 7.0]
    assert timings.wall("c").tolist() == [4.0, 9.0]


def test_both_clocks_are_read() -> None:
    fake = FakeTime()
    timings = interleave({"work": timed(fake.work(3.0), fake.clocks)}, repeats=2)
    assert timings.wall("work").tolist() == [3.0, 3.0]
    assert timings.seconds("work", "cpu").median == 1.5


def test_a_disturbed_round_cancels_in_the_ratio() -> None:
    ours, theirs = np.array([1.0, 10.0, 1.0]), np.array([2.0, 20.0, 2.0])
    assert spread(ratio(theirs, ours)) == (2.0, 2.0, 2.0, 3, 3)


def test_a_round_lost_in_noise_gives_no_ratio_and_is_counted() -> None:
    found = spread(ratio(np.array([2.0, 2.0, 2.0]), np.array([1.0, -1.0, 0.0])))
    assert found == (2.0, 2.0, 2.0, 1, 3)
    assert spread([np.nan]).rounds == 0


# ------------------------------------------------------------ reporting


def test_nan_and_numpy_numbers_survive_json(tmp_path: Path) -> None:
    report = Report("r", [Table("t", [{"x": spread([np.nan]), "y": 1.0}])])
    report.checks.append(Check("target", "c", None, "f"))
    (written,) = report.save(tmp_path, {"n": np.int64(3)})
    content = json.loads(written.read_text(encoding="utf-8"))
    assert content["tables"][0]["rows"][0]["x"]["median"] is None
    assert content["facts"]["n"] == 3


def test_only_a_different_problem_makes_figures_incomparable() -> None:
    assert Report("r", checks=[Check("target", "fast", False, "")]).comparable
    assert Report("r", checks=[Check("same problem", "c", None, "")]).comparable
    assert not Report("r", checks=[Check("same problem", "c", False, "")]).comparable


# ------------------------------------------------------------ data


@pytest.mark.parametrize("name", datasets.SYNTHETIC)
def test_synthetic_sets_are_the_same_each_time(name: str) -> None:
    first, second = (datasets.SYNTHETIC[name](True) for _ in range(2))
    assert first.name == name
    assert (first.X != second.X).sum() == 0
    assert np.array_equal(first.y, second.y)
    assert set(np.unique(first.y)) == (set(range(26)) if name == "letters" else {-1, 1})


def test_real_sets_have_their_declared_columns(tmp_path: Path) -> None:
    for part in ("sonar.svm.xz", "sonar.t.svm.xz"):
        (tmp_path / part).write_bytes(lzma.compress(b"1 1:0.5\n-1 2:1\n1 3:1\n"))
    dataset = datasets.load("sonar", tmp_path)
    assert dataset.X.shape == dataset.X_test.shape == (3, datasets.COLUMNS["sonar"])
    assert datasets.load("sonar", tmp_path).X is dataset.X  # read once
    binary = datasets.one_against_rest(dataset, "largest")
    assert binary.y.tolist() == [1, -1, 1]


def test_missing_sets_are_skipped_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(datasets.available(["a9a"], None)) == []
    assert "MAXMARGIN_DATA is not set" in capsys.readouterr().out
    assert list(datasets.available(["a9a"], tmp_path)) == []
    assert "there is no a9a.svm.xz" in capsys.readouterr().out


@pytest.mark.parametrize("how", ["as published", "[-1,1]", "standardised", "/255", "/largest"])
def test_test_rows_are_scaled_by_what_training_rows_say(how: str) -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(30, 2)) * 9 + 5, np.ones(30)])
    found = datasets.scaled(Dataset("d", X, X[:, 0], X[:5], X[:5, 0]), how)
    assert np.array_equal(found.X[:5], found.X_test)
    assert np.isfinite(found.X).all()
    if how == "[-1,1]":
        assert (found.X[:, :2].min(), found.X[:, :2].max()) == pytest.approx((-1, 1))
    if how == "standardised":
        assert found.X[:, :2].std(axis=0) == pytest.approx(1)
    if how == "/largest":
        assert np.abs(found.X).max(axis=0) == pytest.approx(1)


def test_unknown_cases_are_refused() -> None:
    with pytest.raises(SystemExit, match="this benchmark has a9a"):
        main(["kernel", "--only", "no-such-set"])


# ------------------------------------------------------------ those who are compared


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize(
    "wanted",
    [
        Objective(gamma=0.3),
        Objective(gamma=0.3, epsilon=0.1),
        Objective(),
        Objective(intercept="penalized"),
        Objective(epsilon=0.5, intercept="penalized"),
    ],
    ids=str,
)
def test_every_tool_minimises_what_is_certified(name: str, wanted: Objective) -> None:
    dataset = blobs()
    y = dataset.X[:, 0] if wanted.regression else 2 * dataset.y - 1
    dataset = Dataset("blobs", dataset.X, y)
    if refusal := TOOLS[name].refusal(dataset, wanted):
        pytest.skip(refusal)
    exact = Fitting(dataset, wanted, OURS.name, 1)
    exact.fit(1e-9)
    bound = exact.judge()["dual"]
    session = Fitting(dataset, wanted, name, 1)
    session.warm()
    fitted = session.fit(float(2**12) if TOOLS[name].knob == "epochs" else 1e-6)
    assert fitted["wall"] > 0
    assert -1e-9 <= objective.suboptimality(session.judge()["primal"], bound) <= 1e-2
    if not wanted.linear:
        predicted = session.predict()
        assert predicted["rows"] == 60
        assert predicted["score"] > 0.4
    if name == OURS.name:
        assert fitted["status"] == "OPTIMAL"


def test_several_classes_are_judged_by_the_worst_subproblem() -> None:
    session = Fitting(blobs(classes=3), Objective(gamma=0.3), "LIBSVM", 1)
    session.fit(1e-6)
    proof = session.judge()
    assert 0 <= proof["gap"] <= 1e-3
    assert proof["dual"] <= proof["primal"]


def test_children_answer_fail_end_and_are_killed() -> None:
    assert call(json.dumps, 1, obj=[1]) == "[1]"
    with Child(threading.Event, {}) as child:
        assert child.ask("wait", timeout=0.0) is False
        with pytest.raises(FailedError, match=r"AttributeError: .*no_such_thing"):
            child.ask("no_such_thing")
        assert child.ask("is_set") is False  # the next request is answered
        with pytest.raises(SlowError, match=r"more than 0\.1 s"):
            child.ask("wait", 0.1, timeout=600.0)
        assert not child.alive
    with Child(sys.exit, {}) as child, pytest.raises(FailedError, match="ended with 0"):
        child.ask("anything")


def test_forged_weights_are_not_the_same_problem() -> None:
    dataset = datasets.load("dense-float64", None, quick=True)
    ours, other = (perceptron.fit(perceptron.OURS, dataset, shuffle=False) for _ in range(2))
    assert perceptron.same_updates(ours, other, dataset).holds is True
    other.coef_ = ours.coef_ * (1 + 1e-6)
    assert perceptron.same_updates(ours, other, dataset).holds is None
    other.coef_ = -ours.coef_
    assert perceptron.same_updates(ours, other, dataset).holds is False


# ------------------------------------------------------------ a race's sums


def raced(theirs: list[Point], cut: bool = False) -> Race:
    ours = [Point(0.1, 1.0, 1.0, 3.0, 1.5), Point(0.01, 2.0, 2.0, 2.02, 1.99)]
    ours.append(Point(1e-9, 4.0, 4.0, 2.0, 2.0))
    case = Case("set", blobs(), Objective(gamma=1.0), (1e-1, 1e-3))
    found = Race(case, 1, budget=10.0, sweeps={OURS.name: ours, "LIBSVM": theirs})
    found.cut = {"LIBSVM"} if cut else set()
    samples = {
        (tool, point.setting): [Sample(point.wall, 2 * point.wall)] * 3
        for tool, points in found.sweeps.items()
        for point in points
    }
    found.timings = Timings(samples)
    return found


def test_the_loosest_fit_that_reaches_a_target_counts() -> None:
    found = raced([Point(0.1, 3.0, 3.0, 2.1, 1.8), Point(1e-3, 6.0, 6.0, 2.001, 1.995)])
    assert found.bound == 2.0
    reached = [found.first("LIBSVM", target) for target in (1e-1, 1e-3, 1e-6)]
    assert reached == [*found.sweeps["LIBSVM"], None]
    cell = found.to_target("LIBSVM", 1e-3)
    assert isinstance(cell, tuple)
    assert cell.median == 1.5  # 6 s and our 4 s
    assert found.to_target("oneDAL", 1e-3) is None


def test_our_loosest_fit_with_an_objective_no_worse_than_the_better_peers_is_compared() -> None:
    found = raced([Point(1e-3, 6.0, 6.0, 2.5, 1.999)])
    pair = found.pair("LIBSVM")
    assert pair is not None
    assert pair[1].setting == 0.01  # its objective is 2.02, and 3 was worse; duals do not matter
    assert found.times("LIBSVM", pair).median == 3.0
    assert found.matched()
    found.sweeps["oneDAL"] = [Point(1e-3, 8.0, 8.0, 2.01)]  # now this has to be met
    assert [found.pair(peer)[1].setting for peer in ("LIBSVM", "oneDAL")] == [1e-9, 1e-9]  # type: ignore[index]
    better = raced([Point(1e-3, 6.0, 6.0, 1.9)])
    assert better.pair("LIBSVM") is None
    assert not better.matched()


def test_who_was_killed_took_at_least_the_budget() -> None:
    point = Point(0.1, 3.0, 3.0, 2.1, 1.8)
    assert raced([point], cut=True).to_target("LIBSVM", 1e-3) == "≥ 2.5"
    assert raced([point]).to_target("LIBSVM", 1e-3) == "never (at best 5.0e-02)"


@pytest.mark.parametrize(("primal", "holds"), [(2.001, True), (1.99, False), (4.0, None)])
def test_an_objective_below_the_proved_bound_is_found(primal: float, holds: bool | None) -> None:
    bound, same = raced([Point(1e-3, 1.0, 1.0, primal, 1.0)]).checks()
    assert bound.holds is True
    assert same.holds is holds


# ------------------------------------------------------------ contests, and two checkouts


def test_a_contest_keeps_the_last_results_and_a_call_may_time_itself() -> None:
    made = iter(range(100))
    calls = {"base": lambda: {"wall": 2.0, "cpu": 1.0}, "own": lambda: next(made)}
    facts: Callable[[str, Any], Any] = lambda name, result: {"result": str(result)}  # noqa: E731
    found = contest.hold(Contest("c", "1×1", calls, "base", most={"own": 1e9}, facts=facts), 3)
    assert found.results["own"] == 2
    assert found.timings.wall("base").tolist() == [2.0] * 3
    assert [row["result"] for row in found.rows()] == ["{'wall': 2.0, 'cpu': 1.0}", "2"]
    assert [check.holds for check in found.checks()] == [True]


TRIAL = Trial("t", "SVC", {}, np.zeros((2, 2)), tol=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "holds"),
    [
        ({}, {}, True),
        ({}, {"results": [5.0, 1.01]}, False),  # another answer
        ({}, {"results": [5.0]}, False),  # another number of subproblems
        ({}, {"gap": 1e-3}, False),  # no longer proved
        ({"gap": 1e-3}, {}, True),  # now proved
        ({"gap": 1e-3}, {"gap": 1e-3}, None),
    ],
)
def test_checkouts_must_prove_the_same(
    old: dict[str, Any], new: dict[str, Any], holds: bool | None
) -> None:
    blank = {"gap": 1e-6, "results": [5.0, 1.0]}
    (check,) = agreement(TRIAL, {"old": blank | old, "new": blank | new})
    assert check.holds is holds


def duel(old: list[float], new: list[float], peak: float = 100.0) -> Outcome:
    samples = {
        name: [Sample(wall, wall) for wall in walls] for name, walls in (("old", old), ("new", new))
    }
    results = {"old": {"peak": 100.0}, "new": {"peak": peak}}
    return Outcome(Contest("t", "2×2", {}, "new"), Timings(samples), results)


def test_what_became_slower_or_larger_is_named() -> None:
    checks = targets([duel([2.0] * 4, [4.0] * 4, peak=120.0)])
    assert [check.holds for check in checks] == [False] * 5
    assert "t 0.50" in checks[1].found
    assert [c.holds for c in targets([duel([2.0] * 4, [2.0] * 4)])] == [True] * 5
    noisy = targets([duel([2.0, 2.0, 2.0, 9.0], [2.5, 2.5, 2.5, 2.0])])
    assert noisy[1].holds is None  # the quartiles reach the limit


def test_only_a_checkout_is_compared_with(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="neither a checkout of maxmargin nor its src folder"):
        main(["kpca", "--quick", "--against", str(tmp_path)])
    with pytest.raises(SystemExit, match="perceptron has nothing to compare"):
        main(["perceptron", "--against", str(tmp_path)])


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "trial"),
    [
        ("linear", "sparse-synthetic"),
        pytest.param("kpca", "dense", marks=pytest.mark.full),
        pytest.param("kernel", "NuSVC", marks=pytest.mark.full),
        pytest.param("search", "dense-float64", marks=pytest.mark.full),
        pytest.param("startup", "Perceptron", marks=pytest.mark.full),
    ],
)
def test_a_checkout_against_itself_agrees(tmp_path: Path, name: str, trial: str) -> None:
    root = Path(__file__).parents[2]
    options = ["--quick", "--repeats", "2", "--only", trial, "--out", str(tmp_path)]
    assert main([name, "--against", str(root), *options]) == 0
    content = json.loads((tmp_path / f"{name}-against.json").read_text("utf-8"))
    assert str(root) not in json.dumps(content)
    assert [row["candidate"] for row in content["tables"][0]["rows"]] == ["old", "new"]
    assert {c["holds"] for c in content["checks"] if c["kind"] == "same problem"} == {True}


# ------------------------------------------------------------ whole runs


class InThisProcess:
    """A crew without processes."""

    def __init__(self, dataset: Dataset, wanted: Objective, threads: int) -> None:
        self._setup = dataset, wanted, threads
        self._sessions: dict[str, Fitting] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, tool: str, what: str, limit: float = 0.0, **settings: Any) -> Any:
        if tool not in self._sessions:
            dataset, wanted, threads = self._setup
            self._sessions[tool] = Fitting(dataset, wanted, tool, threads)
        return getattr(self._sessions[tool], what)(**settings)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that runs a benchmark on generated sets and reads what it wrote."""
    monkeypatch.setattr(race, "Crew", InThisProcess)
    rng = np.random.default_rng(3)
    sizes = {"svmguide1": 2, "satimage": 3, "abalone": 9, "magic04": 2}
    for name, labels in sizes.items():
        points = rng.normal(size=(80, 2)) * 2
        lines = (f"{k % labels} 1:{x + k % labels} 2:{z}\n" for k, (x, z) in enumerate(points))
        (tmp_path / f"{name}.svm.xz").write_bytes(lzma.compress("".join(lines).encode()))

    def run(name: str, *arguments: str, report: str = "") -> Any:
        given = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path), "--repeats", "1"]
        assert main([name, *given, *arguments]) == 0
        name = report or name
        if name in ("kernel", "linear"):
            assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        text = (tmp_path / f"{name}.json").read_text("utf-8")
        assert str(tmp_path) not in text  # folders are nobody's business
        content = json.loads(text)
        assert content["benchmark"] == name
        assert content["facts"]["versions"]["maxmargin"] == mm.__version__
        return content

    return run


def test_kernel_runs(run: Callable[..., Any]) -> None:
    names = ("satimage", "abalone")
    content = run("kernel", "--threads", "1", "--only", *names)
    reached, pairs, means, anatomies, predicted, fits = (
        found["rows"] for found in content["tables"]
    )
    assert [row["data"] for row in reached] == [n for n in names for _ in kernel.TARGETS]
    assert {(row["peer"], row["its setting"]) for row in pairs} == {("LIBSVM", "tol 0.001")}
    assert means[0]["sets"] == len(names)
    counted = "kernel values / (rows × support vectors)"
    assert all(row[counted] > 0 and row["certificate / fit"] > 0 for row in anatomies)
    assert [row["data"] for row in anatomies] == list(names)
    assert {row["candidate"] for row in predicted} == {"maxmargin", "LIBSVM", "limit line"}
    assert {row["tool"] for row in fits} == {"maxmargin", "LIBSVM"}


def test_the_race_of_defaults_is_of_the_quoted_sets(run: Callable[..., Any]) -> None:
    content = run("kernel", "--threads", "2", "--defaults", report="kernel-2-threads")
    pairs = content["tables"][0]["rows"]
    assert {row["data"] for row in pairs} == {"satimage", "svmguide1", "abalone"}
    for row in pairs:  # two digits are shown
        assert float(row["ours above D*"]) <= 1.06 * float(row["peer above D*"]) + 1e-9


def test_linear_runs(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(TOOLS["SGD"], settings=TOOLS["SGD"].settings[:4])
    monkeypatch.setitem(TOOLS, "SGD", few)
    content = run("linear", "--only", "dense-float32")
    reached, *_, fits = (found["rows"] for found in content["tables"])
    assert [row["target"] for row in reached] == 2 * ["1e-03", "1e-04", "1e-06"]
    assert {row["tool"] for row in fits} >= {"LIBLINEAR", "SGD", "LIBSVM"}
    assert {row["status"] for row in fits if row["tool"] == "maxmargin"} == {"OPTIMAL"}


def test_startup_runs_whatever_the_children_say(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = json.dumps({"wall": 1.0, "cpu": 1.0, "signatures": 3, "cached": 0})
    monkeypatch.setattr(startup, "run_python", lambda *_: said)
    monkeypatch.setattr(startup, "copied", lambda _, folder: {"NUMBA_CACHE_DIR": str(folder)})
    content = run("startup")
    assert [row["case"] for row in content["tables"][0]["rows"]] == ["warm"] * len(startup.WARM)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "only"),
    [
        ("linear", ["dense-float32"]),
        ("startup", ["cold"]),
        ("kpca", ["5k"]),
        ("search", ["satimage"]),
        ("everyday", ["SVC, iris", "SVC(max_time=1)"]),
    ],
)
def test_every_benchmark_runs(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, name: str, only: list[str]
) -> None:
    monkeypatch.setattr(race, "Crew", Crew)
    assert run(name, "--only", *only)["tables"]


@pytest.mark.parametrize("name", [*BENCHMARKS.values(), *AGAINST.values()])
def test_every_benchmark_says_what_it_is(name: str) -> None:
    module, _, function = name.partition(":")
    found = importlib.import_module(module)
    assert found.__doc__
    assert callable(getattr(found, function))
