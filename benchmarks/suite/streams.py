"""How many rows a second a stream is learnt at, and in how much memory."""

import json
from collections.abc import Callable

from benchmarks.children import run_python
from benchmarks.measure import Sample, interleave, ratio, spread
from benchmarks.options import Options
from benchmarks.report import Cell, Table
from benchmarks.stream import COLUMNS

LIBRARIES = ("maxmargin", "scikit-learn")


def stream_table(options: Options) -> Table:
    """Run each library's stream in processes of its own, by turns."""
    rows, chunk = (100_000, 10_000) if options.quick else (10_000_000, 100_000)
    seen: dict[str, list[dict[str, float]]] = {library: [] for library in LIBRARIES}

    def sampler(library: str) -> Callable[[], Sample]:
        def sample() -> Sample:
            printed = run_python(["-m", "benchmarks.stream", library, str(rows), str(chunk)])
            seen[library].append(json.loads(printed))
            return Sample(seen[library][-1]["wall"], seen[library][-1]["cpu"])

        return sample

    # A child warms itself up: no round need be thrown away.
    repeats = 1 if options.quick else options.repeats
    timings = interleave({name: sampler(name) for name in LIBRARIES}, repeats, warm_ups=0)
    table: list[list[Cell]] = [
        [
            library,
            spread(rows / timings.wall(library) / 1e6),
            spread(ratio(timings.wall(library), timings.wall("maxmargin"))),
            spread(ratio(timings.cpu(library), timings.cpu("maxmargin"))),
            spread([child["peak"] for child in seen[library]]),
            spread([child["peak"] - child["before"] for child in seen[library]]),
            spread([100 * child["accuracy"] for child in seen[library]]),
        ]
        for library in LIBRARIES
    ]
    return Table(
        f"partial_fit on a stream of {rows:,} rows × {COLUMNS}, {chunk:,} at a time",
        (
            "library",
            "million rows/s",
            "time / maxmargin",
            "CPU time / maxmargin",
            "peak MB",
            "MB above the first chunk",
            "accuracy %",
        ),
        table,
    )
