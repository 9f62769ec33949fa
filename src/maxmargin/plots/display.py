"""The base of all displays: data in ``__init__``, drawn by ``plot``, saved by ``save``."""

from pathlib import Path
from typing import Any, Self

from maxmargin.plots.style import settle


class Display:
    """Data of a picture, and how to draw it."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw, on the axes given or on new ones, and keep ``ax_`` and ``figure_``."""
        raise NotImplementedError(f"{type(self).__name__} does not define plot")

    def save(self, path: str | Path, dpi: float = 150.0) -> Path:
        """Write the whole figure to a file, drawing it first if need be; return the path.

        Parameters
        ----------
        path : str or Path
            Its ending says the format: png, svg, pdf.
        dpi : float, default=150
            Dots per inch, of pixels.
        """
        if not hasattr(self, "figure_"):
            self.plot()
        whole = self.figure_.canvas.figure  # of a part of a figure
        settle(whole)
        whole.savefig(path, dpi=dpi)
        return Path(path)

    def _drawn(self, ax: Any) -> Self:
        """Keep where it was drawn: axes, or an array of axes of one figure."""
        first = ax if hasattr(ax, "figure") else ax.flat[0]
        self.ax_, self.figure_ = ax, first.figure
        return self
