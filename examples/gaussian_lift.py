"""A hill over the plane: two rings that no line separates, and a plane that does.

    python examples/gaussian_lift.py [PICTURE.png]

The height r = exp(−‖x − c‖²/2s²), with c the mean and s the spread of the points, puts the inner
ring near the top of a hill and the outer one at its foot. The plane of largest margin in (x, r)
cuts the hill in the curve on the left. The margin is measured in x too, so the plane tilts a
little, and the curve is nearly, but not quite, a circle.
"""

import sys

import matplotlib as mpl

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.circles(200, random_state=0)
    with mm.plots.theme():
        display = mm.plots.KernelLiftDisplay.from_data(X, y, lift="gaussian")
        display.save(path, dpi=140)
    print(f"in the plane: {mm.separate(X, y)}")
    print(f"on the hill: {mm.separate(display.lifted(X), y)}")
    print(f"picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "gaussian_lift.png")
