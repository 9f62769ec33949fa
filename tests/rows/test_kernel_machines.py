"""Kernel machines and sources: rows that fit are read, others are mapped and fitted in blocks."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import maxmargin as mm
from maxmargin.problems.problem import Status

N, D = 8000, 40
TIGHT = 6_200_000  # bytes: less than twice what the rows take, so that they are read in blocks


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    """Return rows of two classes that few support vectors tell apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    X[:, 4:] *= 0.05
    return X, np.where(X[:, 0] + X[:, 1] * X[:, 3] > 0, "yes", "no")


def test_a_source_that_fits_gives_the_machine_of_its_rows(rows: tuple[Any, Any]) -> None:
    X, y = rows[0][:2000], rows[1][:2000]
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    source = mm.data.open(X, y, weight=weight, rows=333)
    one, other = mm.SVC(C=10.0).fit(X, y, weight), mm.SVC(C=10.0).fit(source)
    np.testing.assert_array_equal(other.dual_coef_, one.dual_coef_)
    np.testing.assert_array_equal(other.intercept_, one.intercept_)
    assert mm.certify(other, source) == mm.certify(one, X, y, weight)
    assert (other.predict(source) == one.predict(X)).all()
    scores = other.decision_function(source)
    np.testing.assert_allclose(scores, one.decision_function(X), atol=1e-10)
    assert mm.SVR(gamma=0.5).fit(mm.data.open(X[:500], X[:500, 0])).status_ is Status.OPTIMAL
    assert mm.OneClassSVM().fit(mm.data.open(X[:500])).status_ is Status.OPTIMAL


@pytest.mark.parametrize("kind", ["SVC", "NuSVC", "SVR", "OneClassSVM"])
def test_rows_that_do_not_fit_are_refused_with_the_way_out(
    rows: tuple[Any, Any], kind: str
) -> None:
    X, y = rows
    targets = {"SVC": y, "NuSVC": y, "SVR": X[:, 0], "OneClassSVM": None}[kind]
    named = rf"{kind} needs all rows in memory(.|\n)*Nystroem(.|\n)*LinearSVC(.|\n)*PartitionedSVC"
    with pytest.raises(ValueError, match=named):
        getattr(mm, kind)().fit(mm.data.open(X, targets, memory=TIGHT))


def test_rows_on_a_cluster_are_refused_with_the_way_out(
    rows: tuple[Any, Any], cluster: Any
) -> None:
    source = mm.data.open(*rows, client=cluster.ready(2))
    with pytest.raises(ValueError, match=r"on a cluster(.|\n)*Nystroem"):
        mm.SVC().fit(source)


# ------------------------------------------------------------------- feature maps


@pytest.mark.wide
@pytest.mark.parametrize(
    "asked",
    [
        {"n_components": 40, "error_rows": 900},
        {"n_components": 30, "landmarks": "leverage", "gamma": 0.4},
        {"n_components": 20, "landmarks": "kmeans", "gamma": 0.4},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["dense", "float32", "csr"])
def test_maps_of_sources_are_those_of_rows(
    rows: tuple[Any, Any], asked: dict[str, Any], form: str
) -> None:
    X, y = rows
    X = {"dense": X, "float32": X.astype(np.float32), "csr": sp.csr_array(X * (X > -1))}[form]
    source = mm.data.open(X, y, memory=12_000_000, rows=1500)
    one, other = mm.Nystroem(**asked).fit(X), mm.Nystroem(**asked).fit(source)
    assert other.n_features_in_ == D
    gammas = [phi.kernel_.get_params()["gamma"] for phi in (one, other)]
    assert gammas[1] == pytest.approx(gammas[0], rel=1e-13)
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
