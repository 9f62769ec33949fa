"""One row far out: what it does to a support vector machine, to ridge and to logistic regression.

    python examples/svm_ridge_logistic.py [PICTURE.png]

All three minimise a penalty ½‖w‖² plus C times a loss of each row: hinge, squared or logistic. The
added row (far right) is on its correct side, far beyond the margin. Its hinge loss is 0, so the
SVM's plane does not move at all; its logistic loss is tiny. Its squared loss (1 − y f)² is large
because y f is far above 1: ridge turns its plane by 14 degrees to bring f down there, and
misclassifies a row that it had right before.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import maxmargin as mm
from maxmargin.plots.style import colour, foreground, grid_of_axes, legend_under, scatter

STYLES = ("-", "--", "-.")


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(40, means=((0.5, 0.7), (-0.5, -0.7)), variance=0.2)
    far, label = np.vstack([X, [[9.0, -2.0]]]), np.append(y, 1)
    with mm.plots.theme():
        axes = grid_of_axes(2, 1, (6.4, 6.4), sharex=True)
        for ax, (rows, labels) in zip(axes.flat, ((X, y), (far, label)), strict=True):
            draw(ax, rows, labels)
        axes[0, 0].set_title("Three machines nearly agree")
        axes[1, 0].set_title("One more row, correct and far from the plane: ridge turns")
        legend_under(axes, axes[1, 0].get_legend_handles_labels()[0])
        axes[0, 0].figure.savefig(path, dpi=140)


def draw(ax: Any, X: Any, y: Any) -> None:
    scatter(ax, X, y, (-1, 1))
    ax.set(xlim=(-2.2, 9.6), ylim=(-2.8, 2.2), aspect="equal", xlabel="x₁", ylabel="x₂")
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
    ax.label_outer()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "svm_ridge_logistic.png")
