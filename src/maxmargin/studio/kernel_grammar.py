"""Kernels that are written as text, read by a small grammar: nothing is ever evaluated.

    sum      = product {"+" product}
    product  = power {"*" power}
    power    = atom [("**" | "^") number]
    atom     = ["-"] number | slider | "(" sum ")" | name "(" [argument {"," argument}] ")"
    argument = [name "="] (sum | "[" number {"," number} "]")

Sliders are gamma (or γ), degree and coef0, and stand for their values: ``RBF(2 * gamma) + 0.5 *
Linear()``. What a kernel prints is read back as an equal kernel.
"""

import inspect
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

from maxmargin import kernels
from maxmargin.errors import did_you_mean
from maxmargin.kernels import Kernel
from maxmargin.studio.catalogue import KERNEL_SLIDERS, SLIDERS

LONGEST = 200  # characters
MOST_KERNELS = 16
MOST_NESTED = 20  # parentheses in parentheses
HIGHEST_POWER = 8  # also the highest degree
LARGEST_NUMBER = 1e9
N_COLUMNS = 2  # of the plane

# How the page offers each kernel.
_CALLS = {
    "RBF": "RBF(gamma)",
    "Polynomial": "Polynomial(degree, gamma, coef0)",
    "Linear": "Linear()",
    "Laplacian": "Laplacian(gamma)",
    "Sigmoid": "Sigmoid(gamma, coef0)",
    "Cosine": "Cosine()",
    "ChiSquared": "ChiSquared(gamma)",
    "Intersection": "Intersection()",
    "Constant": "Constant(1)",
    "Columns": "Columns(RBF(gamma), 0)",
}
_WORDS = {**{name: name for name in KERNEL_SLIDERS}, "γ": "gamma"}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_γ][A-Za-z_0-9]*)"
    r"|(?P<sign>\*\*|[-+*^()\[\],=])"
    r"|(?P<end>$))"
)


class KernelSyntaxError(ValueError):
    """A text is no kernel; ``position`` counts the characters before the place."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


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
    KernelSyntaxError
        If the text is no kernel; it says where, and what may stand there.

    Examples
    --------
    >>> parse_kernel("Linear()^2 + rbf(gamma)", {"gamma": 0.5})
    Linear() ** 2 + RBF(gamma=0.5)
    """
    return _Parser(text, values or {}).parse()


def names_in(text: str) -> tuple[str, ...]:
    """Return the sliders that a text names, in the order of the catalogue.

    >>> names_in("Polynomial(degree) * RBF(gamma)")
    ('gamma', 'degree')
    """
    parser = _Parser(text, {})
    parser.parse()
    return tuple(name for name in KERNEL_SLIDERS if name in parser.used)


def describe() -> list[dict[str, str]]:
    """Return name, call and meaning of each kernel, as the page reads them."""
    return [
        {"name": name, "call": call, "help": (inspect.getdoc(_class(name)) or "").split("\n")[0]}
        for name, call in _CALLS.items()
    ]


def _class(name: str) -> Any:
    return getattr(kernels, name)


@cache
def _parameters(name: str) -> tuple[str, ...]:
    return tuple(key for key in inspect.signature(_class(name)).parameters if key != "of")


def _taken(name: str) -> str:
    *others, last = _parameters(name) or ("nothing",)
    return f"{name} takes {', '.join(others)}{' and ' if others else ''}{last}"


class _Token(NamedTuple):
    kind: str  # "number", "name", "sign" or "end"
    text: str
    position: int

    def __str__(self) -> str:
        return repr(self.text) if self.text else "the end of the text"


def _split(text: str) -> list[_Token]:
    """Return the tokens of a text, the last of which is its end."""
    tokens: list[_Token] = []
    place = 0
    while not tokens or tokens[-1].kind != "end":
        found = _TOKEN.match(text, place)
        if found is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            raise _error(
                f"{text[place]!r} has no meaning here; kernels are written with names, numbers, "
                "parentheses, +, * and **",
                place,
            )
        kind = str(found.lastgroup)
        tokens.append(_Token(kind, found[kind], found.start(kind)))
        place = found.end()
    return tokens


def _error(message: str, position: int) -> KernelSyntaxError:
    end = "" if message.endswith(("?", ".")) else "."
    return KernelSyntaxError(f"At character {position + 1}: {message}{end}", position)


def _unknown(word: str, known: tuple[str, ...]) -> str:
    return did_you_mean(word, known) or f" Known are {', '.join(known)}."


Value = Kernel | int | float
Checked = TypeVar("Checked", bound=Value)


class _Parser:
    """Reads one text from left to right; ``used`` are the sliders that it names."""

    def __init__(self, text: str, values: Mapping[str, float]) -> None:
        if len(text) > LONGEST:
            raise KernelSyntaxError(
                f"A kernel is written in at most {LONGEST} characters, this one has {len(text)}.",
                LONGEST,
            )
        self.tokens = _split(text)
        self.at = 0
        self.values = values
        self.used: set[str] = set()
        self.depth = 0
        self.kernels = 0

    # ------------------------------------------------------------ tokens

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.next
        self.at += token.kind != "end"
        return token

    def follows(self, *signs: str) -> bool:
        return self.next.kind == "sign" and self.next.text in signs

    def expect(self, sign: str, meaning: str) -> None:
        if not self.follows(sign):
            raise _error(f"{sign!r} {meaning} is expected, got {self.next}", self.next.position)
        self.take()

    # ------------------------------------------------------------ expressions

    def parse(self) -> Kernel:
        kernel = self.sum()
        if self.next.kind != "end":
            raise _error(f"kernels are joined by + or *, got {self.next}", self.next.position)
        if not isinstance(kernel, Kernel):
            raise _error(f"a number is no kernel; write Constant({kernel}) for a constant one", 0)
        try:
            kernel.check_parameters()
        except (TypeError, ValueError) as refused:
            raise KernelSyntaxError(str(refused), 0) from None
        return kernel

    def sum(self) -> Value:
        start = self.next.position
        total = self.product()
        while self.follows("+", "-"):
            sign = self.take()
            if sign.text == "-":
                raise _error(
                    "kernels can be added and multiplied, but a difference of kernels need not be "
                    "a kernel; write + instead of -",
                    sign.position,
                )
            place = self.next.position
            term = self.product()
            if isinstance(total, Kernel) != isinstance(term, Kernel):
                self.refuse_negative(total, start)
                self.refuse_negative(term, place)
            total = self.checked(total + term, start)
        return total

    def product(self) -> Value:
        start = self.next.position
        total = self.power()
        while self.follows("*"):
            self.take()
            place = self.next.position
            factor = self.power()
            if isinstance(total, Kernel) != isinstance(factor, Kernel):
                self.refuse_negative(total, start)
                self.refuse_negative(factor, place)
            total = self.checked(total * factor, start)
        return total

    def power(self) -> Value:
        base = self.atom()
        if not self.follows("**", "^"):
            return base
        sign = self.take()
        if not isinstance(base, Kernel):
            raise _error("only kernels are raised to a power; write the number out", sign.position)
        place = self.next.position
        exponent = self.whole(self.atom(), place, "a power", 1, HIGHEST_POWER)
        raised = self.checked(base**exponent, sign.position)
        inner = raised.kernel if isinstance(raised, kernels.Scaled) else raised
        if isinstance(inner, kernels.Power) and inner.exponent > HIGHEST_POWER:
            raise _error(f"powers are at most {HIGHEST_POWER}, got {inner.exponent}", place)
        if self.follows("**", "^"):
            raise _error("a power of a power needs parentheses", self.next.position)
        return raised

    def atom(self) -> Value:
        token = self.take()
        if token.kind == "number":
            number = int(token.text) if token.text.isdecimal() else float(token.text)
            return self.checked(number, token.position)
        if token.kind == "name":
            return self.named(token)
        if token.text == "(":
            self.enter(token)
            inside = self.sum()
            self.expect(")", "to close the parenthesis")
            self.depth -= 1
            return inside
        if token.text == "-":
            place = self.next.position
            if self.follows("-"):
                raise _error(f"a number or a kernel is expected, got {self.next}", place)
            value = self.atom()
            if isinstance(value, Kernel):
                raise _error("a kernel cannot be negative; leave the - out", token.position)
            return -value
        raise _error(
            f"a kernel such as RBF(gamma), a number or '(' is expected, got {token}",
            token.position,
        )

    def named(self, token: _Token) -> Value:
        """Return the value of a slider, or the kernel that is called."""
        if self.follows("("):
            return self.call(token)
        if token.text in _WORDS:
            name = _WORDS[token.text]
            self.used.add(name)
            return self.checked(self.values.get(name, SLIDERS[name].default), token.position)
        called = self.find(token.text)
        if called is not None:
            raise _error(f"{token.text} needs parentheses: {_CALLS[called]}", token.position)
        known = (*_CALLS, *KERNEL_SLIDERS)
        raise _error(f"{token.text!r} is not known.{_unknown(token.text, known)}", token.position)

    # ------------------------------------------------------------ calls

    @staticmethod
    def find(word: str) -> str | None:
        """Return the kernel of that name, also by its name in scikit-learn."""
        if word in _CALLS:
            return word
        try:
            name = type(kernels.as_kernel(word.lower())).__name__
        except ValueError:
            return None
        return name if name in _CALLS else None

    def call(self, token: _Token) -> Kernel:
        name = self.find(token.text)
        if name is None:
            raise _error(
                f"there is no kernel {token.text!r}.{_unknown(token.text, tuple(_CALLS))}",
                token.position,
            )
        self.kernels += 1
        if self.kernels > MOST_KERNELS:
            raise _error(f"a text has at most {MOST_KERNELS} kernels", token.position)
        self.enter(self.take())
        arguments = self.arguments(name)
        self.expect(")", f"to close the arguments of {name}")
        self.depth -= 1
        if name == "Constant" and "value" not in arguments:
            raise _error("Constant needs a value: Constant(1)", token.position)
        if name == "Columns" and len(arguments) < 2:
            raise _error(
                f"Columns needs a kernel and a column: {_CALLS['Columns']}", token.position
            )
        kernel: Kernel = _class(name)(**arguments)
        return kernel

    def arguments(self, name: str) -> dict[str, Any]:
        """Return what stands in the parentheses, by the names of the parameters."""
        found: dict[str, Any] = {}
        positional = 0
        while not self.follows(")"):
            if found:
                self.expect(",", f"or ')' after an argument of {name}")
            start = self.next
            if start.kind == "name" and self.tokens[self.at + 1].text == "=":
                key = self.keyword(name)
            elif positional < len(found):
                raise _error("arguments without a name come first", start.position)
            elif positional == len(_parameters(name)):
                raise _error(f"{_taken(name)}, and no more", start.position)
            else:
                key = _parameters(name)[positional]
                positional += 1
            if key in found:
                raise _error(f"{key} is there twice", start.position)
            found[key] = self.argument(name, key)
        return found

    def keyword(self, name: str) -> str:
        """Return the parameter that is named before an equals sign."""
        token = self.take()
        self.take()
        known = _parameters(name)
        if token.text not in known:
            raise _error(
                f"{name} has no {token.text!r}; {_taken(name)}.{did_you_mean(token.text, known)}",
                token.position,
            )
        return token.text

    def argument(self, name: str, key: str) -> Any:
        start = self.next.position
        if key == "columns":
            return self.columns()
        value = self.sum()
        if key == "kernel":
            if not isinstance(value, Kernel):
                raise _error(f"{name} is of a kernel, got the number {value}", start)
            return value
        if isinstance(value, Kernel):
            raise _error(f"{key} of {name} is a number or a slider, got a kernel", start)
        if key == "degree":
            return self.whole(value, start, "degree", 1, HIGHEST_POWER)
        if key == "gamma" and not value > 0:
            raise _error(f"gamma of {name} must be above 0, got {value}", start)
        if key == "value":
            self.refuse_negative(value, start)
        return value

    def columns(self) -> list[int]:
        """Return the column or the list of columns."""
        bracket = self.follows("[")
        if bracket:
            self.take()
        found = [self.column()]
        while bracket and self.follows(","):
            self.take()
            place = self.next.position
            found.append(self.column())
            if len(set(found)) < len(found):
                raise _error(f"column {found[-1]} is there twice", place)
        if bracket:
            self.expect("]", "to close the list of columns")
        return found

    def column(self) -> int:
        place = self.next.position
        return self.whole(self.sum(), place, "a column", 0, N_COLUMNS - 1)

    # ------------------------------------------------------------ checks

    def enter(self, token: _Token) -> None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise _error(f"parentheses are nested at most {MOST_NESTED} deep", token.position)

    def checked(self, value: Checked, position: int) -> Checked:
        """Return a value whose number, or whose factor, is not too large."""
        number: Any = value.factor if isinstance(value, kernels.Scaled) else value
        if not isinstance(number, Kernel) and not abs(number) <= LARGEST_NUMBER:
            raise _error(f"numbers are at most {LARGEST_NUMBER:g}", position)
        return value

    @staticmethod
    def refuse_negative(value: Value, position: int) -> None:
        if not isinstance(value, Kernel) and value < 0:
            raise _error(
                f"a kernel with the negative number {value} need not be a kernel; write a number "
                "of at least 0",
                position,
            )

    @staticmethod
    def whole(value: Value, position: int, what: str, low: int, high: int) -> int:
        if isinstance(value, Kernel) or not low <= value <= high or value != math.floor(value):
            shown = "a kernel" if isinstance(value, Kernel) else value
            raise _error(f"{what} is a whole number from {low} to {high}, got {shown}", position)
        return int(value)
