"""Kernels and conditions that are written as text: read by Python's parser, and never run.

Of what Python can read, only a few kinds of nodes have a meaning here, each to its reader:

- ``parse_kernel`` reads sums, products and powers of kernels such as ``RBF(2 * gamma) + 0.5 *
  Linear()``. Sliders are gamma (or γ), degree and coef0, and stand for their values. What a kernel
  prints is read back as an equal kernel.
- ``parse_condition`` reads arithmetic, comparisons, and, or and not of named quantities, such as
  ``support_vectors <= 3 and margin >= 0.5``.
"""

import ast
import inspect
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from maxmargin import kernels
from maxmargin.errors import did_you_mean
from maxmargin.kernels import Kernel
from maxmargin.studio.catalogue import KERNEL_SLIDERS, SLIDERS

LONGEST = 200  # characters
MOST_KERNELS = 16
DEEPEST = 100  # operations in operations
HIGHEST_POWER = 8  # also the highest degree
LARGEST_NUMBER = 1e9

# How the page offers each kernel.
_CALLS = {
    "RBF": "RBF(gamma)",
    "Polynomial": "Polynomial(degree, gamma, coef0)",
    "Linear": "Linear()",
    "Laplacian": "Laplacian(gamma)",
    "Sigmoid": "Sigmoid(gamma, coef0)",
    "Cosine": "Cosine()",
    "Constant": "Constant(1)",
}
_SIGNS = {"^": "**", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-", "·": "*", "\n": " ", "\t": " "}


class ExpressionError(ValueError):
    """A text has no meaning; ``position`` counts the characters before the place."""

    def __init__(self, message: str, position: int) -> None:
        end = "" if message.endswith(("?", ".")) else "."
        super().__init__(f"At character {position + 1}: {message}{end}")
        self.position = position


class _Text:
    """A text as Python reads it, and where its characters come from."""

    def __init__(self, text: str, longest: int) -> None:
        if len(text) > longest:
            raise ExpressionError(
                f"at most {longest} characters are read, and more follow", longest
            )
        self.length = len(text)
        pieces = [(place, _SIGNS.get(sign, sign)) for place, sign in enumerate(text)]
        start = len(text) - len(text.lstrip())
        self._origins = [place for place, piece in pieces[start:] for _ in piece]
        self._python = "".join(piece for _, piece in pieces[start:]).rstrip()

    def parse(self) -> ast.expr:
        """Return what Python reads."""
        if not self._python:
            raise ExpressionError("nothing is written yet", self.length)
        try:
            found = ast.parse(self._python, mode="eval").body
        except SyntaxError as error:
            place = (error.offset or 1) - 1 if error.lineno == 1 else len(self._origins)
            raise ExpressionError(error.msg, self._origin(place)) from None
        except (ValueError, MemoryError, RecursionError):  # such as a lone surrogate
            raise ExpressionError("this cannot be read", 0) from None
        self._check_depth(found, 0)
        return found

    def error(self, message: str, node: ast.AST) -> ExpressionError:
        """Return the error about a part of the text."""
        before = self._python.encode()[: getattr(node, "col_offset", 0)]
        return ExpressionError(message, self._origin(len(before.decode())))

    def refuse(self, node: ast.AST, known: str) -> ExpressionError:
        """Return the error about what has no meaning."""
        written = ast.unparse(node)
        return self.error(f"{written!r:.60} has no meaning here; {known}", node)

    def _origin(self, place: int) -> int:
        return self._origins[place] if 0 <= place < len(self._origins) else self.length

    def _check_depth(self, node: ast.AST, depth: int) -> None:
        if depth > DEEPEST:
            raise self.error("this is nested too deeply", node)
        for inner in ast.iter_child_nodes(node):
            self._check_depth(inner, depth + 1)


# ------------------------------------------------------------------- kernels


def parse_kernel(text: str, values: Mapping[str, float] | None = None) -> Kernel:
    """Return the kernel that a text stands for.

    Parameters
    ----------
    text : str
        Such as ``"RBF(gamma) + 0.5 * Linear()"``.
    values : mapping, optional
        The values of sliders; those that are missing have their defaults.

    Raises
    ------
    ExpressionError
        If the text is no kernel; it says where, and what may stand there.

    Examples
    --------
    >>> parse_kernel("Linear()^2 + rbf(gamma)", {"gamma": 0.5})
    Linear() ** 2 + RBF(gamma=0.5)
    """
    return _KernelReader(text, values or {}).read()


def names_in(text: str) -> tuple[str, ...]:
    """Return the sliders that a text names, in the order of the catalogue.

    >>> names_in("Polynomial(degree) * RBF(gamma)")
    ('gamma', 'degree')
    """
    reader = _KernelReader(text, {})
    reader.read()
    return tuple(name for name in KERNEL_SLIDERS if name in reader.used)


def check_kernel(text: str, parameters: Mapping[str, float]) -> dict[str, Any]:
    """Say whether a text is a kernel, as the page reads it."""
    reply = {"type": "kernel", "ok": False, "text": "", "names": []}
    try:
        kernel, names = parse_kernel(text, parameters), list(names_in(text))
    except ExpressionError as wrong:
        return {**reply, "message": str(wrong), "position": wrong.position}
    made = {"ok": True, "text": repr(kernel), "names": names, "message": "", "position": None}
    return {**reply, **made}


def describe() -> list[dict[str, str]]:
    """Return name, call and meaning of each kernel, as the page reads them."""
    return [
        {"name": name, "call": call, "help": (inspect.getdoc(_class(name)) or "").split("\n")[0]}
        for name, call in _CALLS.items()
    ]


def _class(name: str) -> Any:
    return getattr(kernels, name)


def _find_kernel(word: str) -> str | None:
    """Return the kernel of that name, also by its name in scikit-learn."""
    if word in _CALLS:
        return word
    try:
        name = type(kernels.as_kernel(word.lower())).__name__
    except ValueError:
        return None
    return name if name in _CALLS else None


Value = Kernel | int | float


class _KernelReader:
    """Reads one text; ``used`` are the sliders that it names."""

    def __init__(self, text: str, values: Mapping[str, float]) -> None:
        self.text = _Text(text, LONGEST)
        self.values = values
        self.used: set[str] = set()
        self.kernels = 0

    def read(self) -> Kernel:
        tree = self.text.parse()
        kernel = self.value(tree)
        if not isinstance(kernel, Kernel):
            raise self.text.error(f"a number is no kernel; write Constant({kernel})", tree)
        return kernel

    def value(self, node: ast.expr) -> Value:
        """Return the kernel or the number of a node, which is not too large."""
        found: Value
        match node:
            case ast.BinOp(left, sign, right):
                found = self.combine(node, sign, self.value(left), self.value(right))
            case ast.UnaryOp(ast.USub(), operand):
                found = self.combine(node, ast.Mult(), -1, self.value(operand))
            case ast.Constant(int() | float() as number) if not isinstance(number, bool):
                found = number
            case ast.Name(name):
                found = self.slider(node, name)
            case ast.Call(ast.Name(name), arguments, keywords):
                named = {each.arg or "**": self.value(each.value) for each in keywords}
                found = self.call(node, name, [self.value(each) for each in arguments], named)
            case _:
                raise self.text.refuse(node, _MEANING)
        size: Any = found.factor if isinstance(found, kernels.Scaled) else found
        if not isinstance(size, Kernel) and not abs(size) <= LARGEST_NUMBER:
            raise self.text.error(f"numbers are at most {LARGEST_NUMBER:g}", node)
        return found

    def combine(self, node: ast.expr, sign: ast.operator, first: Value, second: Value) -> Value:
        right = getattr(node, "right", node)
        if isinstance(sign, ast.Pow):
            return self.power(right, first, second)
        if isinstance(sign, ast.Sub):
            raise self.text.error(
                "kernels can be added and multiplied, but a difference of kernels need not be a "
                "kernel; write + instead of -",
                right,
            )
        if not isinstance(sign, ast.Add | ast.Mult):
            raise self.text.refuse(node, _MEANING)
        numbers: list[Any] = [each for each in (first, second) if not isinstance(each, Kernel)]
        if len(numbers) == 1 and numbers[0] < 0:
            raise self.text.error(
                f"a kernel with the negative number {numbers[0]} need not be a kernel; write a "
                "number of at least 0",
                node,
            )
        return first + second if isinstance(sign, ast.Add) else first * second

    def power(self, node: ast.expr, base: Value, exponent: Value) -> Kernel:
        if not isinstance(base, Kernel):
            raise self.text.error("only kernels are raised to a power; write the number out", node)
        raised = base ** self.check_power(node, exponent, "a power")
        inner = raised.kernel if isinstance(raised, kernels.Scaled) else raised
        if isinstance(inner, kernels.Power):
            self.check_power(node, inner.exponent, "a power")
        return raised

    def check_power(self, node: ast.expr, value: Value, what: str) -> int:
        """Return a power or a degree, which is not too high."""
        if isinstance(value, Kernel) or value not in range(1, HIGHEST_POWER + 1):
            shown = "a kernel" if isinstance(value, Kernel) else value
            must = f"{what} is a whole number from 1 to {HIGHEST_POWER}, got {shown}"
            raise self.text.error(must, node)
        return int(value)

    def slider(self, node: ast.expr, name: str) -> float:
        name = {"γ": "gamma"}.get(name, name)
        if name in KERNEL_SLIDERS:
            self.used.add(name)
            value = self.values.get(name, SLIDERS[name].default)
            return int(value) if SLIDERS[name].whole else value
        if called := _find_kernel(name):
            raise self.text.error(f"{name} needs parentheses: {_CALLS[called]}", node)
        raise self.unknown(node, f"{name!r} is not known", name, (*_CALLS, *KERNEL_SLIDERS))

    def unknown(
        self, node: ast.AST, message: str, word: str, known: tuple[str, ...]
    ) -> ExpressionError:
        hint = did_you_mean(word, known) or f" Known are {', '.join(known)}."
        return self.text.error(f"{message}.{hint}", node)

    def call(
        self, node: ast.expr, word: str, arguments: list[Any], named: dict[str, Any]
    ) -> Kernel:
        name = _find_kernel(word)
        if name is None:
            raise self.unknown(node, f"there is no kernel {word!r}", word, tuple(_CALLS))
        self.kernels += 1
        if self.kernels > MOST_KERNELS:
            raise self.text.error(f"a text has at most {MOST_KERNELS} kernels", node)
        try:
            kernel: Kernel = _class(name)(*arguments, **named)
            kernel.check_parameters()
        except TypeError:
            raise self.text.error(f"{name} is written as {_CALLS[name]}", node) from None
        except ValueError as refused:
            raise self.text.error(str(refused), node) from None
        if name == "Polynomial":
            self.check_power(node, kernel.get_params()["degree"], "a degree")
        return kernel


_MEANING = "kernels are written with names, numbers, parentheses, +, * and **"


# ------------------------------------------------------------------- conditions

_LONGEST_CONDITION = 500  # characters
_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_COMBINE: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: math.pow,
}  # fmt: skip


class Known(Protocol):
    """Values of quantities by their names."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of a quantity."""


@dataclass(frozen=True)
class Expression:
    """What was parsed: ``evaluate`` it on the values of the quantities that it names.

    ``names`` are the quantities in it, in order, and ``kind`` is that of its value. What cannot be
    computed is NaN. A comparison with NaN is neither true nor false but NaN, and so is ``not`` of
    it; ``and`` and ``or`` are NaN unless another side decides.
    """

    text: str
    kind: str
    names: tuple[str, ...]
    tree: ast.expr

    def evaluate(self, values: Known) -> float | str:
        """Return the value; quantities are looked up only if they matter."""
        return _evaluate(self.tree, values)

    def holds(self, values: Known) -> bool:
        """Return whether a condition is fulfilled: not if it cannot be decided."""
        value = float(self.evaluate(values))
        return value != 0.0 and not math.isnan(value)


def parse_condition(text: str, kinds: Mapping[str, str]) -> Expression:
    """Parse an expression of quantities, whose kinds are given by their names.

    >>> parse_condition("2 * margin ≥ 1", {"margin": "length"}).evaluate({"margin": 3.0})
    1.0
    """
    written = _Text(text, _LONGEST_CONDITION)
    tree = written.parse()
    for node in ast.walk(tree):
        _check_node(written, node, kinds)
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return Expression(text.strip(), _kind(tree, kinds), tuple(dict.fromkeys(names)), tree)


_SIGNS_OF_CONDITIONS = (
    ast.expr_context, ast.USub, ast.Not, ast.boolop, *_COMPARE, *_COMBINE
)  # fmt: skip
_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare)


def _check_node(written: _Text, node: ast.AST, kinds: Mapping[str, str]) -> None:
    """Refuse a part of an expression that has no meaning."""
    inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    if isinstance(node, ast.Name):
        if node.id not in kinds:
            hint = did_you_mean(node.id, kinds)
            raise written.error(f"there is no quantity {node.id!r:.60}.{hint}", node)
    elif isinstance(node, ast.Constant):
        number: Any = node.value
        if type(number) not in (int, float, str):
            raise written.refuse(node, "write numbers, or words in quotation marks")
        if not isinstance(number, str) and not abs(number) <= LARGEST_NUMBER:
            raise written.error(f"numbers are at most {LARGEST_NUMBER:g}", node)
    elif isinstance(node, _OPERATIONS):
        words = [_kind(each, kinds) == "word" for each in inner]
        equal = isinstance(node, ast.Compare) and {type(sign) for sign in node.ops} <= _EQUAL
        if any(words) and not (equal and all(words)):
            raise written.error("words can only be compared with words, by == or !=", node)
    elif not isinstance(node, _SIGNS_OF_CONDITIONS):
        known = "conditions are made of quantities, numbers, + - * / ^, < <= > >= == !="
        raise written.refuse(node, f"{known}, and, or, not")


_EQUAL = {ast.Eq, ast.NotEq}


def _kind(node: ast.AST, kinds: Mapping[str, str]) -> str:
    """Return of what kind a value is: lengths add up to a length, and counts to a count."""
    match node:
        case ast.Constant(str()):
            return "word"
        case ast.UnaryOp(ast.Not()) | ast.BoolOp() | ast.Compare():
            return "flag"
    inner = list(ast.walk(node))
    found = {kinds.get(each.id, "number") for each in inner if isinstance(each, ast.Name)}
    scaled = any(isinstance(each, ast.Mult | ast.Div | ast.Pow) for each in inner)
    return found.pop() if len(found) == 1 and not scaled else "number"


def _evaluate(node: ast.expr, values: Known) -> float | str:
    match node:
        case ast.Constant(str() as word):
            return word
        case ast.Constant(number):
            return float(number)  # type: ignore[arg-type]  # words are above, the rest is refused
        case ast.Name(name):
            found: float | str = values[name]
            return found
        case ast.UnaryOp(sign, operand):
            inner = float(_evaluate(operand, values))
            if isinstance(sign, ast.USub) or math.isnan(inner):
                return -inner
            return float(inner == 0.0)
        case ast.BoolOp(sign, parts):
            return _connect(parts, values, decisive=isinstance(sign, ast.Or))
        case ast.Compare(left, signs, rights):
            return _compare(signs, [_evaluate(each, values) for each in (left, *rights)])
        case ast.BinOp(left, sign, right):
            first, second = float(_evaluate(left, values)), float(_evaluate(right, values))
            try:
                return float(_COMBINE[type(sign)](first, second))
            except (ArithmeticError, ValueError):  # such as 1/0, or a power that is no number
                return math.nan
    raise TypeError(f"{type(node).__name__} was not refused")


def _compare(signs: list[ast.cmpop], members: list[float | str]) -> float:
    if any(member != member for member in members):
        return math.nan
    pairs = zip(signs, members, members[1:], strict=False)
    return float(all(_COMPARE[type(sign)](a, b) for sign, a, b in pairs))


def _connect(parts: list[ast.expr], values: Known, decisive: bool) -> float:
    """Return "or" (if what is true decides) or "and" (if what is false decides)."""
    unknown = False
    for part in parts:
        value = float(_evaluate(part, values))
        if not math.isnan(value) and (value != 0.0) == decisive:
            return float(decisive)
        unknown = unknown or math.isnan(value)
    return math.nan if unknown else float(not decisive)
