"""What changes for a perceptron with its rate, with overlap, and with labels 0 and 1.

    python examples/perceptron_rates_and_overlap.py [PICTURE.png]

Left: from a zero start η only rescales w, so the number of updates is the same at any rate; from
other weights a small η needs many updates to overcome them. Middle: if the classes overlap, every
epoch makes mistakes, the more the wider the overlap, and the perceptron never stops. Right: with
targets t in {0, 1} and the output o of a step neuron, the rule w += η(t − o)x makes the same
updates as w += ηyx with y in {−1, 1}. Putting 0 and 1 for y into the latter is a common slip:
examples with label 0 then change nothing, and half of the rows stay wrong.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import colour, grid_of_axes, legend_below

START = np.array([0.9, 0.4, 0.6])  # w₁, w₂ and b
EPOCHS = 12
LINES = ("-", "--", ":")


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        axes = grid_of_axes(1, 3, (8.4, 3.8))
        draw_rates(axes[0, 0])
        draw_overlap(axes[0, 1])
        draw_labels(axes[0, 2])
        for ax in axes.flat:
            legend_below(ax, 1)
        for ax in axes.flat[1:]:
            ax.set_xticks(range(2, EPOCHS + 1, 2))
        axes[0, 0].figure.savefig(path, dpi=130)


def draw_rates(ax: Any) -> None:
    X, y = mm.datasets.gaussians(200, variance=0.05, random_state=3)
    rates = 2.0 ** np.arange(-9, 3)
    starts: dict[str, Any] = {"start at 0": "zeros", "start elsewhere": (START[:2], START[2])}
    for k, (name, start) in enumerate(starts.items()):
        updates = [mm.Perceptron(eta=eta, init=start).fit(X, y).updates_ for eta in rates]
        ax.loglog(rates, updates, color=colour(k), linestyle=LINES[k], marker="os"[k], label=name)
        print(f"{name}: {updates[0]} updates with η = {rates[0]:.3g}, {updates[-1]} with 4")
    ax.set(
        xlabel="η", ylabel="updates until all is right", title="The rate matters if w ≠ 0 at first"
    )
    ax.tick_params(which="minor", labelleft=False)
    ax.set_ylim(8, 1200)


def draw_overlap(ax: Any) -> None:
    for k, variance in enumerate((0.05, 0.2, 0.5)):
        X, y = mm.datasets.gaussians(200, variance=variance, random_state=3)
        model = mm.Perceptron(trace=True, stop="epochs", max_epochs=EPOCHS).fit(X, y)
        mistakes = model.trace_.mistakes
        look = {"color": colour(k), "linestyle": LINES[k], "marker": "os^"[k], "markersize": 4}
        ax.plot(np.arange(1, EPOCHS + 1), mistakes, label=f"variance {variance}", **look)
    ax.set(xlabel="epoch", ylabel="mistakes of 200", title="With overlap it never stops")


def draw_labels(ax: Any) -> None:
    X, y = mm.datasets.gaussians(200, variance=0.05, random_state=3)
    lifted, targets = np.hstack([X, np.ones((len(X), 1))]), (y > 0).astype(float)
    rules: dict[str, Any] = {
        "ηyx, y in {−1, 1}": lambda w, x, n: y[n] * x * (y[n] * (w @ x) <= 0),
        "η(t − o)x, t in {0, 1}": lambda w, x, n: (targets[n] - (w @ x >= 0)) * x,
        "ηtx, t in {0, 1}: a slip": lambda w, x, n: targets[n] * x * ((w @ x >= 0) != targets[n]),
    }
    for k, (name, step) in enumerate(rules.items()):
        w, wrong = START.copy(), []
        for _ in range(EPOCHS):
            for n, x in enumerate(lifted):
                w += 0.05 * step(w, x, n)
            wrong.append(np.sum(y * (lifted @ w) <= 0))
        look = {"color": colour(k), "linestyle": LINES[k], "linewidth": 3 - k}
        ax.plot(np.arange(1, EPOCHS + 1), wrong, label=name, **look)
    ax.set(xlabel="epoch", ylabel="wrong of 200", title="Labels 0 and 1 need t − o")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "perceptron_rates_and_overlap.png")
