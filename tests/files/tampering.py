"""Opens native model files, and writes what is left of them after changes: with a valid digest."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from maxmargin.files import native


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON document and the tensors of a file."""
    with safe_open(path, framework="np") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["maxmargin"]), tensors


def write(path: Path, document: Any, tensors: dict[str, Any]) -> Path:
    """Write a file whose digest is right; a document may also be text."""
    text = document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    native._write(path, {"maxmargin": text, "sha256": native._digest(text, arrays)}, arrays)
    return path


class Opened:
    """A file whose attributes can be changed by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document, self.tensors = read(path)

    @property
    def state(self) -> Any:
        """The state of the model, as nodes."""
        return self.document["model"]["state"]

    def array(self, name: str, node: dict[str, Any] | None = None) -> Any:
        """Return an attribute that is an array."""
        found = (self.state if node is None else node)[name]
        return self.tensors[found["array"]].T if "order" in found else self.tensors[found["array"]]

    def set_array(self, name: str, value: Any, node: dict[str, Any] | None = None) -> None:
        """Replace an attribute that is an array by another one."""
        new = str(1 + max(map(int, self.tensors)))
        state = self.state if node is None else node
        old, state[name] = state[name], {"array": new}
        self.tensors[new] = np.asarray(value)
        if f'"{old["array"]}"' not in json.dumps(self.document):
            del self.tensors[old["array"]]

    def close(self) -> Path:
        """Write the file again."""
        return write(self.path, self.document, self.tensors)
