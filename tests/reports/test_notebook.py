"""What notebooks show of answers: short, the same as print, and inert."""

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.runtime.html import Html, bullets, html, joined, table, tag, visible
from tests.support.pages import Page

HOSTILE = [
    "<script>alert(1)</script>",
    "\"' onload='x",
    "</style><img src=x onerror=y>",
    "a\0b\u202ec\ud800",
    "א" * 10_000,
    "&lt;",
]
HARMLESS = {"div", "p", "b", "i", "ul", "li", "table", "caption", "thead", "tbody"} | {
    *("tr", "th", "td"),
}


def assert_inert(page: str) -> Page:
    found = Page(page)
    assert {name for name, _ in found.elements} <= HARMLESS
    assert {key for _, attributes in found.elements for key in attributes} <= {"scope"}
    assert not set("\0\u202e\ud800") & set(page)
    page.encode("utf-8")
    return found


# The helper.


@pytest.mark.parametrize("name", HOSTILE)
def test_text_comes_out_as_text(name: str) -> None:
    page = joined(
        [tag("p", name), bullets([name]), table([name], [[name]], name), tag("p", tag("b", name))]
    )
    found = assert_inert(page)
    assert found.text.count(visible(name)) == 6
    assert "<p>" + html(name) in page


def test_attributes_cannot_be_left() -> None:
    element = tag("p", "x", title='"><script>alert(1)</script>')
    (found,) = Page(element).elements
    assert found == ("p", {"title": '"><script>alert(1)</script>'})


def test_markup_is_kept_and_only_markup_is() -> None:
    assert tag("p", Html("<b>x</b>")) == "<p><b>x</b></p>"
    assert tag("p", "<b>" + Html("x")) == "<p>&lt;b&gt;x</p>"  # a sum is text again: no surprise


def test_visible_text_is_short_and_on_one_line() -> None:
    assert visible("a\nb\tc") == "a b c"
    assert visible("x" * 50, 10) == "x" * 9 + "…"
    assert visible("שלום, é, 数") == "שלום, é, 数"
    assert visible(3.5) == "3.5"


# Answers.


def a_certificate(several: bool = False) -> mm.Certificate:
    X, y = mm.datasets.gaussians(60, variance=0.3, random_state=0)
    y = np.where(X[:, 0] > 1.5, y, 3) if several else y
    found: mm.Certificate = mm.LinearSVC().fit(X, y).certificate_
    return found


@pytest.mark.parametrize("several", [False, True])
def test_a_certificate_shows_its_sentence_and_its_numbers(several: bool) -> None:
    certificate = a_certificate(several)
    found = assert_inert(certificate._repr_html_())
    assert str(certificate) in found.text
    assert f"{certificate.primal:.10g}" in found.text
    assert f"{certificate.max_kkt_violation:.3g}" in found.text
    assert ("worst of them" in found.text) is several
    assert len(found.text) < 2000
    unbounded = mm.Certificate(1.0, -np.inf, 0.0, 0.0, 0.0, np.inf, caveat="<i>indefinite</i>")
    assert "is not certified: <i>indefinite</i>" in assert_inert(unbounded._repr_html_()).text


def separation(*, apart: float, classes: int = 2, labels: Any = None) -> mm.Separation:
    rng = np.random.default_rng(0)
    y = np.arange(20 * classes) % classes
    X = rng.normal(size=(len(y), 2)) + apart * y[:, np.newaxis]
    return mm.separate(X, y if labels is None else np.asarray(labels)[y])


def test_a_separation_shows_margin_and_bound_an_overlap_neither() -> None:
    found = separation(apart=10.0)
    text = assert_inert(found._repr_html_()).text
    assert text.startswith("Separable")
    assert f"{found.margin:.4g}" in text
    assert f"{found.mistake_bound:.4g}" in text
    text = assert_inert(separation(apart=0.0)._repr_html_()).text
    assert text.startswith("Not separable")
    assert "nan" not in text
    assert "inf" not in text
    undecided = mm.Separation(None, None, ("a", "b"))
    assert assert_inert(undecided._repr_html_()).text.startswith("Undecided")


def test_several_classes_have_a_line_for_each_pair() -> None:
    page = separation(apart=12.0, classes=3)._repr_html_()
    assert page.count("<tr>") == 1 + 3
    many = separation(apart=12.0, classes=9)
    assert many._repr_html_().count("<tr>") == 1 + 30
    assert "30 of 36 pairs" in many._repr_html_()


@pytest.mark.parametrize("name", HOSTILE[:5])
def test_hostile_labels_and_parameters_are_inert(name: str) -> None:
    if name in HOSTILE[:3]:
        assert_inert(separation(apart=10.0, labels=[name, "b"])._repr_html_())
        three = separation(apart=10.0, labels=[name, "b", "c"], classes=3)
        assert_inert(three._repr_html_())
    X, y = mm.datasets.gaussians(30, random_state=0)
    model = mm.LinearSVC(class_weight={name: 2.0})
    path = mm.regularization_path(X, np.where(y > 0, name, "b"), model, Cs=[0.1, 1.0])
    assert len(assert_inert(path._repr_html_()).text) < 3000


def test_a_diagnosis_is_made_of_the_same_parts() -> None:
    X, y = mm.datasets.separable(60, margin=0.5, random_state=0)
    found = mm.diagnose(X, np.where(y > 0, HOSTILE[0], "b"))
    text = assert_inert(found._repr_html_()).text
    assert found.reason in text
    assert all(rung.name in text for rung in found.rungs)


@pytest.mark.parametrize("several", [False, True])
def test_a_path_shows_its_sentences_and_some_costs(several: bool) -> None:
    X, y = mm.datasets.gaussians(60, variance=0.3, random_state=0)
    labels = np.where(X[:, 0] > 1.5, y, 3) if several else y
    path = mm.regularization_path(X, labels, Cs=np.geomspace(0.01, 10, 40))
    page = path._repr_html_()
    text = assert_inert(page).text
    for line in repr(path).splitlines()[1:]:
        assert line.strip() in text
    assert page.count("<tr>") == 1 + 12
    assert "12 of 40 costs" in text
    first, last = f"{path.Cs[0]:.4g}", f"{path.Cs[-1]:.4g}"
    assert f"<td>{first}</td><td>{np.min(path.margins[0]):.4g}</td>" in page
    assert f"<td>{last}</td><td>{np.min(path.margins[-1]):.4g}</td>" in page
    assert f"<td>{np.sum(path.training_errors[-1])}</td>" in page
    assert all(f"Support: {kind}" in text for kind in path.support_counts)
    assert page.count("<td>yes</td>") == 12 * path.certified
    assert len(text) < 3000


def test_short_paths_and_regressions() -> None:
    X, _ = mm.datasets.gaussians(40, random_state=0)
    path = mm.regularization_path(X, X[:, 0] + X[:, 1] ** 2, mm.SVR(epsilon=0.1), Cs=[0.1, 1.0])
    page = path._repr_html_()
    assert page.count("<tr>") == 1 + 2
    assert "costs</caption>" not in page
    assert "Outside the tube" in assert_inert(page).text


def test_what_is_not_certified_is_said() -> None:
    X, y = mm.datasets.overlapping(200, random_state=0)
    with pytest.warns(ConvergenceWarning):
        path = mm.regularization_path(
            X, y, mm.SVC(kernel="rbf", max_iter=1, tol=1e-9), Cs=[100.0, 1000.0]
        )
    assert not path.certified
    assert "no: " in assert_inert(path._repr_html_()).text


@pytest.mark.parametrize("psd", [True, False])
def test_a_kernel_check_shows_its_sentence_and_its_numbers(psd: bool) -> None:
    K = np.diag([2.0, 1.0, 0.5 if psd else -0.5])
    found = mm.check_kernel(K)
    text = assert_inert(found._repr_html_()).text
    assert text.startswith("Positive semidefinite" if psd else "Not a kernel matrix")
    assert str(found) in text
    assert ("0 of 3" if psd else "1 of 3") in text
    assert (f"{0.5 / 3.5:.2g}" in text) is not psd
    for extreme in (np.zeros((2, 2)), [[0.0, 1.0], [2.0, 0.0]], [[1.0]]):
        assert "nan" not in assert_inert(mm.check_kernel(extreme)._repr_html_()).text
