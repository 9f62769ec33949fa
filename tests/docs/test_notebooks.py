"""The tutorials run from top to bottom, and show what they say.

`./docs/build` runs them as well, and an error in one of them ends it; so ./check leaves this out.
"""

import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.md"))
# Nothing but a kernel of this Python, and the reader that the site is built with.
pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
reading = pytest.importorskip("myst_nb.core.read")
myst = pytest.importorskip("myst_parser.config.main")


def read(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return reading.read_myst_markdown_notebook(text, config=myst.MdParserConfig())


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["csv-to-model", "kernels", "margins"]


@pytest.mark.full
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path) -> None:
    notebook = read(path)
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3")
    client.execute(cwd=str(tmp_path))
    shown = outputs(notebook)
    assert not [output for output in shown if output.get("name") == "stderr"]
    assert sum("image/png" in output.get("data", {}) for output in shown) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_notebooks_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
