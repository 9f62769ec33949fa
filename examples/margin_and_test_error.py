"""Does a large margin generalise? Test errors of random separators and of the central one.

    python examples/margin_and_test_error.py [PICTURE.png]

Left: six rows of each of two Gaussian classes, and 400 lines drawn at random from all lines that
separate them, each with its error on new rows. A line with a small margin may be good or bad. The
lines with a large margin are all good, because they stay away from the rows on both sides. Right:
the same over 25 training sets of each size. Markers are means, and bars reach from the 10th to the
90th percentile. The line of largest margin errs less than a random separator on average, and so
does the Bayes point, the mean of all separators. Random lines have w and b drawn from a standard
normal distribution. The errors are exact, because the distribution of the classes is known.

This is a statement about averages. In a single training set a lucky line may beat both, and here it
is easy to be good: the classes are round and of equal size.

To try: SPREAD = 0.7. The errors grow, and random separators are still the worst.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.stats import norm

import maxmargin as mm
from maxmargin.plots.style import BLUE, GREEN, PINK, foreground, grid_of_axes, legend_below

SIZES = (6, 12, 24, 48)
SETS = 25
MEANS = np.array([[1.5, 1.5], [-0.5, -0.5]])
SPREAD = 0.5  # of each coordinate in each class
NAMES = ("random separator", "Bayes point", "largest margin")
LOOKS = ((PINK, "o"), (BLUE, "*"), (GREEN, "P"))


def main(path: str) -> None:
    mpl.use("Agg")
    left, right = grid_of_axes(1, 2, (8.4, 4.4))[0]
    draw_one(left)
    draw_many(right)
    left.figure.savefig(path, dpi=110)


def separators(X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return (w, b) of many random separators, of their mean and of the largest margin."""
    bayes = mm.BayesPointClassifier(n_samples=400).fit(X, y)
    hard = mm.HardMarginSVC().fit(X, y)
    mean, widest = (np.hstack([m.coef_, [m.intercept_]]) for m in (bayes, hard))
    return bayes.samples_[0], mean, widest


def test_error(planes: Any) -> Any:
    """Return the probability that a new row is on the wrong side of each plane, in percent."""
    f = planes[:, :2] @ MEANS.T + planes[:, 2:]
    distances = f / np.linalg.norm(planes[:, :2], axis=1, keepdims=True)
    return 50 * norm.cdf(distances * [-1, 1] / SPREAD).sum(axis=1)


def draw_one(ax: Any) -> None:
    X, y = mm.datasets.gaussians(12, MEANS, SPREAD**2, random_state=10)
    for planes, name, (shade, marker) in zip(separators(X, y), NAMES, LOOKS, strict=True):
        margins = [
            mm.geometry.Hyperplane(plane[:2], plane[2]).geometric_margin(X, y).min()
            for plane in planes
        ]
        size = 6 if len(planes) > 1 else 110
        ax.scatter(margins, test_error(planes), size, shade, marker=marker, label=name, lw=0)
    ax.set(xlabel="margin on the training rows", ylabel="test error in %", ylim=(0, None))
    ax.set_title("Separators of one training set")
    legend_below(ax, 2)


def draw_many(ax: Any) -> None:
    errors: Any = {(name, size): [] for name in NAMES for size in SIZES}
    for size in SIZES:
        seeds = np.random.default_rng(size)
        for _ in range(SETS):
            X, y = mm.datasets.gaussians(size, MEANS, SPREAD**2, random_state=seeds)
            while not mm.separate(X, y).separable:
                X, y = mm.datasets.gaussians(size, MEANS, SPREAD**2, random_state=seeds)
            for name, planes in zip(NAMES, separators(X, y), strict=True):
                errors[name, size] += list(test_error(planes))
    for k, (name, (shade, marker)) in enumerate(zip(NAMES, LOOKS, strict=True)):
        places = np.array(SIZES) * 1.1 ** (k - 1)
        means = np.array([np.mean(errors[name, size]) for size in SIZES])
        low, high = np.transpose([np.quantile(errors[name, size], [0.1, 0.9]) for size in SIZES])
        ax.vlines(places, low, high, color=shade, linewidth=2, alpha=0.6)
        ax.plot(places, means, marker + "-", color=shade, linewidth=1, label=name)
        print(f"{name}: mean test error {means.round(2)} % with {SIZES} rows")
    ax.axhline(
        100 * norm.cdf(-np.sqrt(2) / SPREAD),
        color=foreground(ax),
        linestyle=":",
        label="Bayes error",
    )
    ax.set(xscale="log", ylim=(0, None), xlabel="training rows", ylabel="test error in %")
    ax.set_xticks(SIZES, [str(size) for size in SIZES])
    ax.minorticks_off()
    ax.set_title(f"Over {SETS} training sets: mean, 10 to 90 %")
    legend_below(ax, 2)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "margin_and_test_error.png")
