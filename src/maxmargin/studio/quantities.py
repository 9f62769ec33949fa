"""Numbers that lessons ask about: functions of a scene, named in the text of a lesson.

What stands in ``QUANTITIES`` can be named in an answer, a condition or between braces. Only what is
named is computed, and what takes a fit is fitted once. What cannot be
computed, such as the best margin of classes that overlap, is unknown: NaN.
"""

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin.errors import recorded_warnings
from maxmargin.geometry import Hyperplane, Plane, hyperplane, mistake_bound, radius
from maxmargin.studio import pictures
from maxmargin.studio.catalogue import SLIDERS
from maxmargin.studio.expressions import Expression, parse_condition, parse_kernel
from maxmargin.studio.scene import Scene

Value = float | str
MOST_SECONDS = 5.0  # for a decision on separability
_DIAGNOSIS_TIME = 10.0  # seconds
_MOST_REFITS = 400  # one for each support vector that is left out


class UnknownError(Exception):
    """A quantity that the scene does not have."""


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
            try:
                found = QUANTITIES[name].compute(self)
                self._values[name] = found if isinstance(found, str) else float(found)
            except UnknownError:
                self._values[name] = math.nan
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
            with recorded_warnings():
                return model.fit(*pictures.training_data(self.scene))
        except (ValueError, ArithmeticError) as error:
            self.reason = str(error)
            return None

    def of_model(self, attribute: str) -> Any:
        """Return an attribute of the fitted model, if it has it."""
        _require(hasattr(self.model, attribute))
        return getattr(self.model, attribute)

    def of_machine(self, attribute: str) -> Any:
        """Return an attribute of a fitted model of two classes with support vectors."""
        _require(hasattr(self.model, "classes_") and len(self.classes) == 2)
        return self.of_model(attribute)

    @cached_property
    def plane(self) -> Plane:
        """The plane of the model, in the space of its kernel."""
        self.of_machine("classes_")
        try:
            found = hyperplane(self.model)
        except (TypeError, ValueError, AttributeError):  # many planes, or none
            raise UnknownError from None
        _require(found.norm > 0)
        return found

    @property
    def weights(self) -> Any:
        """The weights w of a straight boundary."""
        if not isinstance(self.plane, Hyperplane):
            raise UnknownError
        return self.plane.w

    @cached_property
    def separation(self) -> Any:
        """Whether a line separates the classes, with its witness."""
        _require(len(self.classes) > 1)
        return mm.separate(self.scene.points, self.scene.labels, max_time=MOST_SECONDS)

    @cached_property
    def components(self) -> Any:
        """Kernel PCA with three components, by the kernel of the scene."""
        _require(len(self.scene.points) > 1)
        choice = self.scene.choice
        try:
            kernel = parse_kernel(choice.kernel or "Linear()", choice.parameters)
            return mm.KernelPCA(n_components=3, kernel=kernel).fit(self.scene.points)
        except (ValueError, ArithmeticError) as error:
            self.reason = str(error)
            raise UnknownError from None


def _require(condition: bool) -> None:
    """Refuse to compute what does not exist."""
    if not condition:
        raise UnknownError


# ------------------------------------------------------------------- the functions


def _margin(n: Numbers) -> float:
    plane = n.plane  # of two classes
    signs = np.where(n.scene.labels == n.classes[1], 1.0, -1.0)
    return float(plane.geometric_margin(n.scene.points, signs).min())


def _count_kind(n: Numbers, kind: str) -> int:
    return int(np.count_nonzero(np.asarray(n.of_machine("support_kind_")) == kind))


def _slack_sum(n: Numbers) -> float:
    n.of_machine("support_kind_")
    return float(np.sum(getattr(n.model, "slack_", 0.0)))


def _errors(n: Numbers) -> int:
    n.of_model("classes_")
    return int((n.model.predict(n.scene.points) != n.scene.labels).sum())


def _leave_one_out(n: Numbers) -> int:
    suits = n.scene.choice.model in ("SVC", "LinearSVC", "HardMarginSVC")
    _require(suits and len(n.classes) > 1)
    if len(n.of_model("support_")) > _MOST_REFITS:
        n.reason = f"Leaving out each of more than {_MOST_REFITS} support vectors takes long."
        raise UnknownError
    return mm.model_selection.leave_one_out(n.model, n.scene.points, n.scene.labels).errors


def _mistake_bound(n: Numbers) -> float:
    _require(len(n.classes) == 2)
    if not n["separable"]:
        return math.inf
    # The best plane through the origin of the lifted points gives the lowest bound.
    lifted = np.column_stack([n.scene.points, np.ones(len(n.scene.points))])
    found = mm.separate(lifted, n.scene.labels, intercept=False, max_time=MOST_SECONDS).witness
    if not isinstance(found, Hyperplane):
        raise UnknownError
    return mistake_bound(found, lifted, n.scene.labels, fit_intercept=False)


def _radius(n: Numbers) -> float:
    _require(len(n.scene.points) > 0)
    return radius(n.scene.points)


def _decided(separation: Any) -> bool:
    """Return whether classes are separable, if that could be decided."""
    _require(separation.separable is not None)
    return bool(separation.separable)


def _explained(n: Numbers, k: int) -> float:
    ratios = n.components.explained_variance_ratio_
    _require(k <= len(ratios))
    return float(ratios[k - 1])


def _separable_in(n: Numbers, k: int) -> bool:
    _require(len(n.classes) > 1)
    scores = n.components.transform(n.scene.points)[:, :k]
    return _decided(mm.separate(scores, n.scene.labels, max_time=MOST_SECONDS))


def _verdict(n: Numbers) -> str:
    if len(n.classes) < 2:
        return "undecided"
    return str(mm.diagnose(n.scene.points, n.scene.labels, max_time=_DIAGNOSIS_TIME).verdict)


# ------------------------------------------------------------------- the table


class Quantity(NamedTuple):
    """What a name stands for.

    ``kind`` says how exactly an answer must be known: a "count" exactly, a "length" as exactly as
    it can be read off a picture, a "share" to a percent, an "angle" to a few degrees, a "number" to
    a few percent; a "flag" is 1 or 0, and a "word" can only be compared with text.
    """

    kind: str
    help: str
    compute: Callable[[Numbers], Any]


QUANTITIES = {
    "points": Quantity("count", "How many points there are.", lambda n: len(n.scene.points)),
    "classes": Quantity("count", "How many classes there are.", lambda n: len(n.classes)),
    "C": Quantity("number", "The price C of slack.", lambda n: n.setting("C")),
    "gamma": Quantity("number", "Width parameter γ of the kernel.", lambda n: n.setting("gamma")),
    "eta": Quantity("number", "Step η of the perceptron.", lambda n: n.setting("eta")),
    "w1": Quantity("number", "First weight of a straight boundary.", lambda n: n.weights[0]),
    "w2": Quantity("number", "Second weight of a straight boundary.", lambda n: n.weights[1]),
    "b": Quantity("number", "Intercept b.", lambda n: n.plane.b),
    "norm_w": Quantity("number", "‖w‖, in the space of the kernel.", lambda n: n.plane.norm),
    "angle": Quantity(
        "angle", "Direction of w in degrees: 0 is right, 90 is up, 180 is left, −90 is down.",
        lambda n: math.degrees(math.atan2(n.weights[1], n.weights[0])),
    ),
    "origin_distance": Quantity(
        "length", "Distance of the boundary from the origin, |b|/‖w‖.",
        lambda n: abs(n.plane.b) / n.plane.norm,
    ),
    "margin": Quantity(
        "length", "Smallest y f/‖w‖: how far the nearest point is from the boundary; negative if a "
        "point is on the wrong side.", _margin,
    ),
    "width": Quantity(
        "length", "Width 2/‖w‖ of the street between f = −1 and f = 1.",
        lambda n: 2.0 / n.plane.norm,
    ),
    "support_vectors": Quantity(
        "count", "How many support vectors there are.", lambda n: len(n.of_model("support_"))
    ),
    "on_margin": Quantity(
        "count", "Support vectors on the margin.", lambda n: _count_kind(n, "margin")
    ),
    "inside": Quantity(
        "count", "Support vectors inside the margin.", lambda n: _count_kind(n, "inside")
    ),
    "wrong_side": Quantity(
        "count", "Support vectors on the wrong side of the boundary.",
        lambda n: _count_kind(n, "wrong side"),
    ),
    "slack_sum": Quantity("number", "Sum of all slacks ξ.", _slack_sum),
    "alpha_sum": Quantity(
        "number", "Sum of all dual variables α.", lambda n: np.sum(n.of_machine("alpha_"))
    ),
    "alpha_max": Quantity(
        "number", "The largest dual variable α.", lambda n: np.max(n.of_machine("alpha_"))
    ),
    "errors": Quantity("count", "How many points the model gets wrong.", _errors),
    "leave_one_out": Quantity(
        "count", "Points that are wrong if each is left out in turn.", _leave_one_out
    ),
    "updates": Quantity(
        "count", "Updates that the perceptron made.", lambda n: n.of_model("updates_")
    ),
    "passes": Quantity(
        "count", "Passes that the perceptron made.", lambda n: n.of_model("epochs_")
    ),
    "mistake_bound": Quantity(
        "number", "Updates that a perceptron with θ = 0 makes at most, whatever the order of the "
        "points: R̃²/γ̃² of the points with a constant 1 as third coordinate.", _mistake_bound,
    ),
    "radius": Quantity("length", "Largest distance of a point from the origin.", _radius),
    "separable": Quantity(
        "flag", "1 if a line separates the classes, otherwise 0.",
        lambda n: _decided(n.separation),
    ),
    "best_margin": Quantity(
        "length", "The largest margin that any line has.", lambda n: n.separation.margin
    ),
    "explained_1": Quantity(
        "share", "Share of the variance along the first kernel principal component.",
        lambda n: _explained(n, 1),
    ),
    "explained_2": Quantity("share", "The same along the second.", lambda n: _explained(n, 2)),
    "explained_3": Quantity("share", "The same along the third.", lambda n: _explained(n, 3)),
    "separable_in_pc2": Quantity(
        "flag", "1 if a line separates them in the first two.", lambda n: _separable_in(n, 2)
    ),
    "separable_in_pc3": Quantity(
        "flag", "1 if a plane separates them in the first three.", lambda n: _separable_in(n, 3)
    ),
    "verdict": Quantity(
        "word", 'Which kind of learner suits the points, such as "linearly separable"; takes '
        "seconds.", _verdict,
    ),
}  # fmt: skip


def parse_expression(text: str) -> Expression:
    """Return an expression of quantities."""
    return parse_condition(text, {name: quantity.kind for name, quantity in QUANTITIES.items()})


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
