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

# A change is judged by the same examples every time, and by more of them in ./check --wide; --full
# looks for new ones (./check passes --hypothesis-profile, which pytest reads after this file).
# There is no deadline, because an example may be the first to compile a loop.
hypothesis.settings.register_profile("wide", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile(
    "check", hypothesis.settings.get_profile("wide"), max_examples=25
)
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
    parser.addoption(
        "--cases",
        type=int,
        default=0,
        metavar="N",
        help="run at most N cases of each parametrised test, evenly spread (default: all of them)",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep ``--cases`` of each test, and give tests in a browser another try.

    On a busy machine a browser may be late for its own reasons.
    """
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=2))
    most = config.getoption("--cases")
    if most:
        kept = set(_spread(items, most))
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


def _spread(items: list[pytest.Item], most: int) -> Iterator[pytest.Item]:
    """Yield ``most`` cases of each test, the first and the last among them."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for same in cases.values():
        if len(same) <= most or same[0].get_closest_marker("all_cases"):
            yield from same
        else:
            yield from (same[i * (len(same) - 1) // (most - 1)] for i in range(most))


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
