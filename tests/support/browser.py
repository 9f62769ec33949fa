"""A browser for tests: Chromium without a window, driven through a pair of pipes.

Messages of the DevTools protocol are JSON, each ended by a NUL byte; Chromium reads them from file
descriptor 3 and writes to 4.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), "")
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0  # seconds for an answer


class Browser:
    """One page in a browser, and all that it said and asked for."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{room}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to a command; events that come before it are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, (method, said)
                result: dict[str, Any] = said["result"]
                return result

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self._reading, 1 << 20) if ready else b""
            assert chunk, "the browser does not answer"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        said: dict[str, Any] = json.loads(line)
        if "id" not in said:
            self.events.append(said)
        return said

    def open(self, page: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Load a file and wait until everything in it is there."""
        self.events.clear()
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=page.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()

    def value(self, expression: str) -> Any:
        """Return what an expression is in the page, as JSON can hold it."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Return everything in the console, and every uncaught error."""
        rooms = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(e["params"])[:300] for e in self.events if e["method"] in rooms]

    def requests(self) -> list[str]:
        """Return the address of everything the page asked for."""
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def screenshot(self, path: Path) -> None:
        """Write the whole page as a picture."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def print_to(self, path: Path) -> None:
        """Write the page as it would be printed."""
        printed = self.ask("Page.printToPDF", preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(printed["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser, and end it."""
    ours, theirs = os.pipe(), os.pipe()  # commands to it, and answers from it
    reading, writing = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (ours[0], theirs[1]))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = os.posix_spawn(
            CHROMIUM,
            [CHROMIUM, *SWITCHES, f"--user-data-dir={profile}"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, reading, 3),
                (os.POSIX_SPAWN_DUP2, writing, 4),
            ],
        )
        for fd in (ours[0], theirs[1], reading, writing):
            os.close(fd)
        try:
            yield Browser(theirs[0], ours[1])
        finally:
            os.kill(process, signal.SIGTERM)
            os.waitpid(process, 0)
            os.close(ours[1])
            os.close(theirs[0])


@contextmanager
def playwright_chromium() -> Iterator[Any]:
    """Start Chromium driven by Playwright, and end it; tests are skipped without Playwright."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
