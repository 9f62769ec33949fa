"""The classes that a file may name: ours, and steps of scikit-learn; no others are looked for."""

import enum
import inspect
from functools import cache
from importlib import import_module
from typing import Any

from maxmargin.files.schemas import OURS
from maxmargin.files.sklearn_steps import STEPS
from maxmargin.files.trusted_types import ENUMS

_SCHEMAS = {
    f"maxmargin.{place}": text for place, text in (OURS | dict.fromkeys(ENUMS, "")).items()
} | STEPS
# What an object knows of the process it is in, rather than of the model.
_LEFT_OUT = ("_stop_words_id",)
_WITHOUT_EFFECT: dict[str, dict[str, tuple[Any, ...]]] = {
    "ColumnTransformer": {"force_int_remainder_cols": (True, False, "deprecated")},  # until 1.8
    "MaxAbsScaler": {"clip": (False,)},  # from 1.8 on
}
_PLACES = {f"{p.partition('.')[0]}.{p.rpartition('.')[2]}": p for p in _SCHEMAS}  # by name


@cache
def _classes() -> dict[str, type]:
    """Return the classes by the names that files give them; all modules are those of our list."""
    found = {}
    for name, place in _PLACES.items():
        module, _, last = place.rpartition(".")
        found[name] = getattr(import_module(module), last)
    return found


@cache
def _names() -> dict[type, str]:
    return {kind: name for name, kind in _classes().items()}


def known_steps() -> str:
    """Return the steps of scikit-learn that a file can hold, as words."""
    return ", ".join(sorted(place.rpartition(".")[2] for place in STEPS))


def name_of(kind: type) -> str | None:
    """Return how files call a class; None: they cannot hold it."""
    return _names().get(kind)


def class_of(name: Any) -> type:
    """Return a class by its name in a file."""
    if not isinstance(name, str) or name not in _classes():
        raise ValueError(f"{str(name)[:80]!r} is no class that a model file may hold")
    return _classes()[name]


def schema_of(name: str) -> str:
    """Return the lines of the schema of a known class, by its name in files."""
    return _SCHEMAS[_PLACES[name]]


def state_of(value: Any) -> dict[str, Any]:
    """Return what an instance is made of."""
    if isinstance(value, tuple):
        return dict(zip(type(value)._fields, value, strict=True))  # type: ignore[attr-defined]
    return {key: each for key, each in vars(value).items() if key not in _LEFT_OUT}


def make(kind: type, state: dict[str, Any]) -> Any:
    """Return an instance with this state, without calling anything of its class."""
    if issubclass(kind, enum.Enum):
        raise ValueError(f"{kind.__name__} is no object with a state")
    if issubclass(kind, tuple):
        fields = kind._fields  # type: ignore[attr-defined]
        if set(state) != set(fields):
            raise ValueError(f"{kind.__name__} needs {', '.join(fields)}")
        return tuple.__new__(kind, [state[field] for field in fields])
    made = object.__new__(kind)
    of_sklearn = kind.__module__.startswith("sklearn.")
    vars(made).update(_translated(kind, state) if of_sklearn else state)
    return made


def _translated(kind: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a step of another scikit-learn as this one would have it, if it can be.

    A parameter that it did not have yet changes nothing by its default; nor do those of
    ``_WITHOUT_EFFECT`` with these values. What else is different is refused when it is checked.
    """
    known = inspect.signature(kind).parameters
    neutral = _WITHOUT_EFFECT.get(kind.__name__, {})
    kept = {
        name: value
        for name, value in state.items()
        if name in known or not (type(value) in (bool, str) and value in neutral.get(name, ()))
    }
    if kind.__name__ == "SimpleImputer" and "_fit_dtype" in state:
        kept.setdefault("_fill_dtype", state["_fit_dtype"])  # one and the same until 1.7
    missing = {name: each.default for name, each in known.items() if name not in kept}
    return {**missing, **kept}
