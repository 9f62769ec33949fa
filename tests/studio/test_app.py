"""The server lets in nobody but its own page, and gives everything back."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPMessage
from typing import Any, NamedTuple

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import uvicorn
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from maxmargin.studio import app, messages, static_files
from maxmargin.studio.session import Reply, Session
from tests.studio.test_session import BROKEN, WAIT, ask, fit, studio_threads

TOKEN = "a-token"
SOCKET = f"/socket?token={TOKEN}"


class Answer(NamedTuple):
    status: int
    headers: HTTPMessage
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()


class Server:
    """A server in a thread of this process."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.host = f"127.0.0.1:{port}"

    def get(self, path: str, **headers: str) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        try:
            connection.putrequest("GET", path, skip_host="host" in headers)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def open(self, path: str = SOCKET, origin: str | None = "", host: str = "") -> ClientConnection:
        """Open a socket, as the page does unless told otherwise."""
        given = Origin(origin or f"http://{self.host}") if origin is not None else None
        there = socket.create_connection(("127.0.0.1", self.port))
        try:
            return connect(
                f"ws://{host or self.host}{path}", sock=there, origin=given, max_size=None
            )
        except BaseException:
            there.close()
            raise


@contextmanager
def served(**given: Any) -> Iterator[Server]:
    """Run a server in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(app.configure(app.make_app(TOKEN, **given)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Server(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(WAIT)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def client() -> Iterator[Server]:
    with served() as server:
        yield server


@pytest.fixture(autouse=True)
def _threads_are_given_back() -> Iterator[None]:
    yield
    for thread in studio_threads():
        thread.join(WAIT)
    assert not studio_threads()


def receive(page: ClientConnection) -> Any:
    return json.loads(page.recv(WAIT))


# The page and its files.


def test_the_page_wants_its_token(client: Server) -> None:
    assert client.get(f"/?token={TOKEN}").status == 200
    for wrong in (
        "/",
        "/?token=",
        "/?token=b",
        f"/?token={TOKEN}x",
        f"/?Token={TOKEN}",
        "/?token=%ff",
    ):
        refused = client.get(wrong)
        assert refused.status == 403
        assert "maxmargin studio" in refused.text
        assert TOKEN not in refused.text


@pytest.mark.parametrize(
    "path", [f"/?token={TOKEN}", "/", "/none", "/static/studio.js", "/static/x"]
)
def test_every_answer_has_the_headers(client: Server, path: str) -> None:
    for host in (client.host, "evil.example:8000"):
        headers = client.get(path, host=host).headers
        for name, value in app.HEADERS.items():
            assert headers[name] == value
        assert "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers


def test_the_page_may_run_nothing_but_its_own_files() -> None:
    rules = app.HEADERS["Content-Security-Policy"]
    assert "unsafe" not in rules
    assert "*" not in rules
    assert rules.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    page = static_files.read("index.html")
    assert not any(each in page for each in ("://", "<style", "style=", " onclick"))
    for script in page.split("<script")[1:]:
        assert "src=" in script.split(">")[0]


def test_files_are_those_of_one_folder(client: Server) -> None:
    for path in (
        "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd",
        "/static/%2fetc%2fpasswd", "/static/studio.css/..", "/static/", "/static/..\\app.py",
        "/app.py", "/static/__init__.py",
    ):  # fmt: skip
        assert client.get(path).status == 404, path
    for name, kind in {"page.js": "text/javascript", "studio.css": "text/css"}.items():
        found = client.get(f"/static/{name}")
        assert found.headers["content-type"].startswith(kind)
        again = client.get(f"/static/{name}", if_none_match=found.headers["etag"])
        assert (again.status, again.content) == (304, b"")


# Who is let in.


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:P", 200), ("localhost:P", 200), ("LOCALHOST:P", 200), ("[::1]:P", 200),
        ("localhost.:P", 200), ("127.0.0.1", 403), ("127.0.0.1:1", 403), ("", 403),
        ("evil.example:P", 403), ("127.0.0.1.evil.example:P", 403), ("user@localhost:P", 403),
        ("localhost:P/x", 403), ("[::1:P", 403), ("localhost:x", 403), ("10.0.0.1:P", 403),
    ],
)  # fmt: skip
def test_hosts(client: Server, host: str, status: int) -> None:
    asked = host.replace("P", str(client.port))
    assert client.get(f"/?token={TOKEN}", host=asked).status == status


def test_any_numeric_host_if_the_server_is_open_to_others() -> None:
    with served(hosts=(*app.LOOPBACK, "")) as client:
        for host, status in (("10.0.0.1", 200), ("evil.example", 403), ("", 403)):
            asked = f"{host}:{client.port}"
            assert client.get(f"/?token={TOKEN}", host=asked).status == status


@pytest.mark.parametrize(
    ("path", "origin", "host"),
    [
        ("/socket", "", ""),
        ("/socket?token=b", "", ""),
        (SOCKET, None, ""),
        (SOCKET, "null", ""),
        (SOCKET, "http://evil.example", ""),
        (SOCKET, "http://127.0.0.1:1", ""),
        (SOCKET, "https://127.0.0.1:P", ""),
        (SOCKET, "http://localhost:P", ""),
        (SOCKET, "http://evil.example:P", "evil.example:P"),
        (SOCKET, "http://127.0.0.1:1", "127.0.0.1:1"),
    ],
)
def test_sockets_of_others_are_refused(
    client: Server, path: str, origin: str | None, host: str
) -> None:
    port = str(client.port)
    with pytest.raises(InvalidStatus) as refused:
        client.open(
            path, None if origin is None else origin.replace("P", port), host.replace("P", port)
        )
    assert refused.value.response.status_code == 403


def test_the_number_of_sockets_is_limited(client: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MOST_SOCKETS", 1)
    with client.open() as first:
        with pytest.raises(InvalidStatus):
            client.open()
        first.send(json.dumps(ask("kernel", 1, text="Linear()")))
        assert receive(first)["ok"] is True


# Messages.


def test_broken_messages_lose_nothing(client: Server) -> None:
    with client.open() as page:
        for seq, text in enumerate(BROKEN):
            page.send(text)
            assert receive(page)["type"] == "error"
            page.send(json.dumps(ask("kernel", seq, text="Linear()")).encode())
            assert receive(page)["seq"] == seq


def test_messages_that_are_too_large_end_the_socket(client: Server) -> None:
    with client.open() as page:
        page.send('"' + "ü" * (messages.LARGEST_MESSAGE // 2) + '"')
        with pytest.raises(ConnectionClosed) as closed:
            page.recv(WAIT)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009  # too large


def test_a_page_that_asks_too_much_is_closed_without_a_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app, "MOST_REPLIES", 0)
    with served() as client, client.open() as page:
        with pytest.raises(ConnectionClosed) as closed:
            flood(page)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1013  # try again later
    assert not [each for each in caplog.records if each.name != "websockets.client"]


def flood(page: ClientConnection) -> None:
    for seq in range(10_000):
        page.send(json.dumps(ask("cancel", seq, pane=0)))
    while True:
        page.recv(WAIT)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1}])
def test_a_reply_that_json_cannot_hold_is_an_error_of_its_request(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(request: Any, job: Any) -> Reply:
        return {"type": "picture", "x": value if request.seq == 1 else 0.0}

    def make(send: Any, *given: Any) -> Session:
        return Session(send, *given, handlers={"fit": answer})

    with served(session=make) as client, client.open() as page:
        page.send(json.dumps(fit(1, pane=1)))
        wrong = receive(page)
        assert (wrong["type"], wrong["seq"], wrong["pane"]) == ("error", 1, 1)
        page.send(json.dumps(fit(2)))
        assert receive(page)["x"] == 0.0
    assert "could not be written" in caplog.text


# How it ends.


def test_the_server_ends_while_sockets_are_open_and_work_is_going_on() -> None:
    entered, left = threading.Event(), threading.Event()

    def work(request: Any, job: Any) -> None:
        entered.set()
        while not job.stop():
            time.sleep(0.001)
        left.set()

    def make(send: Any, *given: Any) -> Session:
        return Session(send, *given, handlers={"fit": work})

    with ExitStack() as open_pages:
        with served(session=make) as client:
            page = open_pages.enter_context(client.open())
            page.send(json.dumps(fit(1)))
            assert entered.wait(WAIT)
        assert left.wait(WAIT)
        with pytest.raises(ConnectionClosed):
            page.recv(WAIT)
