"""A chain reads numbers that cannot be read digit by digit.

    python examples/reading_numbers.py [PICTURE.png]

Noisy images of digits are joined into numbers, in which each digit is usually followed by one of
three others. A linear SVM that sees one image at a time cannot use that. A chain scores images and
pairs of neighbours together, and the Viterbi algorithm finds the number with the best score. It
learns which digits follow each other from 300 numbers, and then reads about as well as a reader who
knows the true probabilities (grey: logistic regression for each image, combined with the true
probabilities of neighbours). The test numbers are made of other images than the training numbers.
"""

import sys
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import maxmargin as mm
from maxmargin.plots.style import BLUE, GREEN, GREY, ORANGE, WRONG, foreground


def main(path: str) -> None:
    mpl.use("Agg")
    grammar = mm.datasets.digit_grammar()
    X, y = numbers(300, grammar, slice(1200), 0)
    X_test, y_test = numbers(400, grammar, slice(1200, None), 1)
    chain = mm.structured.Chain(n_states=10)
    perceptron = mm.StructuredPerceptron(chain, max_epochs=20).fit(X, y)
    machine = mm.StructuredSVC(chain, C=0.3, tol=0.01).fit(X, y)
    single = mm.LinearSVC(multi_class="crammer_singer").fit(np.concatenate(X), np.concatenate(y))
    readings = {
        "digit by digit, SVM": [single.predict(x) for x in X_test],
        "chain, SVM": machine.predict(X_test),
        "chain, perceptron": perceptron.predict(X_test),
        "with the true grammar": informed(X, y, X_test, grammar),
    }
    right = {
        name: float((np.concatenate(found) == np.concatenate(y_test)).mean())
        for name, found in readings.items()
    }
    with mm.plots.theme():
        figure: Any = plt.figure(figsize=(8.6, 4.9), layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(3.6, 6))
        by_digit, by_chain = list(readings.values())[:2]
        draw_number(top, *telling(X_test, y_test, by_digit, by_chain))
        axes = bottom.subplots(1, 3, width_ratios=(1.25, 1, 1))
        draw_bars(axes[0], right)
        learnt = machine.model_.named_weights(machine.coef_)["transitions"]
        draw_table(axes[1], np.log(grammar.transitions), "True log-probabilities")
        draw_table(axes[2], learnt, "Learnt weights")
        axes[1].set(ylabel="digit")
        figure.savefig(path, dpi=140)
    for name, share in right.items():
        print(f"{name:22s} {share:.1%} of the digits")
    print(f"picture in {path}")


def numbers(n: int, grammar: Any, rows: slice, seed: int) -> tuple[list[Any], list[Any]]:
    X, y = mm.datasets.numbers(n, grammar, noise=30, rows=rows, random_state=seed)
    return [x / 16 for x in X], y


def informed(X: list[Any], y: list[Any], X_test: list[Any], grammar: Any) -> list[Any]:
    """Read with logarithms of probabilities as the weights of a chain: images, then the grammar."""
    chain = mm.structured.Chain(n_states=10).prepare([lifted(x) for x in X], y)
    images = LogisticRegression(C=10, max_iter=1000, fit_intercept=False)
    images.fit(lifted(np.concatenate(X)), np.concatenate(y))
    start, pairs = np.log(grammar.start), np.log(grammar.transitions)
    w = np.concatenate([images.coef_.T.ravel(), pairs.ravel(), start, np.zeros(10)])
    return [chain.decode(lifted(x), w) for x in X_test]


def lifted(rows: Any) -> Any:
    return np.hstack([rows, np.ones((len(rows), 1))])


def telling(X: list[Any], y: list[Any], by_digit: list[Any], by_chain: list[Any]) -> list[Any]:
    """Return the number that the chain reads and that is misread most digit by digit."""
    gained = [
        -np.inf if (a != c).any() else (a != b).sum()
        for a, b, c in zip(y, by_digit, by_chain, strict=True)
    ]
    k = int(np.argmax(gained))
    return [X[k], y[k], by_digit[k], by_chain[k]]


def draw_number(figure: Any, x: Any, truth: Any, by_digit: Any, by_chain: Any) -> None:
    axes = figure.subplots(1, len(x) + 1, width_ratios=(0.6,) + len(x) * (1,))
    axes[0].axis("off")
    axes = axes[1:]
    for t, ax in enumerate(axes):
        ax.imshow(x[t].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[], anchor="N")
        for line, found in enumerate((truth, by_digit, by_chain)):
            colour = foreground(ax) if found[t] == truth[t] else WRONG
            weight = "normal" if found[t] == truth[t] else "bold"
            place = {"xycoords": "axes fraction", "ha": "center", "va": "top", "fontsize": 13}
            ax.annotate(
                str(found[t]), (0.5, -0.08 - 0.28 * line), color=colour, weight=weight, **place
            )
    for line, name in enumerate(("truth", "digit by digit", "chain")):
        axes[0].annotate(
            name, (-0.15, -0.1 - 0.28 * line), xycoords="axes fraction", ha="right", va="top"
        )


def draw_bars(ax: Any, right: dict[str, float]) -> None:
    colours = [*[ORANGE, BLUE, GREEN][: len(right) - 1], GREY]
    bars = ax.barh(list(right), list(right.values()), color=colours, height=0.65)
    ax.bar_label(bars, [f"{share:.1%}" for share in right.values()], padding=-36, color="white")
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), title="Test digits read right")
    ax.xaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    ax.spines[["top", "right"]].set_visible(False)


def draw_table(ax: Any, table: Any, title: str) -> None:
    ax.imshow(table, cmap="cividis")
    ax.set(xticks=range(10), yticks=range(10), xlabel="next digit", title=title)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "reading_numbers.png")
