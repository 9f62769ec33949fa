"""One kernel, two learners: a support vector machine beside a Gaussian process.

    python examples/svm_beside_gp.py [PICTURE.png]

A kernel is also the covariance of a Gaussian process. The process chooses γ by the likelihood of
the labels and keeps every row; the machine chooses γ and C by cross-validation and keeps the rows
on its margin or beyond, which are ringed. Their boundaries agree on most of the points.
The dashed lines differ in kind: f = ±1 of the machine is a margin, and no probability; 25 % and
75 % of the process are probabilities, and no margin.
"""

import sys
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.kernels import RBF
from maxmargin.plots.style import foreground, scatter


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.circles(120, random_state=0)
    X = X + np.random.default_rng(0).normal(scale=0.3, size=X.shape)
    mm.SVC().fit(X, y)  # loads compiled code, so that the seconds are those of learning
    found = mm.compare_gp(X, y, RBF(gamma=1.0), cv=3)
    machine, process = found.models["SVM, kernel by CV"], found.models["GP"]
    with mm.plots.theme():
        figure, axes = plt.subplots(1, 2, figsize=(8, 4.9), layout="constrained", sharey=True)
        draw(axes[0], X, y, machine.decision_function, (-1, 0, 1))
        draw(axes[1], X, y, lambda rows: process.predict_proba(rows)[:, 1], (0.25, 0.5, 0.75))
        axes[0].scatter(
            *machine.support_vectors_.T,
            s=60,
            facecolors="none",
            edgecolors=foreground(axes[0]),
            label="support vector",
        )
        for ax, name, title in zip(
            axes,
            ("SVM, kernel by CV", "GP"),
            ("SVM: f = −1, 0, 1", "GP: p = 25, 50, 75 %"),
            strict=True,
        ):
            used, seconds = found.support_count[name], found.seconds[name]
            ax.set_title(f"{title}\n{used} of {found.n_rows} rows used, {seconds:.2f} s")
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=3,
            frameon=False,
        )
        figure.savefig(path, dpi=110)
    print(found)
    print(f"picture in {path}")


def draw(ax: Any, X: Any, y: Any, score: Any, levels: tuple[float, float, float]) -> None:
    """Draw points, and the contours of a score over the plane."""
    span = np.linspace(X.min() - 0.3, X.max() + 0.3, 120)
    grid = np.stack(np.meshgrid(span, span), axis=-1).reshape(-1, 2)
    ax.contour(
        span,
        span,
        score(grid).reshape(120, 120),
        levels=levels,
        colors=foreground(ax),
        linestyles=["--", "-", "--"],
        linewidths=[0.9, 1.6, 0.9],
    )
    scatter(ax, X, y, np.unique(y).tolist())
    ax.set(xlabel="x₁", ylabel="x₂", aspect="equal")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "svm_beside_gp.png")
