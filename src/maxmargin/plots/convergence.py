"""How fast a fit closes the duality gap.

A solver keeps a point with objective P and duals with objective D ≤ P* ≤ P. The relative gap
(P − D)/max(|P|, |D|) bounds how far P is above the optimum P*; the fit ends when it is at most
``tol``. On a logarithmic scale linear convergence is a straight line, and a curve that bends down
is faster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import cycle
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats
from maxmargin.inspection.model_view import view_model
from maxmargin.plots import style
from maxmargin.plots.style import foreground
from maxmargin.validation.parameters import check_choice

_BELOW = 0.1  # a gap of 0 has no logarithm: it is drawn at this share of the smallest one above 0
_DASHES = ("--", ":", "-.")  # of tolerances
_APART = 10.0  # ratio of the fits' times above which the axis is logarithmic


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(style.Display):
    """Relative duality gap of one or several fits against seconds or iterations.

    Parameters
    ----------
    traces : dict of str to list of array-like of shape (n_iterations, 2)
        Seconds and relative gap after each iteration, by the name of the model; one array per
        binary problem.
    tols : sequence of float, default=()
        Tolerances of the fits, drawn as dashed lines.
    x : {"seconds", "iterations"}, default="seconds"
        The horizontal axis.

    Attributes
    ----------
    lines_ : dict of str to list of Line2D
        The curves of each model.
    tol_lines_ : list of Line2D
        The dashed lines.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(200, random_state=0)
    >>> newton = mm.LinearSVC(solver="newton", trace=True).fit(X, y)
    >>> descent = mm.LinearSVC(solver="dual_cd", trace=True).fit(X, y)
    >>> models = {"Newton": newton, "coordinate descent": descent}
    >>> display = mm.plots.ConvergenceDisplay.from_estimators(models, x="iterations")
    >>> len(display.lines_["Newton"][0].get_ydata()) == len(newton.trace_)
    True
    """

    traces: Mapping[str, Sequence[Any]]
    _: KW_ONLY
    tols: Sequence[float] = ()
    x: str = "seconds"
    _size = (4.6, 3.6)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, x: str = "seconds", ax: Any = None
    ) -> Self:
        """Draw the gap of one fit.

        Parameters
        ----------
        estimator : fitted estimator
            LinearSVC, SVC, LinearSVR, SVR, NuSVC, NuSVR, QuantileSVR or OneClassSVM, or a pipeline
            that ends in one, fitted with ``trace=True``.
        name : str, default=None
            Name in the legend; by default that of its class.
        x, ax
            As in ``from_estimators``.
        """
        called = type(view_model(estimator).machine).__name__ if name is None else name
        return cls.from_estimators({called: estimator}, x=x, ax=ax)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, x: str = "seconds", ax: Any = None
    ) -> Self:
        """Draw the gaps of several fits.

        Parameters
        ----------
        estimators : dict of str to fitted estimator
            As in ``from_estimator``, by name.
        x : {"seconds", "iterations"}, default="seconds"
            The horizontal axis.
        ax : matplotlib Axes, default=None
            Where; None: in a new figure.
        """
        if not isinstance(estimators, Mapping) or not estimators:
            raise TypeError(
                f"estimators={estimators!r} is not valid: give a dict of fitted models by name."
            )
        traces = {name: _read_traces(model) for name, model in estimators.items()}
        tols = sorted({float(view_model(model).machine.tol) for model in estimators.values()})
        return cls(traces, tols=tols, x=x).plot(ax)

    def _draw(self, ax: Any) -> None:
        check_choice(self, "x", ("seconds", "iterations"))
        curves: dict[str, list[Floats]] = {}
        for name, of in self.traces.items():
            curves[name] = [np.asarray(trace, dtype=np.float64) for trace in of]
            for trace in curves[name]:
                if trace.ndim != 2 or trace.shape[1] != 2 or not len(trace):
                    raise ValueError(
                        f"traces[{name!r}] has an array of shape {trace.shape}: it needs a row of "
                        "seconds and gap for each iteration, and at least one row."
                    )
        gaps = np.concatenate([trace[:, 1] for of in curves.values() for trace in of])
        floor = _BELOW * min((gap for gap in [*gaps, *self.tols] if gap > 0), default=1.0)
        self.lines_: dict[str, list[Any]] = {}
        alone = {"color": foreground(ax)} if len(curves) == 1 else {}
        for k, (name, of) in enumerate(curves.items()):
            self.lines_[name] = []
            for trace in of:
                x = trace[:, 0] if self.x == "seconds" else np.arange(1, len(trace) + 1)
                gap = np.where(trace[:, 1] > 0, trace[:, 1], floor)
                self.lines_[name].append(style.draw_curve(ax, x, gap, k, **alone))
            several = f", {len(of)} problems" if len(of) > 1 else ""
            self.lines_[name][0].set_label(style.text(name, 24) + several)
        line = {"color": foreground(ax), "linewidth": 0.9}
        self.tol_lines_ = [
            ax.axhline(tol, linestyle=dashes, label=f"tol = {tol:g}", **line)
            for tol, dashes in zip(self.tols, cycle(_DASHES))
        ]
        ends = [trace[-1, 0] for of in curves.values() for trace in of]
        if self.x == "iterations":
            ax.xaxis.get_major_locator().set_params(integer=True)
        elif 0 < _APART * min(ends) < max(ends):
            ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set(xlabel=self.x, ylabel="relative duality gap")
        ax.set_title("How the gap closes")
        style.legend_below(ax, columns=2)
        if (gaps <= 0).any():  # rounding may leave it slightly below
            style.note(ax, f"gaps of 0 are drawn at {floor:.0e}")


def _read_traces(model: Any) -> list[Floats]:
    """Return seconds and gaps of each problem that the model solved."""
    machine = view_model(model).machine
    name = type(machine).__name__
    if "trace" not in getattr(machine, "get_params", dict)():
        raise TypeError(
            f"{name} keeps no trace of its duality gap: fit LinearSVC, SVC, LinearSVR, SVR, NuSVC, "
            "NuSVR, QuantileSVR or OneClassSVM with trace=True."
        )
    check_is_fitted(machine)
    if not hasattr(machine, "trace_"):
        raise ValueError(f"this {name} has no trace_: fit it with {name}(trace=True).")
    trace = machine.trace_
    if not isinstance(trace, list):
        raise TypeError(
            f"the trace of {name} records mistakes, not a duality gap: see PerceptronPathDisplay."
        )
    several = bool(trace) and isinstance(trace[0], list)
    return [np.asarray(one, dtype=np.float64) for one in (trace if several else [trace])]
