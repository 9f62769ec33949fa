"""A late mistake ruins the last vector, but neither the vote nor the average.

    python examples/late_mistake.py [PICTURE.png]

In this stream of 300 examples, two have the wrong label and lie far out; one of them is the last.
The step of an update w += ηyx is as long as ηx, no matter how well w did before, so one such
example undoes what the last vector had learnt. The voted perceptron weighs each vector by the
number of examples it survived, and the averaged one takes the mean: one bad vector among many
hardly counts.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import colour, foreground, legend_below, new_axes

LATE = (180, 299)  # numbers of the examples with the wrong label


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(300, means=((1, 1), (-1, -1)), variance=0.8, random_state=1)
    X[list(LATE)] = (6, 5), (5, 6)
    y[list(LATE)] = -1
    fresh = mm.datasets.gaussians(2000, means=((1, 1), (-1, -1)), variance=0.8, random_state=2)
    models: dict[str, Any] = {
        "last vector": mm.Perceptron(),
        "voted": mm.VotedPerceptron(),
        "averaged": mm.AveragedPerceptron(),
    }
    with mm.plots.theme():
        draw(path, models, X, y, fresh)


def draw(path: str, models: dict[str, Any], X: Any, y: Any, fresh: Any) -> None:
    ax = new_axes(size=(5.6, 3.8))
    for k, (name, model) in enumerate(models.items()):
        accuracy = along_the_stream(model, X, y, fresh)
        ax.plot(*accuracy.T, color=colour(k), linestyle=("-", "--", "-.")[k], label=name)
        print(
            f"{name}: accuracy {accuracy[-2, 1]:.3f}, after the last example {accuracy[-1, 1]:.3f}"
        )
    for number in LATE:
        ax.axvline(number + 1, color=foreground(ax), linewidth=0.8, linestyle=":")
    ax.set(xlabel="examples seen (dotted: a mislabelled one)", ylabel="accuracy on new data")
    ax.set_title("Two wrong labels hurt the last vector, not the vote or the mean")
    legend_below(ax)
    ax.figure.savefig(path, dpi=140)


def along_the_stream(model: Any, X: Any, y: Any, fresh: Any) -> Any:
    """Return pairs of examples seen and accuracy on fresh data."""
    points = []
    for n in range(len(X)):
        model.partial_fit(X[n : n + 1], y[n : n + 1], classes=[-1, 1])
        if n % 3 == 2 or n >= len(X) - 2 or n in LATE:
            points.append((n + 1, model.score(*fresh)))
    return np.array(points)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "late_mistake.png")
