"""The benchmark harness: that it runs, compares what it says, and does its sums right.

Nothing here asserts on seconds: clocks are fake, or only the form of the result is looked at.
"""

import gc
import itertools
import json
import lzma
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import maxmargin as mm
from benchmarks import datasets, objective
from benchmarks.against import Duel, Trial, targets
from benchmarks.measure import Clocks, Sample, Timings, interleave, per_step, ratio, spread, timed
from benchmarks.options import Options
from benchmarks.report import Check, Report, Table, digits
from benchmarks.run import BENCHMARKS, main
from benchmarks.solvers import gram_blocks, linear_sweep
from benchmarks.solvers import linear as linear_machines
from benchmarks.suite import cold, kernel_tiles, linear_race, linear_table, startup


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)


class FakeTime:
    """A clock that only work moves; CPU time runs at half its pace."""

    def __init__(self) -> None:
        self.now = 0.0
        self.clocks = Clocks(lambda: self.now, lambda: self.now / 2)

    def work(self, seconds: float) -> Callable[[], None]:
        def call() -> None:
            self.now += seconds

        return call


# ------------------------------------------------------------ measuring


def test_candidates_take_turns_and_the_warm_up_is_not_counted() -> None:
    calls: list[str] = []

    def sampler(name: str) -> Callable[[], Sample]:
        def sample() -> Sample:
            calls.append(name)
            return Sample(float(len(calls)), 0.0)

        return sample

    timings = interleave({name: sampler(name) for name in "abc"}, repeats=2, warm_ups=1)
    assert "".join(calls) == "abcabcabc"
    assert timings.wall("a").tolist() == [4.0, 7.0]
    assert timings.wall("c").tolist() == [6.0, 9.0]


def test_both_clocks_are_read() -> None:
    fake = FakeTime()
    timings = interleave({"work": timed(fake.work(3.0), fake.clocks)}, repeats=2)
    assert timings.wall("work").tolist() == [3.0, 3.0]
    assert timings.cpu("work").tolist() == [1.5, 1.5]


def test_a_disturbed_round_cancels_in_the_ratio() -> None:
    ours, theirs = np.array([1.0, 10.0, 1.0]), np.array([2.0, 20.0, 2.0])
    assert spread(ratio(theirs, ours)) == (2.0, 2.0, 2.0, 3, 3)


def test_quartiles_are_those_of_numpy() -> None:
    values = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    assert spread(values) == (3.0, 2.0, 4.0, 5, 5)


def test_a_round_lost_in_noise_gives_no_ratio_and_is_counted() -> None:
    found = spread(ratio(np.array([2.0, 2.0, 2.0]), np.array([1.0, -1.0, 0.0])))
    assert found == (2.0, 2.0, 2.0, 1, 3)
    assert spread([np.nan]).rounds == 0


def test_a_step_is_what_is_left_when_the_fixed_cost_cancels() -> None:
    fixed, step = 7.0, 0.25
    many, one = np.full(3, fixed + 6 * step), np.full(3, fixed + step)
    assert per_step(many, one, 6) == pytest.approx(step)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        interleave({}, repeats=0)
    with pytest.raises(ValueError, match="at least 2, got 1"):
        per_step(np.ones(1), np.ones(1), 1)


def test_garbage_collection_is_back_after_a_failure() -> None:
    def fails() -> Sample:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        interleave({"it": fails}, repeats=1)
    assert gc.isenabled()


# ------------------------------------------------------------ reporting


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (1.234, "1.23"), (12345.6, "12,346"), (0.00123, "0.00123"), (-2.0, "-2.00")],
)
def test_three_digits(value: float, text: str) -> None:
    assert digits(value) == text


def test_a_table_is_aligned_and_markdown() -> None:
    table = Table("t", ("name", "x"), [["a", spread([1.0, 2.0, 3.0])], ["long name", None]])
    lines = str(table).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("| ---------")
    assert lines[1].endswith("-: |")
    assert "2.00 (1.50–2.50)" in lines[2]


def test_lost_rounds_show_in_the_table() -> None:
    table = Table("t", ("x",), [[spread([1.0, np.nan])], [spread([np.nan])]])
    assert "1 of 2 rounds" in str(table)
    assert "lost in noise" in str(table)


def test_nan_and_numpy_numbers_survive_json(tmp_path: Path) -> None:
    report = Report("r", [Table("t", ("x", "y"), [[spread([np.nan]), 1.0]])])
    report.checks.append(Check("target", "c", None, "f"))
    (written,) = report.save(tmp_path, {"n": np.int64(3)})
    content = json.loads(written.read_text(encoding="utf-8"))
    assert content["tables"][0]["rows"][0]["x"]["median"] is None
    assert content["facts"]["n"] == 3


def test_only_a_different_problem_makes_figures_incomparable() -> None:
    assert Report("r", checks=[Check("target", "fast", False, "")]).comparable
    assert Report("r", checks=[Check("same problem", "c", None, "")]).comparable
    assert not Report("r", checks=[Check("same problem", "c", False, "")]).comparable


# ------------------------------------------------------------ what is compared


def fitted(coef: Any, dataset: datasets.Dataset) -> mm.Perceptron:
    model = mm.Perceptron(stop="epochs", max_epochs=1).fit(dataset.X, dataset.y)
    model.coef_ = np.asarray(coef, dtype=np.float64)
    return model


def test_forged_weights_are_not_the_same_problem() -> None:
    dataset = datasets.load("dense-float64", None, quick=True)
    model = mm.Perceptron(stop="epochs", max_epochs=2).fit(dataset.X, dataset.y)
    assert objective.same_updates(model, model, dataset).holds is True
    nearly = fitted(model.coef_ * (1 + 1e-6), dataset)
    nearly.intercept_ = model.intercept_
    assert objective.same_updates(model, nearly, dataset).holds is None
    opposite = fitted(-model.coef_, dataset)
    assert objective.same_updates(model, opposite, dataset).holds is False


def test_wrong_kernel_values_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    block = gram_blocks.random_block(200, 200, 16)
    assert kernel_tiles._check_values(block).holds is True
    wrong = np.exp(-2 * block.gamma * cdist(block.A, block.B, "sqeuclidean"))
    monkeypatch.setitem(kernel_tiles.CANDIDATES, "maxmargin", lambda _block: lambda: wrong)
    assert kernel_tiles._check_values(block).holds is False


@pytest.mark.parametrize("name", datasets.SYNTHETIC)
def test_synthetic_sets_are_the_same_each_time(name: str) -> None:
    first, second = (datasets.SYNTHETIC[name](True) for _ in range(2))
    assert first.name == name
    assert (first.X != second.X).sum() == 0
    assert np.array_equal(first.y, second.y)
    assert set(np.unique(first.y)) == {-1, 1}


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


def test_unknown_cases_are_refused() -> None:
    with pytest.raises(SystemExit, match="this benchmark has d=16"):
        kernel_tiles.run(Options(only=("d=17",)))


# ------------------------------------------------------------ linear machines


@pytest.mark.parametrize("name", linear_machines.CANDIDATES)
def test_every_linear_machine_minimises_what_is_certified(name: str) -> None:
    candidate = linear_machines.CANDIDATES[name]
    dataset = datasets.sampled(datasets.load("dense-float32", None, quick=True), 300)
    kinds = [objective.LinearObjective(intercept) for intercept in ("penalized", "free")]
    wanted = [kind for kind in kinds if candidate.refusal(dataset, kind) is None]
    assert len(wanted) == {"maxmargin": 2, "skglm": len(wanted)}.get(name, 1)
    hard = candidate.settings[12] if candidate.unit == "epochs" else 1e-6
    for kind in wanted:
        us = linear_machines.Ours().fit(dataset.X, dataset.y, kind, 1e-9)
        model = candidate.fit(candidate.rows(dataset), dataset.y, kind, hard)
        value = kind.value(dataset, *candidate.weights(model))
        assert -1e-9 <= objective.suboptimality(value, us.certificate_.dual) <= 1e-2


def test_the_objective_of_regression_is_the_one_that_is_certified() -> None:
    dataset = datasets.sampled(datasets.load("sparse-synthetic", None, quick=True), 300)
    wanted, us = objective.LinearObjective("penalized", epsilon=0.5), linear_machines.Ours()
    model = us.fit(dataset.X, dataset.y, wanted, 1e-9)
    value = wanted.value(dataset, *us.weights(model))
    assert value == pytest.approx(model.certificate_.primal, rel=1e-9)
    theirs = linear_machines.Liblinear()
    value = wanted.value(dataset, *theirs.weights(theirs.fit(dataset.X, dataset.y, wanted, 1e-6)))
    assert 0 <= objective.suboptimality(value, model.certificate_.dual) <= 1e-3


def test_the_first_fit_near_enough_counts() -> None:
    tried = [linear_sweep.Point(0.1, 1.0, 1.0, P) for P in (3.0, 2.02, 2.0002, 2.0001)]
    found = linear_sweep.Sweep(tried, bound=2.0, budget=10.0, cut=True)
    assert [found.reached(target) for target in (1e-1, 1e-3, 1e-6)] == [tried[1], tried[2], None]
    assert found.best == pytest.approx(5e-5)


def test_a_slow_child_is_killed_and_one_that_fails_is_not_taken_for_slow() -> None:
    code = "import time; print('first', flush=True); time.sleep(600)"
    slow = linear_sweep.Printed(["-c", code], {}, first=60.0, each=0.1)
    assert (list(slow), slow.cut) == (["first\n"], True)
    fails = linear_sweep.Printed(["-c", "raise SystemExit('no')"], {}, first=60.0, each=60.0)
    with pytest.raises(RuntimeError, match="no"):
        list(fails)


@pytest.mark.parametrize("name", ["dense-float32", "sparse-synthetic"])
def test_columns_are_divided_by_their_largest(name: str) -> None:
    X = datasets.load(name, None, quick=True).X
    scaled = linear_table.scaled_by_largest(X)
    assert (type(scaled), scaled.dtype) == (type(X), X.dtype)
    largest = abs(scaled).max(axis=0)
    assert set(np.unique(largest.toarray() if hasattr(largest, "toarray") else largest)) <= {0, 1}


def table_cell(status: str, gap: float) -> linear_table.Found:
    return linear_table.Found("a", "2×2", True, 1.0, status, gap, 1.0, 0.1, 3, "newton")


def test_a_run_that_was_ended_goes_on(tmp_path: Path) -> None:
    linear_table.Kept(tmp_path, "this source").add(table_cell("OPTIMAL", 0.0))
    with (tmp_path / "linear-table.partial.jsonl").open("a") as file:
        file.write('{"of": "this')  # killed while it wrote
    for _ in range(2):
        kept = linear_table.Kept(tmp_path, "this source")
    assert kept.get("a", True, 1.0) == table_cell("OPTIMAL", 0.0)
    assert linear_table.Kept(tmp_path, "another").get("a", True, 1.0) is None


def test_a_claim_without_proof_is_found() -> None:
    true, honest, forged = ("OPTIMAL", 1e-7), ("MAX_TIME", 1e-2), ("OPTIMAL", 1e-2)
    for said, verdicts in ((true, [True, True]), (honest, [True, False]), (forged, [False] * 2)):
        assert [check.holds for check in linear_table._checks([table_cell(*said)])] == verdicts


# ------------------------------------------------------------ whole runs


def run(tmp_path: Path, *arguments: str) -> Any:
    assert main([*arguments, "--quick", "--out", str(tmp_path)]) == 0
    name = arguments[0]
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / f"{name}.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text  # folders are nobody's business
    content = json.loads(text)
    assert content["benchmark"] == name
    assert content["facts"]["versions"]["maxmargin"] == mm.__version__
    return content


def test_perceptron_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = ("dense-float32", "sparse-synthetic")
    content = run(tmp_path, "perceptron", "--repeats", "2", "--only", *sets)
    printed = capsys.readouterr().out
    assert "ratio, wall" in printed
    assert [row["data"] for row in content["tables"][0]["rows"]] == [
        name for name in sets for _order in range(2)
    ]
    assert all(check["holds"] for check in content["checks"])


def test_kernel_tiles_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = run(tmp_path, "kernel-tiles", "--repeats", "1", "--only", "d=64", "--threads", "1")
    assert "maxmargin / GEMM" in capsys.readouterr().out
    (row,) = content["tables"][0]["rows"]
    assert row["threads"] == 1
    assert row["maxmargin / GEMM"]["median"] > 0


def test_startup_runs_whatever_the_children_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = json.dumps({"seconds": 1.0, "loops": {"perceptron.binary_pass": 1}, "cached": 0})
    monkeypatch.setattr(startup, "run_python", lambda _arguments: "")
    monkeypatch.setattr(cold, "run_python", lambda _arguments, _environment: said)
    monkeypatch.setattr(cold, "_copied_package", lambda folder: {"NUMBA_CACHE_DIR": str(folder)})
    content = run(tmp_path, "startup", "--repeats", "2")
    assert "ratio to import sklearn" in capsys.readouterr().out
    assert len(content["tables"]) == 2


def in_this_process(
    file: Path, name: str, bound: float, _enough: float, budget: float, _threads: int
) -> linear_sweep.Sweep:
    dataset, wanted = pickle.loads(file.read_bytes())
    tried = linear_sweep.points(dataset, wanted, name)
    return linear_sweep.Sweep(list(itertools.islice(tried, 4)), bound, budget, cut=True)


def test_linear_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(linear_race, "sweep", in_this_process)
    content = run(tmp_path, "linear", "--repeats", "1", "--only", "dense-float32", "growth")
    assert "LIBLINEAR / maxmargin" in capsys.readouterr().out
    targets, fits, certificates, growth = (table["rows"] for table in content["tables"])
    assert [row["target"] for row in targets] == 2 * ["1e-03", "1e-04", "1e-06"]
    assert {row["solver"] for row in fits} >= {"LIBLINEAR", "SGD", "LIBSVM"}
    assert all(row["status"] == "OPTIMAL" for row in certificates)
    assert growth[-1]["rows"] == "slope of log s by log n"


def test_linear_table_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"heart_scale": 2, "satimage": 3, "housing_scale": 7}
    for name, labels in names.items():
        points = np.random.default_rng(0).normal(size=(30, 2))
        lines = (f"{k % labels} 1:{x} 2:{z}\n" for k, (x, z) in enumerate(points))
        (tmp_path / f"{name}.svm.xz").write_bytes(lzma.compress("".join(lines).encode()))
    monkeypatch.setattr(linear_table, "FOLDER", tmp_path)
    content = run(tmp_path, "linear-table", "--data", str(tmp_path), "--only", *names)
    assert "heart_scale (30×13, 2 entries a row) scaled, C=100: OPTIMAL" in capsys.readouterr().out
    assert len(content["tables"][0]["rows"]) == len(names) * 2 * len(linear_table.COSTS)
    assert all(check["holds"] for check in content["checks"])
    assert "satimage" in (tmp_path / "linear-table.md").read_text("utf-8")
    assert not (tmp_path / "linear-table.partial.jsonl").exists()


@pytest.mark.full
def test_linear_runs_with_children(tmp_path: Path) -> None:
    content = run(tmp_path, "linear", "--repeats", "1", "--only", "dense-float32", "memory")
    assert len(content["tables"]) == 4


@pytest.mark.full
def test_startup_runs(tmp_path: Path) -> None:
    content = run(tmp_path, "startup", "--repeats", "1")
    (cold_check,) = (c for c in content["checks"] if c["kind"] == "same problem")
    assert cold_check["holds"]


@pytest.mark.full
def test_streams_run(tmp_path: Path) -> None:
    from benchmarks.suite.streams import stream_table

    rows = stream_table(Options(quick=True)).rows
    assert [row[0] for row in rows] == ["maxmargin", "scikit-learn"]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_says_what_it_is(name: str) -> None:
    import importlib

    module = importlib.import_module(BENCHMARKS[name])
    assert module.__doc__
    assert callable(module.run)


def recommended(ours: list[bool], search: list[bool], classes: list[int], scoring: str) -> Any:
    """Return a set of one fold on which one side and the other were right on these rows."""
    from benchmarks.suite.recommend import MARGINS, Case, Fold

    sides = {MARGINS: ours}, {MARGINS: search}
    return Case("set", [Fold("no signal", scoring, classes, *sides, {}, {}, {})])


def test_a_recommendation_holds_within_a_point_or_two_standard_errors() -> None:
    right, some = [True] * 1000, [True] * 992 + [False] * 8
    classes = [0] * 1000
    assert recommended(some, right, classes, "accuracy").holds("large margin")
    far = [True] * 960 + [False] * 40
    assert not recommended(far, right, classes, "accuracy").holds("large margin")
    assert recommended(right, far, classes, "accuracy").holds("large margin")
    # Of 20 rows, one more error is two points and a half behind, and says nothing.
    assert recommended([True] * 19 + [False], [True] * 20, [0] * 20, "accuracy").holds(
        "large margin"
    )


def test_a_recommendation_is_judged_by_the_metric_it_states() -> None:
    rare = [1] * 10 + [0] * 990
    missed = [False] * 10 + [True] * 990
    plain = recommended(missed, [True] * 1000, rare, "accuracy")
    fair = recommended(missed, [True] * 1000, rare, "balanced_accuracy")
    np.testing.assert_allclose(plain.behind("large margin")[0], 0.01)
    np.testing.assert_allclose(fair.behind("large margin")[0], 0.5)
    np.testing.assert_allclose(fair.scores("ours", "large margin"), 0.5)
    assert plain.holds("large margin")
    assert not fair.holds("large margin")


def test_sets_to_recommend_for_keep_their_shares() -> None:
    from benchmarks.suite.recommend import drawn

    y = np.repeat(["many", "few", "hardly any"], [3000, 300, 3])
    X = np.arange(len(y), dtype=float)[:, None]
    rows, labels = drawn(X, y, 1100)
    assert rows.shape == (1100, 1)
    assert np.bincount(labels).tolist() == [100, 1000]  # few, many


@pytest.mark.full
def test_recommend_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    first = run(tmp_path, "recommend", "--only", "iris")
    known = (tmp_path / "recommend.partial.jsonl").read_text()
    assert run(tmp_path, "recommend", "--only", "iris")["tables"] == first["tables"]
    assert (tmp_path / "recommend.partial.jsonl").read_text() == known


# ------------------------------------------------------------ two checkouts


def against(tmp_path: Path, name: str, trial: str) -> Any:
    root = Path(__file__).parents[1]
    options = ["--quick", "--repeats", "2", "--only", trial, "--out", str(tmp_path)]
    assert main([name, "--against", str(root), *options]) == 0
    content = json.loads((tmp_path / f"{name}-against.json").read_text("utf-8"))
    assert str(root) not in json.dumps(content)
    return content


@pytest.mark.parametrize(
    ("name", "trial"),
    [
        ("linear", "sparse-synthetic"),
        pytest.param("kpca", "dense", marks=pytest.mark.full),
        pytest.param("kernel", "NuSVC", marks=pytest.mark.full),
        pytest.param("search", "dense-float64", marks=pytest.mark.full),
    ],
)
def test_a_checkout_against_itself_agrees(tmp_path: Path, name: str, trial: str) -> None:
    content = against(tmp_path, name, trial)
    one, mean = content["tables"][0]["rows"]
    assert (one["trial"], one["results apart"]) == (trial, 0.0)
    assert one["old/new, CPU"]["median"] == pytest.approx(mean["old/new, CPU"])
    assert [c["holds"] for c in content["checks"] if c["kind"] == "same problem"] == [True]


def duel(old: dict[str, Any], new: dict[str, Any]) -> Duel:
    trial = Trial("t", "SVC", {}, np.zeros((2, 2)), tol=1e-4)
    samples = {tree: [Sample(wall, wall)] for tree, wall in (("old", 2.0), ("new", 4.0))}
    answers = {
        tree: {"peak": 100.0, "gap": 1e-6, "results": [5.0, 1.0], **said}
        for tree, said in (("old", old), ("new", new))
    }
    return Duel(trial, Timings(samples), answers)


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
    assert duel(old, new).check().holds is holds


def test_what_became_slower_or_larger_is_named() -> None:
    slower = duel({}, {"peak": 120.0})
    assert slower.times("cpu").median == 0.5
    verdicts = {check.claim.split(":")[0]: check for check in targets([slower])}
    assert [check.holds for check in targets([slower])] == [False] * 5
    assert "t 0.50" in verdicts["cpu time"].found
    assert [check.holds for check in targets([duel({"peak": 120.0}, {})])][-1] is True


def test_only_a_checkout_is_compared_with(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="neither a checkout of maxmargin nor its src folder"):
        main(["kpca", "--quick", "--against", str(tmp_path)])
    with pytest.raises(SystemExit, match="maps has no trials for two checkouts"):
        main(["maps", "--against", str(tmp_path)])
