"""A kernel machine for more rows than a kernel matrix allows, and what it costs to do so.

    python examples/millions_of_rows.py [ROWS]

A feature map replaces the kernel, and a linear machine is fitted to the features, with a proof that
it is optimal for them. What remains is its distance from the exact kernel machine, which is
bounded here on samples.
"""

import sys
import time
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler

import maxmargin as mm


def main(rows: int) -> None:
    X, y = spirals(rows + 10_000, np.random.default_rng(0))
    X, y, X_test, y_test = X[:rows], y[:rows], X[rows:], y[rows:]
    for phi in (
        mm.Nystroem(gamma=1.0, n_components=200, landmarks="kmeans"),
        RBFSampler(gamma=1.0, n_components=200, random_state=0),
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
        int((model.predict(phi.transform(part)) == labels).sum())
        for part, labels in mm.data.chunks(X_test, y_test, rows=2000)
    )
    print(f"  accuracy on {len(X_test)} other rows: {right / len(X_test):.4f}")
    if isinstance(phi, mm.Nystroem):
        for sample in (500, 2000):
            print(f"  on {sample} rows: {bound_excess(phi, X[:sample], y[:sample])}")


def bound_excess(phi: Any, X: Any, y: Any) -> str:
    """Return by how much the map's plane is above the exact machine's optimum, at most.

    Nyström's features lie in the kernel's own feature space. So a plane of them is a point of the
    exact problem, with the same objective: at least the optimum. The exact dual is at most that.
    """
    on_map = mm.LinearSVC(C=1.0).fit(phi.transform(X), y)
    exact = mm.SVC(C=1.0, kernel=phi.kernel_).fit(X, y)
    excess = on_map.certificate_.primal / exact.certificate_.dual - 1
    return f"at most {excess:.2%} above the optimum of the exact kernel machine"


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
