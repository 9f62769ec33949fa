"""One page's requests, answered in the background: of requests of one kind, the newest wins.

``receive`` takes a request and returns at once. What it asks for is worked out on one of a few
*lanes*, threads that are started when they are needed: one for the fits of each pane, and others
for runs, for diagnoses, for lessons and for what is quick. So a slow fit on one pane holds up
neither the other pane nor the rest of the page.

During a drag, requests come faster than they can be answered. Of those that wait, a newer one
replaces an older one of the same kind and pane. One that is being worked on is asked to stop if a
newer one waits and it has taken longer than its *patience* of 250 ms. If every fit takes longer
than that, a drag would never show anything; so the patience doubles each time a request was stopped
without having shown anything, until something is shown.

Every request gets one answer (``hello`` two, if there are points to begin with), an error, or
``{"type": "superseded"}``, if nothing will come for it any more.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.runtime.clock import Limit, under
from maxmargin.studio import catalogue, messages
from maxmargin.studio.scene import MOST_CLASSES, MOST_POINTS, Scene

if TYPE_CHECKING:
    from maxmargin.studio.lessons import Lesson

Reply = dict[str, Any]

PATIENCE = 0.25  # seconds
IDLE = 60.0  # seconds without work after which a thread ends
MOST_WAITING = 64  # requests on a lane
DIAGNOSIS_TIME = 10.0  # seconds
LONGEST_MESSAGE = 500  # characters of an error

_logger = logging.getLogger("maxmargin.studio")


class RequestLimit(Limit):
    """Ends work that nobody waits for any more, wherever it checks the limit of its thread."""

    def __init__(self, is_stale: Callable[[], bool]) -> None:
        self._cancelled = False
        self._is_stale = is_stale
        super().__init__()

    @property
    def cancelled(self) -> bool:
        """Whether the work must end; once it must, it stays so."""
        self._cancelled = self._cancelled or self._is_stale()
        return self._cancelled

    @cancelled.setter
    def cancelled(self, value: bool) -> None:
        self._cancelled = value


class Job:
    """A request that waits, or is being answered."""

    def __init__(self, request: Any, session: "Session") -> None:
        self.request = request
        self.session = session
        self.kind = KINDS[tag_of(request)]
        self.own = session.lesson
        self.pane: int | None = getattr(request, "pane", None)
        self.key = _find_key(request)
        self.limit = RequestLimit(lambda: session.is_stale(self))
        self.started = 0.0
        self.shown = False  # whether anything was sent
        self.answered = False  # whether nothing more will be sent

    @property
    def lane(self) -> str:
        """The name of the lane for the request; each pane has one for its fits."""
        name = self.kind.lane
        return f"{name} {self.pane}" if name == "fit" else name

    def stop(self) -> bool:
        """Tell whether nobody waits for the answer any more."""
        return self.limit.cancelled

    def send(self, reply: Reply) -> None:
        """Send an answer; it is the last one, unless it says ``"final": False``."""
        self.session.deliver(self, reply, final=bool(reply.get("final", True)))

    def concerns(self, pane: int) -> bool:
        """Tell whether this is work for a pane; a diagnosis is work for both."""
        return self.pane == pane or isinstance(self.request, messages.Diagnose)


Handler = Callable[[Any, Job], Reply | None]  # a reply, or None if it was sent or is not wanted


class _Lane:
    """A thread with the jobs that wait for it, at most one of a kind."""

    def __init__(self, lock: threading.RLock) -> None:
        self.waiting: dict[Hashable, Job] = {}
        self.running: Job | None = None
        self.patience: dict[Hashable, float] = {}  # of kinds that were stopped
        self.wake = threading.Condition(lock)
        self.thread: threading.Thread | None = None


class Session:
    """What one page asks, and where the answers go.

    Parameters
    ----------
    send : callable
        Takes each reply, a dict of what JSON has, from any thread, in order. It must not wait.
    lesson : Lesson, optional
        A lesson that the page opens at once.
    points : dict, optional
        A reply of type "points" that the page begins with.
    handlers : mapping, optional
        What answers some types of requests instead of the studio.
    clock : callable, optional
        Returns seconds.

    Attributes
    ----------
    scene : Scene or None
        What pane 0 showed last.
    """

    def __init__(
        self,
        send: Callable[[Reply], None],
        lesson: "Lesson | None" = None,
        points: Reply | None = None,
        *,
        handlers: Mapping[str, Handler] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.scene: Scene | None = None
        self.lesson = lesson
        self.points = points
        self._send = send
        self._handlers = dict(handlers or {})
        self._clock = clock
        self._lock = threading.RLock()  # held while sending, so that replies keep their order
        self._lanes: dict[str, _Lane] = {}
        self._closed = False

    # ------------------------------------------------------------------- requests

    def receive(self, message: str | bytes | Mapping[str, Any]) -> None:
        """Take a request, as JSON text or parsed, and return at once."""
        try:
            if isinstance(message, str | bytes):
                request = messages.parse(message)
            else:
                request = messages.read(message)
        except messages.MessageError as wrong:
            self._emit(_describe_error(str(wrong), wrong.seq, wrong.pane))
        except Exception:
            _logger.exception("a message could not be read")
            self._emit(_describe_error("The message could not be read.", None, None))
        else:
            self._take(request)

    def _take(self, request: Any) -> None:
        if isinstance(request, messages.Cancel):
            self._cancel(request)
            return
        with self._lock:
            if self._closed:
                return
            if isinstance(request, messages.Fit) and request.pane == 0:
                self.scene = request.scene
            job = Job(request, self)
            lane = self._open_lane(job.lane)
            older = lane.waiting.pop(job.key, None)
            if older is not None:
                self._supersede(older)
            if len(lane.waiting) >= MOST_WAITING:
                self._fail(job, f"{MOST_WAITING} requests are waiting; try again in a moment.")
                return
            lane.waiting[job.key] = job
            lane.wake.notify()

    def _open_lane(self, name: str) -> _Lane:
        """Return a lane; start its thread if there is none."""
        if name not in self._lanes:
            lane = self._lanes[name] = _Lane(self._lock)
            lane.thread = threading.Thread(
                target=self._work, args=(name, lane), name=f"maxmargin-studio-{name}", daemon=True
            )
            lane.thread.start()
        return self._lanes[name]

    def _cancel(self, request: Any) -> None:
        """Stop what is done for a pane, and forget what waits."""
        with self._lock:
            for lane in self._lanes.values():
                for key, job in list(lane.waiting.items()):
                    if job.concerns(request.pane):
                        self._supersede(lane.waiting.pop(key))
                if lane.running is not None and lane.running.concerns(request.pane):
                    self._supersede(lane.running)
            self._emit({"type": "cancelled", "seq": request.seq, "pane": request.pane})

    def close(self, wait: bool = True) -> None:
        """Stop all work and end the threads; nothing is sent any more.

        Parameters
        ----------
        wait : bool, default=True
            Whether to return only when the threads have ended, which they do at the next step of
            what they are doing.
        """
        with self._lock:
            self._closed = True
            lanes = list(self._lanes.values())
            self._lanes.clear()
            for lane in lanes:
                lane.waiting.clear()
                if lane.running is not None:
                    lane.running.answered = lane.running.limit.cancelled = True
                lane.wake.notify()
            self._send = _send_nothing
            self.scene = self.lesson = self.points = None
        for lane in lanes:
            if wait and lane.thread is not None and lane.thread is not threading.current_thread():
                lane.thread.join()

    # ------------------------------------------------------------------- replies

    def deliver(self, job: Job, reply: Reply, *, final: bool = True) -> None:
        """Send an answer to a request, if it is still wanted."""
        with self._lock:
            if job.answered:
                return
            job.answered, job.shown = final, True
            reply = {**reply, "seq": job.request.seq}
            self._emit(reply if job.pane is None else {**reply, "pane": job.pane})

    def is_stale(self, job: Job) -> bool:
        """Tell whether a newer request waits, and the patience with this one is over."""
        with self._lock:
            if self._closed or job.answered:
                return True
            lane = self._lanes[job.lane]
            patience = lane.patience.get(job.key, PATIENCE)
            return job.key in lane.waiting and self._clock() - job.started > patience

    def _supersede(self, job: Job) -> None:
        """Say that nothing will come for a request, if that is not known."""
        job.limit.cancelled = True
        self.deliver(job, {"type": "superseded", "of": tag_of(job.request)})

    def _fail(self, job: Job, message: str) -> None:
        self.deliver(job, _describe_error(message, job.request.seq, job.pane))

    def _emit(self, reply: Reply) -> None:
        with self._lock:
            try:
                self._send(reply)
            except Exception:  # a page that is gone needs no answer, and ends no thread
                _logger.debug("a reply could not be sent", exc_info=True)

    # ------------------------------------------------------------------- in the threads

    def _work(self, name: str, lane: _Lane) -> None:
        while (job := self._next(name, lane)) is not None:
            self._answer(job)
            self._finish(job, lane)
            job = None  # else its points would be kept while the thread waits

    def _next(self, name: str, lane: _Lane) -> Job | None:
        """Wait for a job; None if the thread shall end."""
        with self._lock:
            while not lane.waiting and not self._closed:
                if not lane.wake.wait(IDLE) and not lane.waiting and not self._closed:
                    del self._lanes[name]
                    return None
            if self._closed:
                return None
            job = lane.running = lane.waiting.pop(next(iter(lane.waiting)))
            job.started = self._clock()
            return job

    def _answer(self, job: Job) -> None:
        try:
            with under(job.limit):
                reply = self._handlers.get(tag_of(job.request), _handle)(job.request, job)
            if reply is not None:
                job.send(reply)
        except Exception as wrong:
            if job.limit.cancelled:  # giving up is what was asked for
                return
            if isinstance(wrong, ValueError):
                _logger.debug("a request was refused", exc_info=True)
                self._fail(job, str(wrong))
            else:
                _logger.exception("a request could not be answered")
                kind = tag_of(job.request)
                self._fail(job, f"This request ({kind}) failed; the log of the studio says why.")

    def _finish(self, job: Job, lane: _Lane) -> None:
        with self._lock:
            lane.running = None
            if job.shown:
                lane.patience.pop(job.key, None)
            elif job.limit.cancelled:
                lane.patience[job.key] = 2 * lane.patience.get(job.key, PATIENCE)
            if job.limit.cancelled:
                self._supersede(job)
            else:
                self._fail(job, "There is nothing to show for this request.")


def _send_nothing(reply: Reply) -> None:
    """Stand in for a page that is closed."""


def _describe_error(message: str, seq: int | None, pane: int | None) -> Reply:
    """Return an error for the page, in one line."""
    message = " ".join(message.split())[:LONGEST_MESSAGE]
    reply: Reply = {"type": "error", "seq": seq, "message": message}
    return reply if pane is None else {**reply, "pane": pane}


def _find_key(request: Any) -> Hashable:
    """Return what a newer request must have in common to replace this one."""
    if isinstance(request, messages.Answer):  # two questions have two answers
        return type(request), request.lesson, request.page, request.item
    return type(request), getattr(request, "pane", None)


def tag_of(request: Any) -> str:
    """Return the type of a request, as the page writes it."""
    return str(request.__struct_config__.tag)


# ------------------------------------------------------------------- what answers which request


class _Kind(NamedTuple):
    """Which function answers a request, what it is called with, and on which lane.

    Arguments are attributes of the request or the job. The module is imported by the first request
    that needs it, so that the page is there quickly.
    """

    function: str
    arguments: str
    lane: str = "quick"


KINDS: Mapping[str, _Kind] = {
    "hello": _Kind("session:greet", "session send"),
    "fit": _Kind("pictures:draw", "scene grid wants stop send", "fit"),
    "run": _Kind("runs:step_through", "scene kind stop", "run"),
    "lift": _Kind("lifts:lift", "scene kind"),
    "diagnose": _Kind("session:diagnose", "scene", "diagnose"),
    "preset": _Kind("presets:make", "name parameters seed"),
    "table": _Kind("tables:read", "text columns label"),
    "kernel": _Kind("expressions:check_kernel", "text parameters"),
    "code": _Kind("python_code:write_reply", "scene choices"),
    "lesson": _Kind("lessons:open_lesson", "id own"),
    "answer": _Kind("lessons:answer", "lesson page item value scene own", "lesson"),
    "tasks": _Kind("lessons:tasks", "lesson page scene own", "lesson"),
}


def _handle(request: Any, job: Job) -> Reply | None:
    """Answer a request by the function that the table names."""
    module, _, name = job.kind.function.partition(":")
    function = getattr(import_module(f"maxmargin.studio.{module}"), name)
    found = [
        getattr(request if hasattr(request, key) else job, key)
        for key in job.kind.arguments.split()
    ]
    reply: Reply | None = function(*found)
    return reply


def greet(session: Session, send: Callable[[Reply], None]) -> Reply | None:
    """Send what there is to choose from, and return the points to begin with, if any."""
    from maxmargin import __version__
    from maxmargin.studio import expressions, lessons, presets

    own, points = session.lesson, session.points
    titles = [] if own is None else [{"id": own.id, "title": own.title}]
    reply = {
        "type": "catalogue",
        **catalogue.describe(),
        "presets": presets.describe(),
        "kernels": expressions.describe(),
        "lessons": [*titles, *lessons.titles()],
        "lesson": None if own is None else own.id,  # that the page opens at once
        "given": points is not None,  # whether points follow
        "limits": {"points": MOST_POINTS, "classes": MOST_CLASSES},
        "version": __version__,
        "final": points is None,
    }
    send(reply)
    return points


def diagnose(scene: Scene) -> Reply:
    """Say what kind of data was drawn."""
    import maxmargin as mm

    if len(set(scene.labels.tolist())) < 2:
        raise ValueError("A diagnosis needs points of two classes; add a point of a second class.")
    found = mm.diagnose(scene.points, scene.labels, max_time=DIAGNOSIS_TIME)
    reason = found.reason[:1].upper() + found.reason[1:]
    return {
        "type": "diagnosis",
        "verdict": found.verdict,
        "sentences": [reason, *found.warnings],
        "advice": found.advice,
    }
