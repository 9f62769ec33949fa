"""mm.Studio: the caller's points go to the page, and what is drawn there comes back."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maxmargin as mm

pytest.importorskip("anywidget")

POINTS = np.array([[0.0, 0.0], [1.0, 0.5], [3.0, 2.0], [4.0, 2.5]])
WAIT = 60.0  # seconds, for a thread that answers at once


@pytest.fixture
def show() -> Iterator[Callable[..., Any]]:
    shown: list[Any] = []

    def make(*given: Any, **options: Any) -> Any:
        shown.append(mm.Studio(*given, **options))
        return shown[-1]

    yield make
    for studio in shown:
        studio.close()


class Page:
    """The other end of a widget: keeps what is sent to it, and sends requests."""

    def __init__(self, studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.studio = studio
        self.replies: list[Any] = []
        self._arrived = threading.Condition()
        monkeypatch.setattr(studio.widget, "send", self._keep)

    def _keep(self, reply: Any, buffers: Any = None) -> None:
        with self._arrived:
            self.replies.append(json.loads(json.dumps(reply, allow_nan=False)))
            self._arrived.notify_all()

    def ask(self, **request: Any) -> Any:
        """Send a request as the comm does, and return its last reply."""
        self.studio.widget._handle_custom_msg(request, [])
        with self._arrived:
            found = self._arrived.wait_for(lambda: self._answer(request["seq"]), WAIT)
        assert found
        return found

    def _answer(self, seq: int) -> Any:
        final = (r for r in self.replies if r.get("seq") == seq and r.get("final", True))
        return next(final, None)

    def fit(self, points: Any, labels: Any, seq: int = 1, **choice: Any) -> Any:
        points = np.asarray(points, dtype=float)
        chosen = {"model": "LinearSVC", "parameters": {}, "kernel": ""} | choice
        return self.ask(
            type="fit", seq=seq, pane=0, grid=[8, 8], wants=[], view=[-5, 5, -5, 5],
            x=points[:, 0].tolist(), y=points[:, 1].tolist(), label=list(labels), **chosen,
        )  # fmt: skip


# ------------------------------------------------------------------- to the page


def test_the_page_begins_with_what_was_given(show: Any) -> None:
    state = show(POINTS, ["a", "a", "b", "b"], model="LinearSVC", C=10).widget.state
    assert json.loads(json.dumps(state, allow_nan=False)) == state
    assert [point[:2] for point in state["points"]] == POINTS.tolist()
    assert [point[2] for point in state["points"]] == [0, 0, 1, 1]
    assert state["names"] == ["a", "b", "C", "D", "E"]
    assert state["panes"][0]["model"] == "LinearSVC"
    assert state["panes"][0]["parameters"]["C"] == 10
    left, right, bottom, top = state["view"]
    assert left < 0 < 4 < right
    assert bottom < 0 < 2.5 < top


def test_frames_name_their_axes_and_columns_can_be_chosen(show: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.arange(12.0).reshape(4, 3), columns=["u", "v", "w"])
    kinds = pandas.Series(["no", "no", "yes", "yes"], name="kind")
    studio = show(frame, kinds, features=("w", "u"))
    assert studio.widget.state["axes"] == ["w", "u"]
    np.testing.assert_array_equal(studio.X, frame[["w", "u"]])
    np.testing.assert_array_equal(studio.y, kinds)
    np.testing.assert_array_equal(show(frame, features=(0, 2)).X, frame[["u", "w"]])
    polars = pytest.importorskip("polars")
    np.testing.assert_array_equal(
        show(polars.DataFrame({"a": [1, 2], "b": [3, 4]})).X, [[1, 3], [2, 4]]
    )


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-1, -1, 1, 1]),
        np.array([False, False, True, True]),
        np.array([0.0, 0.0, 2.0, 2.0]),
        np.array(["no", "no", "yes", "yes"]),
        np.array(["no", "no", "yes", "yes"], dtype=object),
        np.array([1, 1, 3, 3], dtype=np.uint8),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_any_type_come_back_as_they_were(show: Any, labels: Any) -> None:
    studio = show(POINTS, labels, model="LinearSVC")
    np.testing.assert_array_equal(studio.y, labels)
    assert studio.y.dtype == labels.dtype
    np.testing.assert_array_equal(studio.model.predict(POINTS), labels)
    assert set(studio.model.classes_) == set(labels)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((np.zeros((3, 1)),), {}, "X must have two columns, got shape \\(3, 1\\)"),
        ((np.zeros(3),), {}, "X must have two columns"),
        ((np.zeros((3, 4)),), {}, "X has 4 columns; choose two of them: features=\\(0, 1\\)"),
        ((np.zeros((3, 4)),), {"features": (1, 1)}, "two different columns"),
        ((np.zeros((3, 4)),), {"features": (1, 9)}, "two different columns"),
        ((np.zeros((3, 4)),), {"features": 0}, "two different columns of X, by number or name"),
        ((np.zeros((3, 2)),), {"C": [1, 2]}, "parameters.*Expected|Expected.*parameters"),
        (([["a", "b"]],), {}, "could not convert string to float"),
        (([[np.nan, 1.0]],), {}, "X contains NaN"),
        (([[1e7, 1.0]],), {}, "scale columns that are larger"),
        ((np.zeros((5001, 2)),), {}, "X has 5,001 rows, and the page can show 5,000"),
        ((np.zeros((12, 2)), np.arange(12) // 2), {}, "y has 6 classes"),
        ((POINTS, [0, 1]), {}, "y must have one label for each of the 4 rows"),
        ((None, [0, 1]), {}, "y was given without X"),
        ((POINTS,), {"model": "SCV"}, "'model' must be one of"),
        ((POINTS,), {"C": 1e9}, "'C' of 'parameters' must be a number"),
        ((POINTS,), {"kernel": "exec('1')"}, "kernel"),
    ],
)
def test_what_cannot_be_shown_is_refused(given: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mm.Studio(*given, **options)


def test_a_missing_anywidget_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.studio import widget

    widget._load_widget.cache_clear()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ImportError, match=r"pip install anywidget"):
        mm.Studio()
    widget._load_widget.cache_clear()


# ------------------------------------------------------------------- and back


def test_what_is_drawn_comes_back(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    studio = show(POINTS, ["no", "no", "yes", "yes"])
    page = Page(studio, monkeypatch)
    moved = np.vstack([POINTS + 0.25, [[-1.0, -1.0]]])
    picture = page.fit(moved, [0, 0, 1, 1, 0], parameters={"C": 100.0})
    assert picture["type"] == "picture"
    np.testing.assert_array_equal(studio.X, moved)
    assert studio.y.tolist() == ["no", "no", "yes", "yes", "no"]
    assert isinstance(studio.model, mm.LinearSVC)
    assert studio.model.C == 100.0
    np.testing.assert_array_equal(studio.model.predict(moved), studio.y)
    np.testing.assert_allclose(studio.model.coef_[0], picture["weights"], atol=1e-6)
    shown, _ = studio._repr_mimebundle_()  # shown again, it begins with what is there now
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert [point[:2] for point in studio.widget.state["points"]] == moved.tolist()


@pytest.mark.parametrize(
    ("labels", "added"),
    [
        ([1, 1, 4, 4], [1, 1, 4, 5]),
        ([False, False, True, True], [0, 0, 1, 2]),
        (["C", "C", "a", "a"], ["C", "C", "a", "D"]),
    ],
)
def test_classes_that_are_added_get_labels(
    show: Any, monkeypatch: pytest.MonkeyPatch, labels: Any, added: Any
) -> None:
    studio = show(POINTS, labels)
    Page(studio, monkeypatch).fit(POINTS, [0, 0, 1, 2])
    assert studio.y.tolist() == added
    assert set(studio.model.classes_) == set(added)


def test_closing_gives_the_threads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    studio = mm.Studio(POINTS, [0, 0, 1, 1])
    page = Page(studio, monkeypatch)
    page.fit(POINTS + 1, [0, 0, 1, 1])
    assert set(threading.enumerate()) - before
    studio.close()
    assert not set(threading.enumerate()) - before
    np.testing.assert_array_equal(studio.X, POINTS + 1)  # what was drawn stays
    assert studio.model.score(studio.X, studio.y) == 1.0


def test_replies_go_through_the_loop_of_a_kernel(
    show: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Any] = []
    loop = SimpleNamespace(add_callback=lambda function, *given: waiting.append((function, given)))
    studio = show(POINTS)
    page = Page(studio, monkeypatch)
    comm = SimpleNamespace(comm_id="1", kernel=SimpleNamespace(io_loop=loop))
    comm.send = comm.on_msg = comm.close = lambda *given, **options: None
    studio.widget.comm = comm
    studio.widget._handle_custom_msg({"type": "cancel", "seq": 1, "pane": 0}, [])
    assert not page.replies
    ((function, given),) = waiting
    function(*given)
    assert page.replies == [{"type": "cancelled", "seq": 1, "pane": 0}]
