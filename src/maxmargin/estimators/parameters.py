"""Checks of constructor arguments: each error names the argument, its value and what is allowed."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


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
    bounds = [
        f"{sign} {bound}"
        for sign, bound in ((">", above), (">=", at_least), ("<", below), ("<=", at_most))
        if bound is not None
    ]
    wanted = " and ".join([("an integer " if integer else "a number ") + bounds[0], *bounds[1:]])
    complaint = f"{name}={value!r} is not valid for {type(owner).__name__}: it must be {wanted}"
    complaint += " or None." if optional else "."
    kind = Integral if integer else Real
    if not issubclass(type(value), kind) or isinstance(value, bool | np.bool_):
        raise TypeError(complaint)
    fits = (
        np.isfinite(value)
        and (above is None or value > above)
        and (at_least is None or value >= at_least)
        and (below is None or value < below)
        and (at_most is None or value <= at_most)
    )
    if not fits:
        raise ValueError(complaint)


def check_choice(owner: object, name: str, choices: Sequence[Any]) -> None:
    """Raise ValueError unless attribute ``name`` is one of the choices."""
    value = getattr(owner, name)
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(
            f"{name}={value!r} is not valid for {type(owner).__name__}: choose one of {listed}."
        )


def check_flag(owner: object, name: str) -> None:
    """Raise TypeError unless attribute ``name`` is True or False."""
    value = getattr(owner, name)
    if not isinstance(value, bool | np.bool_):
        raise TypeError(
            f"{name}={value!r} is not valid for {type(owner).__name__}: it must be True or False."
        )


def check_progress(owner: Any) -> None:
    """Raise TypeError unless ``verbose`` is an integer and ``callback`` can be called, or None."""
    if not isinstance(owner.verbose, Integral):
        raise TypeError(f"verbose={owner.verbose!r} is not valid: it must be an integer or bool.")
    if owner.callback is not None and not callable(owner.callback):
        raise TypeError(f"callback={owner.callback!r} is not valid: it must be callable or None.")
