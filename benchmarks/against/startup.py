"""Cold fits of two checkouts: fresh processes with nothing compiled."""

import tempfile
from functools import partial
from pathlib import Path

from benchmarks import contest
from benchmarks.against.checkouts import LEAST, NEW, OLD, source
from benchmarks.beside.startup import COLD, cold, copied, facts, is_cold
from benchmarks.children import ROOT
from benchmarks.contest import Contest
from benchmarks.options import Options
from benchmarks.report import Report


def run(options: Options) -> Report:
    """Compare cold fits of two checkouts."""
    assert options.against is not None
    trees = {OLD: source(options.against), NEW: ROOT / "src"}
    with tempfile.TemporaryDirectory() as folder:
        copies = {tree: copied(path, Path(folder) / tree) for tree, path in trees.items()}
        contests = [
            Contest(
                name,
                "nothing compiled",
                {tree: partial(cold, fit, copy) for tree, copy in copies.items()},
                base=NEW,
                least={OLD: LEAST},
                facts=facts,
                checks=is_cold,
            )
            for name, fit in COLD.items()
            if name in options.chosen(COLD)
        ]
        return contest.run("startup-against", contests, options)[0]
