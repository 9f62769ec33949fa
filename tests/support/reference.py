"""Independent references: the textbook algorithms, row by row, in plain NumPy."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Course(NamedTuple):
    """What a plain perceptron did: (W, b) after each visit, and the number of updates."""

    weights: list[Floats]
    intercepts: list[Floats]
    updates: int
    mistakes: int


def perceptron(
    X: Floats,
    labels: npt.NDArray[Any],
    n_classes: int,
    *,
    epochs: int,
    eta: float = 1.0,
    margin: float = 0.0,
    fit_intercept: bool = True,
    start: tuple[Floats, Floats] | None = None,
) -> Course:
    """Visit rows in order; labels are class indices. One row of weights for two classes."""
    outputs = 1 if n_classes == 2 else n_classes
    W = np.zeros((outputs, X.shape[1])) if start is None else start[0].copy()
    b = np.zeros(outputs) if start is None else start[1].copy()
    course = Course([], [], 0, 0)
    updates = mistakes = 0
    for _ in range(epochs):
        for x, label in zip(X, labels, strict=True):
            s = W @ x + b
            direction = np.zeros(outputs)
            if outputs == 1:
                direction[0] = 1.0 if label == 1 else -1.0
                lead = direction[0] * s[0]
            else:
                others = [k for k in range(outputs) if k != label]
                rival = max(others, key=lambda k: (s[k], -k))
                direction[label], direction[rival] = 1.0, -1.0
                lead = s[label] - s[rival]
            if lead <= margin:
                W = W + eta * np.outer(direction, x)
                b = b + eta * direction * fit_intercept
                updates += 1
                mistakes += int(lead <= 0)
            course.weights.append(W)
            course.intercepts.append(b)
    return course._replace(updates=updates, mistakes=mistakes)


def vote(course: Course, X: Floats) -> Floats:
    """Return the share of votes of all vectors after each visit: (n,) in [−1, 1] or (n, K)."""
    outputs = len(course.intercepts[0])
    total = np.zeros((len(X), outputs))
    for W, b in zip(course.weights, course.intercepts, strict=True):
        s = X @ W.T + b
        if outputs == 1:
            total += np.where(s > 0, 1.0, -1.0)
        else:
            total[np.arange(len(X)), s.argmax(axis=1)] += 1
    total /= len(course.weights)
    return total[:, 0] if outputs == 1 else total
