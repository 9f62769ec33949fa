"""From soft to hard: what the cost C of slack changes, solved exactly along the way.

    python examples/C_path.py [PICTURE.png]

The soft margin minimises ½‖w‖² + C Σξ, ξ = max(0, 1 − y f). As C grows, ‖w‖ never falls and Σξ
never grows, so the margin 1/‖w‖ never widens. The number of mistakes stays at or below Σξ, but may
go up and down. Left of the dotted line the duals α are proportional to C, and so is w. Right of the
dashed line, as these classes are separable, the soft margin is the hard margin: there is no slack,
and only rows on the margin support it. Counts are drawn on a scale that is logarithmic from 1 on.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.separable(120, margin=0.05, random_state=1)
    ends = mm.regularization_path(X, y, Cs=2)
    Cs = np.geomspace(ends.small_C / 4, 4 * ends.hard_C, 80)
    found = mm.regularization_path(X, y, Cs=Cs)
    with mm.plots.theme():
        mm.plots.PathDisplay.from_path(found).save(path, dpi=160)
    first, last = found.margins[[0, -1]]
    print(f"the margin shrinks from {first:.3g} to {last:.3g}")
    print(f"it is the hard margin from C = {found.hard_C:.3g} on")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "C_path.png")
