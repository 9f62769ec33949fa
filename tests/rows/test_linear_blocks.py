"""Linear machines on rows in blocks: the model and the certificate of the same rows in memory."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from tests.rows.conftest import Cluster
from tests.rows.test_row_sources import NAMED, OPENERS, dask_sources, make_rows

N, D = 16_000, 12  # two leaves; few enough numbers for solutions to be polished
LARGE = 66_000  # eight leaves
NAMES = np.array(["cat", "dog", "eel", "fox"])
OF_PLANES = ("coef_", "intercept_", "margin_")
OF_ROWS = ("alpha_", "dual_coef_", "support_", "n_support_", "bound_multiplier_")


class Case(NamedTuple):
    """Rows and parameters."""

    parameters: dict[str, Any]
    classes: int = 2  # 0: targets
    kind: str = "dense"
    weights: str = ""  # "any": some; "zeros": some of them 0
    n: int = N
    same: bool = True  # the same problem in memory: else rows that cost nothing are left out there


CASES = {
    "hinge": Case({}),
    "many rows": Case({"C": 0.1}, n=LARGE),
    "many rows, squared": Case({"loss": "squared_hinge"}, n=LARGE, classes=3, weights="any"),
    "many rows, CSR": Case({"C": 0.1}, n=LARGE, kind="CSR"),
    "many rows, pairs": Case(
        {"multi_class": "ovo", "loss": "squared_hinge"}, n=LARGE, classes=3, same=False
    ),
    "many rows, tube": Case({"C": 0.1}, classes=0, n=LARGE, weights="zeros", same=False),
    "squared hinge": Case({"loss": "squared_hinge"}),
    "penalised": Case({"intercept": "penalized", "intercept_scaling": 2.0}),
    "penalised, squared": Case({"intercept": "penalized", "loss": "squared_hinge"}),
    "no intercept": Case({"fit_intercept": False}),
    "no intercept, squared": Case({"fit_intercept": False, "loss": "squared_hinge"}),
    "one against the rest": Case({"C": 0.3}, classes=4),
    "one against one": Case({"C": 0.3, "multi_class": "ovo"}, classes=4, same=False),
    "one against one, squared": Case(
        {"multi_class": "ovo", "loss": "squared_hinge"}, classes=4, same=False
    ),
    "balanced": Case({"class_weight": "balanced"}, weights="any"),
    "class weights": Case({"class_weight": {"cat": 3.0, "dog": 0.5}}),
    "a class without weight": Case(
        {"class_weight": {"eel": 0.0}}, classes=4, weights="any", same=False
    ),
    "weights": Case({}, weights="any"),
    "zero weights": Case({"class_weight": "balanced"}, weights="zeros", same=False),
    "float32": Case({}, kind="float32"),
    "CSR": Case({}, classes=4, kind="CSR"),
    "CSR float32": Case({"loss": "squared_hinge"}, kind="CSR float32", weights="any"),
    "tube": Case({"epsilon": 0.3}, classes=0),
    "tube, squared": Case(
        {"loss": "squared_epsilon_insensitive", "epsilon": 0.1}, classes=0, weights="any"
    ),
    "tube, zero weights": Case({"epsilon": 0.5}, classes=0, weights="zeros", same=False),
    "tube, penalised, CSR": Case({"intercept": "penalized"}, classes=0, kind="CSR"),
}
SOURCES = {"small": (777, "4.4MB"), "large": (9_000, "64MB")}  # rows in parts, memory


@cache
def rows_of(case: str) -> tuple[Any, Any, Any]:
    """Return X, y and weights of a case."""
    _, classes, kind, weights, n, _ = CASES[case]
    rng = np.random.default_rng(len(case))
    X: Any = rng.standard_normal((n, D)) * np.linspace(0.5, 2, D) + rng.standard_normal(D)
    if "CSR" in kind:
        X *= rng.random(X.shape) < 0.3
    X = X.astype(np.float32 if "float32" in kind else np.float64)
    scores = X @ rng.standard_normal((D, max(classes, 1))) / 3
    scores += rng.standard_normal(scores.shape)
    y = NAMES[np.argmax(scores - scores.mean(axis=0), axis=1)] if classes else scores[:, 0] + 7
    weight = None
    if weights:
        weight = rng.integers(0 if weights == "zeros" else 1, 4, n) * 0.5
    return (sp.csr_array(X) if "CSR" in kind else X), y, weight


def machine(case: str, **more: Any) -> Any:
    kind: Any = mm.LinearSVC if CASES[case].classes else mm.LinearSVR
    return kind(**CASES[case].parameters, **more)


@cache
def in_memory(case: str) -> Any:
    return machine(case).fit(*rows_of(case))


def opened(case: str, **options: Any) -> Any:
    X, y, weight = rows_of(case)
    return mm.data.open(X, y, weight=weight, **options)


def certificates(model: Any) -> list[Any]:
    """Return the certificate of each plane."""
    return list(model.certificate_.parts) or [model.certificate_]


def assert_same_certificates(found: Any, expected: Any) -> None:
    """Check that bounds are the same, and what else is said; in memory other sums find them."""
    for ours, theirs in zip(certificates(found), certificates(expected), strict=True):
        assert (ours.intercept, ours.caveat) == (theirs.intercept, theirs.caveat)
        assert_allclose((ours.primal, ours.dual), (theirs.primal, theirs.dual), rtol=1e-14)
        for name in ("max_kkt_violation", "distance_bound", "infeasibility"):
            assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-2, atol=1e-11)


def assert_same_model(found: Any, expected: Any) -> None:
    """Check that all is the same to the last bit, but for slacks, which other sums give."""
    for name in (*OF_PLANES, *OF_ROWS):
        if hasattr(expected, name):
            assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert_allclose(found.slack_, expected.slack_, rtol=0, atol=1e-13)
    assert_same_certificates(found, expected)
    assert found.status_ == expected.status_
    assert found.n_iter_ == expected.n_iter_
    if hasattr(expected, "classes_"):
        assert_array_equal(found.classes_, expected.classes_)


def assert_near(found: Any, expected: Any) -> None:
    """Check what must hold of two solutions of the same problem that were found differently.

    ½‖w − w*‖² is no more than the gap, of each of them. Where both are exact, they are the same.
    """
    ours, theirs = certificates(found), certificates(expected)
    planes = zip(np.atleast_2d(found.coef_), np.atleast_2d(expected.coef_), strict=True)
    exact = True
    for (one, other), a, b in zip(planes, ours, theirs, strict=True):
        apart = np.linalg.norm(one - other)
        assert apart <= np.sqrt(2 * max(a.gap, 0)) + np.sqrt(2 * max(b.gap, 0)) + 1e-10
        exact_here = max(a.gap, b.gap) <= 1e-14 * a.primal
        exact = exact and exact_here
        if exact_here:
            assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(expected.coef_).max())
            assert_allclose(a.primal, b.primal, rtol=1e-11)
    if exact:
        assert_allclose(found.intercept_, expected.intercept_, rtol=1e-9, atol=1e-10)
        assert_allclose(found.slack_, expected.slack_, rtol=0, atol=1e-9)
        assert_allclose(found.alpha_, expected.alpha_, rtol=0, atol=1e-7 * expected.alpha_.max())
        assert_array_equal(found.support_, expected.support_)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("case", CASES)
def test_rows_on_disk_give_the_model_of_rows_in_memory(case: str, source: str) -> None:
    rows, memory = SOURCES[source]
    if CASES[case].n == LARGE:
        memory = {"small": "6.2MB", "large": "17MB"}[source]
    found = machine(case).fit(opened(case, rows=rows, memory=memory))
    if not hasattr(found, "alpha_"):  # they do not fit into so little memory
        assert not CASES[case].same or np.array_equal(found.coef_, in_memory(case).coef_)
        assert found.certificate_.holds(found.tol)
        return
    (assert_same_model if CASES[case].same else assert_near)(found, in_memory(case))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("case", [case for case in CASES if CASES[case].n == LARGE])
def test_workers_give_the_model_of_rows_on_disk_and_in_memory(
    cluster: Cluster, case: str, workers: int
) -> None:
    found = machine(case).fit(opened(case, rows=20_000, client=cluster.ready(workers)))
    assert_same_model(found, machine(case).fit(opened(case, rows=7_777)))
    (assert_same_model if CASES[case].same else assert_near)(found, in_memory(case))


@pytest.mark.wide
@pytest.mark.parametrize("case", ["many rows, squared", "CSR", "tube"])
def test_threads_change_no_bit(case: str) -> None:
    one, two = (machine(case, n_jobs=k).fit(opened(case, rows=1000)) for k in (1, 2))
    assert_same_model(one, two)
    assert_same_model(one, in_memory(case))


# ------------------------------------------------------------------- where rows come from


def labelled_rows(n: int = 3000) -> Any:
    rows, noise = make_rows(n), np.random.default_rng(0).standard_normal(n)
    return rows._replace(y=np.where(rows.X @ [1, -1, 2, 0] + noise > 0, "yes", "no"))


@pytest.mark.parametrize("kind", [*OPENERS, *NAMED])
def test_the_model_does_not_depend_on_where_rows_are(kind: str, tmp_path: Path) -> None:
    rows = labelled_rows()
    source = (OPENERS | NAMED)[kind](rows, tmp_path)
    expected = mm.LinearSVC().fit(sp.csr_array(rows.X) if source.sparse else rows.X, rows.y)
    found = mm.LinearSVC().fit(source)
    assert_same_model(found, expected)
    assert_array_equal(found.predict(source), expected.predict(rows.X))
    certificate: Any = mm.certify(found, source)
    assert certificate.holds(1e-4)


def test_collections_of_dask_are_fitted_as_they_are(cluster: Cluster) -> None:
    da: Any = pytest.importorskip("dask.array")
    rows = labelled_rows(103)
    expected = mm.LinearSVC().fit(rows.X, rows.y)
    array, labels = da.from_array(rows.X, chunks=(20, 3)), da.from_array(rows.y, chunks=31)
    assert_same_model(mm.LinearSVC().fit(array, labels), expected)
    for source in dask_sources(rows).values():
        for client in (None, cluster.ready(2)):
            found = mm.LinearSVC().fit(source.with_options(client=client))
            assert_same_model(found, expected)


# ------------------------------------------------------------------- scaled views


@pytest.mark.parametrize("case", ["hinge", "one against the rest", "squared hinge"])
def test_a_scaled_view_is_a_scaler_in_front(case: str) -> None:
    X, y, _ = rows_of(case)
    spread = np.logspace(-3, 3, D)
    scaler = StandardScaler().fit(X * spread)
    expected = machine(case).fit(scaler.transform(X * spread), y)
    view = mm.data.standardize(mm.data.open(X * spread, y, rows=1000))
    found = machine(case).fit(view)
    assert_near(found, expected)
    sure = np.abs(expected.decision_function(scaler.transform(X * spread))) > 1e-9
    scores = found.decision_function(view)
    assert_allclose(
        scores[sure], expected.decision_function(scaler.transform(X * spread))[sure], atol=1e-7
    )
    predicted = expected.predict(scaler.transform(X * spread))
    assert_array_equal(found.predict(view), predicted)
    assert_array_equal(make_pipeline(view.scaler, found).predict(X * spread), predicted)
