"""Numbers that lessons ask about, computed from a scene, and conditions on them.

An expression such as ``support_vectors <= 3 and margin >= 0.5`` names quantities of the table
``QUANTITIES``. It is parsed by a small grammar, and evaluated on a scene: only what it names is
computed, and what takes a fit is fitted once.

What cannot be computed, such as the best margin of classes that overlap, is NaN. A comparison with
NaN is neither true nor false: it is NaN, and so is ``not`` of it; ``and`` and ``or`` are NaN unless
their other side decides.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.errors import did_you_mean
from maxmargin.geometry import Hyperplane, Plane, mistake_bound, radius
from maxmargin.inspection.model_view import Boundary, SupportRows, read_boundary
from maxmargin.studio import pictures
from maxmargin.studio.catalogue import MODELS, SLIDERS
from maxmargin.studio.kernel_grammar import parse_kernel
from maxmargin.studio.scene import Scene

Value = float | str
MOST_SECONDS = 5.0  # for a decision on separability
_PATIENCE = 10.0  # seconds that a diagnosis may take
_MOST_REFITS = 400  # one for each support vector that is left out
_LONGEST = 500  # characters of an expression
_DEEPEST = 40  # nested parentheses and signs


class ExpressionError(ValueError):
    """An expression that cannot be read; the message says where and why."""


# ------------------------------------------------------------------- what is known of a scene


class Numbers:
    """The quantities of a scene; each is computed when it is first asked for.

    ``reason`` says why the model could not be fitted, once that was tried; otherwise it is empty.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.reason = ""
        self._values: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self._values:
            self._values[name] = QUANTITIES[name].compute(self)
        return self._values[name]

    def setting(self, slider: str) -> float:
        """Return where a slider stands."""
        return float(self.scene.choice.parameters.get(slider, SLIDERS[slider].default))

    @cached_property
    def classes(self) -> Any:
        """The labels that occur."""
        return np.unique(self.scene.labels)

    @cached_property
    def model(self) -> Any:
        """The fitted model, or None if it cannot be fitted."""
        model = pictures.build(self.scene)
        try:
            with pictures.recorded_warnings():
                return model.fit(*pictures.training_data(self.scene))
        except (ValueError, ArithmeticError) as error:
            self.reason = str(error)
            return None

    @cached_property
    def boundary(self) -> Boundary | None:
        """The decision function of a classifier with two classes, or None."""
        known = self.model is not None and hasattr(self.model, "classes_")
        if not known or len(self.classes) != 2:
            return None
        return read_boundary(self.model, self.scene.points, None)

    @cached_property
    def plane(self) -> Plane | None:
        """The plane of the model, in the space of its kernel, or None if it is not one plane."""
        found = self.boundary.plane if self.boundary is not None else None
        return found if found is not None and found.norm > 0 else None

    @cached_property
    def support(self) -> SupportRows | None:
        """The support vectors, their kinds and slacks, or None if the model has none."""
        if self.boundary is None:
            return None
        signs = np.where(self.scene.labels == self.classes[1], 1.0, -1.0)
        return self.boundary.support(self.scene.points, signs)

    @cached_property
    def mistakes(self) -> int | None:
        """How many points a classifier gets wrong, or None."""
        if self.model is None or not hasattr(self.model, "classes_"):
            return None
        return int((self.model.predict(self.scene.points) != self.scene.labels).sum())

    @cached_property
    def separation(self) -> Any:
        """Whether a line separates the classes, with its witness, or None for fewer than two."""
        if len(self.classes) < 2:
            return None
        return mm.separate(self.scene.points, self.scene.labels, max_time=MOST_SECONDS)

    @cached_property
    def components(self) -> Any:
        """Kernel PCA with three components, by the kernel of the scene, or None."""
        if len(self.scene.points) < 2:
            return None
        try:
            choice = self.scene.choice
            kernel = parse_kernel(choice.kernel or "Linear()", choice.parameters)
            return mm.KernelPCA(n_components=3, kernel=kernel).fit(self.scene.points)
        except (ValueError, ArithmeticError) as error:
            self.reason = str(error)
            return None


def _slider(name: str) -> Callable[[Numbers], Value]:
    return lambda numbers: numbers.setting(name)


def _weight(k: int) -> Callable[[Numbers], Value]:
    def compute(numbers: Numbers) -> Value:
        w = getattr(numbers.plane, "w", None)
        return math.nan if w is None else float(w[k])

    return compute


def _of_plane(compute: Callable[[Plane], float]) -> Callable[[Numbers], Value]:
    return lambda numbers: math.nan if numbers.plane is None else float(compute(numbers.plane))


def _of_model(attribute: str) -> Callable[[Numbers], Value]:
    """Return what reads a number of the fitted model, if it has it."""
    return lambda numbers: float(getattr(numbers.model, attribute, math.nan))


def _angle(numbers: Numbers) -> Value:
    w = getattr(numbers.plane, "w", None)
    return math.nan if w is None else math.degrees(math.atan2(w[1], w[0]))


def _margin(numbers: Numbers) -> Value:
    if numbers.plane is None:
        return math.nan
    signs = np.where(numbers.scene.labels == numbers.classes[1], 1.0, -1.0)
    return float(numbers.plane.geometric_margin(numbers.scene.points, signs).min())


def _nearest(k: int) -> Callable[[Numbers], Value]:
    def compute(numbers: Numbers) -> Value:
        if numbers.plane is None:
            return math.nan
        own = numbers.scene.points[numbers.scene.labels == numbers.classes[k]]
        return numbers.plane.set_margin(own)

    return compute


def _count_kind(*kinds: str) -> Callable[[Numbers], Value]:
    def compute(numbers: Numbers) -> Value:
        if numbers.support is None:
            return math.nan
        return float(np.isin(numbers.support.kinds, kinds).sum())

    return compute


def _support_vectors(numbers: Numbers) -> Value:
    found = getattr(numbers.model, "support_", None)
    return math.nan if found is None else float(len(found))


def _slack(compute: Callable[[Floats], Any]) -> Callable[[Numbers], Value]:
    def slack(numbers: Numbers) -> Value:
        if numbers.support is None:
            return math.nan
        return float(compute(np.append(numbers.support.slacks, 0.0)))

    return slack


def _alpha(compute: Callable[[Floats], Any]) -> Callable[[Numbers], Value]:
    def alpha(numbers: Numbers) -> Value:
        if numbers.support is None:
            return math.nan
        return float(compute(np.asarray(numbers.model.alpha_, dtype=np.float64)))

    return alpha


def _errors(numbers: Numbers) -> Value:
    return math.nan if numbers.mistakes is None else float(numbers.mistakes)


def _accuracy(numbers: Numbers) -> Value:
    return 1.0 - float(_errors(numbers)) / max(1, len(numbers.scene.points))


def _gap(numbers: Numbers) -> Value:
    certificate = getattr(numbers.model, "certificate_", None)
    return math.nan if certificate is None else float(certificate.relative_gap)


def _separable(numbers: Numbers) -> Value:
    if numbers.separation is None or numbers.separation.separable is None:
        return math.nan
    return float(numbers.separation.separable)


def _best_margin(numbers: Numbers) -> Value:
    return math.nan if numbers.separation is None else float(numbers.separation.margin)


def _mistake_bound(numbers: Numbers) -> Value:
    if len(numbers.classes) != 2 or not _separable(numbers):
        return math.inf if len(numbers.classes) == 2 else math.nan
    # The best plane through the origin of the lifted points gives the lowest bound.
    lifted = np.column_stack([numbers.scene.points, np.ones(len(numbers.scene.points))])
    found = mm.separate(lifted, numbers.scene.labels, intercept=False, max_time=MOST_SECONDS)
    if not isinstance(found.witness, Hyperplane):
        return math.nan
    return mistake_bound(found.witness, lifted, numbers.scene.labels, fit_intercept=False)


def _radius(numbers: Numbers) -> Value:
    return radius(numbers.scene.points) if len(numbers.scene.points) else math.nan


def _leave_one_out(numbers: Numbers) -> Value:
    if numbers.scene.choice.model not in ("SVC", "LinearSVC", "HardMarginSVC"):
        return math.nan
    if numbers.model is None or len(numbers.classes) < 2:
        return math.nan
    if len(numbers.model.support_) > _MOST_REFITS:
        numbers.reason = f"Leaving out each of more than {_MOST_REFITS} support vectors takes long."
        return math.nan
    X, y = numbers.scene.points, numbers.scene.labels
    return float(mm.model_selection.leave_one_out(numbers.model, X, y).errors)


def _explained(k: int) -> Callable[[Numbers], Value]:
    def compute(numbers: Numbers) -> Value:
        if numbers.components is None or len(numbers.components.explained_variance_ratio_) <= k:
            return math.nan
        return float(numbers.components.explained_variance_ratio_[k])

    return compute


def _separable_in(k: int) -> Callable[[Numbers], Value]:
    def compute(numbers: Numbers) -> Value:
        if numbers.components is None or len(numbers.classes) < 2:
            return math.nan
        scores = numbers.components.transform(numbers.scene.points)[:, :k]
        found = mm.separate(scores, numbers.scene.labels, max_time=MOST_SECONDS)
        return math.nan if found.separable is None else float(found.separable)

    return compute


def _verdict(numbers: Numbers) -> Value:
    if len(numbers.classes) < 2:
        return "undecided"
    found = mm.diagnose(numbers.scene.points, numbers.scene.labels, max_time=_PATIENCE)
    return found.verdict


# ------------------------------------------------------------------- the table


class Quantity(NamedTuple):
    """What a name stands for.

    ``kind`` says how exactly an answer must be known: a "count" exactly, a "length" as exactly as
    it can be read off a picture, a "share" to a percent, an "angle" to a few degrees, a "number" to
    a few percent; a "flag" is 1 or 0, and a "word" can only be compared with text.
    """

    help: str
    kind: str
    compute: Callable[[Numbers], Value]


QUANTITIES = {
    "points": Quantity("How many points there are.", "count", lambda n: float(len(n.scene.points))),
    "classes": Quantity("How many classes there are.", "count", lambda n: float(len(n.classes))),
    "model": Quantity('Name of the model, such as "SVC".', "word", lambda n: n.scene.choice.model),
    "C": Quantity("The price C of slack.", "number", _slider("C")),
    "gamma": Quantity("Width parameter γ of the kernel.", "number", _slider("gamma")),
    "degree": Quantity("Degree of the polynomial kernel.", "count", _slider("degree")),
    "coef0": Quantity("Constant of the polynomial kernel.", "number", _slider("coef0")),
    "nu": Quantity("The share ν.", "number", _slider("nu")),
    "epsilon": Quantity("Half the height of the tube, ε.", "number", _slider("epsilon")),
    "eta": Quantity("Step η of the perceptron.", "number", _slider("eta")),
    "theta": Quantity("Threshold θ of the perceptron.", "number", _slider("margin")),
    "w1": Quantity("First weight of a straight boundary.", "number", _weight(0)),
    "w2": Quantity("Second weight of a straight boundary.", "number", _weight(1)),
    "b": Quantity("Intercept b.", "number", _of_plane(lambda plane: plane.b)),
    "norm_w": Quantity(
        "‖w‖, in the space of the kernel.", "number", _of_plane(lambda plane: plane.norm)
    ),
    "angle": Quantity(
        "Direction of w in degrees: 0 is right, 90 is up, 180 is left, −90 is down.", "angle",
        _angle,
    ),
    "origin_distance": Quantity(
        "Distance of the boundary from the origin, |b|/‖w‖.", "length",
        _of_plane(lambda plane: abs(plane.b) / plane.norm),
    ),
    "margin": Quantity(
        "Smallest y f/‖w‖: how far the nearest point is from the boundary; negative if a point is "
        "on the wrong side.", "length", _margin,
    ),
    "nearest_first": Quantity(
        "Distance of the nearest point of the first class from the boundary.", "length", _nearest(0)
    ),
    "nearest_second": Quantity(
        "Distance of the nearest point of the second class from the boundary.", "length",
        _nearest(1),
    ),
    "width": Quantity(
        "Width 2/‖w‖ of the street between f = −1 and f = 1.", "length",
        _of_plane(lambda plane: 2.0 / plane.norm),
    ),
    "support_vectors": Quantity("How many support vectors there are.", "count", _support_vectors),
    "on_margin": Quantity("Support vectors on the margin.", "count", _count_kind("margin")),
    "inside": Quantity("Support vectors inside the margin.", "count", _count_kind("inside")),
    "wrong_side": Quantity(
        "Support vectors on the wrong side of the boundary.", "count", _count_kind("wrong side")
    ),
    "slack_sum": Quantity("Sum of all slacks ξ.", "number", _slack(np.sum)),
    "slack_max": Quantity("The largest slack ξ.", "number", _slack(np.max)),
    "alpha_sum": Quantity("Sum of all dual variables α.", "number", _alpha(np.sum)),
    "alpha_max": Quantity("The largest dual variable α.", "number", _alpha(np.max)),
    "gap": Quantity("Relative duality gap of the certificate.", "number", _gap),
    "errors": Quantity("How many points the model gets wrong.", "count", _errors),
    "accuracy": Quantity("Share of points that the model gets right.", "share", _accuracy),
    "leave_one_out": Quantity(
        "Points that are wrong if each is left out in turn.", "count", _leave_one_out
    ),
    "updates": Quantity("Updates that the perceptron made.", "count", _of_model("updates_")),
    "passes": Quantity("Passes that the perceptron made.", "count", _of_model("epochs_")),
    "mistake_bound": Quantity(
        "Updates that a perceptron with θ = 0 makes at most, whatever the order of the points: "
        "R̃²/γ̃² of the points with a constant 1 as third coordinate.", "number", _mistake_bound,
    ),
    "radius": Quantity("Largest distance of a point from the origin.", "length", _radius),
    "separable": Quantity("1 if a line separates the classes, otherwise 0.", "flag", _separable),
    "best_margin": Quantity("The largest margin that any line has.", "length", _best_margin),
    "explained_1": Quantity(
        "Share of the variance along the first kernel principal component.", "share", _explained(0)
    ),
    "explained_2": Quantity("The same along the second.", "share", _explained(1)),
    "explained_3": Quantity("The same along the third.", "share", _explained(2)),
    "separable_in_pc1": Quantity(
        "1 if the first kernel principal component separates the classes.", "flag", _separable_in(1)
    ),
    "separable_in_pc2": Quantity(
        "1 if a line separates them in the first two.", "flag", _separable_in(2)
    ),
    "separable_in_pc3": Quantity(
        "1 if a plane separates them in the first three.", "flag", _separable_in(3)
    ),
    "verdict": Quantity(
        "Which kind of learner suits the points, such as \"linearly separable\"; takes seconds.",
        "word", _verdict,
    ),
}  # fmt: skip


# ------------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Expression:
    """What was parsed: ``evaluate`` it on the numbers of a scene.

    ``names`` are the quantities in it, in order, and ``kind`` is that of its value.
    """

    text: str
    kind: str
    names: tuple[str, ...]
    evaluate: Callable[[Numbers], Value]

    def holds(self, numbers: Numbers) -> bool:
        """Return whether a condition is fulfilled: not if it cannot be decided."""
        value = float(self.evaluate(numbers))
        return value != 0.0 and not math.isnan(value)


def parse_expression(text: str) -> Expression:
    """Parse numbers, names of quantities, + − * / ^, comparisons, and, or, not, parentheses."""
    if len(text) > _LONGEST:
        raise ExpressionError(f"An expression has at most {_LONGEST} characters.")
    found = _Parser(text).parse()
    return Expression(text.strip(), found.kind, tuple(dict.fromkeys(found.names)), found.evaluate)


class _Node(NamedTuple):
    kind: str
    names: tuple[str, ...]
    evaluate: Callable[[Numbers], Value]


_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|\"(?P<word>[^\"]*)\"|(?P<sign><=|>=|==|!=|[-+*/^<>()=≤≥≠−·]))"
)
_SAME = {"=": "==", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-", "·": "*"}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
_COMBINE: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "^": math.pow,
}  # fmt: skip
_WORDS = ("and", "or", "not")


class _Parser:
    """Recursive descent: or, and, not, comparisons, sums, products, powers, atoms."""

    def __init__(self, text: str) -> None:
        self.tokens = _split(text)
        self.place = 0
        self.depth = 0

    def parse(self) -> _Node:
        found = self._any()
        if self._next[0] != "end":
            raise ExpressionError(f"{self._next[1]!r} is not expected there.")
        return found

    @property
    def _next(self) -> tuple[str, str]:
        return self.tokens[self.place]

    def _accept(self, *texts: str) -> str:
        """Return the next token and move on, if it is one of these; otherwise return nothing."""
        kind, text = self._next
        if text not in texts or kind not in ("sign", "name"):
            return ""
        self.place += 1
        return text

    def _any(self) -> _Node:
        found = self._all()
        while self._accept("or"):
            found = _connect(found, self._all(), decisive=True)
        return found

    def _all(self) -> _Node:
        found = self._negation()
        while self._accept("and"):
            found = _connect(found, self._negation(), decisive=False)
        return found

    def _negation(self) -> _Node:
        if not self._accept("not"):
            return self._comparison()
        inner = self._deeper(self._negation)
        _require_number(inner)
        return _Node("flag", inner.names, lambda n: _negated(float(inner.evaluate(n))))

    def _comparison(self) -> _Node:
        left = self._sum()
        found = None
        while sign := self._accept(*_COMPARE):
            right = self._sum()
            one = _compare(sign, left, right)
            found = one if found is None else _connect(found, one, decisive=False)
            left = right
        return left if found is None else found

    def _sum(self) -> _Node:
        found = self._product()
        while sign := self._accept("+", "-"):
            found = _combine(sign, found, self._product())
        return found

    def _product(self) -> _Node:
        found = self._power()
        while sign := self._accept("*", "/"):
            found = _combine(sign, found, self._power())
        return found

    def _power(self) -> _Node:
        if self._accept("-"):
            return _combine("-", _Node("count", (), lambda n: 0.0), self._deeper(self._power))
        base = self._atom()
        return _combine("^", base, self._deeper(self._power)) if self._accept("^") else base

    def _atom(self) -> _Node:
        if self._accept("("):
            found = self._deeper(self._any)
            if not self._accept(")"):
                raise ExpressionError("A parenthesis is not closed.")
            return found
        kind, text = self._next
        self.place += 1
        if kind == "number":
            number = float(text)
            return _Node("count" if number.is_integer() else "number", (), lambda n: number)
        if kind == "word":
            return _Node("word", (), lambda n: text)
        if kind == "name" and text not in _WORDS:
            return _name(text)
        raise ExpressionError(
            "Something is missing at the end."
            if kind == "end"
            else f"{text!r} is not expected there."
        )

    def _deeper(self, parse: Callable[[], _Node]) -> _Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ExpressionError("The expression is nested too deeply.")
        found = parse()
        self.depth -= 1
        return found


def _split(text: str) -> list[tuple[str, str]]:
    """Return (kind, text) of each token, and an end."""
    tokens, place, text = [], 0, text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ExpressionError(f"{text[place:].strip()[:1]!r} has no meaning in an expression.")
        kind = str(match.lastgroup)
        found = match[kind]
        tokens.append((kind, _SAME.get(found, found) if kind == "sign" else found))
        place = match.end()
    return [*tokens, ("end", "")]


def _name(text: str) -> _Node:
    if text not in QUANTITIES:
        hint = did_you_mean(text, QUANTITIES)
        raise ExpressionError(f"There is no quantity {text!r:.60}.{hint}")
    return _Node(QUANTITIES[text].kind, (text,), lambda numbers: numbers[text])


def _require_number(*nodes: _Node) -> None:
    for node in nodes:
        if node.kind == "word":
            what = node.names[0] if node.names else "text in quotation marks"
            raise ExpressionError(f"{what} is a word: it can only be compared by == or !=.")


def _compare(sign: str, left: _Node, right: _Node) -> _Node:
    words = (left.kind == "word") + (right.kind == "word")
    if words != 2 or sign not in ("==", "!="):
        _require_number(left, right)
    if words == 2:
        _require_known_model(left, right)

    def evaluate(numbers: Numbers) -> Value:
        a, b = left.evaluate(numbers), right.evaluate(numbers)
        unknown = any(isinstance(value, float) and math.isnan(value) for value in (a, b))
        return math.nan if unknown else float(_COMPARE[sign](a, b))

    return _Node("flag", left.names + right.names, evaluate)


def _require_known_model(left: _Node, right: _Node) -> None:
    for one, other in ((left, right), (right, left)):
        if one.names == ("model",) and not other.names:
            meant = str(other.evaluate(None))  # type: ignore[arg-type]  # a constant
            if meant not in MODELS:
                raise ExpressionError(
                    f"There is no model {meant!r:.60}.{did_you_mean(meant, MODELS)}"
                )


def _combine(sign: str, left: _Node, right: _Node) -> _Node:
    _require_number(left, right)

    def evaluate(numbers: Numbers) -> Value:
        try:
            return _COMBINE[sign](float(left.evaluate(numbers)), float(right.evaluate(numbers)))
        except (ArithmeticError, ValueError):  # such as 1/0, or a power that is no number
            return math.nan

    kinds = {node.kind for node in (left, right) if node.names} or {left.kind, right.kind}
    same = sign in ("+", "-") and len(kinds) == 1
    whole = sign == "*" and left.kind == right.kind == "count"
    return _Node(left.kind if whole else kinds.pop() if same else "number",
                 left.names + right.names, evaluate)  # fmt: skip


def _connect(left: _Node, right: _Node, decisive: bool) -> _Node:
    """Return "or" (if what is true decides) or "and" (if what is false decides)."""
    _require_number(left, right)

    def evaluate(numbers: Numbers) -> Value:
        first = float(left.evaluate(numbers))
        if not math.isnan(first) and (first != 0.0) == decisive:
            return float(decisive)
        second = float(right.evaluate(numbers))
        if not math.isnan(second) and (second != 0.0) == decisive:
            return float(decisive)
        return math.nan if math.isnan(first) or math.isnan(second) else float(not decisive)

    return _Node("flag", left.names + right.names, evaluate)


def _negated(value: float) -> float:
    return math.nan if math.isnan(value) else float(value == 0.0)


# ------------------------------------------------------------------- numbers as text


def write_number(value: Value) -> str:
    """Return a number as a person would write it, with three or four digits that matter."""
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == round(value) and abs(value) < 1e6:
        return str(round(value)).replace("-", "−")
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:.4g}"
    mantissa, _, exponent = text.partition("e")
    if exponent:
        raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        mantissa = f"{mantissa} · 10{raised}"
    return mantissa.replace("-", "−")
