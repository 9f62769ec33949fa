"""Certificates of rows on a cluster: those of rows in memory, to the last bit."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import maxmargin as mm
from maxmargin.certificates import certify_with_duals
from maxmargin.problems.blocked import BlockedProblem, HingeRule, TubeRule
from maxmargin.problems.problem import Intercept, Point
from maxmargin.rows.blocks import RowsInMemory
from maxmargin.rows.on_dask import RowsOnDask
from maxmargin.rows.survey import survey
from tests.rows.conftest import Cluster

pytest.importorskip("distributed")

N, D = 12_000, 47  # eight leaves
RULES: dict[str, Any] = {
    "hinge": HingeRule(0.5, "hinge", (1.0, 2.0), 1),
    "squared tube": TubeRule(0.5, "squared_epsilon_insensitive", 0.1),
}


@pytest.mark.parametrize("kind", ["dense", "sparse", "far"])
@pytest.mark.parametrize("name", RULES)
def test_it_is_that_of_rows_in_memory(cluster: Cluster, name: str, kind: str) -> None:
    rule, rng = RULES[name], np.random.default_rng(0)
    X: Any = rng.standard_normal((N, D)) + (1e4 if kind == "far" else 0.0)
    if kind == "sparse":
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
    w = rng.standard_normal(D) / D
    margin, targets = X @ w + rng.standard_normal(N), name == "squared tube"
    y = margin if targets else (margin > np.median(margin)).astype(np.int64)
    weight = rng.integers(0, 3, N).astype(np.float64)
    loss = rule(y, weight)
    beta = np.clip(0.1 * rng.standard_normal(N), loss.low, loss.high)  # unbalanced
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
    assert_array_equal(handle.whole(), duals)
    assert_array_equal(blocks.vector("score").whole(), memory.blocks.vector("score"))
