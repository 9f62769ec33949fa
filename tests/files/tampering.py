"""Opens native model files, and writes what is left of them after changes: with a valid digest."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.files.sealing import seal, unseal


class Opened:
    """A file whose attributes can be changed by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document, self.tensors = unseal(path.read_bytes())

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
        (self.state if node is None else node)[name] = {"array": new}
        self.tensors[new] = np.ascontiguousarray(value)

    def close(self) -> Path:
        """Write the file again, without the tensors that nothing names any more."""
        text = json.dumps(self.document)
        kept = {name: each for name, each in self.tensors.items() if f'"{name}"' in text}
        self.path.write_bytes(seal(self.document, kept))
        return self.path
