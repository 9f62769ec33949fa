"""Fresh Python processes: how long they take, and how much memory they had."""

import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measure import Clocks

ROOT = Path(__file__).parents[1]


def run_python(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run the interpreter in a new process and return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode:
        raise RuntimeError(f"a child process failed:\n{done.stderr}")
    return done.stdout


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


CHILDREN = Clocks(time.perf_counter, _cpu_of_children)


def peak_megabytes() -> float:
    """Return the largest memory this process ever had.

    The kernel's own mark: ru_maxrss would start from the parent's memory.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        status = ""
    if found := re.search(r"VmHWM:\s+(\d+) kB", status):
        return int(found[1]) / 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (2**20 if sys.platform == "darwin" else 1024)
