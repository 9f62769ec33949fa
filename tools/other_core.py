"""Print a core type of OpenBLAS other than this machine's own; which one depends on the day.

Its kernels add and multiply in different orders, so that the last bits of sums differ. A test that
passes under all of them does not depend on one processor.
"""

import datetime
import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

CPU = Path("/proc/cpuinfo")


def main() -> None:
    """Choose among the core types that this processor can run."""
    np.ones((2, 2)) @ np.ones((2, 2))
    own = {library.get("architecture") for library in threadpool_info()}
    flags = CPU.read_text().split() if CPU.exists() else []
    able = [("Nehalem", "sse4_2"), ("Haswell", "avx2"), ("SkylakeX", "avx512vl")]
    others = [name for name, flag in able if flag in flags and name not in own]
    if others:
        sys.stdout.write(others[datetime.date.today().toordinal() % len(others)])


if __name__ == "__main__":
    main()
