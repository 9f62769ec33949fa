"""What the documents show is what happens."""

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_readme_example_prints_what_it_says() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.search(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", readme, re.DOTALL)
    assert match is not None
    code, expected = match.groups()
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == expected


def test_links_in_documents_lead_somewhere() -> None:
    for document in ROOT.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert "://" in target or (ROOT / target).exists(), (document.name, target)


def test_the_gallery_shows_every_example() -> None:
    gallery = runpy.run_path(str(ROOT / "tools" / "gallery.py"))
    shown = [name for names in gallery["SECTIONS"].values() for name in names]
    assert sorted(shown) == sorted(script.stem for script in (ROOT / "examples").glob("*.py"))


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
