"""How many functions, in how many files, one warm fit goes through: a reader has to follow them."""

import sys
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

import maxmargin as mm

ROOT = Path(mm.__file__).parent
MOST_FUNCTIONS, MOST_FILES = 262, 40  # may only become smaller; 120 in 22 files is the aim


def test_the_path_of_one_fit_does_not_become_longer() -> None:
    X, y = mm.datasets.gaussians(300, random_state=0)
    model = mm.SVC().fit(X, y)  # compiled and imported by now
    called: dict[str, set[str]] = defaultdict(set)

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and Path(code.co_filename).is_relative_to(ROOT):
            called[str(Path(code.co_filename).relative_to(ROOT))].add(code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(before)
    for file, names in sorted(called.items()):  # shown by pytest -s
        sys.stdout.write(f"{file} ({len(names)}): {', '.join(sorted(names))}\n")
    functions = sum(map(len, called.values()))
    sys.stdout.write(f"{functions} functions in {len(called)} files\n")
    assert functions <= MOST_FUNCTIONS
    assert len(called) <= MOST_FILES
