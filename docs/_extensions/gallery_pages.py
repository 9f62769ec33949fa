"""The gallery: examples are copied by section, in the form that sphinx-gallery wants.

In Markdown, a link to ``examples/NAME.py`` becomes a link to the page of that example, so that the
same link works where pages are read as files.
"""

import ast
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from gallery import SECTIONS, draws, words

DOCS = Path(__file__).parents[1]
EXAMPLES = DOCS.parent / "examples"
COPIES = DOCS / "_build" / "examples"


def slug(section: str) -> str:
    """Return the folder of a section."""
    return re.sub(r"\W+", "-", section.lower()).strip("-")


PAGES = {name: f"gallery/{slug(s)}/{name}" for s, names in SECTIONS.items() for name in names}


def escaped(text: str) -> str:
    """Return plain text as reStructuredText; what stands in double backticks stays code."""
    parts = re.split(r"(``.+?``)", text, flags=re.DOTALL)
    return "".join(p if p.startswith("``") else re.sub(r"([\\*_|`])", r"\\\1", p) for p in parts)


def copied(name: str) -> str:
    """Return an example whose docstring has the title and the text of a page."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    first = ast.parse(source).body[0]
    code = "\n".join(source.splitlines()[first.end_lineno :])
    title, text = (escaped(part) for part in words(name))
    return f'r"""\n{title}\n{"=" * 2 * len(title)}\n\n{text}\n"""\n{code}\n'


def copy_examples() -> None:
    """Write what changed, so that unchanged examples are not run again."""
    headers = {COPIES: "Gallery"} | {COPIES / slug(section): section for section in SECTIONS}
    wanted = {
        folder / "GALLERY_HEADER.rst": f"{title}\n{'-='[folder == COPIES] * len(title)}\n"
        for folder, title in headers.items()
    }
    wanted[COPIES / "GALLERY_HEADER.rst"] += (
        "\nEach picture is drawn by a short script. Open it to read the code and its output.\n"
    )
    for section, names in SECTIONS.items():
        wanted |= {COPIES / slug(section) / f"{name}.py": copied(name) for name in names}
    if COPIES.exists():
        for path in [p for p in COPIES.rglob("*") if p.is_file() and p not in wanted]:
            path.unlink()
    pages = DOCS / "gallery"
    for folder in pages.glob("*/") if pages.exists() else ():
        if folder.name not in {slug(section) for section in SECTIONS} | {"uses"}:
            shutil.rmtree(folder)
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class Arguments:
    """An example is given the path of its picture, which nobody keeps: figures are taken open."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="maxmargin-gallery-")

    def __call__(self, gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
        """Return the arguments of a script: none if it draws nothing."""
        if not draws(Path(script_vars["src_file"])):
            return []
        return [str(Path(self.folder) / (Path(script_vars["src_file"]).stem + ".png"))]

    def __repr__(self) -> str:
        return "Arguments()"  # the same in every build


class InOrder:
    """Sections and examples in the order of SECTIONS."""

    def __init__(self, folder: str = "") -> None:
        sections = [slug(section) for section in SECTIONS]
        self.names = sections + [name for names in SECTIONS.values() for name in names]

    def __call__(self, name: str) -> int:
        """Return the place of a folder or file."""
        stem = Path(name).stem
        return self.names.index(stem) if stem in self.names else len(self.names)

    def __repr__(self) -> str:
        return f"InOrder({self.names})"  # the same in every build


def configuration(*, run: bool) -> dict[str, Any]:
    """Return the settings of sphinx-gallery."""
    copy_examples()
    return {
        "examples_dirs": str(COPIES),
        "gallery_dirs": "gallery",
        "backreferences_dir": "gallery/uses",
        "doc_module": ("maxmargin",),
        "reference_url": {"maxmargin": None},
        "filename_pattern": r"\.py$",
        "plot_gallery": "True" if run else "False",
        "reset_argv": Arguments(),
        "subsection_order": InOrder(),
        "within_subsection_order": InOrder(),
        "abort_on_example_error": False,
        "only_warn_on_example_error": False,
        "remove_config_comments": True,
        "show_memory": False,
        "show_signature": False,
        "min_reported_time": 1e9,
        "write_computation_times": False,
        "download_all_examples": False,
        "copyfile_regex": r".*\.rst",
        "default_thumb_file": str(DOCS / "images" / "margins.png"),
        "thumbnail_size": (400, 280),
        "capture_repr": (),
        "nested_sections": True,
    }


def link_pages(app: Any, docname: str, content: list[str]) -> None:
    """Turn links to scripts into links to their pages."""

    def page(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"](/{PAGES[name]}.rst)" if name in PAGES else match.group()

    if app.env.doc2path(docname).suffix == ".md":
        content[0] = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", page, content[0])


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("source-read", link_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
