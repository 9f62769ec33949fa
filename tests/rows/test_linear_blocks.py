"""Linear machines on rows in blocks: the model and the certificate of the same rows in memory."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from tests.rows.conftest import Cluster

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


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("case", ["many rows, squared"])
def test_any_number_of_workers_gives_the_model_of_rows_in_memory(
    cluster: Cluster, case: str, workers: int
) -> None:
    found = machine(case).fit(opened(case, rows=9_000, client=cluster.ready(workers)))
    assert_same_model(found, in_memory(case))


@pytest.mark.parametrize(
    "case", ["many rows", "many rows, CSR", "many rows, pairs", "many rows, tube"]
)
def test_workers_give_the_model_of_rows_on_disk(cluster: Cluster, case: str) -> None:
    found = machine(case).fit(opened(case, rows=20_000, client=cluster.ready(2)))
    assert_same_model(found, machine(case).fit(opened(case, rows=7_777)))
    (assert_same_model if CASES[case].same else assert_near)(found, in_memory(case))


@pytest.mark.wide
@pytest.mark.parametrize("case", ["many rows, squared", "CSR", "tube"])
def test_threads_change_no_bit(case: str) -> None:
    one, two = (machine(case, n_jobs=k).fit(opened(case, rows=1000)) for k in (1, 2))
    assert_same_model(one, two)
    assert_same_model(one, in_memory(case))


# ------------------------------------------------------------------- where rows come from


class Again:
    """Chunks that can be iterated over again and again."""

    def __init__(self, X: Any, y: Any, rows: int) -> None:
        self.X, self.y, self.rows = X, y, rows

    def __iter__(self) -> Iterator[Any]:
        return mm.data.chunks(self.X, self.y, self.rows)


def npy(X: Any, y: Any, folder: Path) -> Any:
    np.save(folder / "X.npy", X)
    return mm.data.open(folder / "X.npy", y, rows=1000)


def memmap(X: Any, y: Any, folder: Path) -> Any:
    np.save(folder / "X.npy", X)
    return mm.data.open(np.load(folder / "X.npy", mmap_mode="r"), y, rows=1000)


def frame_of(X: Any, y: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(animal=y)


def parquet(X: Any, y: Any, folder: Path) -> Any:
    frame = frame_of(X, y)
    for number, begin in enumerate(range(0, len(X), 6000)):
        part = frame[begin : begin + 6000]
        part.to_parquet(folder / f"part-{number}.parquet", row_group_size=2500)
    return mm.data.open(str(folder / "part-*.parquet"), label="animal")


def csv(X: Any, y: Any, folder: Path) -> Any:
    frame_of(X, y).to_csv(folder / "rows.csv", index=False)
    return mm.data.open(folder / "rows.csv", label="animal", rows=3000)


def frame(X: Any, y: Any, folder: Path) -> Any:
    return mm.data.open(frame_of(X, y), label="animal", rows=3000)


def again(X: Any, y: Any, folder: Path) -> Any:
    return mm.data.open(Again(X, y, 1234))


def function(X: Any, y: Any, folder: Path) -> Any:
    return mm.data.open(lambda: mm.data.chunks(X, y, 1234))


def once(X: Any, y: Any, folder: Path) -> Any:
    return mm.data.open(mm.data.chunks(X, y, 1234))


def chunks(X: Any, y: Any, folder: Path) -> Any:
    return mm.data.open(list(mm.data.chunks(X, y, 1234)))


SAME_ROWS: list[Callable[..., Any]] = [
    npy, memmap, parquet, csv, frame, again, function, once, chunks,
]  # fmt: skip


@pytest.mark.parametrize("source", SAME_ROWS, ids=lambda source: str(source.__name__))
def test_the_model_does_not_depend_on_where_rows_are(source: Any, tmp_path: Path) -> None:
    X, y, _ = rows_of("hinge")
    rows = source(X, y, tmp_path)
    found = machine("hinge").fit(rows)
    assert_same_model(found, in_memory("hinge"))
    assert_array_equal(found.predict(rows), in_memory("hinge").predict(X))
    certificate: Any = mm.certify(found, rows)
    assert certificate.holds(1e-4)


def test_svmlight_text_is_the_same_rows(tmp_path: Path) -> None:
    X, y, _ = rows_of("CSR")
    path = tmp_path / "rows.svm"
    numbers = np.searchsorted(NAMES, y)
    with path.open("w") as file:
        for i, label in enumerate(numbers.tolist()):
            own = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip((X.indices[own] + 1).tolist(), X.data[own].tolist(), strict=True)
            file.write(" ".join([str(label), *(f"{j}:{value!r}" for j, value in pairs)]) + "\n")
    found = machine("CSR").fit(mm.data.open(path, rows=4000, n_features=D))
    expected = machine("CSR").fit(X, numbers)
    assert_same_model(found, expected)


@pytest.mark.parametrize("with_client", [False, True], ids=["here", "on workers"])
@pytest.mark.parametrize("kind", ["array", "frame", "delayed"])
def test_collections_of_dask_are_fitted_as_they_are(
    cluster: Cluster, kind: str, with_client: bool
) -> None:
    dask = pytest.importorskip("dask")
    case = "squared hinge"
    X, y, _ = rows_of(case)
    options = {"client": cluster.ready(2)} if with_client else {}
    if kind == "array":
        import dask.array

        rows, labels = dask.array.from_array(X, (3000, D)), dask.array.from_array(y, 3000)
        if not with_client:
            assert_same_model(machine(case).fit(rows, labels), in_memory(case))
        source = mm.data.open(rows, labels, **options)
    elif kind == "frame":
        import dask.dataframe

        table = dask.dataframe.from_pandas(frame_of(X, y), npartitions=5)
        source = mm.data.open(table, label="animal", **options)
    else:
        parts = [dask.delayed(part) for part in mm.data.chunks(X, y, 2500)]
        source = mm.data.open(parts, **options)
    assert_same_model(machine(case).fit(source), in_memory(case))


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
    assert_array_equal(found.predict(view), expected.predict(scaler.transform(X * spread)))
