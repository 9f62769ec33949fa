"""Vectors of rows in a folder, from which a fit goes on: one store for rows on disk and on Dask.

A set of vectors is a file for each block of rows, ``vectors-TOKEN-FIRST.npz``, and what belongs to
them and is small, ``state-TOKEN.npz``. ``vectors.json`` names a complete set, and is replaced when
the next one is complete: whenever a process is killed, there is a complete set.
"""

import json
import os
import uuid
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.errors import DataFileError
from maxmargin.rows.survey import Survey
from maxmargin.runtime.atomic_write import write_atomically

_MANIFEST = "vectors.json"


@dataclass(frozen=True, eq=False)
class SavedVectors:
    """A set of vectors. On a cluster workers write and read its files, in a folder they share."""

    folder: Path
    token: str
    names: tuple[str, ...]
    firsts: tuple[int, ...]  # the first row of each block, and the number of rows

    @classmethod
    def new(
        cls, folder: str | os.PathLike[str], names: Iterable[str], firsts: Iterable[int]
    ) -> "SavedVectors":
        """Return a set of vectors that is to be written: blocks first, then ``complete``."""
        path = Path(folder).absolute()
        path.mkdir(parents=True, exist_ok=True)
        return cls(path, uuid.uuid4().hex, tuple(names), tuple(map(int, firsts)))

    @classmethod
    def find(cls, folder: str | os.PathLike[str]) -> "SavedVectors | None":
        """Return the complete set in a folder; None if there is none."""
        path = Path(folder).absolute()
        try:
            found = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
            firsts = tuple(map(int, found["firsts"]))
            return cls(path, str(found["token"]), tuple(found["names"]), firsts)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as damaged:
            raise DataFileError(
                f"{path / _MANIFEST}: this file of a checkpoint is damaged: remove the folder and "
                "fit from the beginning"
            ) from damaged

    def write(self, first: int, arrays: Mapping[str, Any]) -> None:
        """Write the vectors of the block that begins with a row."""
        _write_arrays(self._file(first), arrays)

    def complete(self, state: Mapping[str, Any] | None) -> None:
        """Write the state and the manifest: from now on this is the set of the folder."""
        _write_arrays(self._state_file, state or {})
        made = {"token": self.token, "names": self.names, "firsts": self.firsts}
        text = json.dumps(made)
        write_atomically(
            self.folder / _MANIFEST, lambda draft: draft.write_text(text, encoding="utf-8")
        )

    def remove_others(self, needed: Sequence["SavedVectors"] = ()) -> None:
        """Remove the files of other sets, unless they are still needed."""
        tokens = {self.token, *(each.token for each in needed if each.folder == self.folder)}
        for pattern in ("vectors-*-*.npz", "state-*.npz"):
            for path in self.folder.glob(pattern):
                if path.stem.split("-")[1] not in tokens:
                    path.unlink(missing_ok=True)

    def state(self) -> dict[str, Any]:
        """Return what belongs to the vectors."""
        return _read_arrays(self._state_file)

    def read(self, begin: int, end: int) -> dict[str, Any]:
        """Return vectors of some rows, whatever the blocks were when they were written."""
        pieces: dict[str, list[Any]] = {name: [] for name in self.names}
        for first, after in zip(self.firsts[:-1], self.firsts[1:], strict=True):
            if first < end and after > begin:
                saved = _read_arrays(self._file(first))
                for name in self.names:
                    pieces[name].append(saved[name][max(begin - first, 0) : end - first])
        return {name: np.concatenate(pieces[name]) for name in self.names}

    @property
    def _state_file(self) -> Path:
        return self.folder / f"state-{self.token}.npz"

    def _file(self, first: int) -> Path:
        return self.folder / f"vectors-{self.token}-{first}.npz"


class KeepsCheckpoints:
    """Rows in blocks whose vectors can be saved: what rows on disk and on Dask have in common."""

    n: int
    survey: Survey

    def first_row(self) -> Floats:
        """Return the first row, in float64."""
        return self.survey.first_row

    def saved_state(self, folder: str | os.PathLike[str]) -> dict[str, Any] | None:
        """Return the state that ``save`` wrote last with its vectors; None if there is none."""
        found = SavedVectors.find(folder)
        return None if found is None else found.state()

    def restore(self, folder: str | os.PathLike[str]) -> None:
        """Set vectors to what ``save`` wrote last, whatever the blocks and workers were then.

        Raises
        ------
        FileNotFoundError
            If the folder holds no complete set.
        DataFileError
            If a file is damaged, or the vectors are of other rows.
        """
        saved = SavedVectors.find(folder)
        if saved is None:
            raise FileNotFoundError(f"{folder} holds no vectors: nothing was saved there.")
        if saved.firsts[-1] != self.n:
            raise DataFileError(
                f"{saved.folder / _MANIFEST}: it was saved for {saved.firsts[-1]} rows, but there "
                f"are {self.n}: choose another folder, or remove this one"
            )
        self._take(saved)

    def _take(self, saved: SavedVectors) -> None:
        raise NotImplementedError


def _write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    named = {f"of_{name}": array for name, array in arrays.items()}  # savez has names of its own

    def write(draft: Path) -> None:
        with draft.open("wb") as file:
            np.savez(file, allow_pickle=False, **named)

    write_atomically(path, write)


def _read_arrays(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            return {name.removeprefix("of_"): found[name] for name in found.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as damaged:
        raise DataFileError(
            f"{path}: this file of a checkpoint cannot be read ({damaged}): remove the folder and "
            "fit from the beginning. Workers of a cluster must share the folder"
        ) from damaged
