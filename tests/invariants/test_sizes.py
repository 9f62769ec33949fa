"""Ratchets: how large and how deep the house is. These numbers may only fall.

A test that fails because something grew asks for a smaller change. When something shrank, lower its
number here.
"""

import ast
import inspect
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher
from sklearn.base import BaseEstimator

import maxmargin as mm

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "maxmargin"

MOST_LINES = {
    "__init__.py": 176,
    "__main__.py": 6,
    "_typing.py": 8,
    "budget.py": 105,
    "certificates": 2_465,
    "cli": 3_003,
    "data": 4_216,
    "datasets.py": 762,
    "diagnosis": 3_202,
    "errors.py": 156,
    "estimators": 12_668,
    "files": 4_805,
    "geometry": 1_424,
    "inspection": 1_842,
    "kernels": 3_747,
    "loops": 5_109,
    "model_selection": 4_017,
    "plots": 2_480,
    "problems": 1_706,
    "reports": 2_017,
    "rows": 4_171,
    "runtime": 715,
    "separability": 1_129,
    "solve.py": 785,
    "solvers": 6_734,
    "structured": 2_288,
    "studio": 4_993,
    "validation": 803,
}
MOST_LINES_BESIDE = {
    "benchmarks": 3_488,
    "css": 1_509,
    "examples": 3_384,
    "javascript": 4_169,
    "lessons": 577,
    "templates": 34,
    "tests": 46_997,
    "tools": 771,
}
MOST_PRIVATE = {
    "estimators": 32,
    "geometry": 1,
    "model_selection": 1,
    "rows": 2,
    "validation": 1,
}
MOST_CLASSES = 9  # of ours above an estimator; 5 is the aim
MOST_FUNCTIONS = {  # functions with compiled loops, and files
    "SVC": (276, 39),
    "LinearSVC": (291, 38),
}
MOST_FILES_OF_A_KERNEL = 10
MOST_NAMES_OF_TWO_CLASSES = 10


def count_lines(folder: Path, *endings: str) -> int:
    files = [path for ending in endings for path in folder.rglob(f"*{ending}")]
    return sum(len(path.read_text("utf-8").splitlines()) for path in files)


def lines_of_rooms() -> Counter[str]:
    rooms: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE)
        room = inside.parts[0] if len(inside.parts) > 1 else inside.name
        rooms[room] += len(path.read_text("utf-8").splitlines())
    return rooms


def test_no_room_grows() -> None:
    lines = lines_of_rooms()
    assert set(lines) == set(MOST_LINES), "a new room needs a number, and an old one none"
    assert {room: n for room, n in lines.items() if n > MOST_LINES[room]} == {}


def test_nothing_moves_out_of_the_count() -> None:
    beside = {
        "tests": count_lines(REPOSITORY / "tests", ".py"),
        "benchmarks": count_lines(REPOSITORY / "benchmarks", ".py"),
        "examples": count_lines(REPOSITORY / "examples", ".py"),
        "tools": count_lines(REPOSITORY / "tools", ".py", ".sh"),
        "javascript": count_lines(SOURCE, ".js"),
        "css": count_lines(SOURCE, ".css"),
        "templates": count_lines(SOURCE, ".html", ".json", ".mplstyle"),
        "lessons": count_lines(SOURCE, ".md"),
    }
    assert set(beside) == set(MOST_LINES_BESIDE)
    assert {what: n for what, n in beside.items() if n > MOST_LINES_BESIDE[what]} == {}


# Ways around ruff's SLF001, which sees attributes only.
_HIDDEN = re.compile(
    r"""vars\([^)]*\)\[["']_ | __dict__(?:\[|\.pop|\.get) | attrgetter\(["']_
    | [gs]etattr\([^,()]+,\s*["']_[a-z] | hasattr\([^,()]+,\s*["']_[a-z]""",
    re.VERBOSE,
)


def test_private_names_are_not_reached_by_other_means() -> None:
    private: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        private[path.relative_to(SOURCE).parts[0]] += len(_HIDDEN.findall(path.read_text("utf-8")))
    assert {room: n for room, n in private.items() if n > MOST_PRIVATE.get(room, 0)} == {}


def estimators() -> list[type[BaseEstimator]]:
    public = (getattr(mm, name) for name in mm.__all__)
    return [what for what in public if inspect.isclass(what) and issubclass(what, BaseEstimator)]


def test_no_estimator_stands_on_more_classes() -> None:
    depth = {
        estimator.__name__: sum(
            above.__module__.startswith("maxmargin") for above in estimator.__mro__[1:]
        )
        for estimator in estimators()
    }
    assert {name: n for name, n in depth.items() if n > MOST_CLASSES} == {}


@contextmanager
def counted_calls() -> Iterator[tuple[dict[str, set[Any]], set[str]]]:
    """Collect the functions of the package that are called, by file, and the compiled loops."""
    functions: dict[str, set[Any]] = defaultdict(set)
    loops: set[str] = set()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            functions[frame.f_code.co_filename].add(frame.f_code)

    def counting(name: str, loop: Any) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            loops.add(name)
            return loop(*arguments)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for module in [m for n, m in sys.modules.items() if n.startswith("maxmargin.")]:
            for name, value in list(vars(module).items()):
                if isinstance(value, Dispatcher):
                    full_name = f"{value.py_func.__module__}.{value.py_func.__name__}"
                    patch.setattr(module, name, counting(full_name, value))
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            yield functions, loops
        finally:
            sys.setprofile(before)


@pytest.mark.parametrize("name", ["SVC", "LinearSVC"])
@pytest.mark.all_cases
def test_the_path_of_one_fit_does_not_become_longer(name: str) -> None:
    X, y = mm.datasets.gaussians(300, random_state=0)
    model = getattr(mm, name)().fit(X, y)  # Everything is compiled and imported by now.
    with counted_calls() as (functions, loops):
        model.fit(X, y)
    for file, codes in sorted(functions.items()):  # shown by pytest -s
        names = sorted(code.co_qualname for code in codes)
        sys.stdout.write(f"{file} ({len(names)}): {', '.join(names)}\n")
    called = sum(map(len, functions.values())) + len(loops)
    sys.stdout.write(f"{called} in {len(functions)} files, {len(loops)} of them compiled\n")
    assert loops, "no compiled loop was counted"
    most, most_files = MOST_FUNCTIONS[name]
    assert called <= most
    assert len(functions) <= most_files


def test_a_kernel_is_named_in_few_files() -> None:
    """What a new kernel would touch, shown by one that has nothing special about it."""
    named = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(r'\bIntersection\b|"intersection"', path.read_text("utf-8"))
    ]
    assert len(named) <= MOST_FILES_OF_A_KERNEL, named


def test_no_two_public_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    twice = {name: where for name, where in homes.items() if len(where) > 1}
    assert len(twice) <= MOST_NAMES_OF_TWO_CLASSES, twice
