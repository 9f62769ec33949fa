"""A support vector machine beside a Gaussian process, each with the parameters it chooses.

    python examples/svm_beside_gp.py [PICTURE.png]

A kernel is also the covariance of a Gaussian process. The process chooses the amplitude and the
width of its RBF by marginal likelihood, the machine chooses C and γ from a grid by
cross-validation. The process uses every row to predict, the machine only its support vectors
(rings). The boundaries (full lines) are nearly the same, but the dashed lines differ in kind:
f = ±1 of the machine is a margin, not a probability; 25 % and 75 % of the process are
probabilities. Far from all rows neither knows anything: the process falls back to 50 %, and f to
the intercept. The script prints what was chosen and how long the choice takes each of them, then
one fit with what was chosen, and ten thousand predictions.
"""

import sys
from time import perf_counter
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import ConstantKernel

import maxmargin as mm
from maxmargin.kernels import RBF, to_sklearn
from maxmargin.plots.style import foreground, grid_of_axes, legend_under, scatter

GRID = {"C": np.logspace(-1, 3, 9), "gamma": np.logspace(-2, 1, 7)}


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = noisy_circles(120, 0)
    fresh = noisy_circles(2000, 1)
    # The process can only be as sure as its amplitude allows, so that has to be free.
    prior = ConstantKernel() * to_sklearn(RBF(gamma=1.0))
    process = GaussianProcessClassifier(prior, n_restarts_optimizer=2, random_state=0)
    process, choosing = timed(process.fit, X, y)
    search, searching = timed(mm.SVCSearchCV(mm.SVC(), GRID).fit, X, y)
    machine = search.best_estimator_
    with mm.plots.theme():
        axes = grid_of_axes(1, 2, (7.2, 4.6), sharey=True)
        left, right = axes[0]
        draw(left, X, y, machine.decision_function, (-1, 0, 1))
        draw(right, X, y, lambda rows: process.predict_proba(rows)[:, 1], (0.25, 0.5, 0.75))
        rings = {"s": 45, "facecolors": "none", "edgecolors": foreground(left), "linewidths": 0.9}
        left.scatter(*machine.support_vectors_.T, label="support vectors", **rings)
        for ax, title, model, used in (
            (left, "SVM: f = −1, 0, 1", machine, len(machine.support_)),
            (right, "GP: P = 25 %, 50 %, 75 %", process, len(X)),
        ):
            score = model.score(*fresh)
            ax.set_title(f"{title}\n{used} of {len(X)} rows used, {score:.1%} of new rows right")
        right.set_ylabel("")
        legend_under(axes, left.get_legend_handles_labels()[0])
        left.figure.savefig(path, dpi=140)
    likelihood = process.log_marginal_likelihood_value_
    print(f"GP: {process.kernel_}, log marginal likelihood {likelihood:.1f}")
    print(f"SVM: C = {machine.C:.3g}, gamma = {machine.gamma:.3g}")
    fixed = GaussianProcessClassifier(process.kernel_, optimizer=None)
    report_seconds("GP", choosing, fixed, X, y)
    report_seconds("SVM", searching, clone(machine), X, y)
    print(f"picture in {path}")


def noisy_circles(n: int, seed: int) -> Any:
    X, y = mm.datasets.circles(n, random_state=seed)
    return X + np.random.default_rng(seed).normal(scale=0.25, size=X.shape), y


def timed(call: Any, *arguments: Any) -> tuple[Any, float]:
    """Return what a call returns, and how many seconds it takes the second time."""
    call(*arguments)  # loads code, which is not to be timed
    began = perf_counter()
    return call(*arguments), perf_counter() - began


def report_seconds(name: str, choosing: float, model: Any, X: Any, y: Any) -> None:
    """Print the seconds of the choice, of one fit with what was chosen, and of predictions."""
    rows = np.resize(X, (10_000, 2))
    fitting, predicting = timed(model.fit, X, y)[1], timed(model.predict, rows)[1]
    print(
        f"{name}: parameters {choosing:.2f} s, one fit {fitting:.4f} s, {len(rows)} predictions "
        f"{predicting:.4f} s"
    )


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
