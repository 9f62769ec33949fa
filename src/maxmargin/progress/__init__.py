"""Progress of calls that take long: ``with progress("Solving", total=…) as bar: bar.update(…)``."""

from maxmargin.progress.bars import Bar, silent, ticker
from maxmargin.progress.pictures import where

__all__ = ["Bar", "progress"]


def progress(
    what: str,
    total: int | None = None,
    *,
    unit: str = "step",
    tol: float | None = None,
    measure: str = "gap",
    max_time: float | None = None,
    even: bool = True,
    quiet: bool = False,
) -> Bar:
    """Return the bar of a call, to be told in a ``with`` block how far the call has come.

    Parameters
    ----------
    what : str
        What is done, in one word: "Solving".
    total : int, optional
        Steps there are, or may be at most.
    unit : str, default="step"
        What a step is.
    tol : float, optional
        Gap that is to be reached.
    measure : str, default="gap"
        What the gap is called.
    max_time : float, optional
        Seconds the call may take.
    even : bool, default=True
        Whether the steps take about as long as each other, so that the time left can be estimated.
    quiet : bool, default=False
        Whether the call says itself what it does: then there is no bar, nor within it.

    Returns
    -------
    Bar

    Examples
    --------
    >>> from maxmargin.progress import progress
    >>> with progress("Counting", total=3) as bar:
    ...     for k in range(3):
    ...         bar.update(done=k + 1)
    """
    draws = None if ticker.busy else where()
    if draws is None:
        return silent
    return Bar(what, None if quiet else draws, ticker, total, unit, tol, measure, max_time, even)
