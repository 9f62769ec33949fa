"""What the documents show is what happens.

The ``python`` blocks of a page run in order, in one namespace and in a folder of their own. A
``text`` block after the word "prints" is what the block before it prints. (Notebooks:
``tests/docs/test_notebooks.py``.)
"""

import contextlib
import io
import re
import runpy
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {DOCS / "_build", DOCS / "gallery", DOCS / "reference" / "generated"}
SECTIONS: dict[str, list[str]] = runpy.run_path(str(ROOT / "tools" / "gallery.py"))["SECTIONS"]
DOCUMENTS = sorted(ROOT.glob("*.md")) + sorted(
    page for page in DOCS.rglob("*.md") if GENERATED.isdisjoint(page.parents)
)


class Block(NamedTuple):
    """A block of code on a page."""

    line: int
    language: str
    text: str
    introduction: str  # the line of text before it


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page between fences; a longer fence holds shorter ones."""
    fence, above, begin, held = "", "", 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        bare = line.strip()
        opening = re.match(r"(`{3,})([^`]*)$", bare)
        if not fence and opening:
            fence, language = opening.groups()
            begin, held = number, []
        elif fence and bare.startswith(fence) and not bare.strip("`"):
            yield Block(begin, language.strip(), textwrap.dedent("\n".join(held)) + "\n", above)
            fence = above = ""
        elif fence:
            held.append(line)
        elif bare:
            above = bare


def runs(page: Path) -> list[tuple[Block, str | None]]:
    """Return the blocks that run, each with what it should print, if the page says so."""
    found = list(blocks(page))
    return [
        (block, next((b.text for b in found[k + 1 : k + 2] if _shows_output(b)), None))
        for k, block in enumerate(found)
        if block.language == "python"
    ]


def _shows_output(block: Block) -> bool:
    return block.language == "text" and re.search(r"\bprints:?$", block.introduction) is not None


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.all_cases
@pytest.mark.parametrize("page", [page for page in DOCUMENTS if runs(page)], ids=name)
def test_code_does_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block, expected in runs(page):
        printed = io.StringIO()
        code = compile("\n" * block.line + block.text, name(page), "exec")
        try:
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
        except ModuleNotFoundError as missing:
            if str(missing.name).startswith("maxmargin"):
                raise
            pytest.skip(f"{name(page)}, line {block.line}: {missing.name} is not installed")
        if expected is not None:
            assert printed.getvalue() == expected, f"{name(page)}, line {block.line}"


def test_ten_lines_are_ten() -> None:
    first, course = (block for block, _ in runs(ROOT / "README.md"))
    for block in (first, course):
        assert len([line for line in block.text.splitlines() if line.strip()]) <= 10


def test_the_first_screen_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_nobody_is_told_to_install_what_is_not_published() -> None:
    told = re.compile(r"pip install\s+(-\S+\s+)*['\"]?maxmargin")
    texts = [*DOCUMENTS, *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    assert [name(text) for text in texts if told.search(text.read_text(encoding="utf-8"))] == []


def links(page: Path) -> Iterator[str]:
    """Yield the targets of links and images on a page that lead to files."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        text = text.replace(block.text.rstrip("\n"), "")
    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
    for target in re.findall(r"\]\(<?([^)\s>]+)", text) + re.findall(r'src="([^"]+)"', text):
        path = unquote(target.partition("#")[0])
        if path and not re.match(r"[a-z]+:", target):
            yield path


def exists(page: Path, target: str) -> bool:
    """Return whether a link leads to a file, or to a page that is made when the site is built."""
    path = (page.parent / target).resolve()
    if DOCS / "gallery" in path.parents:
        return path.stem in {"index", *(name for names in SECTIONS.values() for name in names)}
    if DOCS / "reference" / "generated" in path.parents:
        return True  # the build of the site checks them
    return path.exists() or any(path.with_name(path.name + end).exists() for end in (".md", ".rst"))


@pytest.mark.parametrize("page", DOCUMENTS, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert [target for target in links(page) if not exists(page, target)] == []


def test_the_gallery_shows_every_example() -> None:
    shown = [name for names in SECTIONS.values() for name in names]
    assert sorted(shown) == sorted(script.stem for script in (ROOT / "examples").glob("*.py"))


@pytest.mark.wide
@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(
    script: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each draws a picture, or prints what it has to say."""
    draws = re.search(r"\bsave(fig)?\(", script.read_text(encoding="utf-8")) is not None
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [str(script), *([str(picture)] if draws else [])])
    runpy.run_path(str(script), run_name="__main__")
    if draws:
        assert picture.stat().st_size > 10_000
    else:
        assert len(capsys.readouterr().out.splitlines()) > 2
