"""The row cache beside a dense matrix: whatever is fetched, shrunk and grown, values are right."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from maxmargin.kernels import RBF
from maxmargin.problems.gram import Gram
from maxmargin.problems.row_cache import RowCache

N = 40
X = np.random.default_rng(0).standard_normal((N, 5))
K = RBF(0.2).gram(X)
ROW_BYTES = 8 * N


def cache(rows_kept: int) -> RowCache:
    gram = Gram(RBF(0.2), X, memory=rows_kept * ROW_BYTES)
    return RowCache(gram, gram.tiles, least=8)


def assert_fetches(kept: RowCache, columns: Any, positions: Any) -> None:
    slots = kept.fetch(positions)
    assert_allclose(kept.values[slots], K[np.ix_(columns[positions], columns)], rtol=1e-12)


@settings(max_examples=60)
@given(data=st.data(), rows_kept=st.sampled_from([1, 9, 20, N]))
def test_every_step_gives_the_values_of_the_matrix(data: st.DataObject, rows_kept: int) -> None:
    kept, columns = cache(rows_kept), np.arange(N)
    for _ in range(8):
        step = data.draw(st.sampled_from(["fetch", "block", "add", "shrink", "grow"]))
        seed = data.draw(st.integers(0, 10**6))
        rng = np.random.default_rng(seed)
        some = rng.permutation(len(columns))[: rng.integers(1, 7)]
        if step == "fetch":
            assert_fetches(kept, columns, some)
        elif step == "block":
            assert_allclose(kept.block(some), K[np.ix_(columns[some], columns[some])], rtol=1e-12)
        elif step == "add":
            f, weights = np.zeros(len(columns)), rng.standard_normal(len(some))
            kept.add_to(f, some, weights, rng.random(len(some)) < 0.5)
            assert_allclose(f, K[np.ix_(columns, columns[some])] @ weights, atol=1e-12)
        elif step == "shrink" and len(columns) > 12:
            keep = np.sort(rng.permutation(len(columns))[: len(columns) - 4])
            useful = keep[rng.random(len(keep)) < 0.7]
            kept.shrink(keep, useful)
            columns = columns[keep]
        elif step == "grow" and len(columns) < N:
            added = np.setdiff1d(np.arange(N), columns)[: rng.integers(1, 6)]
            wider = np.sort(np.concatenate([columns, added]))
            useful = np.flatnonzero(rng.random(len(columns)) < 0.7)
            kept.grow(kept.gram.tiles[wider], np.searchsorted(wider, columns), useful)
            columns = wider
        assert len(kept) == len(columns)


def test_no_more_rows_are_kept_than_memory_allows() -> None:
    kept = cache(16)
    for begin in range(0, N, 8):
        assert_fetches(kept, np.arange(N), np.arange(begin, begin + 8))
    assert kept.capacity == 16
    assert len(kept.values) == 16


@pytest.mark.parametrize("rows_kept", [8, N])
def test_rows_asked_for_together_are_there_together(rows_kept: int) -> None:
    kept = cache(rows_kept)
    kept.fetch(np.arange(8))
    slots = kept.fetch(np.array([1, 20, 3, 30, 5, 21, 7, 31]))
    assert len(np.unique(slots)) == 8
