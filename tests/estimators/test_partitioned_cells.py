"""Cells: every row is in one, sizes are about as asked for, and neighbours are where they say."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.estimators.partitioned.cells import (
    TreeCells,
)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3000, 4)) * [3.0, 1.0, 0.5, 0.2] + [10.0, 0.0, -5.0, 0.0]


@pytest.mark.parametrize("rows", [X, X.astype(np.float32), sp.csr_array(np.round(X))], ids=type)
def test_cells_have_about_as_many_rows_as_asked_for(rows: Any) -> None:
    found = TreeCells.find(rows, 250)
    own = found.neighbours(rows, 0).cells[:, 0]
    counts = np.bincount(own, minlength=found.n_cells)
    assert len(counts) == found.n_cells > 8
    assert counts.min() > 0
    assert counts.max() <= (600 if sp.issparse(rows) else 250)


def test_neither_order_nor_blocks_nor_threads_nor_storage_change_cells() -> None:
    rows = np.round(X, 2)
    order = RNG.permutation(len(rows))
    one, other = TreeCells.find(rows, 200), TreeCells.find(rows[order], 200)
    assert all(
        np.array_equal(a, b) for a, b in zip(vars(one).values(), vars(other).values(), strict=True)
    )
    own = one.neighbours(rows, 0, 1).cells[:, 0]
    assert np.array_equal(one.neighbours(rows[order], 0, 2).cells[:, 0], own[order])
    assert np.array_equal(one.neighbours(sp.csr_array(rows), 0).cells[:, 0], own)
    assert np.array_equal(
        np.concatenate([one.neighbours(rows[i : i + 7], 3).cells for i in range(0, 70, 7)])[:, 0],
        own[:70],
    )


def test_a_cell_of_a_tree_is_as_far_as_the_furthest_plane_to_be_crossed() -> None:
    found = TreeCells.find(X, 300)
    sides = X @ found.directions.T - found.thresholds
    gaps = np.full((len(X), found.n_cells), np.nan)

    def visit(node: int, gap: Any) -> None:
        if node < 0:
            gaps[:, -1 - node] = gap
            return
        visit(found.children[node, 0], np.maximum(gap, sides[:, node]))
        visit(found.children[node, 1], np.maximum(gap, -sides[:, node]))

    visit(0, np.zeros(len(X)))
    near = found.neighbours(X, 4)
    assert np.allclose(near.gaps, np.sort(gaps, axis=1)[:, :5], atol=1e-12)
    assert np.allclose(np.take_along_axis(gaps, near.cells, axis=1), near.gaps, atol=1e-12)


def test_equal_rows_stay_together() -> None:
    few = np.repeat(np.arange(6.0).reshape(3, 2), 100, axis=0)
    found = TreeCells.find(few, 20)
    assert found.n_cells == 3
    assert len({tuple(x) for x in np.column_stack([few, found.neighbours(few, 0).cells])}) == 3
    assert TreeCells.find(np.ones((50, 2)), 10).n_cells == 1
