"""A stream of rows that never is in memory as a whole, learnt chunk by chunk.

Run in a process of its own, ``python -m benchmarks.stream LIBRARY ROWS CHUNK``, so that its peak
memory is nobody else's. Making the rows is not counted.
"""

import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.children import peak_megabytes

COLUMNS = 8


def learner(library: str) -> Any:
    """Return a perceptron that has ``partial_fit``."""
    if library == "maxmargin":
        import maxmargin as mm

        return mm.Perceptron()
    from sklearn.linear_model import Perceptron

    return Perceptron(shuffle=False)


def stream(library: str, n_rows: int, chunk: int) -> dict[str, float]:
    """Return wall and CPU seconds inside partial_fit, peak memory before and after, accuracy."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(COLUMNS)

    def rows(n: int) -> tuple[Any, Any]:
        X = rng.standard_normal((n, COLUMNS))
        return X, np.where(X @ w + 0.1 * rng.standard_normal(n) > 0, 1, -1)

    classes = np.array([-1, 1])
    learner(library).partial_fit(*rows(1000), classes=classes)  # loads the compiled loops
    first = rows(chunk)
    before = peak_megabytes()
    model = learner(library)
    wall = cpu = 0.0
    for start in range(0, n_rows, chunk):
        X, y = rows(min(chunk, n_rows - start)) if start else first
        began = time.perf_counter(), time.process_time()
        model.partial_fit(X, y, classes=classes)
        wall += time.perf_counter() - began[0]
        cpu += time.process_time() - began[1]
    return {
        "wall": wall,
        "cpu": cpu,
        "before": before,
        "peak": peak_megabytes(),
        "accuracy": float(model.score(*rows(chunk))),
    }


if __name__ == "__main__":
    print(json.dumps(stream(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
