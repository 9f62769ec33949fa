"""For all tests, those in docstrings too: no screen, no open figures, Ctrl-C, and hypothesis."""

import os
import signal
import sys
import threading
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

os.environ.setdefault("MPLBACKEND", "Agg")

# A change is judged by the same examples every time; ./check --full looks for new ones (it passes
# --hypothesis-profile full, which pytest reads after this file). There is no deadline, because an
# example may be the first to compile a loop.
hypothesis.settings.register_profile("check", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("full", deadline=None, derandomize=False, print_blob=True)
hypothesis.settings.load_profile("check")


def pytest_configure(config: pytest.Config) -> None:
    """Keep ``./check`` from drawing constants of whatever modules happen to be imported by then."""
    if config.getoption("--hypothesis-profile") != "full" and hasattr(
        providers, "_get_local_constants"
    ):
        providers._get_local_constants = providers.Constants


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the seeds of tests that repeat themselves be chosen."""
    parser.addoption(
        "--seeds",
        default="0:100",
        metavar="FIRST:END",
        help="seeds that the runs over many generated sets draw from (default 0:100)",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests in a browser another try: on a busy machine it may be late for its own reasons."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    """Return the seeds asked for with --seeds."""
    first, end = map(int, request.config.getoption("--seeds").split(":"))
    return range(first, end)


@pytest.fixture(autouse=True)
def _figures_closed() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True)
def _ctrl_c_interrupts() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, in a test and in the processes that it starts.

    A shell starts what it puts into the background, and what nohup runs, with SIGINT ignored, and
    Python leaves it so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
