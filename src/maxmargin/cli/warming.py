"""``maxmargin warm-up``: small fits, whose only purpose is that their loops get compiled.

What is compiled follows from what is run here, so that no list of loops has to be kept up to date.
Of two processes that need the same loop only one compiles it.
"""

import contextlib
import io
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable

import maxmargin as mm

_ROWS = 200


def warm_up(*, alone: bool, last_first: bool) -> None:
    """Run all of it, with the help of a second process unless ``alone``."""
    logging.getLogger("maxmargin").setLevel(logging.ERROR)  # it is known that loops get compiled
    helper = None if alone else _helper(not last_first)
    for work in reversed(_WORK) if last_first else _WORK:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()
    if helper is not None:
        helper.wait()


def _helper(last_first: bool) -> "subprocess.Popen[bytes]":
    order = ["--last-first"] if last_first else []
    return subprocess.Popen(
        [sys.executable, "-m", "maxmargin", "warm-up", "--alone", *order],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def _first_try() -> None:
    from maxmargin.cli import main

    main(["try", "--no-report"], standalone_mode=False)


def _kernel_machines() -> None:
    X, y = mm.datasets.circles(_ROWS, random_state=0)
    mm.SVC().fit(X, y).predict(X)


# What ./try needs for most files. What is left (searches among thousands of rows, sparse rows,
# perceptrons) would double the work, and is compiled when somebody needs it.
_WORK: tuple[Callable[[], None], ...] = (_first_try, _kernel_machines)
