"""What is fuzzed: functions of bytes that may refuse them by the documented error only."""

import atexit
import contextlib
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

import maxmargin as mm
from maxmargin.cli.models import read_parameters
from maxmargin.cli.options import GridValues
from maxmargin.data import Layout, iterate_svmlight, read_labelled, read_rows, read_svmlight
from maxmargin.files.nodes import parse
from maxmargin.studio import messages
from maxmargin.studio.expressions import LONGEST, ExpressionError, parse_kernel
from maxmargin.studio.scene import FARTHEST
from tests.files.sealing import reseal
from tests.fuzz.mutants import Mutate, mutate_bytes, mutate_json, mutate_native

CORPUS = Path(__file__).parent / "corpus"
_ORDINARY = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, re.error)
_WIDE = 1000  # columns, beyond which no rows are made to predict for


def read_corpus(name: str) -> list[bytes]:
    """Return the inputs that mutants of a target descend from."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


@cache
def _folder() -> Path:
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _written(data: bytes, name: str) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def _check_message(error: Exception, path: Path) -> None:
    """An error says which file it is about, in a line or two."""
    message = str(error)
    assert message.startswith(str(path)), message
    assert len(message) < 2000, message[:2000]


# ------------------------------------------------------------------- data


def read_svmlight_bytes(data: bytes) -> None:
    """Read svmlight text, at once, in blocks, and in ranges of bytes."""
    path = _written(data, "rows.svm")
    for zero_based in (False, True):
        try:
            found = read_svmlight(path, zero_based=zero_based, query_id=b"qid" in data)
        except mm.errors.DataFileError as refused:
            _check_message(refused, path)
            continue
        found.X.check_format(full_check=True)
        assert np.isfinite(found.X.data).all()
        assert np.isfinite(found.y).all()
        assert found.X.has_sorted_indices
        if found.X.shape[1] and b"qid" not in data:
            parts = mm.data.open(path, zero_based=zero_based, rows=3)
            assert sum(len(part.y) for part in parts) == len(found.y)
        if zero_based and len(data) < 1000:
            blocks = iterate_svmlight(
                path, zero_based=True, query_id=b"qid" in data, block_bytes=16
            )
            assert sum(len(block.y) for block in blocks) == len(found.y)


def read_table_bytes(data: bytes) -> None:
    """Read a table, and once more by its layout."""
    endings = {b"@": ".arff", b"{": ".jsonl", b"%": ".arff"}
    path = _written(data, f"rows{endings.get(data[:1], '.csv')}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = read_labelled(path)
        except mm.errors.DataFileError as refused:
            _check_message(refused, path)
            return
        assert len(found.X) == len(found.y) if isinstance(found.X, np.ndarray) else True
        assert found.layout is not None
        layout = Layout.from_json(found.layout.to_json())
        assert layout == found.layout
        try:
            blocks = list(read_rows(path, layout))
        except mm.errors.DataFileError as refused:
            _check_message(refused, path)
            return
        assert all(block.X.shape[1] == layout.n_features for block in blocks)


def read_layout_bytes(data: bytes) -> None:
    """Read a layout as a model file has it."""
    with contextlib.suppress(ValueError):  # which the model file's own error names
        layout = Layout.from_json(parse(data.decode("utf-8", "replace")))
        assert Layout.from_json(layout.to_json()) == layout


def read_option_bytes(data: bytes) -> None:
    """Read a line of options, as a shell would pass them."""
    for word in data.decode("utf-8", "surrogateescape").split("\n"):
        option, _, value = word.partition(" ")
        with contextlib.suppress(click.UsageError):
            if option == "--param":
                read_parameters({"param": [value]})
            else:
                GridValues().convert(value, None, None)


# ------------------------------------------------------------------- models


def load_libsvm_bytes(data: bytes) -> None:
    """Load a model of LIBSVM."""
    _load(mm.files.load_libsvm, data, "svm.model")


def load_liblinear_bytes(data: bytes) -> None:
    """Load a model of LIBLINEAR."""
    _load(mm.files.load_liblinear, data, "linear.model")


def load_native_bytes(data: bytes) -> None:
    """Load a native file, also with a digest that fits."""
    for content in (data, reseal(data)):
        if content is not None:
            _load(mm.load, content, "model.mmg")


def _load(load: Callable[[Path], Any], data: bytes, name: str) -> None:
    path = _written(data, name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except mm.errors.ModelFileError as refused:
            _check_message(refused, path)
            return
        _use(model)


def _use(model: Any) -> None:
    """Predict with a model that was accepted: it may lie or raise, but nothing else may happen."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    width = getattr(first, "n_features_in_", 2)
    if hasattr(first, "vocabulary_"):
        rows: Any = ["a good word", "two"]
    elif isinstance(first, ColumnTransformer):
        rows = np.array([[1, "red"] * _WIDE, [2, "blue"] * _WIDE], dtype=object)[:, :width]
    elif width > _WIDE:
        return
    else:
        rows = np.linspace(-1.0, 1.0, 3 * width).reshape(3, width)
    with contextlib.suppress(*_ORDINARY):
        (model.predict if hasattr(model, "predict") else model.transform)(rows)


# ------------------------------------------------------------------- the studio


def read_message_bytes(data: bytes) -> None:
    """Read a message of the page; a kernel of its scene can be read again."""
    try:
        request = messages.parse(data)
    except messages.MessageError as refused:
        _check_sentence(refused)
        return
    scene = getattr(request, "scene", None)
    if scene is not None:
        assert scene.points.shape == (len(scene.labels), 2)
        assert np.abs(scene.points).max(initial=0.0) <= FARTHEST
        if scene.choice.kernel:
            parse_kernel(scene.choice.kernel, scene.choice.parameters)
    if isinstance(request, messages.KernelText):
        _read_kernel(request.text)


def _check_sentence(error: Exception, placed: bool = True) -> None:
    """An error can be sent and read, and its place is in the text."""
    assert placed
    assert 0 < len(str(error).encode()) < 2000, str(error)[:2000]


def read_kernel_bytes(data: bytes) -> None:
    """Read a kernel, and what it prints."""
    _read_kernel(data.decode("utf-8", "surrogateescape"))


def _read_kernel(text: str) -> None:
    try:
        kernel = parse_kernel(text)
    except ExpressionError as refused:
        _check_sentence(refused, 0 <= refused.position <= len(text))
        return
    shown = repr(kernel)
    assert len(shown) > LONGEST or parse_kernel(shown) == kernel


class Target(NamedTuple):
    """What takes bytes, how these are changed, and how many ``./check`` tries."""

    run: Callable[[bytes], None]
    inputs: int
    mutate: Mutate = mutate_bytes


TARGETS: dict[str, Target] = {
    "csv": Target(read_table_bytes, 800),
    "kernel": Target(read_kernel_bytes, 3000),
    "layout": Target(read_layout_bytes, 10_000),
    "liblinear": Target(load_liblinear_bytes, 5000),
    "libsvm": Target(load_libsvm_bytes, 4000),
    "message": Target(read_message_bytes, 10_000, mutate_json),
    "native": Target(load_native_bytes, 700, mutate_native),
    "options": Target(read_option_bytes, 10_000),
    "svmlight": Target(read_svmlight_bytes, 2000),
}
