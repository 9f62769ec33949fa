"""A kernel machine for more rows than a kernel matrix allows, and what it costs to do so.

    python examples/millions_of_rows.py [ROWS]

A feature map replaces the kernel, and a linear machine is fitted to the features, with a proof that
it is optimal for them. Two distances remain: that of the map from the kernel, and that of this
machine from the exact kernel machine. Both are measured here, the second one on samples, where it
lies between two bounds.
"""

import sys
import time
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import maxmargin as mm


def main(rows: int) -> None:
    X, y = spirals(rows + 10_000, np.random.default_rng(0))
    X, y, X_test, y_test = X[:rows], y[:rows], X[rows:], y[rows:]
    for phi in (
        mm.Nystroem(gamma=1.0, n_components=200, landmarks="kmeans"),
        mm.RandomFourier(gamma=1.0, n_components=200, orthogonal=True),
    ):
        report(phi, X, y, X_test, y_test)


def report(phi: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> None:
    start = time.perf_counter()
    model = mm.LinearSVC(C=1.0, tol=1e-3).fit(phi.fit_transform(X), y)
    seconds = time.perf_counter() - start
    print(f"{phi}: {len(X)} rows in {seconds:.1f} s")
    print(f"  {model.certificate_}")
    # Features of new rows need not be in memory together.
    right = sum(
        int((model.predict(part) == labels).sum())
        for part, (_, labels) in zip(
            phi.transform_chunks(X_test, rows=2000),
            mm.data.chunks(X_test, y_test, rows=2000),
            strict=True,
        )
    )
    print(f"  accuracy on {len(X_test)} other rows: {right / len(X_test):.4f}")
    route = Pipeline([("map", phi), ("machine", model)])
    for sample in (500, 2000):
        print(f"  {mm.model_selection.map_gap(route, X, y, sample=sample)}")


def spirals(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return two arms wound around each other, with noise, and columns that say nothing."""
    y = rng.integers(0, 2, n)
    turn = np.sqrt(rng.random(n)) * 2.5 * np.pi
    angle = turn + np.pi * y
    arms = np.column_stack([turn * np.cos(angle), turn * np.sin(angle)]) / 2
    X = np.hstack([arms + 0.2 * rng.normal(size=(n, 2)), 0.1 * rng.normal(size=(n, 4))])
    return X.astype(np.float32), y


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
