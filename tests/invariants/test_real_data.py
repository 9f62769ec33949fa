"""Real data, where MAXMARGIN_DATA points to a folder of .svm.xz files."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import maxmargin as mm
from maxmargin.problems.problem import Status
from maxmargin.separability import Overlap

FOLDER = os.environ.get("MAXMARGIN_DATA", "")
pytestmark = pytest.mark.skipif(
    not Path(FOLDER, "a1a.svm.xz").exists(),
    reason="MAXMARGIN_DATA names no folder of .svm.xz files",
)

BINARY = ["a1a", "breast-cancer", "diabetes", "fourclass", "german.numer", "heart_scale", "sonar"]


def load(name: str) -> tuple[Any, Any]:
    found = mm.data.read_labelled(Path(FOLDER, f"{name}.svm.xz"))
    return found.X, found.y


def test_mushrooms_are_separable_and_the_bound_holds() -> None:
    X, y = load("mushrooms")
    for learner in (mm.Perceptron(), mm.KernelPerceptron(kernel="linear")):
        model = learner.fit(X, y)
        assert model.status_ is Status.ALL_CORRECT
        assert model.score(X, y) == 1.0
        assert model.updates_ <= model.mistake_bound_ < np.inf
        assert model.margin_ > 0


@pytest.mark.parametrize("name", BINARY)
def test_averaging_learns_something_everywhere(name: str) -> None:
    X, y = load(name)
    X = X.toarray() / np.maximum(abs(X.toarray()).max(axis=0), 1e-300)
    model = mm.AveragedPerceptron().fit(X, y)
    majority = np.unique(y, return_counts=True)[1].max() / len(y)
    assert model.score(X, y) > majority - 0.02


@pytest.mark.wide
@pytest.mark.parametrize("name", ["a1a", "reuters-money-fx", "news20"])
def test_sparse_equals_dense(name: str) -> None:
    X, y = load(name)
    X, y = X[:1500], y[:1500]
    run: dict[str, Any] = {"stop": "epochs", "max_epochs": 2}
    sparse = mm.AveragedPerceptron(**run).fit(X, y)
    dense = mm.AveragedPerceptron(**run).fit(X.toarray(), y)
    assert sparse.updates_ == dense.updates_
    assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9, atol=1e-9)


VERDICTS = {"mushrooms": True, "sonar": True, "a1a": False, "diabetes": False, "ijcnn1": False}


@pytest.mark.parametrize("name", VERDICTS)
def test_real_sets_are_decided(name: str) -> None:
    X, y = load(name)
    found = mm.separate(X, y)
    assert found.separable is VERDICTS[name]
    if not found.separable:
        assert isinstance(found.witness, Overlap)
        assert found.witness.exact
        assert found.witness.residual <= 1e-12
