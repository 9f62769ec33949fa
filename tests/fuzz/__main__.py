"""``python -m tests.fuzz TARGET [--runs N] [--seed S]``: draw inputs for one parser.

Each may take a second and 256 MB. What is refused wrongly, or ends the process, is kept.
"""

import argparse
import hashlib
import mmap
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.fuzz.mutants import draw_mutant
from tests.fuzz.targets import TARGETS, Target, read_corpus

FOUND = Path(__file__).parent / "found"
SECONDS, BYTES = 1.0, 256 << 20
HANGS = 30  # seconds without any progress, after which a process is ended


def keep(data: bytes) -> Path:
    """Write an input that was not refused properly, and return where it is."""
    FOUND.mkdir(exist_ok=True)
    (FOUND / ".gitignore").write_text("*\n")
    path = FOUND / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def set_limits() -> None:
    """Make an input fail that takes a second of the processor, or much memory."""

    def too_slow(*_: Any) -> None:
        raise TimeoutError(f"this took more than {SECONDS} s")

    signal.signal(signal.SIGPROF, too_slow)
    status = Path("/proc/self/status").read_text()
    used = next(int(line.split()[1]) << 10 for line in status.splitlines() if "VmData" in line)
    resource.setrlimit(resource.RLIMIT_DATA, (used + BYTES, used + BYTES))


def run_some(target: Target, seeds: list[bytes], numbers: range, seed: int, progress: Any) -> None:
    """Run mutants one after the other, and note after each how many are done and were wrong."""
    for data in seeds:
        target.run(data)
    set_limits()
    for number in numbers:
        data = draw_mutant(seeds, seed, number, target.mutate)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            target.run(data)
        except Exception as unexpected:
            signal.setitimer(signal.ITIMER_PROF, 0)
            progress[1] += 1
            if progress[1] <= 1000:
                say(f"{keep(data)}: {type(unexpected).__name__}: {unexpected!s:.300}")
        signal.setitimer(signal.ITIMER_PROF, 0)
        progress[0] = number + 1
        if (number + 1) % 100_000 == 0:
            say(f"{number + 1:,} inputs, {progress[1]} wrong")


def run_plainly(target: Target, seeds: list[bytes], runs: int, seed: int) -> int:
    """Run mutants in a process that may crash or hang; return how many were refused wrongly."""
    progress: Any = memoryview(mmap.mmap(-1, 16)).cast("q")
    started = time.process_time()
    while progress[0] < runs:
        child = os.fork()
        if child == 0:
            run_some(target, seeds, range(progress[0], runs), seed, progress)
            os._exit(0)
        if ended := _wait(child, progress):
            number = progress[0]
            path = keep(draw_mutant(seeds, seed, number, target.mutate))
            say(f"{path}: input {number} {ended}")
            progress[0], progress[1] = number + 1, progress[1] + 1
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime + time.process_time() - started
    say(f"{progress[0]:,} inputs, {progress[1]} wrong, {seconds:.0f} s of the processor")
    return int(progress[1])


def _wait(child: int, progress: Any) -> str:
    """Wait for a process to end; return in which way it did, if that was a wrong one."""
    before, since = -1, time.monotonic()
    while True:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return f"ended the process with {status}" if status else ""
        if progress[0] != before:
            before, since = progress[0], time.monotonic()
        elif time.monotonic() - since > HANGS:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        time.sleep(0.05)


def main() -> None:
    """Parse the command line and fuzz."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    target = TARGETS[asked.target]
    sys.exit(run_plainly(target, read_corpus(asked.target), asked.runs, asked.seed) > 0)


if __name__ == "__main__":
    main()
