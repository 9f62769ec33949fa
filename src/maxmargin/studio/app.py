"""The page on a server of this machine: its files, and a socket for requests and replies.

Whoever can talk to the server can have it compute, so it listens on loopback only unless told
otherwise; the address of the page has a random token; the socket wants the token, too, and a page
of this very server as its ``Origin``; and ``Host`` must be a name of this machine, so that no web
site can reach the server by a name of its own that points here (DNS rebinding). The page may load
nothing but what the server has.
"""

import asyncio
import ipaddress
import json
import logging
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Mount, Route, WebSocketRoute
    from starlette.staticfiles import StaticFiles
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from starlette.websockets import WebSocket, WebSocketDisconnect
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
except ImportError as missing:
    raise ImportError(
        f"the studio needs the package {missing.name}: pip install -U starlette uvicorn websockets"
    ) from None

from maxmargin.studio import static_files
from maxmargin.studio.messages import LARGEST_MESSAGE
from maxmargin.studio.session import Reply, Session

MOST_SOCKETS = 16
MOST_REPLIES = 1_000  # that a page has not fetched yet
TOKEN_BYTES = 24
LOOPBACK = ("127.0.0.1", "localhost", "::1")

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-cache",  # a file is asked for again, and sent if it has changed
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}
# Close codes of RFC 6455.
REFUSED, TOO_LARGE, TRY_LATER = 1008, 1009, 1013

_INCOMPLETE = "Open the address that 'maxmargin studio' printed: it ends with a token."
_logger = logging.getLogger("maxmargin.studio")


# ------------------------------------------------------------------- the application


def make_app(
    token: str,
    lesson: Any = None,
    points: Reply | None = None,
    hosts: Iterable[str] = LOOPBACK,
    *,
    session: Callable[..., Session] = Session,
) -> Starlette:
    """Return the application.

    Parameters
    ----------
    token : str
        What the page's address must have as ``token``.
    lesson : Lesson, optional
        A lesson that pages open at once.
    points : dict, optional
        A reply of type "points" that pages begin with.
    hosts : iterable of str, default=("127.0.0.1", "localhost", "::1")
        Names by which the server may be addressed. An empty one allows any numeric address.
    session : callable, default=Session
        Makes the session of a socket.
    """
    hosts = frozenset(host.lower() for host in hosts)
    sockets: set[WebSocket] = set()

    def has_token(given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given.encode(), token.encode())

    async def page(request: Request) -> Response:
        if not has_token(request.query_params.get("token")):
            return PlainTextResponse(_INCOMPLETE, 403)
        return HTMLResponse(static_files.read("index.html"))

    async def connect(websocket: WebSocket) -> None:
        if not (has_token(websocket.query_params.get("token")) and _is_own_page(websocket)):
            await websocket.close(REFUSED)
            return
        if len(sockets) >= MOST_SOCKETS:
            await websocket.close(TRY_LATER)
            return
        sockets.add(websocket)
        try:
            await websocket.accept()
            await _converse(websocket, lambda send: session(send, lesson, points))
        finally:
            sockets.discard(websocket)

    return Starlette(
        routes=[
            Route("/", page),
            Mount("/static", StaticFiles(packages=[("maxmargin.studio", "static")])),
            WebSocketRoute("/socket", connect),
        ],
        middleware=[Middleware(_Guard, hosts=hosts)],
    )


class _Guard:
    """Refuses requests to other hosts, and adds the headers that all answers have."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"].endswith("response.start"):
                added = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if _is_allowed(scope, self.hosts):
            await self.app(scope, receive, send_with_headers)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close(REFUSED)
        else:
            refusal = PlainTextResponse("The studio does not answer to this name.", 403)
            await refusal(scope, receive, send_with_headers)


def _is_allowed(scope: Scope, hosts: frozenset[str]) -> bool:
    """Tell whether a request is addressed to this server by one of its names."""
    given = [value for name, value in scope["headers"] if name == b"host"]
    with suppress(ValueError):  # of addresses that are none
        host, port = _split_host(given[0].decode("ascii")) if len(given) == 1 else ("", None)
        server = scope.get("server")
        if not host or server is None or port != server[1]:
            return False
        return host in hosts or ("" in hosts and bool(ipaddress.ip_address(host)))
    return False


def _split_host(text: str) -> tuple[str, int]:
    """Return name and port of what stands in the header Host.

    >>> _split_host("[::1]:8000"), _split_host("localhost")
    (('::1', 8000), ('localhost', 80))
    """
    parts = urlsplit(f"http://{text}")
    if parts.netloc != text or "@" in text:
        raise ValueError("not a host")
    return (parts.hostname or "").rstrip("."), parts.port or 80


def _is_own_page(websocket: WebSocket) -> bool:
    """Tell whether a socket is opened by a page of this server."""
    own = f"http://{websocket.headers.get('host')}"
    return websocket.headers.getlist("origin") == [own]


# ------------------------------------------------------------------- a socket


Outbox = asyncio.Queue[Reply]  # replies that are not sent yet


async def _converse(
    websocket: WebSocket, make: Callable[[Callable[[Reply], None]], Session]
) -> None:
    """Pass requests to a session and its replies to the page, until one of them ends."""
    loop, outbox = asyncio.get_running_loop(), Outbox()

    def put(reply: Reply) -> None:
        with suppress(RuntimeError):  # after the end of the event loop, for nothing
            loop.call_soon_threadsafe(outbox.put_nowait, reply)

    session = make(put)
    requests = asyncio.create_task(_pass_requests(websocket, session, outbox))
    jobs = {requests, asyncio.create_task(_pass_replies(websocket, outbox))}
    try:
        await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
    finally:
        session.close(wait=False)  # a thread may be in the middle of a step: nobody waits for it
        for job in jobs:
            job.cancel()
        for outcome in await asyncio.gather(*jobs, return_exceptions=True):
            if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketDisconnect):
                _logger.error("a socket ended with an error", exc_info=outcome)
    if not requests.cancelled() and not requests.exception() and requests.result():
        with suppress(WebSocketDisconnect, RuntimeError):  # of a page that is gone meanwhile
            await websocket.close(requests.result())  # only now, when nothing more is sent


async def _pass_requests(
    websocket: WebSocket, session: Session, outbox: asyncio.Queue[Reply]
) -> int:
    """Return the code with which the socket is to be closed, 0 if the page has closed it."""
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return 0
        text = message.get("text")
        text = message.get("bytes") or b"" if text is None else text
        size = len(text) if isinstance(text, bytes) else len(text.encode())
        if size > LARGEST_MESSAGE:
            return TOO_LARGE
        if outbox.qsize() > MOST_REPLIES:  # the page asks, and does not listen
            return TRY_LATER
        session.receive(text)
        await asyncio.sleep(0)  # a flood of requests holds up neither replies nor other pages


async def _pass_replies(websocket: WebSocket, outbox: Outbox) -> None:
    while True:
        await websocket.send_text(_write(await outbox.get()))
        await asyncio.sleep(0)  # else nobody would see that the page is gone while there are more


def _write(reply: Reply) -> str:
    """Return a reply as text; one that JSON cannot hold becomes an error, and ends no socket."""
    try:
        return json.dumps(reply, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):
        _logger.exception("a reply could not be written")
        kept = {key: reply[key] for key in ("seq", "pane") if key in reply}
        message = "The answer has numbers that cannot be shown; the log of the studio says more."
        return json.dumps({"type": "error", "message": message, **kept})


# ------------------------------------------------------------------- the server


def serve(
    port: int = 0,
    host: str = LOOPBACK[0],
    open_browser: bool = True,
    lesson: Any = None,
    points: Reply | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the page until Ctrl-C, which raises KeyboardInterrupt once everything is given back.

    Parameters
    ----------
    port : int, default=0
        0: any that is free.
    host : str, default="127.0.0.1"
        The address to listen on.
    open_browser : bool, default=True
        Whether to open the page in the browser.
    lesson : Lesson, optional
        A lesson that pages open at once.
    points : dict, optional
        A reply of type "points" that pages begin with.
    on_ready : callable, optional
        Called with the address of the page as soon as it can be opened.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with _listen(host, port) as listener:
        address = _describe_address(host, listener.getsockname()[1])
        hosts = LOOPBACK if host in LOOPBACK else (*LOOPBACK, host, socket.gethostname(), "")
        server = uvicorn.Server(configure(make_app(token, lesson, points, hosts)))
        url = f"http://{address}/?token={token}"
        _start(warm_up)
        if on_ready is not None:
            on_ready(url)
        if open_browser:  # some browsers return only when they are closed
            _start(partial(webbrowser.open, url))
        server.run(sockets=[listener])


def _start(job: Callable[[], Any]) -> None:
    """Do something in the background; it keeps nobody from leaving."""
    threading.Thread(target=job, name="maxmargin-studio-start", daemon=True).start()


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that nobody else can have the address from now on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as wrong:
        raise OSError(
            f"the studio cannot listen on port {port} of {host}: {wrong.strerror or wrong}; "
            "another port may be free (0: any)"
        ) from wrong


def _describe_address(host: str, port: int) -> str:
    """Return host and port as they stand in an address.

    >>> _describe_address("::1", 8000), _describe_address("0.0.0.0", 80)
    ('[::1]:8000', '127.0.0.1:80')
    """
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    host = everywhere.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def configure(app: Starlette) -> uvicorn.Config:
    """Return how the application is served."""
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws=WebSocketsSansIOProtocol,
        ws_max_size=LARGEST_MESSAGE,
        ws_per_message_deflate=False,  # costs time, and nothing leaves this machine
        lifespan="off",
        log_config=None,
        log_level=logging.ERROR,  # lines on single requests would have the token
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )


def warm_up() -> None:
    """Have the loops compiled that the first pictures need."""
    import maxmargin as mm

    X, y = mm.datasets.separable(20, random_state=0)
    try:
        for model in (mm.SVC(), mm.LinearSVC(), mm.HardMarginSVC(), mm.Perceptron()):
            model.fit(X, y).decision_function(X)
    except Exception:  # the page will say what is wrong, to whoever asks for it
        _logger.debug("the loops could not be compiled", exc_info=True)
