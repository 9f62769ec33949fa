"""Requests are answered in the background, the newest first, and everything is given back."""

import gc
import json
import queue
import random
import threading
import tracemalloc
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from maxmargin.runtime.clock import OutOfTimeError, check
from maxmargin.studio import session
from maxmargin.studio.lessons import read_lesson
from maxmargin.studio.session import PATIENCE, Job, Reply, Session

pytestmark = pytest.mark.wide

WAIT = 30.0  # seconds until a test that hangs fails
SCENE = {
    "x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 1.0, 0.0], "label": [0, 0, 1, 1],
    "view": [-1, 4, -1, 2], "model": "LinearSVC",
}  # fmt: skip
OWN = "# Own\n\n## First\n\nText.\n\n```task\ndo: Nothing.\nuntil: errors == 0\n```\n"


def ask(kind: str, seq: int, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "seq": seq, **fields}


def fit(seq: int, pane: int = 0, **fields: Any) -> dict[str, Any]:
    return ask("fit", seq, pane=pane, grid=[8, 8], **(SCENE | fields))


class Page:
    """What a session sent, and a clock that stands still."""

    opened: ClassVar[list["Page"]] = []

    def __init__(self, handlers: Mapping[str, Any] | None = None, **given: Any) -> None:
        self.replies: queue.Queue[Reply] = queue.Queue()
        self.now = 0.0
        self.session = Session(self.replies.put, handlers=handlers, clock=lambda: self.now, **given)
        self.opened.append(self)

    def send(self, *requests: Mapping[str, Any]) -> None:
        for request in requests:
            self.session.receive(json.dumps(request))

    def next(self) -> Reply:
        return self.replies.get(timeout=WAIT)

    def rest(self) -> list[Reply]:
        self.session.close()
        return [self.replies.get() for _ in range(self.replies.qsize())]


class Gate:
    """A handler that waits to be let through, and asks for each step whether to stop."""

    def __init__(self) -> None:
        self.entered: queue.Queue[int] = queue.Queue()
        self.steps = threading.Semaphore(0)
        self.finish = False

    def __call__(self, request: Any, job: Job) -> Reply | None:
        self.entered.put(request.seq)
        while True:
            assert self.steps.acquire(timeout=WAIT)
            if job.stop():
                return None
            if self.finish:
                return {"type": "picture", "final": True}

    def started(self) -> int:
        return self.entered.get(timeout=WAIT)


@pytest.fixture(autouse=True)
def _threads_are_given_back() -> Iterator[None]:
    yield
    while Page.opened:
        Page.opened.pop().session.close()
    assert not studio_threads()


def studio_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if "maxmargin-studio" in each.name]


# The newest wins.


def test_waiting_requests_are_replaced_and_nothing_is_lost() -> None:
    gate = Gate()
    page = Page({"fit": gate})
    page.send(fit(1))
    assert gate.started() == 1
    page.send(fit(2), fit(3), fit(4))
    assert [page.next() for _ in range(2)] == [
        {"type": "superseded", "of": "fit", "seq": seq, "pane": 0} for seq in (2, 3)
    ]
    gate.finish = True
    gate.steps.release(2)
    assert [page.next()["seq"] for _ in range(2)] == [1, 4]
    assert page.rest() == []


def test_a_fit_is_stopped_only_after_its_patience() -> None:
    gate = Gate()
    page = Page({"fit": gate})
    page.send(fit(1))
    gate.started()
    page.now = PATIENCE * 10
    gate.steps.release()  # nobody else waits: it goes on
    page.send(fit(2))
    page.now = PATIENCE * 10 + 1
    gate.steps.release()
    assert page.next() == {"type": "superseded", "of": "fit", "seq": 1, "pane": 0}
    assert gate.started() == 2
    page.send(fit(3))
    page.now += PATIENCE  # not longer than it
    gate.steps.release()
    gate.finish = True
    gate.steps.release(2)
    assert [page.next()["seq"] for _ in range(2)] == [2, 3]


def test_slow_fits_do_not_starve_during_a_drag() -> None:
    """Each takes ten times the patience, a new one comes before each ends, and some are shown."""
    page, shown = Page(), []

    def handle(request: Any, job: Job) -> Reply | None:
        for _ in range(100):
            page.now += PATIENCE / 10
            page.send(fit(request.seq + 1)) if request.seq < 40 else None
            if job.stop():
                return None
        return {"type": "picture", "final": True}

    page = Page({"fit": handle})
    page.send(fit(1))
    while (reply := page.next())["seq"] < 40:
        if reply["type"] == "picture":
            shown.append(reply["seq"])
    page.session.close()
    assert len(shown) >= 5
    assert shown == sorted(shown)


def test_panes_and_kinds_do_not_wait_for_each_other() -> None:
    gate, slow = Gate(), Gate()
    page = Page({"fit": gate, "diagnose": slow, "run": slow})
    page.send(fit(1, pane=0), fit(2, pane=1), ask("diagnose", 3, **SCENE))
    page.send(ask("run", 4, pane=0, kind="solver", **SCENE))
    assert {gate.started(), gate.started()} == {1, 2}
    assert {slow.started(), slow.started()} == {3, 4}
    page.send(ask("kernel", 5, text="RBF(gamma)"))
    assert page.next()["type"] == "kernel"
    gate.finish = slow.finish = True
    for each in (gate, slow):
        each.steps.release(2)
    assert {page.next()["seq"] for _ in range(4)} == {1, 2, 3, 4}


def test_too_many_waiting_requests_are_refused() -> None:
    gate = Gate()
    page = Page({"answer": gate})
    for k in range(session.MOST_WAITING + 2):
        page.send(ask("answer", k, lesson="a", page=0, item=k, value="", **SCENE))
        if not k:
            gate.started()
    refused = page.next()
    assert refused["type"] == "error"
    assert refused["seq"] == session.MOST_WAITING + 1
    gate.finish = True
    gate.steps.release(session.MOST_WAITING + 1)


# Cancelling and closing.


def test_cancel_stops_what_runs_and_forgets_what_waits() -> None:
    gate = Gate()
    page = Page({"fit": gate})
    page.send(fit(1), fit(2, pane=1))
    gate.started(), gate.started()
    page.send(fit(3), ask("cancel", 4, pane=0))
    seen = [page.next() for _ in range(3)]
    assert {reply["seq"] for reply in seen[:2]} == {1, 3}
    assert {reply["type"] for reply in seen[:2]} == {"superseded"}
    assert seen[2] == {"type": "cancelled", "seq": 4, "pane": 0}
    gate.finish = True
    gate.steps.release(2)
    assert page.next()["seq"] == 2  # the other pane is not concerned
    assert page.rest() == []


def test_cancel_reaches_work_without_callbacks() -> None:
    """Passes over rows look at the limit of their thread."""
    entered, ended = threading.Event(), threading.Event()

    def handle(request: Any, job: Job) -> None:
        entered.set()
        try:
            while True:
                check()
        except OutOfTimeError:
            ended.set()
            raise

    page = Page({"diagnose": handle})
    page.send(ask("diagnose", 1, **SCENE))
    assert entered.wait(WAIT)
    page.send(ask("cancel", 2, pane=1))
    assert ended.wait(WAIT)
    assert [page.next()["type"] for _ in range(2)] == ["superseded", "cancelled"]
    assert page.rest() == []


def test_nothing_is_sent_after_closing() -> None:
    gate = Gate()
    page = Page({"fit": gate})
    page.send(fit(1))
    gate.started()
    gate.finish = True
    page.session.close(wait=False)
    gate.steps.release()
    page.send(fit(2), ask("hello", 3))
    page.session.close()
    for thread in studio_threads():
        thread.join(WAIT)
    assert page.replies.empty()
    assert page.session.scene is None


def test_idle_threads_end_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "IDLE", 0.01)
    page = Page({"fit": lambda request, job: {"type": "picture"}})
    for seq in range(3):
        page.send(fit(seq))
        assert page.next()["seq"] == seq
        for thread in studio_threads():
            thread.join(WAIT)
        assert not studio_threads()


# What goes wrong.


def test_errors_are_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(request: Any, job: Job) -> None:
        raise ValueError("C must be positive,\n  got -1. " + "x" * 5000)

    def fail(request: Any, job: Job) -> None:
        raise ZeroDivisionError("/home/somebody/secret.py")

    page = Page({"fit": refuse, "lift": fail, "run": lambda *_: None})
    page.send(fit(1))
    refused = page.next()
    assert refused["message"].startswith("C must be positive, got -1. xxx")
    assert len(refused["message"]) == session.LONGEST_MESSAGE
    assert (refused["type"], refused["seq"], refused["pane"]) == ("error", 1, 0)
    page.send(ask("lift", 2, kind="circle", **SCENE))
    failed = page.next()
    assert (failed["type"], failed["seq"]) == ("error", 2)
    assert "secret" not in failed["message"]
    assert "secret" in caplog.text
    page.send(ask("run", 3, pane=1, kind="path", **SCENE))
    assert page.next()["type"] == "error"  # a handler that says nothing is at fault


BROKEN: list[str | bytes] = [
    "", "{", "null", "[]", '"fit"', "{}", '{"type": "fit"}', '{"type": "none", "seq": 1}',
    '{"type": "hello", "seq": -1}', '{"type": "hello", "seq": 1e400}', "[" * 100_000,
    '{"type": "hello", "seq": NaN}', json.dumps(fit(1, x=[0])), json.dumps(fit(1, pane=7)),
    json.dumps(fit(1, x=[0.0] * 6000, y=[0.0] * 6000, label=[0] * 6000)), b"\xff\xfe", b"\x00" * 99,
    json.dumps(fit(1, kernel="__import__('os')")), json.dumps(fit(1, view=[1, 0, 0, 1])),
]  # fmt: skip


# The studio itself.


def test_hello_names_what_there_is_and_begins_with_points() -> None:
    points = {"type": "points", "x": [1.0], "y": [2.0], "label": [0]}
    page = Page(lesson=read_lesson(OWN), points=points)
    page.send(ask("hello", 1))
    catalogue = page.next()
    assert {"models", "sliders", "presets", "kernels", "lessons", "limits"} <= set(catalogue)
    assert catalogue["lessons"][0]["title"] == "Own"
    assert catalogue["lesson"] == catalogue["lessons"][0]["id"]
    assert page.next() == {**points, "seq": 1}
    page.send(ask("lesson", 2, id=catalogue["lesson"]))
    assert page.next()["title"] == "Own"
    page.send(ask("tasks", 3, lesson=catalogue["lesson"], page=0, **SCENE))
    assert page.next()["done"] == [True]


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (fit(1), "picture"),
        (ask("run", 1, pane=1, kind="solver", **SCENE), "run"),
        (ask("lift", 1, kind="circle", **SCENE), "lift"),
        (ask("preset", 1, name="moons"), "points"),
        (ask("table", 1, text="a,b,c\n1,2,u\n2,3,v\n3,1,u\n"), "points"),
        (ask("kernel", 1, text="RBF(gamma) + 1"), "kernel"),
        (ask("code", 1, panes=[{"model": "SVC"}],
             **{name: SCENE[name] for name in ("x", "y", "label", "view")}), "code"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_every_request_is_answered(request_: dict[str, Any], kind: str) -> None:
    page = Page()
    page.send(request_)
    reply = page.next()
    assert (reply["type"], reply["seq"]) == (kind, 1), reply
    assert reply.get("pane") == request_.get("pane")
    json.dumps(reply, allow_nan=False)


def test_a_diagnosis_is_sentences() -> None:
    rng = random.Random(0)
    x, y = ([rng.uniform(-1, 1) for _ in range(60)] for _ in range(2))
    label = [int(a > 0.0) for a in x]
    page = Page()
    page.send(ask("diagnose", 1, **(SCENE | {"x": x, "y": y, "label": label})))
    found = page.next()
    assert (found["type"], found["verdict"]) == ("diagnosis", "linearly separable")
    assert found["sentences"][0][0].isupper()
    assert found["advice"]
    page.send(ask("diagnose", 2, **(SCENE | {"label": [0, 0, 0, 0]})))
    assert page.next()["type"] == "error"


def test_dragging_does_not_grow() -> None:
    """A day of dragging has millions of events."""
    page = Page({"fit": lambda request, job: {"type": "picture"}})

    def drag(events: int) -> int:
        for seq in range(events):
            page.session.receive(fit(seq, x=[seq % 7, 1, 2, 3]))
            if seq % 50 == 49:  # most are replaced before they are worked on
                while page.next()["seq"] < seq:
                    pass
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        drag(200)
        before = drag(200)
        assert drag(2_000) - before < 100_000
    finally:
        tracemalloc.stop()
