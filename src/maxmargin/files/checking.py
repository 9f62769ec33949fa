"""Whether the state of a model is what its class would have: names, kinds, shapes, limits.

Nothing here trusts what it looks at. What several attributes must have in common beyond the sizes
that schemas name is in ``shapes``.
"""

import copy
import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from maxmargin.files.known_classes import name_of, schema_of, state_of
from maxmargin.files.shapes import Sizes, State, check_shapes
from maxmargin.kernels import Kernel

# ------------------------------------------------------------------- schemas, read


class Spec(NamedTuple):
    """One kind of value that an attribute may have; of a list or tuple, that its items may have."""

    kind: str
    shape: tuple[str, ...] | None
    limits: tuple[str, ...]
    items: "tuple[Spec, ...]" = ()


@cache
def _schema(name: str, was_read: bool) -> dict[str, tuple[bool, tuple[Spec, ...]]]:
    """Return by attribute whether it must be there, and what it may be."""
    lines = filter(None, map(str.strip, schema_of(name, was_read).splitlines()))
    split = (line.partition(":")[::2] for line in lines)
    return {name.rstrip("?"): (not name.endswith("?"), _specs(text)) for name, text in split}


def _specs(text: str) -> tuple[Spec, ...]:
    container, of, items = text.partition(" of ")
    if of:
        return (Spec(container.strip(), None, (), _specs(items)),)
    return tuple(map(_spec, text.split("|")))


def _spec(text: str) -> Spec:
    match = re.fullmatch(r"\s*(\w+)(?:\[([^\]]*)\])?\s*(.*?)\s*", text)
    assert match is not None, text
    kind, shape, limits = match.groups()
    return Spec(kind, None if shape is None else tuple(shape.split(",")), tuple(limits.split()))


_ANYTHING = (Spec("any", None, ()),)

# ------------------------------------------------------------------- kinds


def _is_array(*dtypes: str) -> Callable[[Any], bool]:
    return lambda value: type(value) is np.ndarray and value.dtype.name in dtypes


def _is_rows(value: Any) -> bool:
    dense = type(value) is np.ndarray and value.ndim == 2
    sparse = sp.issparse(value) and value.format == "csr"
    return (dense or sparse) and value.dtype in (np.float32, np.float64)


def _is_texts(value: Any) -> bool:
    if type(value) is not np.ndarray or value.dtype.kind not in "OU":
        return False
    return value.dtype.kind == "U" or all(isinstance(each, str) for each in value.ravel())


def _is_number(value: Any) -> bool:
    real = int | float | np.integer | np.floating
    return isinstance(value, real) and not isinstance(value, bool)


def _is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "float64": _is_array("float64"),
    "floats": _is_array("float32", "float64"),
    "int32": _is_array("int32"),
    "int64": _is_array("int64"),
    "uint64": _is_array("uint64"),
    "bool": _is_array("bool"),
    "objects": _is_array("object"),
    "rows": _is_rows,
    "labels": lambda value: type(value) is np.ndarray and value.dtype.kind in "biufUO",
    "texts": _is_texts,
    "int": _is_int,
    "number": _is_number,
    "flag": lambda value: isinstance(value, bool | np.bool_),
    "word": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
    "any": lambda value: True,
    "list": lambda value: type(value) is list,
    "tuple": lambda value: type(value) is tuple,
    "shape": lambda value: type(value) is tuple and all(map(_is_int, value)),
    "pair": lambda value: type(value) is tuple and len(value) == 2 and all(map(_is_int, value)),
    "kernel": lambda value: isinstance(value, Kernel),
}


def _is_of(kind: str, value: Any) -> bool:
    if kind in _KINDS:
        return _KINDS[kind](value)
    return (name_of(type(value)) or "").partition(".")[2] == kind


# ------------------------------------------------------------------- objects


def check_model(model: Any, place: str = "") -> None:
    """Check a model; raise ValueError for what is wrong."""
    walk = _Walk()
    walk.visit(model, place)
    for check in walk.later:
        check()


class _Walk:
    """Through an estimator and what it is made of, which shares its sizes."""

    def __init__(self) -> None:
        self.sizes: Sizes = {}
        self.later: list[Callable[[], None]] = []  # what is asked once all sizes are known

    def visit(self, value: Any, place: str) -> None:
        """Check an instance of a known class."""
        where = f"{place}{type(value).__name__}"
        state, parameters = state_of(value), _parameters(type(value))
        schema = _schema(name_of(type(value)) or "", "origin_" in state)
        fitted = [name for name, (must, _) in schema.items() if must]
        unfitted = place and _is_unfitted(value)
        if unfitted:  # as a ColumnTransformer keeps what it was given; who needs it fitted asks
            fitted = []
        for name in (*parameters, *fitted):
            _require(name in state, where, f"lacks {name!r}")
        local: Sizes = {}
        for name, each in state.items():
            known = name in schema or name in parameters
            _require(known, where, f"has no attribute {name!r:.80}")
            specs = schema[name][1] if name in schema else _ANYTHING
            self._visit_attribute(specs, each, local, f"{where}.{name}")
        _check_parameters(value, where)
        if not unfitted:
            self.later.append(partial(self._compare, value, state, where))

    def _visit_attribute(
        self, specs: tuple[Spec, ...], value: Any, local: Sizes, where: str
    ) -> None:
        spec = _match(specs, value, (self.sizes, local), where)
        for part, own in _parts(spec, value):
            if part.kind in _KINDS:
                self.later.append(partial(_check_limits, part, own, self.sizes, where))
        described = all(part.kind != "any" for part in (spec, *spec.items))
        for inner in _instances(value):
            if described:
                self.visit(inner, f"{where}: ")
            else:  # an estimator with sizes of its own
                check_model(inner, f"{where}: ")

    def _compare(self, value: Any, state: State, where: str) -> None:
        try:
            check_shapes(value, state, self.sizes)
        except ValueError as contradiction:
            raise ValueError(f"{where}: {contradiction}") from None


def _match(specs: tuple[Spec, ...], value: Any, sizes: tuple[Sizes, Sizes], where: str) -> Spec:
    """Return the first spec that a value fits, with its shape noted; items have one each."""
    complaint = f"{where} is {_shown(value)}; expected {' or '.join(s.kind for s in specs)}"
    for spec in specs:
        if not _is_of(spec.kind, value):
            continue
        known = [dict(each) for each in sizes]
        try:
            if spec.items:
                return spec._replace(
                    items=tuple(_match(spec.items, v, sizes, where) for v in value)
                )
            _check_sizes(spec, value, sizes, where)
        except ValueError as wrong:
            complaint = str(wrong)
            for each, before in zip(sizes, known, strict=True):
                each.clear()
                each.update(before)
            continue
        return spec
    raise ValueError(complaint)


def _parts(spec: Spec, value: Any) -> Iterator[tuple[Spec, Any]]:
    """Yield a value, or the items of a list, with the spec that each fits."""
    if not spec.items:
        if spec.kind not in ("list", "tuple"):
            yield spec, value
        return
    for each, item in zip(spec.items, value, strict=True):
        yield from _parts(each, item)


def _instances(value: Any) -> Iterator[Any]:
    """Yield the instances of known classes in a value that no schema describes."""
    if isinstance(value, Enum):
        return
    if name_of(type(value)) is not None:
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _instances(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _instances(each)


def _is_unfitted(step: Any) -> bool:
    """Return whether an estimator has nothing but parameters; a pipeline, whether all steps do."""
    if not isinstance(step, BaseEstimator) or type(step).__name__ == "FunctionTransformer":
        return False
    if isinstance(step, Pipeline):
        entries = [e[1] for e in vars(step).get("steps", ()) if type(e) is tuple and len(e) == 2]
        return all(_is_unfitted(each) for each in entries if isinstance(each, BaseEstimator))
    return bool(vars(step).keys() <= set(inspect.signature(type(step)).parameters))


def _parameters(kind: type) -> tuple[str, ...]:
    if not issubclass(kind, BaseEstimator | Kernel):
        return ()
    return tuple(inspect.signature(kind).parameters)


def _with_numbers(kernel: Any) -> Any:
    """Replace what depends on data, which a kernel that is a parameter may leave open."""
    if getattr(kernel, "gamma", None) in ("scale", "auto"):
        kernel.gamma = 1.0
    for inner in _instances(list(vars(kernel).values())):
        _with_numbers(inner)
    return kernel


def _with_costs(model: Any) -> Any:
    """Replace what files of LIBSVM and LIBLINEAR do not say, which is None in a model of theirs."""
    defaults = inspect.signature(type(model)).parameters
    model = copy.copy(model)
    for name in ("C", "epsilon", "nu"):
        if name in defaults and getattr(model, name) is None:
            setattr(model, name, defaults[name].default)
    return model


def _check_parameters(value: Any, where: str) -> None:
    """Let an estimator or a kernel of ours check its own; scikit-learn's steps do when used."""
    if not hasattr(value, "check_parameters"):
        return
    try:
        if isinstance(value, Kernel):
            value = _with_numbers(copy.deepcopy(value))
        elif hasattr(value, "origin_"):
            value = _with_costs(value)
        value.check_parameters()
    except Exception as refused:
        raise ValueError(f"{where}: {refused}") from None


# ------------------------------------------------------------------- values


def _check_sizes(spec: Spec, value: Any, sizes: tuple[Sizes, Sizes], where: str) -> None:
    if spec.shape is None:
        return
    shape = value if spec.kind == "shape" else value.shape
    _require(len(shape) == len(spec.shape), where, f"has shape {tuple(shape)}")
    for name, size in zip(spec.shape, shape, strict=True):
        if name.isdecimal():
            _require(size == int(name), where, f"has shape {tuple(shape)}")
        elif name != "_":
            base, _, more = name.partition("+")
            _unify(sizes[base.startswith(".")], base, int(size) - int(more or 0), where)


def _unify(sizes: Sizes, name: str, size: int, where: str) -> None:
    known = sizes.setdefault(name, size)
    if known != size:
        raise ValueError(f"{where} is for {size} {_WORDS.get(name, name)}, but there are {known}")


_WORDS = {
    "sv": "support vectors", "n_features": "columns", "n_rows": "rows", "sides": "sides of duals",
}  # fmt: skip


def _check_limits(spec: Spec, value: Any, sizes: Sizes, where: str) -> None:
    if spec.kind == "labels":
        return _check_labels(value, where)
    if spec.kind == "word":
        return _require(not spec.limits or value in spec.limits, where, f"is {value!r:.80}")
    if spec.kind in ("flag", "None", "texts", "shape", "objects", "any", "kernel"):
        return None
    numbers = np.asarray(value.data if sp.issparse(value) else value)
    if numbers.dtype.kind == "f":
        bad = np.isnan(numbers) & ("nan" not in spec.limits)
        bad |= np.isinf(numbers) & ("inf" not in spec.limits)
        _require(not bad.any(), where, f"has {numbers[bad].ravel()[:1]}, which is not finite")
    for limit in spec.limits:
        _check_limit(limit, value, numbers, sizes, where)
    return None


def _check_limit(limit: str, value: Any, numbers: Any, sizes: Sizes, where: str) -> None:
    if limit.startswith("="):
        _unify(sizes, limit[1:], int(value), where)
    elif limit.startswith(">="):
        _require(not (numbers < float(limit[2:])).any(), where, f"is not {limit}")
    elif limit.startswith(">"):
        _require(not (numbers <= float(limit[1:])).any(), where, f"is not {limit}")
    elif limit.startswith("<"):
        most = sizes.get(limit[1:])
        _require(most is not None, where, f"has no {limit[1:]} to belong to")
        inside = not numbers.size or (int(numbers.max()) < int(most or 0))
        _require(inside, where, f"has {numbers.max(initial=0)}, but there are {most}")
        _require(bool((numbers >= -1).all()), where, "has a negative index")
    elif limit == "unique":
        _require(len(np.unique(numbers)) == numbers.size, where, "names something twice")
        _require(not (numbers < 0).any(), where, "has a negative index")
    elif limit == "increasing":
        _require(bool((numbers[1:] > numbers[:-1]).all()), where, "is not in order")
        _require(not (numbers < 0).any(), where, "has a negative index")


def _check_labels(value: Any, where: str) -> None:
    items = value.tolist()
    _require(len(items) >= 1, where, "is empty")
    _require(all(item == item for item in items), where, "has nan")
    try:
        rising = all(a < b for a, b in pairwise(items))
    except TypeError:
        rising = False
    _require(rising, where, "has labels that are not in order, or one of them twice")


def _shown(value: Any) -> str:
    if type(value) is np.ndarray or sp.issparse(value):
        return f"{type(value).__name__} of {value.dtype} and shape {value.shape}"
    plain = value is None or isinstance(value, bool | int | float | str)
    return f"{type(value).__name__} {value!r:.60}" if plain else f"of type {type(value).__name__}"


def _require(holds: bool, where: str, complaint: str) -> None:
    if not holds:
        raise ValueError(f"{where} {complaint}")
