"""The classes that a file may name: ours, and steps of scikit-learn; no others are looked for."""

import enum
from functools import cache
from importlib import import_module
from typing import Any

from maxmargin.estimators.trusted_types import MODULES
from maxmargin.files.schemas import OURS
from maxmargin.files.sklearn_steps import STEPS

_ENUMS = ("Status", "KernelPCAStatus")
# What an object knows of the process it is in, rather than of the model.
_LEFT_OUT = ("_stop_words_id",)


@cache
def _classes() -> dict[str, type]:
    """Return the classes by the names that files give them; all modules are those of our list."""
    places = {f"maxmargin.{name}": MODULES[name] for name in (*OURS, *_ENUMS)}
    places |= {f"sklearn.{name}": module for name, (module, _) in STEPS.items()}
    return {
        name: getattr(import_module(module), name.rpartition(".")[2])
        for name, module in places.items()
    }


@cache
def _names() -> dict[type, str]:
    return {kind: name for name, kind in _classes().items()}


def known_steps() -> str:
    """Return the steps of scikit-learn that a file can hold, as words."""
    return ", ".join(sorted(STEPS))


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
    origin, _, name = name.partition(".")
    return OURS[name] if origin == "maxmargin" else STEPS[name][1]


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
    vars(made).update(state)
    return made
