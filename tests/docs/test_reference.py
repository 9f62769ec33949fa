"""Every public name has a page in the reference, and a docstring that says what it takes."""

import inspect
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import maxmargin as mm

DOCS = Path(__file__).parents[2] / "docs"
ROOMS = [name for name in mm.__all__ if inspect.ismodule(getattr(mm, name))]
NAMES = [f"maxmargin.{name}" for name in mm.__all__ if name not in ROOMS] + [
    f"maxmargin.{room}.{name}" for room in ROOMS for name in getattr(mm, room).__all__
]
FAULTS = {
    "GL01": "the text begins at the wrong place",
    "GL05": "tabs",
    "GL06": "an unknown section",
    "GL07": "sections in another order",
    "GL08": "no docstring",
    "GL10": "a directive without two colons",
    "PR02": "a parameter that is not there",
    "PR03": "parameters in another order",
    "PR05": "a type that ends with a full stop",
    "PR10": "no space before the colon",
    "SS01": "no summary",
}


def find(name: str) -> Any:
    found: Any = mm
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def listed() -> Iterator[str]:
    """Yield the names that have pages."""
    for page in sorted((DOCS / "reference").glob("*.rst")):
        module = "maxmargin"
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. (?:current)?module:: (\S+)", line):
                module = match[1]
            elif (match := re.match(r"   (\w+)$", line)) and "autosummary" in page.read_text():
                yield f"{module}.{match[1]}"


@pytest.fixture(scope="module")
def members() -> Any:
    """Return the function that says which methods and properties the page of a class shows."""
    pytest.importorskip("docutils")
    return runpy.run_path(str(DOCS / "_extensions" / "public_names.py"))["members"]


def test_every_public_name_has_one_page() -> None:
    pages = list(listed())
    assert len(pages) == len(set(pages))
    objects = [find(page) for page in pages]
    assert [name for name in NAMES if not any(find(name) is one for one in objects)] == []
    for k, one in enumerate(objects):  # a thing with two names has one page, linked from the other
        assert not any(one is other for other in objects[:k]), pages[k]


@pytest.mark.parametrize("name", [name for name in NAMES if callable(find(name))])
def test_docstrings_say_what_is_taken(name: str, members: Any) -> None:
    validation = pytest.importorskip("numpydoc.validate")
    kinds = ("methods", "properties") if inspect.isclass(find(name)) else ()
    shown = [f"{name}.{member}" for kind in kinds for member in members(name, kind)]
    for checked in [name, *shown]:
        one = find(checked)
        if "sklearn" in str(getattr(one, "__module__", "")) or isinstance(one, property | int):
            assert inspect.getdoc(one), checked
            continue
        faults = validation.validate(checked)["errors"]
        assert [said for code, said in faults if code in FAULTS] == [], checked
        missing = [said for code, said in faults if code == "PR01"]
        if "\nParameters\n---" in (inspect.getdoc(one) or "") or checked == name:
            assert not missing or _has_fields(one), (checked, missing)


def _has_fields(found: Any) -> bool:
    """Return whether a class that people do not make themselves describes its public fields."""
    said = inspect.getdoc(found) or ""
    if not inspect.isclass(found) or "\nAttributes\n---" not in said:
        return False
    lines = re.findall(r"^([\w, ]+?)(?: :|$)", said.partition("\nAttributes\n")[2], re.MULTILINE)
    described = {name for line in lines for name in line.split(", ")}
    fields: Any = getattr(found, "_fields", None) or getattr(found, "__dataclass_fields__", ())
    return {field for field in fields if not field.startswith("_")} <= described
