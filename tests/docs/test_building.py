"""The parts of the site's build that are our own: formulas, the copies of examples, links."""

import ast
import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
EXTENSIONS = ROOT / "docs" / "_extensions"


class WarningError(Exception):
    """A warning, which fails the build."""


@pytest.fixture(scope="module")
def mathml() -> Any:
    """Return a function from LaTeX to MathML, for which warnings are errors."""
    nodes = pytest.importorskip("docutils.nodes")
    pytest.importorskip("latex2mathml")
    convert = runpy.run_path(str(EXTENSIONS / "mathml.py"))["mathml"]

    class Strict:
        def warning(self, message: str, *said: object, **where: object) -> None:
            raise WarningError(message % said)

    convert.__globals__["logger"] = Strict()
    return lambda source, display="block": convert(nodes.math("", source), display)


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        (r"\tfrac12 \lVert w \rVert^2 + C \sum_i \xi_i", "½‖w‖2+C∑iξi".replace("½", "12")),
        (r"\bigl\langle w, \psi \bigr\rangle", "⟨w,ψ⟩"),
        (r"\bigl\{ x : \bigl\lVert x \bigr\rVert \le 1 \bigr\}", "{x:‖x‖≤1}"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a=bc=d"),
        (r"\operatorname*{arg\,max}_y f(y)", "arg\u2009maxyf(y)"),
        (r"\lambda + \texttt{error\_bound\_}", "λ+error_bound_"),
    ],
)
def test_formulas_are_mathml(mathml: Any, formula: str, shown: str) -> None:
    made = ElementTree.fromstring(mathml(formula))
    assert "".join("".join(made.itertext()).split(" ")) == shown


def test_what_stands_below_min_is_below_it(mathml: Any) -> None:
    assert "<munder><mo>min</mo>" in mathml(r"\min_{w, b} f")
    assert "<msub><mo>min</mo>" in mathml(r"\min_{w, b} f", "inline")


@pytest.mark.parametrize("formula", [r"\nosuchthing x", r"\sqrt[3"])
def test_formulas_that_are_not_understood_are_warnings(mathml: Any, formula: str) -> None:
    with pytest.raises(WarningError):
        mathml(formula)


def test_links_to_nowhere_are_found(tmp_path: Path) -> None:
    faults = runpy.run_path(str(EXTENSIONS / "check_links.py"))["faults"]
    (tmp_path / "a.html").write_text('<h1 id="top"><a href="b.html#x"></a><img src="p.png"></h1>')
    (tmp_path / "b.html").write_text(
        '<a href="a.html#top"></a><a href="https://example.org/x"></a><a href="c.html"></a>'
    )
    assert faults(tmp_path) == [
        "a.html: b.html#x has no such anchor",
        "a.html: p.png does not exist",
        "b.html: c.html does not exist",
    ]


def test_examples_are_copied_with_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    pages = runpy.run_path(str(EXTENSIONS / "gallery_pages.py"))
    assert pages["escaped"]("|f| of coef_ is 2*x, as ``a_b`` says") == (
        r"\|f\| of coef\_ is 2\*x, as ``a_b`` says"
    )
    for name in pages["PAGES"]:
        copy = pages["copied"](name)
        original = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
        said = ast.get_docstring(ast.parse(copy)) or ""
        assert set(said.splitlines()[1]) == {"="}
        assert [ast.dump(part) for part in ast.parse(copy).body[1:]] == [
            ast.dump(part) for part in ast.parse(original).body[1:]
        ]
