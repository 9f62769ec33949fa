"""The base of all displays: data in ``__init__``, drawn by ``plot``, saved by ``save``."""

from pathlib import Path
from typing import Any, Self

from maxmargin.plots.style import settle


class Display:
    """The data of a figure, and how to draw it.

    Displays are dataclasses: their fields are what is drawn, and ``plot`` adds the artists, under
    names that end in an underscore.
    """

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw, keep ``ax_`` and ``figure_``, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, array of Axes or None, default=None
            Where to draw: an array, counted row by row, if the display has several panels. None:
            in a new figure.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define plot")

    def save(self, path: str | Path, dpi: float = 150.0) -> Path:
        """Write the whole figure to a file, drawing it first if it is not drawn; return the path.

        Parameters
        ----------
        path : str or Path
            Its suffix is the format: png, svg, pdf.
        dpi : float, default=150
            Dots per inch of a pixel format.
        """
        if not hasattr(self, "figure_"):
            self.plot()
        whole = self.figure_.canvas.figure  # figure_ may be a subfigure
        settle(whole)
        whole.savefig(path, dpi=dpi)
        return Path(path)

    def _keep_axes(self, ax: Any) -> Self:
        """Keep where the display was drawn: axes, or an array of axes of one figure."""
        first = ax if hasattr(ax, "figure") else ax.flat[0]
        self.ax_, self.figure_ = ax, first.figure
        return self
