"""What tests of several rooms share."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import playwright_chromium


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium, one for all tests: Playwright can be started only once in a process."""
    with playwright_chromium() as browser:
        yield browser
