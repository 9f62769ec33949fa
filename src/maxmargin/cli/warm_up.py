"""The hidden ``maxmargin warm-up``: what ``try`` needs is compiled before it is needed.

What is compiled follows from the small jobs that are run, so there is no list of loops to maintain.
Two processes do them in opposite orders: a loop that both need is compiled once.
"""

import contextlib
import io
import logging
import subprocess
import sys
import warnings

import click

from maxmargin.cli.commands import try_command


@click.command("warm-up", hidden=True)
@click.option("--second", is_flag=True, help="As the second process, in the opposite order.")
def warm_up(second: bool) -> None:
    """Compile the loops that fits, searches and diagnoses use, so that later runs need not wait."""
    import maxmargin as mm

    logging.getLogger("maxmargin").setLevel(logging.ERROR)  # compiling is no news here
    command = [sys.executable, "-m", "maxmargin", "warm-up", "--second"]
    nothing = subprocess.DEVNULL
    other = None if second else subprocess.Popen(command, stdin=nothing, stdout=nothing)
    # What ./try needs for most files. The rest (searches among thousands of rows, sparse rows,
    # perceptrons) would double the work, and is compiled when it is first used.
    for job in ("fit", "try") if second else ("try", "fit"):
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if job == "try":
                try_command.main(["--no-report"], standalone_mode=False)
            else:
                X, y = mm.datasets.circles(200, random_state=0)
                mm.SVC().fit(X, y).predict(X)
    if other is not None:
        other.wait()
