"""One kernel, two learners: a support vector machine beside a Gaussian process.

    python examples/svm_beside_gp.py [PICTURE.png]

A kernel is also the covariance of a Gaussian process. Both learners have the kernel under which the
process finds the labels most likely. The process uses every row to predict, the machine only its
support vectors (rings). The boundaries (full lines) are nearly the same, but the dashed lines
differ in kind: f = ±1 of the machine is a margin, not a probability; 25 % and 75 % of the process
are probabilities. Far from all rows neither knows anything: the process falls back to 50 %, and f
to the intercept. The script also prints how long the same work takes each of them: one fit with
this kernel, and ten thousand predictions.
"""

import sys
from time import perf_counter
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier

import maxmargin as mm
from maxmargin.kernels import RBF
from maxmargin.plots.style import foreground, grid_of_axes, legend_under, scatter

SVM, GP = "SVM, the GP's kernel", "GP"


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = noisy_circles(120, 0)
    fresh = noisy_circles(2000, 1)
    found = mm.compare_gp(X, y, RBF(gamma=1.0), X_test=fresh[0], y_test=fresh[1], cv=3)
    machine, process = found.models[SVM], found.models[GP]
    with mm.plots.theme():
        axes = grid_of_axes(1, 2, (7.2, 4.6), sharey=True)
        left, right = axes[0]
        draw(left, X, y, machine.decision_function, (-1, 0, 1))
        draw(right, X, y, lambda rows: process.predict_proba(rows)[:, 1], (0.25, 0.5, 0.75))
        rings = {"s": 45, "facecolors": "none", "edgecolors": foreground(left), "linewidths": 0.9}
        left.scatter(*machine.support_vectors_.T, label="support vectors", **rings)
        titles = {SVM: "SVM: f = −1, 0, 1", GP: "GP: P = 25 %, 50 %, 75 %"}
        for ax, (name, title) in zip((left, right), titles.items(), strict=True):
            used, score = found.support_count[name], found.scores[name]
            ax.set_title(f"{title}\n{used} of {len(X)} rows used, {score:.1%} of new rows right")
        right.set_ylabel("")
        legend_under(axes, left.get_legend_handles_labels()[0])
        left.figure.savefig(path, dpi=140)
    print(found)
    report_same_work(machine, process, X, y)
    print(f"picture in {path}")


def noisy_circles(n: int, seed: int) -> Any:
    X, y = mm.datasets.circles(n, random_state=seed)
    return X + np.random.default_rng(seed).normal(scale=0.25, size=X.shape), y


def report_same_work(machine: Any, process: Any, X: Any, y: Any) -> None:
    """Print the seconds of one fit with fixed parameters, and of predictions."""
    rows = np.resize(X, (10_000, 2))
    fixed = GaussianProcessClassifier(process.kernel_, optimizer=None)
    for name, model in (("SVM", clone(machine)), ("GP", fixed)):
        model.fit(X, y).predict(rows[:10])  # loads code, which is not to be timed
        began = perf_counter()
        model.fit(X, y)
        fitted = perf_counter()
        model.predict(rows)
        predicted = perf_counter() - fitted
        print(f"{name}: one fit {fitted - began:.4f} s, {len(rows)} predictions {predicted:.4f} s")


def draw(ax: Any, X: Any, y: Any, score: Any, levels: Any) -> None:
    """Draw points, and the contours of a score over the plane."""
    side = np.linspace(-2.7, 2.7, 150)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    look = {"linestyles": ["--", "-", "--"], "linewidths": [0.9, 1.6, 0.9]}
    values = score(grid).reshape(150, 150)
    ax.contour(side, side, values, levels, colors=foreground(ax), **look)
    scatter(ax, X, y, [-1, 1], size=14)
    ax.set(xlabel="x₁", ylabel="x₂", aspect="equal")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "svm_beside_gp.png")
