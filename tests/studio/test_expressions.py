"""Texts are read as Python would read them, and whatever is no kernel is refused with its place."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import kernels
from maxmargin.studio.catalogue import MODELS, SLIDERS
from maxmargin.studio.expressions import (
    LONGEST,
    MOST_KERNELS,
    ExpressionError,
    describe,
    names_in,
    parse_condition,
    parse_kernel,
)

pytestmark = pytest.mark.wide

VALUES = {"gamma": 0.37, "degree": 4.0, "coef0": 2.5}
ALL = frozenset(kernels.__all__) & {each["name"] for each in describe()}


LEAVES = st.sampled_from(
    ["RBF(gamma)", "Linear()", "Polynomial(degree, gamma=0.5)", "Polynomial(2, 1e-300)", "Cosine()",
     "Laplacian(2 * gamma)", "Sigmoid(0.1, -coef0)", "Constant(3)", "RBF(gamma=1000000)"]
)  # fmt: skip
KERNELS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("({0[0]}) + {0[1]}".format),
        st.tuples(inner, inner).map("({0[0]})*({0[1]})".format),
        st.tuples(inner, st.sampled_from(["**", " ** ", "^"])).map("({0[0]}){0[1]}2".format),
        st.tuples(st.sampled_from([2, 0.5, 0, 3.25]), inner).map("{0[0]} * ({0[1]})".format),
    ),
    max_leaves=5,
).filter(lambda text: len(text) <= LONGEST)


@given(KERNELS)
@settings(max_examples=150)
def test_texts_mean_what_they_mean_in_python(text: str) -> None:
    try:
        kernel = parse_kernel(text, VALUES)
    except ExpressionError as error:  # numbers or powers grew beyond the limits
        assert any(limit in str(error) for limit in ("at most", "from 1 to 8"))  # noqa: PT017
        return
    known = {name: getattr(kernels, name) for name in kernels.__all__} | VALUES | {"degree": 4}
    assert kernel == eval(text.replace("^", "**"), known)
    again = repr(kernel)
    if len(again) <= LONGEST:
        assert parse_kernel(again) == kernel
        assert names_in(again) == ()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rbf(γ)", "RBF(gamma=0.37)"),
        ("poly(degree, gamma = 2 * gamma)", "Polynomial(degree=4, gamma=0.74)"),
        ("Linear()^degree", "Linear() ** 4"),
        ("  1 + \n Linear( )\t", "Constant(value=1) + Linear()"),
        ("((Linear()**2)**2)", "Linear() ** 4"),
        ("Sigmoid(0.5, -coef0)", "Sigmoid(gamma=0.5, coef0=-2.5)"),
        ("gamma*Linear() + (1+1)", "0.37 * Linear() + Constant(value=2)"),
    ],
)
def test_ways_of_writing(text: str, shown: str) -> None:
    assert repr(parse_kernel(text, VALUES)) == shown


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("   ", 3, "nothing is written"),
        ("2 * RFB(gamma)", 4, "At character 5: there is no kernel 'RFB'. Did you mean 'RBF'?"),
        ("RBF", 0, "RBF needs parentheses: RBF(gamma)"),
        ("γ * RBF(gama)", 8, "Did you mean 'gamma'?"),
        ("RBF(gama=1)", 0, "RBF is written as RBF(gamma)"),
        ("1 + RBF(-gamma)", 4, "above 0, got -0.37"),
        ("RBF(Linear())", 0, "RBF is written as RBF(gamma)"),
        ("RBF(1, 2)", 0, "RBF is written as RBF(gamma)"),
        ("Polynomial(9)", 0, "a whole number from 1 to 8, got 9"),
        ("Linear() ^ 0.5", 11, "from 1 to 8, got 0.5"),
        ("Linear() ^ RBF()", 11, "got a kernel"),
        ("(2 * Linear() ** 4) ** 4", 23, "from 1 to 8, got 16"),
        ("2 ** 2 * Linear()", 5, "only kernels are raised"),
        ("RBF() - Linear()", 8, "write + instead of -"),
        ("RBF() * -1", 0, "negative number -1"),
        ("Constant(-1)", 0, "at least 0"),
        ("Constant()", 0, "Constant(1)"),
        ("Columns(RBF(), 0)", 0, "there is no kernel 'Columns'"),
        ("7", 0, "Constant(7)"),
        ("RBF() Linear()", 6, "invalid syntax"),
        ("(RBF()", 0, "never closed"),
        ("RBF() / 2", 0, "'RBF() / 2' has no meaning here"),
        ("1e400 * RBF()", 0, "at most 1e+09"),
        ("9" * 150 + " * RBF()", 0, "at most 1e+09"),
        ("(1e9 * RBF()) ** 8", 0, "at most 1e+09"),
        ("__import__(1)", 0, "there is no kernel '__import__'"),
        ("RBF.__class__", 0, "has no meaning here"),
        ("RBF(f'{1}')", 4, "has no meaning here"),
        ("RBF(\ud800)", 0, "cannot be read"),
        ("-" * 150 + "1", 0, "nested too deeply"),
    ],
)
def test_what_is_no_kernel_is_refused_with_its_place(text: str, position: int, says: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse_kernel(text, VALUES)
    assert says in str(refused.value)
    assert str(refused.value)[-1] in ".?"
    str(refused.value).encode()  # can be sent
    if "nested" not in says:
        assert refused.value.position == position


def test_limits() -> None:
    terms = " + ".join(["Linear()"] * MOST_KERNELS)
    assert len(parse_kernel(terms).get_params(deep=False)["terms"]) == MOST_KERNELS
    with pytest.raises(ExpressionError, match=f"at most {MOST_KERNELS} kernels"):
        parse_kernel(terms + " + RBF()")
    assert parse_kernel("RBF()".ljust(LONGEST)) == kernels.RBF()
    with pytest.raises(ExpressionError, match=f"at most {LONGEST} characters"):
        parse_kernel("RBF()".ljust(LONGEST + 1))


def test_names_are_those_of_the_text() -> None:
    assert names_in("RBF(gamma) * Polynomial(degree, γ)") == ("gamma", "degree")
    assert names_in("Linear()") == ()
    defaults = {name: SLIDERS[name].default for name in ("gamma", "degree", "coef0")}
    text = "Polynomial(degree, gamma, coef0)"
    assert parse_kernel(text) == parse_kernel(text, defaults)


def test_every_kernel_that_is_offered_can_be_written() -> None:
    for each in describe():
        assert type(parse_kernel(each["call"])).__name__ == each["name"]
        assert each["help"].endswith(".")
    assert {each["name"] for each in describe()} == ALL
    for model in MODELS.values():
        if model.kernel:
            parse_kernel(model.kernel)


# ------------------------------------------------------------------- conditions

KINDS = {"points": "count", "width": "length", "model": "word"}
KNOWN = {"points": 4.0, "width": math.nan, "model": "SVC"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-2^2", -4.0),
        ("2 − 3 · 4", -10.0),
        ("(1 + 2) * points / 4", 3.0),
        ("1 < 2 < points", 1.0),
        ("1 ≠ 2 and not 3 ≥ 4", 1.0),
        ("1/0 > 2", math.nan),
        ("not width > 2", math.nan),
        ("width > 2 or points == 4", 1.0),
        ("width > 2 and points == 1", 0.0),
        ("10^999", math.nan),
        ('model == "SVC"', 1.0),
    ],
)
def test_conditions(text: str, value: float) -> None:
    assert parse_condition(text, KINDS).evaluate(KNOWN) == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("-points", "count"), ("points / 2", "number"), ("width", "length"), ("width + 1", "length"),
     ("2 * width", "number"), ("points > 1", "flag"), ("model", "word")],
)  # fmt: skip
def test_kinds_of_values(text: str, kind: str) -> None:
    assert parse_condition(text, KINDS).kind == kind


@pytest.mark.parametrize(
    "text",
    ["", "1 +", "(1", "1 2", "pionts", "a.b", "model > 1", "not model", "-model", "points()", "[1]",
     "points if 1 else 2", "points[0]", "1 in 2", "10^" + "9" * 400],
)  # fmt: skip
def test_conditions_that_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_condition(text, KINDS)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([*"()+-*/^<>=", "not ", "and ", "or ", "1", "points ", "width "]),
        max_size=120,
    ).map("".join)
)
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        found = parse_condition(text, KINDS)
    except ExpressionError:
        return
    assert isinstance(found.evaluate(KNOWN), float | str)
