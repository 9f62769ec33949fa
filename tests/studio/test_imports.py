"""The studio stands on public names of the library."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import maxmargin
from maxmargin import studio

FILES = sorted(Path(studio.__file__ or "").parent.glob("*.py"))
ROOMS = {"geometry", "kernels", "inspection", "model_selection", "plots", "datasets", "data",
         "separability", "errors", "runtime", "_typing"}  # fmt: skip


def imported(path: Path) -> list[tuple[str, str]]:
    """Return the modules of this library that a file imports from, and the names."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.module or "", alias.name) for alias in node.names]
    return [(module, name) for module, name in found if module.split(".")[0] == "maxmargin"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_imported_is_public(path: Path) -> None:
    for module, name in imported(path):
        room, _, inner = module.removeprefix("maxmargin").lstrip(".").partition(".")
        if room == "studio":
            continue
        if not room:
            public = set(dir(maxmargin)) | ROOMS
            assert not name or name in public or name == "__version__", name
        else:
            assert room in ROOMS, module
            assert not inner or room == "runtime", module
            known = None if room == "errors" else getattr(import_module(module), "__all__", None)
            assert not name.startswith("_"), name
            assert known is None or name in known, (module, name)
