"""A circle becomes a plane: two rings, and the same rings on a bowl.

    python examples/circle_lift.py [PICTURE.png]

In (‖x‖², −2x, 1) the circle around c of radius r is the plane ‖x‖² − 2x·c + ‖c‖² − r² = 0, so that
a linear machine finds it. On the right each point is lifted to the height ‖x‖², onto a bowl (grey
net). The inner ring lies low, the outer one high, and the plane of largest margin passes between
them. It meets the bowl in the circle on the left, whose centre and radius follow from the weights.
"""

import sys

import matplotlib as mpl

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.circles(200, random_state=0)
    with mm.plots.theme():
        display = mm.plots.KernelLiftDisplay.from_data(X, y, lift="circle")
        display.save(path, dpi=140)
    circle = display.circle
    print(f"centre {circle.center.round(3)}, radius {circle.radius:.3f}, inside: {circle.inside}")
    print(f"picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "circle_lift.png")
