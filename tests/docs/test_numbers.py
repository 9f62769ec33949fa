"""Figures of benchmarks in the documents are those of the JSON."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / "write_numbers.py"))


@pytest.mark.parametrize("document", ["README.md", "docs/index.md", "docs/benchmarks.md"])
def test_documents_have_the_figures_of_the_results(numbers: Any, document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert "<!-- number" in text
    assert text == numbers["filled"](text), "run: python tools/write_numbers.py"


def test_the_picture_was_drawn_from_the_results(numbers: Any) -> None:
    image = pytest.importorskip("PIL.Image")
    with image.open(numbers["PICTURE"]) as picture:
        assert picture.info["Source"] == numbers["digest"]("kernel"), (
            "run: python tools/write_numbers.py"
        )


def test_every_part_is_shown_once(numbers: Any) -> None:
    texts = [path.read_text(encoding="utf-8") for path in numbers["DOCUMENTS"]]
    shown = re.findall(r"<!-- numbers: ([\w-]+) -->", "".join(texts))
    assert sorted(shown) == sorted(numbers["PARTS"])


def test_typed_figures_are_overwritten(numbers: Any) -> None:
    text = "a\n\n<!-- numbers: kernel -->\n\nfast\n\n<!-- end -->\n\nb\n"
    assert numbers["filled"](text).startswith("a\n\n<!-- numbers: kernel -->\n\n| data ")
    assert "fast" not in numbers["filled"](text)
    assert numbers["filled"](text).endswith("<!-- end -->\n\nb\n")
    text = "a <!-- number: race -->fast<!-- end --> b <!-- number: search -->7<!-- end -->."
    found = numbers["filled"](text)
    assert found.startswith("a <!-- number: race -->")
    assert found.count(" × ") >= 2
    assert "fast<" not in found


def test_our_fits_are_quoted_at_objectives_no_worse_than_the_others(numbers: Any) -> None:
    for race in ("kernel", "kernel-2-threads"):
        for row in numbers["rows"](race, "The others at their default tolerance"):
            assert float(row["ours above D*"]) <= 1.06 * float(row["peer above D*"]) + 1e-9


def test_numbers_are_shown_with_two_digits(numbers: Any) -> None:
    shown = [numbers["seconds"](value) for value in (0.00302, 0.0752, 0.3, 1.0, 3.861, 307.0)]
    assert shown == ["3.0 ms", "75 ms", "300 ms", "1.0 s", "3.9 s", "307 s"]
    assert numbers["gap"]("1.0e-02") == "1.0e−2"
    assert numbers["size"]("4435×36, float64") == "4,435 × 36"
