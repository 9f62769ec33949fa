"""``mm.certify`` on rows in blocks is that of the same rows in memory."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC as OtherSVC

import maxmargin as mm
from maxmargin.certificates import certify_with_duals
from maxmargin.cli import main
from maxmargin.estimators.linear import base
from maxmargin.problems.blocked import BlockedProblem, HingeRule, TubeRule
from maxmargin.problems.problem import Intercept, Point
from maxmargin.rows.blocks import RowsInMemory
from maxmargin.rows.on_dask import RowsOnDask
from maxmargin.rows.survey import survey
from tests.rows.conftest import Cluster

certify: Any = mm.certify  # which also knows perceptrons
RNG = np.random.default_rng(1)
X = RNG.normal(size=(2000, 6)) * [1, 10, 0.1, 1, 1, 1]
TWO = np.where(X[:, 0] + 0.1 * X[:, 1] + RNG.normal(0, 0.5, 2000) > 0.2, "yes", "no")
THREE = np.digitize(X[:, 0] + RNG.normal(0, 0.3, 2000), [-0.5, 0.5])
NUMBERS = X @ [1.0, -0.1, 2.0, 0.1, 0, 0] + RNG.normal(0, 0.2, 2000)
WEIGHT = RNG.integers(0, 3, 2000).astype(float)
MODELS = {
    "two": (mm.LinearSVC(), TWO),
    "loose": (mm.LinearSVC(tol=0.05, C=10.0), TWO),
    "pairs": (mm.LinearSVC(multi_class="ovo"), THREE),
    "rest": (mm.LinearSVC(loss="squared_hinge", class_weight="balanced"), THREE),
    "penalized": (mm.LinearSVC(intercept="penalized"), TWO),
    "numbers": (mm.LinearSVR(), NUMBERS),
}


def assert_alike(found: Any, whole: Any) -> None:
    """Compare certificates up to rounding."""
    assert found.primal == pytest.approx(whole.primal, rel=1e-12)
    assert found.dual == pytest.approx(whole.dual, rel=1e-12)
    assert found.intercept == pytest.approx(whole.intercept, rel=1e-9, abs=1e-12)
    assert found.caveat == whole.caveat
    assert len(found.parts) == len(whole.parts)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])
@pytest.mark.parametrize("name", MODELS)
def test_certificates_are_those_of_rows_in_memory(name: str, weight: Any) -> None:
    model, y = MODELS[name]
    model = clone(model).fit(X, y, sample_weight=weight)
    source = mm.data.open(X, y, weight=weight, rows=300)
    assert_alike(certify(model, source), certify(model, X, y, weight))
    again = clone(model).fit(source)
    assert_alike(certify(again, X, y, weight), certify(again, source))


@pytest.mark.parametrize("name", MODELS)
def test_duals_are_found_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "KEPT_NUMBERS", 10)
    model, y = MODELS[name]
    source = mm.data.open(X, y, rows=300)
    model = clone(model).fit(source)
    assert not hasattr(model, "alpha_")
    for found in (certify(model, source), certify(model, X, y)):
        fitted = model.certificate_
        assert found.primal == pytest.approx(fitted.primal, rel=1e-10)
        assert found.dual <= fitted.primal * (1 + 1e-12)
        assert found.holds(model.tol)
        assert found.dual >= fitted.dual - 2e-6 * fitted.primal  # as good as what the fit had


def test_a_forged_plane_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    source = mm.data.open(X, TWO, rows=300)
    for kept in (1 << 24, 10):
        monkeypatch.setattr(base, "KEPT_NUMBERS", kept)
        model = mm.LinearSVC().fit(source)
        model.coef_ = model.coef_ * 1.5
        assert not certify(model, source).holds(1e-4)


def test_duals_of_other_rows_prove_nothing_false() -> None:
    model = mm.LinearSVC().fit(X, TWO)
    best = model.certificate_
    for rows in (slice(None, None, -1), slice(0, 1500)):
        source = mm.data.open(X[rows], TWO[rows], rows=300)
        found, optimum = certify(model, source), mm.LinearSVC().fit(X[rows], TWO[rows])
        assert found.dual <= optimum.certificate_.primal * (1 + 1e-9)
        assert found.primal >= optimum.certificate_.dual * (1 - 1e-9)
    assert certify(model, X, TWO).dual == pytest.approx(best.dual, rel=1e-9)


def test_too_little_time_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "KEPT_NUMBERS", 10)
    source = mm.data.open(X, TWO, rows=300)
    model = mm.LinearSVC().fit(source)
    found = certify(model, source, max_time=1e-9)
    assert "was not found in time" in found.caveat
    assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-10)
    assert 0 <= found.dual <= model.certificate_.primal
    assert not found.holds(1e-4)
    assert not certify(model, source, max_time=None).caveat


def test_pipelines_and_sparse_rows() -> None:
    source = mm.data.open(X, TWO, rows=300)
    pipeline = make_pipeline(StandardScaler(), mm.LinearSVC()).fit(X, TWO)
    assert_alike(certify(pipeline, source), certify(pipeline, X, TWO))
    rows = sp.random_array((2000, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    model = mm.LinearSVC().fit(rows, TWO)
    assert_alike(certify(model, mm.data.open(rows, TWO, rows=300)), certify(model, rows, TWO))


def test_what_cannot_be_certified_is_said() -> None:
    source = mm.data.open(X, TWO, rows=300)
    with pytest.raises(TypeError, match="all rows in memory, but these are read in blocks"):
        certify(OtherSVC().fit(X, TWO), source)
    model = mm.LinearSVC().fit(source)
    with pytest.raises(ValueError, match=r"give it to mm\.data\.open"):
        certify(model, source, TWO)
    with pytest.raises(ValueError, match="y"):
        certify(model, X)
    other = np.where(TWO == "yes", "maybe", "no")
    with pytest.raises(ValueError, match="fitted to"):
        certify(model, mm.data.open(X, other))


def test_dask(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    da = pytest.importorskip("dask.array")
    client = cluster.ready()
    rows, labels = da.from_array(X, chunks=(500, 6)), da.from_array(TWO, chunks=500)
    model = mm.LinearSVC().fit(X, TWO)
    whole = certify(model, X, TWO)
    assert_alike(certify(model, rows, labels), whole)  # in this process
    source = mm.data.open(rows, labels, client=client)
    assert_alike(certify(model, source), whole)
    monkeypatch.setattr(base, "KEPT_NUMBERS", 10)
    model = mm.LinearSVC().fit(source)
    assert certify(model, source).holds(1e-4)


# ------------------------------------------------------------------- on workers


RULES: dict[str, Any] = {
    "hinge": HingeRule(0.5, "hinge", (1.0, 2.0), 1),
    "squared tube": TubeRule(0.5, "squared_epsilon_insensitive", 0.1),
}


@pytest.mark.parametrize("kind", ["dense", "sparse", "far"])
@pytest.mark.parametrize("name", RULES)
def test_workers_give_the_bits_of_certificates_in_memory(
    cluster: Cluster, name: str, kind: str
) -> None:
    rule, rng = RULES[name], np.random.default_rng(0)
    X: Any = rng.standard_normal((12_000, 47)) + (1e4 if kind == "far" else 0.0)
    if kind == "sparse":
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
    w = rng.standard_normal(47) / 47
    margin, targets = X @ w + rng.standard_normal(12_000), name == "squared tube"
    y = margin if targets else (margin > np.median(margin)).astype(np.int64)
    weight = rng.integers(0, 3, 12_000).astype(np.float64)
    loss = rule(y, weight)
    beta = np.clip(0.1 * rng.standard_normal(12_000), loss.low, loss.high)  # unbalanced
    intercept = Intercept.PENALIZED if kind == "sparse" else Intercept.FREE
    memory = BlockedProblem(RowsInMemory(X, loss), intercept, 2.0)
    expected, duals = certify_with_duals(memory, Point(w, 0.1, beta))
    source = mm.data.open(X, y, weight=weight, rows=1700)
    seen = survey(source, targets=targets)
    rows = RowsOnDask(source, seen, cluster.ready(2), regression=targets)
    blocks = rows.with_loss(rule)
    blocks.put("beta", beta)
    point = Point(w, 0.1, blocks.vector("beta"))
    found, handle = certify_with_duals(BlockedProblem(blocks, intercept, 2.0), point)
    assert found == expected
    assert_array_equal(handle.array(), duals)
    assert_array_equal(blocks.vector("score").array(), memory.blocks.vector("score"))


def test_the_command_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    cluster.ready()
    monkeypatch.chdir(tmp_path)
    for k in range(2):
        part = slice(1000 * k, 1000 * k + 1000)
        columns = {f"x{j}": X[part, j] for j in range(6)}
        pq.write_table(pa.table({**columns, "label": TWO[part]}), f"part-{k}.parquet")

    def run(*words: str) -> Any:
        said = CliRunner().invoke(main, [*words, "--json"])
        assert said.exit_code == 0, said.output
        return json.loads(said.stdout)

    there = run("fit", "part-*.parquet", "-o", "there.mmg", "--cluster", cluster.address)
    here = run("fit", "part-*.parquet", "-o", "here.mmg")
    assert there["certificate"] == here["certificate"]
    assert np.array_equal(mm.load("there.mmg")[-1].coef_, mm.load("here.mmg")[-1].coef_)
    proved = run("certify", "here.mmg", "part-*.parquet")
    assert (proved["rows"], proved["certificate"]["holds"]) == (2000, True)
