"""How long a drag waits: from the pointer's event to the painted frame, in Chromium.

    python -m benchmarks.studio_latency --points 200 2000 --models SVC LinearSVC --moves 120

A point is dragged on the page of ``maxmargin studio``, and the page itself tells how long after
each event of the pointer its picture was painted. Places that were overtaken by newer ones before
they were asked about have no picture, as on the page.
"""

import argparse
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

MODELS = ("SVC", "LinearSVC", "HardMarginSVC", "Perceptron")
SIZES = (200, 2000)
VIEW = [-3.0, 3.0, -2.0, 2.0]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LISTEN = """() => {
  const { root } = window.maxmarginStudio;
  const hear = (event) => window.waits.push(event.detail.milliseconds);
  if (!window.waits) root.addEventListener("studio:painted", hear);
  window.waits = [];
}"""
# Nothing is asked, and the last picture is painted.
IDLE = """() => {
  const { link, plots } = window.maxmarginStudio ?? {};
  return link?.waiting.size === 0 && [...link.channels.values()].every((c) => !c.pending) &&
    plots.length > 0 && plots.every((plot) => !plot.scheduled && plot.picture &&
      plot.element.dataset.seq === String(plot.picture.seq));
}"""


class Waits(NamedTuple):
    """Milliseconds from events to frames, while one point was dragged."""

    model: str
    points: int
    moves: int
    milliseconds: list[float]

    def describe(self) -> str:
        """Return a line of the table."""
        median, high = np.percentile(self.milliseconds, [50, 95])
        return (
            f"{self.model:<16}{self.points:>7,}{self.moves:>7}{len(self.milliseconds):>9}"
            f"{median:>11.1f}{high:>9.1f}{max(self.milliseconds):>9.1f}"
        )


HEADING = (
    f"{'model':<16}{'points':>7}{'moves':>7}{'pictures':>9}{'median ms':>11}{'p95':>9}{'max':>9}"
)


def make_points(count: int, distance: float) -> list[list[float]]:
    """Return two clouds, with their means so far apart in each coordinate."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    data = rng.normal(0, 0.55, (count, 2)) + distance * (labels - 0.5)[:, np.newaxis]
    return [[x, y, k] for (x, y), k in zip(data.round(4).tolist(), labels.tolist(), strict=True)]


def measure_drag(page: Any, model: str, count: int, moves: int = 120) -> Waits:
    """Drag a point of a scene about on a page that shows the studio."""
    points = make_points(count, 3.0 if model == "HardMarginSVC" else 1.5)
    page.evaluate(
        "(patch) => window.maxmarginStudio.store.change(patch)",
        {
            "points": points,
            "view": VIEW,
            "panes": [{"model": model, "parameters": {}, "kernel": ""}],
        },
    )
    page.wait_for_function(IDLE)
    box = page.locator(".scene").first.bounding_box()
    x, y = page.evaluate(
        "([x, y]) => window.maxmarginStudio.plots[0].toPixels(x, y)", points[-1][:2]
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    page.evaluate(LISTEN)
    for k in range(1, moves + 1):
        across, up = 40 * math.sin(k / 9), 30 * math.sin(k / 7)
        page.mouse.move(box["x"] + x + across, box["y"] + y + up)
    page.mouse.up()
    page.wait_for_function(IDLE)
    return Waits(model, count, moves, page.evaluate("() => window.waits"))


@contextmanager
def open_studio() -> Iterator[Any]:
    """Start a server and a browser; end both."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    command = [sys.executable, "-m", "maxmargin", "studio", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        addresses = (re.search(r"http://\S+", line) for line in server.stdout)
        url = next(address.group() for address in addresses if address)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1400, "height": 860})
            page.goto(url)
            page.wait_for_function(IDLE)
            yield page
            browser.close()
    finally:
        server.terminate()
        server.wait(30)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--points", type=int, nargs="+", default=SIZES)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--moves", type=int, default=120)
    asked = parser.parse_args(arguments)
    with open_studio() as page:
        for model in asked.models:  # what is compiled by the first fit is not measured
            measure_drag(page, model, min(asked.points), 5)
        print(HEADING)
        for count in asked.points:
            for model in asked.models:
                print(measure_drag(page, model, count, asked.moves).describe(), flush=True)


if __name__ == "__main__":
    main()
