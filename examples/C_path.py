"""From soft to hard: what the cost C of slack changes, solved exactly along the way.

    python examples/C_path.py [PICTURE.png]

The soft margin minimises ½‖w‖² + C Σξ, ξ = max(0, 1 − y f). With C the norm ‖w‖ never falls and Σξ
never grows, so the margin 1/‖w‖ narrows; the mistakes stay below Σξ but may go up and down. Left of
the dotted line the duals are proportional to C; right of the dashed one, as these classes are
separable, the soft margin is the hard margin and only rows on the margin support it.
"""

import sys

import matplotlib as mpl

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.separable(120, margin=0.05, random_state=1)
    found = mm.regularization_path(X, y, Cs=30)
    with mm.plots.theme():
        mm.plots.PathDisplay.from_path(found).save(path, dpi=110)
    first, last = found.margins[[0, -1]]
    print(f"the margin shrinks from {first:.3g} to {last:.3g}")
    print(f"it is the hard margin from C = {found.hard_C:.3g} on")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "C_path.png")
