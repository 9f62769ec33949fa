"""One row far out: what it does to a support vector machine, to ridge and to logistic regression.

    python examples/svm_ridge_logistic.py [PICTURE.png]

All three minimise a penalty ½‖w‖² plus C times a loss of each row: hinge, squared or logistic. The
added row is right, and far beyond the margin. Its hinge loss is 0, so the SVM's plane does not move
at all; its logistic loss is tiny; its squared loss (1 − y f)² is large, as it is right by far,
so ridge turns its plane by 14 degrees towards it and loses a row that it had right.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import maxmargin as mm
from maxmargin.plots.style import colour, foreground, grid_of_axes, legend_below, scatter

STYLES = ("-", "--", "-.")


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(40, means=((0.5, 0.7), (-0.5, -0.7)), variance=0.2)
    far, label = np.vstack([X, [[9.0, -2.0]]]), np.append(y, 1)
    with mm.plots.theme():
        axes = grid_of_axes(1, 2, (8.0, 3.7))
        for ax, (rows, labels) in zip(axes.flat, ((X, y), (far, label)), strict=True):
            draw(ax, rows, labels)
        axes[0, 0].set_title("Three machines nearly agree")
        axes[0, 1].set_title("One more row, far on its right side")
        axes[0, 0].figure.savefig(path, dpi=110)


def draw(ax: Any, X: Any, y: Any) -> None:
    scatter(ax, X, y, (-1, 1))
    ax.set(xlim=(-2.4, 9.6), ylim=(-4.2, 4.2), aspect="equal", xlabel="x₁", ylabel="x₂")
    models = {
        "SVM": mm.LinearSVC(C=1.0),
        "ridge": RidgeClassifier(alpha=1.0),
        "logistic": LogisticRegression(C=1.0),
    }
    colours = (foreground(ax), colour(2), colour(3))
    for (name, model), shade, style in zip(models.items(), colours, STYLES, strict=True):
        model.fit(X, y)
        w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        plane = mm.geometry.Hyperplane(w, b)
        foot = plane.project([[0.0, 0.0]])[0]
        ax.axline(foot, foot + np.array([-w[1], w[0]]), color=shade, ls=style, label=name)
        wrong = int((plane.predict(X) != y).sum())
        print(f"{len(X)} rows, {name}: {wrong} wrong, normal {np.round(plane.normal, 2)}")
    legend_below(ax)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "svm_ridge_logistic.png")
