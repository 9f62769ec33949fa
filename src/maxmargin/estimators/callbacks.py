"""scikit-learn's own callbacks (1.9 and later), kept to this file.

``sklearn.callback`` is imported only when a callback is set: it is slow to load, and older versions
do not have it.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Self, TypeVar, cast

Fit = TypeVar("Fit", bound=Callable[..., Any])


class TakesCallbacks:
    """Gives an estimator ``set_callbacks``."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set scikit-learn's callbacks, called with each iteration as a task of the fit.

        Parameters
        ----------
        *callbacks : instances that follow scikit-learn's FitCallback protocol
            None at all removes those set before.

        Returns
        -------
        self
        """
        try:
            from sklearn.callback import CallbackSupportMixin
        except ImportError as missing:
            raise RuntimeError(
                "set_callbacks needs scikit-learn 1.9 or later: use the callback parameter."
            ) from missing
        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self


def with_callbacks(fit: Fit) -> Fit:
    """Let scikit-learn's callbacks, if any are set, begin before a fit and end after it."""

    @wraps(fit)
    def managed(self: Any, *arguments: Any, **named: Any) -> Any:
        if not getattr(self, "_skl_callbacks", None):
            return fit(self, *arguments, **named)
        from sklearn.callback import with_callbacks

        return with_callbacks(fit)(self, *arguments, **named)

    return cast(Fit, managed)


def announced(estimator: Any, own: Any) -> Any:
    """Return a callback for ``solve`` that tells the user's own and scikit-learn's of an iteration.

    A callback of either kind that returns True ends the fit.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        return own
    from sklearn.callback import CallbackSupportMixin

    fit = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=None)

    def tell(progress: Any) -> bool:
        task = fit.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=estimator)
        stop = bool(task.call_on_fit_task_end(estimator=estimator))
        answer = None if own is None else own(progress)
        return stop or answer is True

    return tell
