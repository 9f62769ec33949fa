"""What the exact kernel's problem on a sample says about a map's solution."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MapGap:
    """What the exact kernel's problem on a sample says about a map's solution.

    Attributes
    ----------
    primal, dual : float
        The optimum of the exact kernel machine on the sample lies between these.
    map_primal : float
        The exact objective at the map's solution: no less than the optimum.
    map_dual : float
        The exact dual objective at the map's dual variables, times what is best for them: no more
        than the optimum.
    excess, relative_excess : float
        The map's solution is at most this far above the exact optimum: map_primal − dual, and that
        divided by primal.
    least_excess : float
        And it is at least this far above: map_primal − primal, or 0.
    dual_deficit : float
        The map's duals are at most this far below the optimum: primal − map_dual.
    bracket : float
        map_primal − map_dual: what the map alone proves, without the exact machine.
    own_point : bool
        Whether map_primal is about the model itself (Nyström's and polynomial features), or about
        the kernel expansion with its dual variables (random Fourier features).
    agreement : float
        The part of other rows (of the sample, where there are no others) on which the map's and the
        exact machine, both fitted to the sample, predict the same.
    n_rows, n_total, C : int, int, float
        Rows in the sample, rows it was taken from, and the cost.
    kernel : Kernel
        The exact kernel.
    """

    primal: float
    dual: float
    map_primal: float
    map_dual: float
    own_point: bool
    agreement: float
    n_rows: int
    n_total: int
    C: float
    kernel: Any

    @property
    def excess(self) -> float:
        """The most by which the map's solution is above the exact optimum."""
        return max(self.map_primal - self.dual, 0.0)

    @property
    def least_excess(self) -> float:
        """The least by which it is."""
        return max(self.map_primal - self.primal, 0.0)

    @property
    def relative_excess(self) -> float:
        """``excess`` as a part of the optimum."""
        return self.excess / self.primal if self.primal > 0 else 0.0

    @property
    def dual_deficit(self) -> float:
        """The most by which the map's duals are below the exact optimum."""
        return max(self.primal - self.map_dual, 0.0)

    @property
    def bracket(self) -> float:
        """What the map proves without the exact machine."""
        return self.map_primal - self.map_dual

    def __str__(self) -> str:
        whose = "The map's solution" if self.own_point else "The expansion with the map's duals"
        return (
            f"On {self.n_rows} of {self.n_total} rows, with C={self.C:g} and {self.kernel!r}, the "
            f"exact optimum lies in [{self.dual:.6g}, {self.primal:.6g}]. {whose} has objective "
            f"{self.map_primal:.6g}: at most {self.relative_excess:.2%} above it. Its duals prove "
            f"{self.map_dual:.6g}. Predictions agree on {self.agreement:.2%} of "
            f"{'other' if self.n_rows < self.n_total else 'the same'} rows."
        )
