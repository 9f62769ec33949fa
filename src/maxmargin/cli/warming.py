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
from typing import Any

import scipy.sparse as sp

import maxmargin as mm

_SMALL, _LARGE = 200, 2100  # rows; large enough for searches to use float32


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


def _diagnosis() -> None:
    mm.diagnose(*mm.datasets.circles(_SMALL, random_state=0))


def _search(rows: int) -> None:
    search: Any = mm.SVCSearchCV(mm.SVC(), {"C": [1.0, 10.0], "gamma": [0.5]}, cv=2)
    search.fit(*mm.datasets.circles(rows, random_state=0))


def _planes() -> None:
    X, y = mm.datasets.gaussians(_SMALL, random_state=0)
    mm.LinearSVC().fit(X, y).predict(X)
    mm.LinearSVC().fit(sp.csr_array(X), y).predict(sp.csr_array(X))
    mm.Perceptron(max_epochs=3).fit(X, y).predict(X)


def _kernel_machines() -> None:
    X, y = mm.datasets.circles(_SMALL, random_state=0)
    mm.SVC().fit(X, y).predict(X)


# From what a first ./try needs to what may never be needed.
_WORK: tuple[Callable[[], None], ...] = (
    _first_try,
    _diagnosis,
    lambda: _search(_LARGE),
    _kernel_machines,
    _planes,
    lambda: _search(_SMALL),
)
