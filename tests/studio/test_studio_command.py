"""``maxmargin studio`` serves the page until Ctrl-C, and then nothing is left of it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")

from websockets.sync.client import connect
from websockets.typing import Origin

from maxmargin.studio import app
from tests.cli.conftest import Run, run, run_json
from tests.studio.test_session import OWN, WAIT, ask

__all__ = ["run", "run_json"]  # fixtures

Served = dict[str, Any]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """Have the server say at once that it is ready, and note what it was asked for."""
    found: Served = {}
    names = ("port", "host", "open_browser", "lesson", "points")

    def serve(*given: Any) -> None:
        found.update(zip(names, given, strict=False))
        given[-1]("http://127.0.0.1:1234/?token=abc")
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "serve", serve)
    return found


def test_the_address_is_printed_and_ctrl_c_is_the_way_to_end(run: Run, served: Served) -> None:
    done = run("studio")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == "  http://127.0.0.1:1234/?token=abc"
    assert "opens in your browser" in done.stdout
    assert (served["port"], served["host"], served["open_browser"]) == (0, "127.0.0.1", True)
    assert "Open this address" in run("studio", "--no-browser", "--port", "99").stdout
    assert (served["port"], served["open_browser"]) == (99, False)


def test_a_lesson_and_a_table_are_opened(run: Run, served: Served, tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text(OWN)
    (tmp_path / "own.csv").write_text("a,b,kind\n1,2,u\n2,3,v\n3,1,u\n")
    assert run("studio", "own.md", "--data", "own.csv").exit_code == 0
    assert served["lesson"].title == "Own"
    assert served["points"]["x"] == [1, 2, 3]
    assert served["points"]["label"] == [0, 1, 0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.md"], "there is no file none.md"),
        (["--data", "none.csv"], "there is no file none.csv"),
        (["bad.md"], "bad.md: Line 4:"),
        (["binary", "--data", "own.csv"], "binary: Line 1:"),
        (["--data", "binary"], "binary: the file is not text in UTF-8"),
        (["--data", "empty.csv"], "empty.csv: "),
    ],
)
def test_files_are_checked_at_once(
    run: Run, served: Served, tmp_path: Path, words: list[str], said: str
) -> None:
    (tmp_path / "bad.md").write_text("# Title\n\n```studio\nnothing: 1\n```\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty.csv").write_text("")
    done = run("studio", *words)
    assert done.exit_code == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not served


def test_other_machines_are_warned_of(run: Run, served: Served) -> None:
    assert "warning: the studio listens on 0.0.0.0." in run("studio", "--host", "0.0.0.0").stderr
    assert "warning" not in run("studio", "--host", "localhost").stderr


def test_what_is_missing_is_named(run: Run) -> None:
    code = (
        "import sys\nsys.modules['uvicorn'] = None\n"
        "from maxmargin.cli import main\nmain(['studio', '--no-browser'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install -U starlette uvicorn websockets" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_an_error(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("studio", "--no-browser", "--port", port)
    assert done.exit_code == 1
    assert f"cannot listen on port {port} of 127.0.0.1" in done.stderr


def test_import_loads_no_web_server() -> None:
    code = (
        "import sys, maxmargin, maxmargin.cli.studio, maxmargin.studio.session\n"
        "print([name for name in ('starlette', 'uvicorn', 'websockets', 'anywidget', 'matplotlib', "
        "'numba') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# A real one.


@contextmanager
def started(*words: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start the command in a process of its own; give it, and the address."""
    # Even where SIGINT is ignored, as in the background, the command is to get it.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from maxmargin.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "studio", "--no-browser", "--json", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()


@pytest.mark.wide
@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_ctrl_c_ends_it_at_once_and_gives_the_port_back() -> None:
    with started() as (process, url):
        host = urlsplit(url).netloc
        with urllib.request.urlopen(url, timeout=WAIT) as page:
            assert b"<title>" in page.read()
        socket_url = url.replace("http://", "ws://").replace("/?", "/socket?")
        with connect(socket_url, origin=Origin(f"http://{host}"), max_size=None) as page:
            page.send(json.dumps(ask("hello", 1)))
            assert json.loads(page.recv(WAIT))["type"] == "catalogue"
            process.send_signal(signal.SIGINT)  # with the socket open
            assert process.wait(WAIT) == 0
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == ""
        said = process.stderr.read()
        assert "Traceback" not in said
        assert urlsplit(url).query.removeprefix("token=") not in said
    with socket.create_server(("127.0.0.1", urlsplit(url).port or 0)):
        pass
