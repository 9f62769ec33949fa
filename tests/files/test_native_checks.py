"""What loading a native file refuses: every attribute that is missing, of another kind or shape."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors import safe_open

import maxmargin as mm
from maxmargin.errors import ModelFileError
from maxmargin.files.native import load
from tests.files.tampering import Opened

GOLDEN = Path(__file__).parent / "golden" / "format-1"
DOCUMENT = Path(__file__).parents[2] / "docs" / "model-file.md"
FILES = sorted(GOLDEN.glob("*.mmg"))


def nodes(state: dict[str, Any], place: str = "") -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield the attributes of a model, and of instances in it: where, the name, the whole name."""
    for name, node in state.items():
        yield state, name, f"{place}{name}"
        for inner in node if isinstance(node, list) else [node]:
            if isinstance(inner, dict) and "class" in inner:
                yield from nodes(inner["state"], f"{place}{name}.")


def copied(name: str, folder: Path) -> Opened:
    target = folder / f"{name}.mmg"
    target.write_bytes((GOLDEN / f"{name}.mmg").read_bytes())
    return Opened(target)


CHANGES = ("missing", "null", "short", "nan", "text")


def change(opened: Opened, state: dict[str, Any], name: str, how: str) -> bool:
    """Change one attribute; return whether there was something to change."""
    node = state[name]
    is_array = isinstance(node, dict) and "array" in node
    if how == "missing":
        del state[name]
    elif how == "null":
        state[name] = None
    elif how == "text":
        state[name] = {"tuple": ["a text"]}
    elif not is_array or not (array := opened.tensors[node["array"]]).size:
        return False
    elif how == "short":
        opened.set_array(name, array[:-1], state)
    else:
        if array.dtype.kind != "f":
            return False
        array.flat[array.size // 2] = np.nan
    return node is not None or how != "null"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_change_does_more_than_be_refused(path: Path, tmp_path: Path) -> None:
    """A change is refused by name, or the model still says something, if not what it did."""
    with np.load(path.with_suffix(".npz")) as kept:
        rows = kept["rows"]
    whole = [place for _, _, place in nodes(Opened(path).state)]
    messages = []
    for number, place in enumerate(whole):
        how = CHANGES[number % len(CHANGES)]
        opened = copied(path.stem, tmp_path)
        state, name, _ = list(nodes(opened.state))[number]
        if not change(opened, state, name, how):
            continue
        try:
            model = load(opened.close())
        except ModelFileError as error:
            messages.append((place, str(error)))
        else:
            method = "predict" if hasattr(model, "predict") else "transform"
            getattr(model, method)(rows)
    assert messages
    start = f"{tmp_path / path.name}: "
    assert all(message.startswith(start) for _, message in messages), messages


@pytest.mark.parametrize("how", ["missing", "beyond"])
def test_columns_of_a_given_matrix_are_there(how: str, tmp_path: Path) -> None:
    X, y = mm.datasets.separable(30, margin=0.2, random_state=0)
    mm.save(mm.KernelPerceptron(kernel="precomputed").fit(X @ X.T, y), tmp_path / "given.mmg")
    opened = Opened(tmp_path / "given.mmg")
    if how == "missing":
        del opened.state["support_"]
    else:
        opened.array("support_")[-1] = 30
    with pytest.raises(ModelFileError, match="support_"):
        load(opened.close())


def test_the_digest_is_what_the_document_says(tmp_path: Path) -> None:
    path = GOLDEN / "svc.mmg"
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
        found = hashlib.sha256(metadata["maxmargin"].encode())
        for name in sorted(file.keys()):
            part = file.get_slice(name)
            found.update(f"\n{name} {part.get_dtype()} {part.get_shape()}\n".encode())
            found.update(file.get_tensor(name).tobytes())
    assert found.hexdigest() == metadata["sha256"]
    damaged = bytearray(path.read_bytes())
    damaged[-20] ^= 1
    (tmp_path / "damaged.mmg").write_bytes(damaged)
    with pytest.raises(ModelFileError, match="digest is not that of its content"):
        load(tmp_path / "damaged.mmg")


def test_a_later_format_says_who_wrote_it(tmp_path: Path) -> None:
    opened = copied("svc", tmp_path)
    document = opened.document
    document["format"], document["versions"]["maxmargin"] = 7, "12.0"
    document["more"] = {}
    with pytest.raises(ModelFileError, match=r"format 7, written by maxmargin 12\.0; .*up to 1"):
        load(opened.close())


def test_steps_of_other_versions_of_scikit_learn(tmp_path: Path) -> None:
    opened = copied("pipeline", tmp_path)
    scaler = opened.state["steps"][2]["tuple"][1]["state"]
    del scaler["clip"]  # as before 1.8
    with np.load(GOLDEN / "pipeline.npz") as kept:
        assert_array_equal(load(opened.close()).predict(kept["rows"]), kept["predict"])
    scaler["new_"] = 1
    opened.document["versions"]["scikit-learn"] = "2.0.1"
    with pytest.raises(ModelFileError, match=r"MaxAbsScaler has no attribute 'new_'.*2\.0\.1"):
        load(opened.close())


def test_the_examples_of_the_document_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S):
        exec(code, known)
    assert_array_equal(known["vectors"], known["model"][-1].support_vectors_)
    assert_array_equal(known["coefficients"], known["model"][-1].dual_coef_)
