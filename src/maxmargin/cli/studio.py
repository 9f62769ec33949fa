"""``maxmargin studio``: a page on which margins move under the hand."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxmargin.cli.command import Exit
from maxmargin.cli.printing import Output

OPENS = "The studio opens in your browser; Ctrl-C ends it. Its address:"
WAITS = "The studio is ready; Ctrl-C ends it. Open this address in a browser:"


def run(
    output: Output, lesson: str | None, data: str | None, port: int, host: str, no_browser: bool
) -> Exit:
    """Run the command."""
    from maxmargin.studio.app import LOOPBACK, serve
    from maxmargin.studio.lessons import load_lesson

    opened = None if lesson is None else name_file(lesson, load_lesson)
    points = None if data is None else name_file(data, read_points)
    if host not in LOOPBACK:
        output.note(
            f"warning: the studio listens on {host}. Whoever reaches this machine and has the "
            "address with its token can use it, and what is sent is not encrypted."
        )

    def announce(url: str) -> None:
        output.text(WAITS if no_browser else OPENS)
        output.command_line(url)
        output.finish(url=url)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page says what a fit has to say
        try:
            serve(port, host, not no_browser, opened, points, announce)
        except KeyboardInterrupt:  # the way to end it
            output.note("The studio is closed.")
    return Exit.DONE


def name_file(path: str, read: Callable[[str], Any]) -> Any:
    """Read a file; an error says which."""
    try:
        return read(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except ValueError as wrong:
        raise ValueError(f"{path}: {wrong}") from wrong


def read_points(path: str) -> dict[str, Any]:
    """Read the points of a table."""
    from maxmargin.studio.tables import read

    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the file is not text in UTF-8") from None
    return read(text)
