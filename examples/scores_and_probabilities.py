"""A score is not a probability: how often a class is right, against what the score says.

    python examples/scores_and_probabilities.py [PICTURE.png]

Two clouds overlap, and four machines are fitted to 500 rows. On 20,000 other rows we count how
often the positive class is right. Left, against the score f: the same score means near certainty
for one machine and a good guess for another, and that depends on C and on the kernel. Right,
against the probabilities of ``probability=True``, which are fitted to the scores that rows would
have had if they had been left out. Both linear machines lie on the diagonal, and the first kernel
machine is near it. The last one, with large γ and C, has learnt the noise. The formula for left-out
scores shows that, so five refits take its place; but its scores rise in a way that no sigmoid does.

To try: other values of C and γ, fewer training rows, classes of unequal size (balance=0.1).
"""

import sys
from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import COLOURS, GREY, MARKS

MACHINES = {
    "linear, C = 0.001": mm.LinearSVC(C=0.001, probability=True),
    "linear, C = 1": mm.LinearSVC(C=1.0, probability=True),
    "RBF, γ = 0.5, C = 1": mm.SVC(C=1.0, gamma=0.5, probability=True),
    "RBF, γ = 5, C = 100": mm.SVC(C=100.0, gamma=5.0, probability=True),
}
FEWEST = 100  # rows in a bin that is drawn


def shares(values: np.ndarray, positive: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the mean value and the share of positive rows in each bin with enough rows."""
    bins = [(low <= values) & (values < high) for low, high in pairwise(edges)]
    kept = [(values[b].mean(), positive[b].mean()) for b in bins if b.sum() >= FEWEST]
    return np.array(kept).reshape(-1, 2)


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.overlapping(20_500, bayes_error=0.15, random_state=0)
    new, positive = X[500:], y[500:] == 1
    with mm.plots.theme():
        figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.9), sharey=True, layout="constrained")
        for k, (name, machine) in enumerate(MACHINES.items()):
            machine.fit(X[:500], y[:500])
            style = {"color": COLOURS[k], "marker": MARKS[k], "markersize": 4.5, "linewidth": 1.2}
            by_score = shares(machine.decision_function(new), positive, np.linspace(-2.5, 2.5, 21))
            by_chance = shares(machine.predict_proba(new)[:, 1], positive, np.linspace(0, 1, 15))
            axes[0].plot(*by_score.T, label=name, **style)
            axes[1].plot(*by_chance.T, **style)
        ideal = {"color": GREY, "linestyle": "--", "linewidth": 1.2, "zorder": 0}
        axes[1].plot([0, 1], [0, 1], label="as it should be", **ideal)
        axes[1].legend(loc="lower right", fontsize=8)
        axes[0].set(xlabel="score f(x)", ylabel="share of positive rows", title="By their scores")
        axes[1].set(xlabel="probability", title="By their probabilities")
        axes[0].legend(loc="upper left", fontsize=8)
    figure.savefig(path, dpi=110)
    print("share of positive rows among those with a score between ½ and 1:")
    for name, machine in MACHINES.items():
        scores = machine.decision_function(new)
        print(f"  {name}: {positive[(scores > 0.5) & (scores < 1)].mean():.0%}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "scores_and_probabilities.png")
