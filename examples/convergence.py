"""How fast the duality gap closes: two solvers for linear machines, and one for kernels.

    python examples/convergence.py [PICTURE.png]

The relative gap (P − D)/max(|P|, |D|) between the objective P and a lower bound D from the duals
says how far from optimal a fit can be. A fit is accepted when its gap is below tol (dashed).
Iterations of different solvers do not cost the same: the kernel machine needs few, but each of them
computes many rows of the kernel matrix. So compare seconds. The linear fits go on below the line,
because small problems are solved to the last digit.
"""

import sys
from typing import Any

import matplotlib as mpl

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(4000, variance=0.3, random_state=0)
    machines: dict[str, Any] = {
        "LinearSVC, Newton": mm.LinearSVC(solver="newton", trace=True),
        "LinearSVC, coordinates": mm.LinearSVC(solver="dual_cd", trace=True),
        "SVC, RBF kernel": mm.SVC(trace=True),
    }
    for machine in machines.values():
        machine.fit(X[:200], y[:200])  # load compiled code, which is not to be timed
        machine.fit(X, y)
    with mm.plots.theme():
        axes = mm.plots.style.grid_of_axes(1, 2, (8.4, 3.8))
        for ax, x in zip(axes.flat, ("seconds", "iterations"), strict=True):
            display = mm.plots.ConvergenceDisplay.from_estimators(machines, x=x, ax=ax)
            ax.set_title(f"The gap against {x}", pad=16)
        display.save(path, dpi=140)
    for name, machine in machines.items():
        gap, seconds = machine.certificate_.relative_gap, machine.trace_[-1][0]
        print(
            f"{name}: gap {max(gap, 0):.1e} after {len(machine.trace_)} iterations, {seconds:.2f} s"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "convergence.png")
