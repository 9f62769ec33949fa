"""Checks of constructor arguments: each error names the argument, its value and what is allowed."""

import inspect
import math
from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_classifier

from maxmargin.errors import about, did_you_mean

_LARGEST_INTEGER = 2**63 - 1  # that compiled loops and arrays can count to
# Costs, weights and step lengths beyond these have products that overflow or vanish in float64.
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-100, 1e100


class NamedParameters:
    """Lets an estimator refuse parameters it does not have by the name of what was meant."""

    # scikit-learn's parameters that an estimator does not have, and what to do instead.
    _instead: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _refusing_unknown(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator, or with ``name__inner`` those of an object in it.

        Parameters
        ----------
        **params
            By name.

        Returns
        -------
        self
        """
        known = self.get_params(deep=False)  # type: ignore[attr-defined]
        for name in (name.partition("__")[0] for name in params):
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r}: {self._unknown(name, known)}")
        super().set_params(**params)  # type: ignore[misc]
        return self

    def _unknown(self, name: str, known: Sequence[str] | dict[str, Any]) -> str:
        """Return the sentence about a parameter that does not exist."""
        advice = self._instead.get(name) or did_you_mean(name, known).strip()
        advice = advice or f"Valid parameters are {', '.join(known)}."
        return f"{type(self).__name__} has no parameter {name!r}. {advice}"


def _refusing_unknown(init: Callable[..., None]) -> Callable[..., None]:
    parameters = inspect.signature(init).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return init

    @wraps(init)
    def checked(self: Any, *args: Any, **params: Any) -> None:
        for name in params:
            if name not in parameters:
                raise TypeError(self._unknown(name, list(parameters)[1:]))
        init(self, *args, **params)

    return checked


def check_number(
    owner: object,
    name: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    integer: bool = False,
    optional: bool = False,
) -> None:
    """Raise TypeError or ValueError unless attribute ``name`` is a number within the bounds.

    >>> from types import SimpleNamespace
    >>> check_number(SimpleNamespace(eta=-1), "eta", above=0)
    Traceback (most recent call last):
    ...
    ValueError: eta=-1 is not valid for SimpleNamespace: it must be a number > 0.
    """
    value: Any = getattr(owner, name)
    if optional and value is None:
        return
    kind = Integral if integer else Real
    wrong: type[Exception] = TypeError
    if issubclass(type(value), kind) and not isinstance(value, bool | np.bool_):
        number, wrong = as_float(value), ValueError
        if (
            math.isfinite(number)
            and (above is None or number > above)
            and (at_least is None or number >= at_least)
            and (below is None or number < below)
            and (at_most is None or number <= at_most)
            and not (integer and value > _LARGEST_INTEGER)
        ):
            return
    limits = ((">", above), (">=", at_least), ("<", below), ("<=", at_most))
    bounds = " and ".join(f"{sign} {limit}" for sign, limit in limits if limit is not None)
    large = integer and wrong is ValueError and value > _LARGEST_INTEGER
    message = (
        f"{name}={shown(value)} is not valid for {type(owner).__name__}: it must be "
        f"{'an integer' if integer else 'a number'} {bounds}{' or None' if optional else ''}."
        f"{' The largest allowed is 2**63 - 1.' if large else ''}"
    )
    raise about(name, wrong(message))


def as_float(value: Any) -> float:
    """Return a real number in float64, infinite if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def shown(value: Any) -> str:
    """Return a value for a message: in full, unless it is very long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integers of more than 4300 digits
        return f"an integer of {value.bit_length()} bits"
    return text if len(text) <= 80 else f"{text[:60]}…"


def check_scale(owner: object, name: str) -> None:
    """Raise unless attribute ``name`` is a positive number whose square float64 can hold."""
    check_number(owner, name, above=0)
    value = getattr(owner, name)
    if not SMALLEST_FACTOR <= as_float(value) <= LARGEST_FACTOR:
        message = (
            f"{name}={shown(value)} is not valid for {type(owner).__name__}: products with it "
            f"leave float64. It must be between {SMALLEST_FACTOR:g} and {LARGEST_FACTOR:g}."
        )
        raise about(name, ValueError(message))


def check_cost(owner: Any) -> None:
    """Raise unless C is a finite number above 0, and say what to do without any slack."""
    C = owner.C
    if isinstance(C, Real) and as_float(C) == math.inf:
        instead = "A large one comes as near as rounding allows."
        if is_classifier(owner):
            instead = "Without any slack, use HardMarginSVC."
        message = (
            f"C={shown(C)} is not valid for {type(owner).__name__}: it must be a finite number "
            f"> 0. {instead}"
        )
        raise about("C", ValueError(message))
    check_scale(owner, "C")


def check_choice(owner: object, name: str, choices: Sequence[Any]) -> None:
    """Raise ValueError unless attribute ``name`` is one of the choices."""
    value = getattr(owner, name)
    for choice in choices:
        kind = str if isinstance(choice, str) else bool | np.bool_
        if isinstance(value, kind) and value == choice:
            return
    listed = ", ".join(repr(choice) for choice in choices)
    meant = did_you_mean(value, [each for each in choices if isinstance(each, str)])
    message = (
        f"{name}={shown(value)} is not valid for {type(owner).__name__}: choose one of "
        f"{listed}.{meant}"
    )
    raise about(name, ValueError(message))


def check_flag(owner: object, name: str) -> None:
    """Raise TypeError unless attribute ``name`` is True or False."""
    value = getattr(owner, name)
    if not isinstance(value, bool | np.bool_):
        message = (
            f"{name}={shown(value)} is not valid for {type(owner).__name__}: it must be True or "
            "False."
        )
        raise about(name, TypeError(message))


def check_threads(owner: Any) -> None:
    """Raise unless ``n_jobs`` is a number of threads, -1 or None."""
    if not (isinstance(owner.n_jobs, Integral) and owner.n_jobs == -1):
        check_number(owner, "n_jobs", at_least=1, integer=True, optional=True)


def check_memory(owner: Any) -> None:
    """Raise unless ``memory`` is a number of bytes or "auto"."""
    if not (isinstance(owner.memory, str) and owner.memory == "auto"):
        try:
            check_number(owner, "memory", at_least=1, integer=True)
        except (TypeError, ValueError) as wrong:
            message = f"{wrong} It is a number of bytes, or 'auto'."
            raise about("memory", type(wrong)(message)) from None


def check_progress(owner: Any) -> None:
    """Raise TypeError unless ``verbose`` is an integer and ``callback`` can be called, or None."""
    if not isinstance(owner.verbose, Integral):
        raise TypeError(f"verbose={owner.verbose!r} is not valid: it must be an integer or bool.")
    if owner.callback is not None and not callable(owner.callback):
        raise TypeError(f"callback={owner.callback!r} is not valid: it must be callable or None.")
