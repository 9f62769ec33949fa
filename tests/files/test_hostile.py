"""Model files that were tampered with: all are refused, by a message that says what is wrong.

None runs code, crashes, hangs or fills memory, and none predicts. Native files are sealed again
after the change, so that their digest is right and their content is judged.
"""

import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import maxmargin as mm
from tests.files.sealing import Unsealed, frame, seal, unseal

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
SECONDS = 5.0  # of the processor, that loading may take at most
MORE = 4 << 20  # bytes, beyond four times the size of the file, that loading may take

Change = Callable[[Any], Any]


class Tamper(NamedTuple):
    """A change of a file of the corpus, and what the message must say about it."""

    origin: str  # the kind of file, and its name
    change: Change
    says: str


TAMPERS: dict[str, Tamper] = {}


def tamper(origin: str, says: str) -> Callable[[Change], Change]:
    """Let a function be one of the tampers of a file."""

    def enter(change: Change) -> Change:
        name = getattr(change, "__name__", "").replace("_", "-").strip("-")
        assert f"{origin}: {name}" not in TAMPERS
        TAMPERS[f"{origin}: {name}"] = Tamper(origin, change, says)
        return change

    return enter


def load(kind: str, path: Path) -> Any:
    """Load a model file of a kind."""
    loaders: dict[str, Callable[[Path], Any]] = {
        "libsvm": mm.files.load_libsvm, "liblinear": mm.files.load_liblinear, "native": mm.load,
    }  # fmt: skip
    return loaders[kind](path)


def make(tampered: Tamper) -> bytes:
    """Return the bytes of a tampered file."""
    kind, _, _ = tampered.origin.partition("/")
    data = (CORPUS / tampered.origin).read_bytes()
    if kind != "native":
        return bytes(tampered.change(data))
    opened = unseal(data)
    changed = tampered.change(opened)
    return changed if isinstance(changed, bytes) else seal(opened.document, opened.tensors)


# ------------------------------------------------------------------- LIBSVM


def replaced(data: bytes, pattern: bytes, new: bytes) -> bytes:
    """Return the data with the first match replaced, which must be there."""
    changed, count = re.subn(pattern, new, data, count=1, flags=re.MULTILINE)
    assert count == 1, pattern
    return changed


LIBSVM: dict[str, tuple[str, bytes, bytes, str]] = {
    # name: file, what is replaced, by what, what the message says
    "truncated within a line": ("svc", rb"54000000000000004 \n\Z", b"54", "truncated"),
    "truncated between lines": ("svc", rb"^-1 1:-0\.16.*\n\Z", b"", "only 10 support vectors"),
    "without total_sv": ("svc", rb"^total_sv.*\n", b"", "total_sv"),
    "total_sv of one": ("svc", rb"^total_sv 11$", b"total_sv 1", "total_sv is 1"),
    "total_sv of a million": ("svc", rb"^total_sv 11$", b"total_sv 1000000", "total_sv"),
    "nr_sv of a million": ("svc", rb"^nr_sv 6 5$", b"nr_sv 1000000 5", "nr_sv"),
    "nr_sv and total_sv of billions": (
        "svc", rb"^total_sv 11(?s:(.*))nr_sv 6 5$",
        rb"total_sv 2147483647\1nr_sv 2147483642 5", "only 11 support vectors"),
    "nr_sv negative": ("svc", rb"^nr_sv 6 5$", b"nr_sv -1 12", "nr_sv"),
    "nr_sv swapped": ("svc", rb"^nr_sv 6 5$", b"nr_sv 5 6", "sign"),
    "garbage among vectors": ("svc", rb"^1 1:0\.64.*$", b"hello world", "svm.model:10:1"),
    "index of 2**31": ("svc", rb"1:0\.64000000000000001", b"2147483648:1", "index"),
    "index of 2**64": ("svc", rb"1:0\.64000000000000001", b"18446744073709551617:1", "index"),
    "index of 0": ("svc", rb"1:0\.64000000000000001", b"0:1", "index 0"),
    "indices descend": ("svc", rb" 1:0\.64\d+ 2:0\.1\d+", b" 2:1 1:1", "ascend"),
    "index twice": ("svc", rb" 1:0\.64\d+ 2:0\.1\d+", b" 1:1 1:1", "ascend"),
    "nr_class of a million": ("svc", rb"^nr_class 2$", b"nr_class 1000000", "rho"),
    "nr_class of 1": ("svc", rb"^nr_class 2$", b"nr_class 1", "nr_class"),
    "rho missing": ("svc", rb"^rho.*\n", b"", "rho"),
    "rho of nan": ("svc", rb"^rho.*$", b"rho nan", "rho"),
    "rho too many": ("svc", rb"^rho.*$", b"rho 1 2", "rho"),
    "rho too few": ("svc-poly-3", rb"^rho.*$", b"rho 1 2", "rho"),
    "labels twice": ("svc", rb"^label 1 -1$", b"label 1 1", "twice"),
    "label of words": ("svc", rb"^label 1 -1$", b"label a b", "label"),
    "label missing": ("svc", rb"^label.*\n", b"", "label"),
    "coefficient of nan": ("svc", rb"^1 1:0\.64", b"nan 1:0.64", "coefficient"),
    "coefficient too large": ("svc", rb"^1 1:0\.64", b"1e999 1:0.64", "too large"),
    "coefficient of the wrong sign": ("svc", rb"^1 1:0\.64", b"-1 1:0.64", "sign"),
    "coefficients that do not add up": ("svc", rb"^1 1:0\.64", b"2 1:0.64", "sum"),
    "coefficient missing": ("svc-poly-3", rb"^0\.39577\d+ 1 ", b"1 ", "coefficients"),
    "value in hexadecimal": ("svc", rb"1:0\.64\d+", b"1:0x1p3", "index:value"),
    "value too large": ("svc", rb"1:0\.64\d+", b"1:1e999", "too large"),
    "gamma of nan": ("svc", rb"^gamma.*$", b"gamma nan", "gamma"),
    "gamma of infinity": ("svc", rb"^gamma.*$", b"gamma 1e999", "gamma"),
    "gamma negative": ("svc", rb"^gamma.*$", b"gamma -1", "gamma"),
    "gamma missing": ("svc", rb"^gamma.*\n", b"", "gamma"),
    "degree of 2**31": ("svc-poly-3", rb"^degree 2$", b"degree 2147483648", "degree"),
    "degree negative": ("svc-poly-3", rb"^degree 2$", b"degree -1", "degree"),
    "degree of a fraction": ("svc-poly-3", rb"^degree 2$", b"degree 2.5", "degree"),
    "unknown svm_type": ("svc", rb"^svm_type c_svc$", b"svm_type c_rce", "svm_type"),
    "unknown kernel": ("svc", rb"^kernel_type rbf$", b"kernel_type ../../rbf", "kernel_type"),
    "unknown key": ("svc", rb"^rho", b"__reduce__ 1\nrho", "__reduce__"),
    "key twice": ("svc", rb"^(rho.*\n)", rb"\1\1", "twice"),
    "a vector too many": ("svc", rb"^(-1 1:-0\.16.*\n)", rb"\1\1", "more lines"),
    "zero bytes": ("svc", rb"^SV$", b"SV\0", "SV"),
    "a number after SV": ("svc", rb"^SV$", b"SV 1", "SV"),
    "probability of one side": ("svc", rb"^rho", b"probA 1\nrho", "probB"),
    "probability of a regression": ("svr", rb"^rho", b"probA -1\nrho", "probA"),
    "marks of a classifier": (
        "svc", rb"^rho", b"prob_density_marks 1 2 3 4 5 6 7 8 9 10\nrho", "prob_density_marks"),
    "labels of a regression": ("svr", rb"^rho", b"label 1 2\nrho", "label"),
    "nr_class of a regression": ("svr", rb"^nr_class 2$", b"nr_class 3", "nr_class"),
    "serial of no row": ("precomputed", rb"0:\d+ ?$", b"0:0", "row 0"),
    "serial missing": ("precomputed", rb"0:\d+ ?$", b"1:1", "precomputed"),
    "one-class coefficient negative": ("one-class", rb"^0\.", b"-0.", "sign|below"),
    "nothing but a line without end": ("svc", rb"(?s).*", b"svm_type" * 1000, "truncated"),
}  # fmt: skip
LIBLINEAR: dict[str, tuple[str, bytes, bytes, str]] = {
    "truncated": ("linear-3", rb"^0\.33.*\n\Z", b"", "w|rows|weights|lines"),
    "truncated within a line": ("linear-3", rb" -0\.5547.*\n\Z", b" -0.", "truncated"),
    "nr_feature of billions": ("linear", rb"^nr_feature 2$", b"nr_feature 2147483647", "nr_feat|w"),
    "nr_feature of 2**31": ("linear", rb"^nr_feature 2$", b"nr_feature 2147483648", "nr_feature"),
    "nr_feature too small": ("linear", rb"^nr_feature 2$", b"nr_feature 1", "lines|nr_feature"),
    "nr_feature negative": ("linear", rb"^nr_feature 2$", b"nr_feature -1", "nr_feature"),
    "nr_class of a million": ("linear-3", rb"^nr_class 3$", b"nr_class 1000000", "label"),
    "nr_class too small": ("linear-3", rb"^nr_class 3$", b"nr_class 2", "label"),
    "labels twice": ("linear-3", rb"^label 0 1 2$", b"label 0 1 1", "twice"),
    "label missing": ("linear-3", rb"^label.*\n", b"", "label"),
    "weight of nan": ("linear", rb"^w\n\S+", b"w\nnan", "linear.model:"),
    "weight too large": ("linear", rb"^w\n\S+", b"w\n1e999", "large"),
    "weight too many": ("linear", rb"^w\n", b"w\n1 ", "linear.model:"),
    "unknown solver": ("linear", rb"^solver_type \S+", b"solver_type os.system", "solver_type"),
    "bias of infinity": ("linear", rb"^bias \S+", b"bias 1e999", "bias"),
    "bias of nan": ("linear", rb"^bias \S+", b"bias nan", "bias"),
    "bias taken away": ("linear", rb"^bias \S+", b"bias -1", "linear.model:"),
    "key twice": ("linear", rb"^(bias.*\n)", rb"\1\1", "twice"),
    "unknown key": ("linear", rb"^bias", b"pickle 1\nbias", "pickle"),
    "weights missing": ("linear", rb"(?s)^w\n.*", b"", "w"),
    "regression of three classes": ("linear-svr", rb"^nr_class 2$", b"nr_class 3", "nr_class"),
}  # fmt: skip
for _kind, _table in (("libsvm", LIBSVM), ("liblinear", LIBLINEAR)):
    for _name, (_file, _old, _new, _says) in _table.items():
        TAMPERS[f"{_kind}: {_name}"] = Tamper(
            f"{_kind}/{_file}", partial(replaced, pattern=_old, new=_new), _says
        )


# ------------------------------------------------------------------- native: the container


def rewritten(opened: Unsealed, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a file whose header was changed after sealing, as only bytes of it can say."""
    data = seal(opened.document, opened.tensors)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    change(header)
    return frame(json.dumps(header).encode()) + data[8 + length :]


@tamper("native/svc", "no model file")
def header_longer_than_the_file(opened: Unsealed) -> bytes:
    data = seal(*opened)
    return (len(data) * 2).to_bytes(8, "little") + data[8:]


@tamper("native/svc", "no model file")
def header_of_exabytes(opened: Unsealed) -> bytes:
    return (2**62).to_bytes(8, "little") + seal(*opened)[8:]


@tamper("native/svc", "no model file")
def header_of_no_length(opened: Unsealed) -> bytes:
    return (0).to_bytes(8, "little") + seal(*opened)[8:]


@tamper("native/svc", "no model file")
def cut_within_a_tensor(opened: Unsealed) -> bytes:
    return seal(*opened)[:-3]


@tamper("native/svc", "no model file")
def cut_within_the_header(opened: Unsealed) -> bytes:
    return seal(*opened)[:100]


@tamper("native/svc", "no model file")
def bytes_after_the_end(opened: Unsealed) -> bytes:
    return seal(*opened) + bytes(64)


@tamper("native/svc", "no model file")
def empty(opened: Unsealed) -> bytes:
    return b""


@tamper("native/svc", "no model file")
def tensors_overlap(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["4"].update(data_offsets=h["5"]["data_offsets"]))


@tamper("native/svc", "no model file")
def offsets_out_of_the_file(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["4"].update(data_offsets=[2**40, 2**40 + 8]))


@tamper("native/svc", "no model file")
def offsets_that_end_before_they_begin(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["4"].update(data_offsets=h["4"]["data_offsets"][::-1]))


@tamper("native/svc", "no model file")
def offsets_that_are_negative(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["4"].update(data_offsets=[-8, 0]))


@tamper("native/svc", "no model file")
def shape_that_is_negative(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["10"].update(shape=[-11, -2]))


@tamper("native/svc", "no model file")
def shape_that_overflows(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["10"].update(shape=[2**32, 2**32, 22]))


@tamper("native/svc", "no model file")
def type_of_another_size(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["10"].update(dtype="F32"))


@tamper("native/svc", "no model file")
def type_that_nobody_knows(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["10"].update(dtype="OBJECT"))


@tamper("native/svc", "digest|type")
def type_of_complex_numbers(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["10"].update(dtype="C64"))


@tamper("native/svc", "digest")
def tensors_swapped(opened: Unsealed) -> bytes:
    def swap(header: dict[str, Any]) -> None:
        header["8"], header["9"] = header["9"], header["8"]

    opened.tensors["9"] = opened.tensors["9"] * 2
    return rewritten(opened, swap)


@tamper("native/svc", "digest")
def digest_missing(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["__metadata__"].pop("sha256"))


@tamper("native/svc", "digest")
def digest_of_another(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["__metadata__"].update(sha256="0" * 64))


@tamper("native/svc", "not of maxmargin")
def document_missing(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h["__metadata__"].pop("maxmargin"))


@tamper("native/svc", "not of maxmargin")
def metadata_missing(opened: Unsealed) -> bytes:
    return rewritten(opened, lambda h: h.pop("__metadata__"))


@tamper("native/svc", "no model file|digest|twice")
def tensor_twice(opened: Unsealed) -> bytes:
    data = seal(*opened)
    length = int.from_bytes(data[:8], "little")
    entry = b'{"4":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},'
    return frame(entry + data[9 : 8 + length]) + data[8 + length :]


@tamper("native/svc", "belong to nothing")
def tensor_of_nothing(opened: Unsealed) -> None:
    opened.tensors["77"] = np.zeros(3)


@tamper("native/svc", "belong to nothing")
def tensor_named_like_a_path(opened: Unsealed) -> None:
    opened.tensors["../../../etc/passwd"] = np.zeros(3)


@tamper("native/svc", "no tensor")
def tensor_missing(opened: Unsealed) -> None:
    del opened.tensors["10"]


@tamper("native/svc", "begins with")
def zip_file(opened: Unsealed) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("schema.json", "{}")
    return made.getvalue()


@tamper("native/svc", "begins with")
def numpy_file(opened: Unsealed) -> bytes:
    made = io.BytesIO()
    np.savez(made, coef_=np.zeros(3))
    return made.getvalue()


@tamper("native/svc", "begins with")
def pickle_of_a_model(opened: Unsealed) -> bytes:
    return pickle.dumps(mm.SVC())


@tamper("native/svc", "begins with")
def model_of_libsvm(opened: Unsealed) -> bytes:
    return (CORPUS / "libsvm" / "svc").read_bytes()


# ------------------------------------------------------------------- native: the document


def texted(opened: Unsealed, change: Callable[[str], str]) -> bytes:
    """Return a file whose document is changed as a text."""
    text = json.dumps(opened.document)
    changed = change(text)
    assert changed != text
    return seal(changed, opened.tensors)


@tamper("native/svc", "NaN")
def json_with_nan(opened: Unsealed) -> bytes:
    return texted(opened, lambda text: text.replace('"C": 1.0', '"C": NaN'))


@tamper("native/svc", "1e999")
def json_with_too_large_a_number(opened: Unsealed) -> bytes:
    return texted(opened, lambda text: text.replace('"C": 1.0', '"C": 1e999'))


@tamper("native/svc", "twice")
def json_with_a_key_twice(opened: Unsealed) -> bytes:
    return texted(opened, lambda text: text.replace('"C": 1.0', '"C": 1.0, "C": 2.0'))


@tamper("native/svc", "deep")
def json_nested_deep(opened: Unsealed) -> bytes:
    return texted(opened, lambda text: text.replace('"C": 1.0', f'"C": {"[" * 5000}{"]" * 5000}'))


@tamper("native/svc", "deep|items")
def json_nested_very_deep(opened: Unsealed) -> bytes:
    deep = f'"C": {"[" * 200_000}{"]" * 200_000}'
    return texted(opened, lambda text: text.replace('"C": 1.0', deep))


@tamper("native/svc", "altered or damaged")
def json_cut_off(opened: Unsealed) -> bytes:
    return texted(opened, lambda text: text[:-5])


@tamper("native/svc", "altered or damaged")
def json_of_another_kind(opened: Unsealed) -> bytes:
    return texted(opened, lambda text: "[]")


@tamper("native/svc", "64 bits|digit")
def json_with_too_many_digits(opened: Unsealed) -> bytes:
    return texted(opened, lambda text: text.replace('"C": 1.0', f'"C": 1{"0" * 4000}'))


@tamper("native/svc", "items")
def json_with_a_million_items(opened: Unsealed) -> bytes:
    many = f'"C": [{"[]," * 1_000_000}0]'
    return texted(opened, lambda text: text.replace('"C": 1.0', many))


@tamper("native/svc", "format 99")
def format_of_the_future(opened: Unsealed) -> None:
    opened.document["format"] = 99


@tamper("native/svc", "altered or damaged")
def format_of_the_past(opened: Unsealed) -> None:
    opened.document["format"] = 0


@tamper("native/svc", "altered or damaged")
def key_that_nobody_knows(opened: Unsealed) -> None:
    opened.document["__reduce__"] = ["os.system", "true"]


def nodes(value: Any) -> Any:
    """Return a tensor of JSON."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


@tamper("native/svc", "deep|twice|once")
def json_that_holds_itself(opened: Unsealed) -> None:
    opened.tensors["50"] = nodes([{"json": "50"}])
    opened.state["C"] = {"json": "50"}


@tamper("native/svc", "twice|once")
def json_that_multiplies(opened: Unsealed) -> None:
    for k in range(50, 60):
        opened.tensors[str(k)] = nodes([{"json": str(k + 1)}] * 10)
    opened.tensors["60"] = nodes([])
    opened.state["C"] = {"json": "50"}


@tamper("native/svc", "twice|once")
def integers_that_multiply(opened: Unsealed) -> None:
    opened.tensors["50"] = np.zeros(100_000, dtype=np.int64)
    opened.state["C"] = [{"ints": "50"}] * 900


@tamper("native/svc", "text")
def texts_much_wider_than_they_are(opened: Unsealed) -> None:
    opened.state["C"] = [{"text": [""], "shape": [1], "width": 10_000}] * 900


@tamper("native/svc", "os.system")
def class_of_another_module(opened: Unsealed) -> None:
    opened.document["model"] = {"class": "os.system", "state": {}}


@tamper("native/svc", "Popen")
def class_that_starts_programs(opened: Unsealed) -> None:
    opened.state["callback"] = {"class": "subprocess.Popen", "state": {"args": ["true"]}}


@tamper("native/svc", "no class")
def class_by_a_path(opened: Unsealed) -> None:
    opened.document["model"]["class"] = "maxmargin.estimators.svm.svc.SVC"


@tamper("native/svc", "holds no estimator")
def model_that_is_a_kernel(opened: Unsealed) -> None:
    opened.document["model"] = {"class": "maxmargin.Linear", "state": {}}
    opened.tensors.clear()


@tamper("native/svc", "no kind")
def node_of_another_kind(opened: Unsealed) -> None:
    opened.state["callback"] = {"__reduce__": ["os.system", ["true"]]}


@tamper("native/svc", "no type")
def type_of_another_module(opened: Unsealed) -> None:
    opened.state["callback"] = {"type": "os.system"}


@tamper("native/svc", "no attribute")
def attribute_too_many(opened: Unsealed) -> None:
    opened.state["predict"] = 1


@tamper("native/svc", "no attribute")
def attribute_with_underscores(opened: Unsealed) -> None:
    opened.state["__class__"] = {"type": "python str"}


@tamper("native/svc", "lacks")
def attribute_missing(opened: Unsealed) -> None:
    del opened.state["_duals"], opened.tensors["8"]


@tamper("native/svc", "lacks")
def parameter_missing(opened: Unsealed) -> None:
    del opened.state["C"]


@tamper("native/svc", "Status")
def status_of_another_kind(opened: Unsealed) -> None:
    opened.state["status_"] = {"enum": ["maxmargin.KernelPCAStatus", "OPTIMAL"]}


@tamper("native/svc", "Status")
def status_that_nobody_knows(opened: Unsealed) -> None:
    opened.state["status_"] = {"enum": ["maxmargin.Status", "__members__"]}


# ------------------------------------------------------------------- native: kernel machines


def get(opened: Unsealed, name: str) -> Any:
    """Return an array of the model."""
    return opened.array(opened.state[name])


def put(opened: Unsealed, name: str, array: Any) -> None:
    """Replace an array of the model."""
    opened.tensors[opened.state[name]["array"]] = np.ascontiguousarray(array)


@tamper("native/svc", "C")
def cost_of_nan(opened: Unsealed) -> None:
    opened.state["C"] = {"float": "nan"}


@tamper("native/svc", "C")
def cost_that_is_negative(opened: Unsealed) -> None:
    opened.state["C"] = -1.0


@tamper("native/svc", "n_support_|labels")
def counts_swapped(opened: Unsealed) -> None:
    put(opened, "n_support_", get(opened, "n_support_")[::-1])


@tamper("native/svc", "n_support_")
def counts_of_a_million(opened: Unsealed) -> None:
    put(opened, "n_support_", np.array([10**6, 10**6], dtype=np.int32))


@tamper("native/svc-sparse-ovr", "n_support_")
def counts_of_a_million_of_sparse_rows(opened: Unsealed) -> None:
    put(opened, "n_support_", np.array([10**6, 0, 0], dtype=np.int32))


@tamper("native/svc", "n_support_")
def counts_that_are_negative(opened: Unsealed) -> None:
    put(opened, "n_support_", np.array([12, -1], dtype=np.int32))


@tamper("native/svc", "dual_coef_")
def coefficients_cut_short(opened: Unsealed) -> None:
    put(opened, "dual_coef_", get(opened, "dual_coef_")[:, :-1])


@tamper("native/svc", "_duals.*finite")
def coefficients_of_nan(opened: Unsealed) -> None:
    put(opened, "_duals", get(opened, "_duals") * np.nan)


@tamper("native/svc", "_duals|dual_coef_")
def coefficients_of_float32(opened: Unsealed) -> None:
    put(opened, "_duals", get(opened, "_duals").astype(np.float32))


@tamper("native/svc", "intercept_|planes")
def intercept_that_is_empty(opened: Unsealed) -> None:
    put(opened, "intercept_", np.zeros(0))


@tamper("native/svc", "support vectors")
def support_that_is_empty(opened: Unsealed) -> None:
    put(opened, "support_", np.zeros(0, dtype=np.int64))


@tamper("native/svc", "support_")
def support_of_a_row_that_is_not_there(opened: Unsealed) -> None:
    put(opened, "support_", get(opened, "support_") + 10**12)


@tamper("native/svc", "support_.*twice")
def support_of_a_row_twice(opened: Unsealed) -> None:
    put(opened, "support_", get(opened, "support_") * 0)


@tamper("native/svc", "support_")
def support_of_negative_rows(opened: Unsealed) -> None:
    put(opened, "support_", -1 - get(opened, "support_"))


@tamper("native/svc", "columns")
def vectors_that_are_narrower(opened: Unsealed) -> None:
    put(opened, "support_vectors_", get(opened, "support_vectors_")[:, :1])


@tamper("native/svc", "rows")
def vectors_that_are_fewer(opened: Unsealed) -> None:
    put(opened, "support_vectors_", get(opened, "support_vectors_")[:-1])


@tamper("native/svc", "support_vectors_.*finite")
def vectors_of_infinity(opened: Unsealed) -> None:
    put(opened, "support_vectors_", get(opened, "support_vectors_") * np.inf)


@tamper("native/svc", "columns")
def columns_that_are_more(opened: Unsealed) -> None:
    opened.state["n_features_in_"] = 3


@tamper("native/svc-sparse-ovr", "altered or damaged")
def columns_that_overflow(opened: Unsealed) -> None:
    opened.state["n_features_in_"] = 2**61
    opened.state["shape_fit_"] = {"tuple": [18, 2**61]}
    opened.state["support_vectors_"]["shape"] = [14, 2**61]


@tamper("native/svc", "shape_fit_|support_|rows")
def rows_that_are_fewer(opened: Unsealed) -> None:
    opened.state["shape_fit_"] = {"tuple": [1, 2]}


@tamper("native/svc-sparse-ovr", "altered or damaged")
def indices_out_of_the_matrix(opened: Unsealed) -> None:
    opened.tensors["11"] = opened.tensors["11"] + 10**9


@tamper("native/svc-sparse-ovr", "altered or damaged")
def indices_that_are_negative(opened: Unsealed) -> None:
    opened.tensors["11"] = opened.tensors["11"] - 1


@tamper("native/svc-sparse-ovr", "altered or damaged")
def pointers_out_of_the_matrix(opened: Unsealed) -> None:
    opened.tensors["12"] = opened.tensors["12"] * 10**6


@tamper("native/svc-sparse-ovr", "altered or damaged")
def pointers_that_descend(opened: Unsealed) -> None:
    opened.tensors["12"][3], opened.tensors["12"][4] = 10, 2


@tamper("native/svc", "classes_.*twice")
def labels_twice(opened: Unsealed) -> None:
    put(opened, "classes_", np.array([1, 1]))


@tamper("native/svc", "classes_.*order")
def labels_out_of_order(opened: Unsealed) -> None:
    put(opened, "classes_", np.array([1, -1]))


@tamper("native/svc", "classes_")
def labels_of_nan(opened: Unsealed) -> None:
    put(opened, "classes_", np.array([1.0, np.nan]))


@tamper("native/svc", "classes")
def labels_that_are_more(opened: Unsealed) -> None:
    put(opened, "classes_", np.arange(3))


@tamper("native/svc", "gamma")
def gamma_of_nan(opened: Unsealed) -> None:
    opened.state["kernel_"]["state"]["gamma"] = {"float": "nan"}


@tamper("native/svc", "gamma")
def gamma_that_is_negative(opened: Unsealed) -> None:
    opened.state["kernel_"]["state"]["gamma"] = -1.0


@tamper("native/svc", "gamma")
def gamma_without_a_number(opened: Unsealed) -> None:
    opened.state["kernel_"]["state"]["gamma"] = "scale"


@tamper("native/svc", "kernel_: RBF")
def gamma_of_an_array(opened: Unsealed) -> None:
    opened.state["kernel_"]["state"]["gamma"] = {"array": "10"}


@tamper("native/svc-poly-3", "degree")
def degree_of_2_to_the_31(opened: Unsealed) -> None:
    opened.state["degree"] = opened.state["kernel_"]["state"]["degree"] = 2**31


@tamper("native/svc-poly-3", "degree")
def degree_that_is_negative(opened: Unsealed) -> None:
    opened.state["degree"] = opened.state["kernel_"]["state"]["degree"] = -1


@tamper("native/svc-poly-3", "degree")
def degree_of_a_fraction(opened: Unsealed) -> None:
    opened.state["kernel_"]["state"]["degree"] = 2.5


@tamper("native/svc", "kernel_")
def kernel_that_is_a_model(opened: Unsealed) -> None:
    opened.state["kernel_"] = {"class": "maxmargin.SVC", "state": {}}


@tamper("native/svc-probability", "weights")
def weights_of_another_width(opened: Unsealed) -> None:
    put(opened, "_weights", np.zeros((1, 3)))


@tamper("native/svc", "certificate_")
def certificate_of_nan(opened: Unsealed) -> None:
    opened.state["certificate_"]["state"]["dual"] = {"float": "nan"}


@tamper("native/svc-poly-3", "problems")
def certificate_of_other_problems(opened: Unsealed) -> None:
    opened.state["certificate_"]["state"]["parts"] = {"tuple": []}


@tamper("native/svc", "certificate_")
def certificate_missing(opened: Unsealed) -> None:
    del opened.state["certificate_"]


@tamper("native/svc-probability", "calibration|planes|pairs")
def calibration_of_another_shape(opened: Unsealed) -> None:
    opened.tensors["15"] = np.ones(3)


@tamper("native/svc-probability", "calibration|classes")
def calibration_of_other_classes(opened: Unsealed) -> None:
    opened.state["calibration_"]["state"]["n_classes"] = 5


@tamper("native/svc-probability", "slope")
def calibration_of_nan(opened: Unsealed) -> None:
    opened.tensors["15"] = np.array([np.nan])


@tamper("native/precomputed", "rows|vectors")
def rows_of_a_precomputed_kernel(opened: Unsealed) -> None:
    vectors = len(get(opened, "support_"))
    width = opened.state["n_features_in_"]
    put(opened, "support_vectors_", np.zeros((vectors, width)))


@tamper("native/precomputed", "products")
def products_of_others(opened: Unsealed) -> None:
    put(opened, "_given_products", get(opened, "_given_products")[:-1])


@tamper("native/nusvc-words", "classes_")
def words_out_of_order(opened: Unsealed) -> None:
    opened.state["classes_"]["text"].reverse()


@tamper("native/nusvc-words", "text")
def words_longer_than_said(opened: Unsealed) -> None:
    opened.state["classes_"]["text"][0] = "n" * 100


# ------------------------------------------------------------------- native: kernels of kernels

LINEAR = {"class": "maxmargin.Linear", "state": {}}


def set_kernel(opened: Unsealed, node: Any) -> None:
    opened.state["kernel"] = opened.state["kernel_"] = node


@tamper("native/kernel-tree", "deep")
def kernels_nested_deep(opened: Unsealed) -> None:
    node: Any = LINEAR
    for _ in range(200):
        node = {"class": "maxmargin.Scaled", "state": {"kernel": node, "factor": 1.0}}
    set_kernel(opened, node)


@tamper("native/kernel-tree", "factor|negative|positive|above|below")
def factor_that_is_negative(opened: Unsealed) -> None:
    set_kernel(opened, {"class": "maxmargin.Scaled", "state": {"kernel": LINEAR, "factor": -2.0}})


@tamper("native/kernel-tree", "column")
def kernel_of_columns_that_are_not_there(opened: Unsealed) -> None:
    columns = {"kernel": LINEAR, "columns": [0, 99], "of": None}
    set_kernel(opened, {"class": "maxmargin.Columns", "state": columns})


@tamper("native/kernel-tree", "column")
def kernel_of_no_columns(opened: Unsealed) -> None:
    columns: dict[str, Any] = {"kernel": LINEAR, "columns": [], "of": None}
    set_kernel(opened, {"class": "maxmargin.Columns", "state": columns})


@tamper("native/kernel-tree", "exponent|degree")
def power_of_2_to_the_31(opened: Unsealed) -> None:
    set_kernel(opened, {"class": "maxmargin.Power", "state": {"kernel": LINEAR, "exponent": 2**31}})


@tamper("native/kernel-tree", "terms|kernel|least")
def sum_of_nothing(opened: Unsealed) -> None:
    set_kernel(opened, {"class": "maxmargin.Sum", "state": {"terms": []}})


@tamper("native/kernel-tree", "kernel|terms")
def sum_of_words(opened: Unsealed) -> None:
    set_kernel(opened, {"class": "maxmargin.Sum", "state": {"terms": ["rbf", "linear"]}})


# ------------------------------------------------------------------- native: other models


@tamper("native/linear", "coef_|planes")
def weights_of_more_planes(opened: Unsealed) -> None:
    put(opened, "coef_", np.zeros((2, 2)))


@tamper("native/linear", "_pairs|classes|labels")
def planes_of_classes_that_are_not_there(opened: Unsealed) -> None:
    opened.state["_pairs"] = [{"tuple": [7, 0]}]


@tamper("native/linear-3", "planes|coef_")
def joint_planes_of_others(opened: Unsealed) -> None:
    put(opened, "coef_", get(opened, "coef_")[::-1])


@tamper("native/hard-margin", "n_support_|support")
def hard_margin_counts_swapped(opened: Unsealed) -> None:
    put(opened, "n_support_", get(opened, "n_support_") + np.array([1, -1]))


@tamper("native/perceptron", "altered or damaged")
def perceptron_weights_of_another_width(opened: Unsealed) -> None:
    put(opened, "coef_", np.zeros((1, 5)))


@tamper("native/structured", "weights|size")
def structured_weights_too_few(opened: Unsealed) -> None:
    put(opened, "coef_", get(opened, "coef_")[:-1])


@tamper("native/structured", "weights|size")
def structured_size_too_large(opened: Unsealed) -> None:
    opened.state["model_"]["state"]["size_"] = 10**9


@tamper("native/structured", "outputs|classes")
def structured_outputs_of_other_classes(opened: Unsealed) -> None:
    opened.state["support_outputs_"][0] = {"scalar": ["int64", 77]}


@tamper("native/structured", "model_")
def structured_model_of_another_class(opened: Unsealed) -> None:
    opened.state["model_"] = {"class": "maxmargin.Linear", "state": {}}


@tamper("native/kernel-pca", "altered or damaged")
def components_of_others(opened: Unsealed) -> None:
    opened.state["n_components_"] = 5


@tamper("native/kernel-pca", "columns")
def components_of_more_columns(opened: Unsealed) -> None:
    opened.state["n_features_in_"] = 3


@tamper("native/fourier", "frequencies")
def frequencies_missing(opened: Unsealed) -> None:
    put(opened, "frequencies_", get(opened, "frequencies_")[:, :1])


@tamper("native/monomials", "powers_|columns")
def monomials_of_columns_that_are_not_there(opened: Unsealed) -> None:
    put(opened, "powers_", get(opened, "powers_") + 50)


@tamper("native/bayes", "draws")
def draws_of_another_width(opened: Unsealed) -> None:
    name = opened.state["_posteriors"][0]["state"]["draws"]["array"]
    opened.tensors[name] = opened.tensors[name][..., :-1].copy()


@tamper("native/monomials", "gamma")
def monomials_without_a_number(opened: Unsealed) -> None:
    opened.state["kernel_"]["state"]["gamma"] = "scale"


@tamper("native/monomials", "monomials")
def monomials_of_another_kernel(opened: Unsealed) -> None:
    opened.state["kernel_"]["state"]["coef0"] = 0.0


@tamper("native/linear-3", "planes")
def planes_of_another_scheme(opened: Unsealed) -> None:
    opened.state["_scheme"] = "ovo"


@tamper("native/structured", "cost")
def structured_costs_of_other_classes(opened: Unsealed) -> None:
    opened.state["model_"]["state"]["cost"] = [1.0, 2.0]


# ------------------------------------------------------------------- native: steps before a model


def step(opened: Unsealed, place: int) -> dict[str, Any]:
    """Return the state of a step of a pipeline."""
    found: dict[str, Any] = opened.state["steps"][place]["tuple"][1]["state"]
    return found


def part(opened: Unsealed, place: int) -> list[Any]:
    """Return name, transformer and columns of a part of a ColumnTransformer."""
    found: list[Any] = step(opened, 0)["transformers_"][place]["tuple"]
    return found


@tamper("native/scaled", "scale_")
def scale_of_zero(opened: Unsealed) -> None:
    opened.tensors[step(opened, 0)["scale_"]["array"]][0] = 0.0


@tamper("native/scaled", "scale_|nan|finite")
def scale_of_nan(opened: Unsealed) -> None:
    opened.tensors[step(opened, 0)["scale_"]["array"]][0] = np.nan


@tamper("native/scaled", "scale_")
def scale_of_infinity(opened: Unsealed) -> None:
    opened.tensors[step(opened, 0)["scale_"]["array"]][0] = np.inf


@tamper("native/scaled", "scale_|min_|nan|finite")
def smallest_value_of_nan(opened: Unsealed) -> None:
    opened.tensors[step(opened, 1)["min_"]["array"]][0] = np.nan


@tamper("native/scaled", "scale_")
def scale_of_another_width(opened: Unsealed) -> None:
    opened.tensors[step(opened, 0)["scale_"]["array"]] = np.ones(3)


@tamper("native/scaled", "columns")
def steps_whose_widths_differ(opened: Unsealed) -> None:
    state = step(opened, 0)
    state["n_features_in_"] = 3
    for name in ("mean_", "var_", "scale_"):
        opened.tensors[state[name]["array"]] = np.ones(3)


@tamper("native/scaled", "steps|step")
def steps_missing(opened: Unsealed) -> None:
    opened.state["steps"] = []
    opened.tensors.clear()


@tamper("native/scaled", "memory")
def cache_of_pickles(opened: Unsealed) -> None:
    opened.state["memory"] = "/tmp"


@tamper("native/scaled", "no class")
def step_that_runs_functions(opened: Unsealed) -> None:
    opened.state["steps"][0]["tuple"][1]["class"] = "sklearn.FunctionTransformerX"


@tamper("native/columns", "statistics_|columns")
def statistics_of_another_shape(opened: Unsealed) -> None:
    imputer = part(opened, 0)[1]["state"]["steps"][0]["tuple"][1]["state"]
    opened.tensors[imputer["statistics_"]["array"]] = np.zeros(3)


@tamper("native/columns", "twice|categor")
def categories_twice(opened: Unsealed) -> None:
    part(opened, 1)[1]["state"]["categories_"][0]["objects"] = ["blue", "blue", "red"]


@tamper("native/columns", "categor")
def categories_too_few(opened: Unsealed) -> None:
    part(opened, 1)[1]["state"]["categories_"] = [{"objects": ["blue"], "shape": [1]}]


@tamper("native/columns", "categor")
def categories_of_numbers_out_of_order(opened: Unsealed) -> None:
    opened.tensors["50"] = np.array([3.0, 1.0, 2.0])
    part(opened, 1)[1]["state"]["categories_"] = [{"array": "50"}]


@tamper("native/columns", "categor|columns")
def categories_of_nothing(opened: Unsealed) -> None:
    part(opened, 1)[1]["state"]["categories_"] = []


@tamper("native/columns", "groups|categor")
def categories_grouped_out_of_range(opened: Unsealed) -> None:
    state = part(opened, 1)[1]["state"]
    opened.tensors["50"], opened.tensors["51"] = np.array([9, 9, 9]), np.array([1])
    state["_default_to_infrequent_mappings"] = [{"array": "50"}]
    state["_infrequent_indices"] = [{"array": "51"}]
    state["_infrequent_enabled"] = True


@tamper("native/columns", "drop")
def categories_dropped_that_are_not_there(opened: Unsealed) -> None:
    state = part(opened, 1)[1]["state"]
    state["drop_idx_"] = state["_drop_idx_after_grouping"] = {"objects": [99], "shape": [1]}


@tamper("native/columns", "column")
def columns_that_are_not_there(opened: Unsealed) -> None:
    part(opened, 0)[2] = [55]


@tamper("native/columns", "column")
def columns_of_inputs_that_are_not_there(opened: Unsealed) -> None:
    step(opened, 0)["_transformer_to_input_indices"]["map"]["a"] = [55]


@tamper("native/columns", "columns|room")
def columns_of_outputs_that_are_not_there(opened: Unsealed) -> None:
    step(opened, 0)["output_indices_"]["map"]["b"] = {"slice": [1, 10**9, None]}


@tamper("native/columns", "transformer|fitted|estimator")
def transformer_that_is_a_word(opened: Unsealed) -> None:
    part(opened, 1)[1] = "os.system"


@tamper("native/columns", "fitted|lacks")
def transformer_that_is_not_fitted(opened: Unsealed) -> None:
    entry = step(opened, 0)["transformers"][1]["tuple"][1]
    part(opened, 1)[1] = entry


@tamper("native/texts", "number")
def words_numbered_out_of_range(opened: Unsealed) -> None:
    step(opened, 0)["vocabulary_"]["map"]["bad"] = 10**9


@tamper("native/texts", "number")
def words_numbered_below_zero(opened: Unsealed) -> None:
    step(opened, 0)["vocabulary_"]["map"]["bad"] = -1


@tamper("native/texts", "number")
def words_with_the_same_number(opened: Unsealed) -> None:
    step(opened, 0)["vocabulary_"]["map"]["bad"] = 1


@tamper("native/texts", "words")
def words_missing(opened: Unsealed) -> None:
    step(opened, 0)["vocabulary_"]["map"].pop("word3")


@tamper("native/texts", "idf_|words")
def weights_of_words_missing(opened: Unsealed) -> None:
    opened.tensors["0"] = opened.tensors["0"][:-1]


@tamper("native/texts", "idf_")
def weights_of_words_of_nan(opened: Unsealed) -> None:
    opened.tensors["0"][0] = np.nan


@tamper("native/texts", "pattern|token")
def words_by_a_pattern_that_is_none(opened: Unsealed) -> None:
    step(opened, 0)["token_pattern"] = "(("


@tamper("native/texts", "ngram_range")
def words_of_no_number(opened: Unsealed) -> None:
    step(opened, 0)["ngram_range"] = {"tuple": [1, "9"]}


@tamper("native/texts", "dtype")
def words_of_another_type(opened: Unsealed) -> None:
    step(opened, 0)["dtype"] = "object"


@tamper("native/nystroem", "_type")
def landmarks_of_another_type(opened: Unsealed) -> None:
    step(opened, 0)["_type"] = "object"


@tamper("native/scaled", "transforms nothing")
def steps_out_of_order(opened: Unsealed) -> None:
    opened.state["steps"].reverse()


@tamper("native/columns", "_dtype is no type")
def imputer_of_another_type(opened: Unsealed) -> None:
    part(opened, 0)[1]["state"]["steps"][0]["tuple"][1]["state"]["_fill_dtype"] = "object"


@tamper("native/texts", "input|file")
def texts_that_are_names_of_files(opened: Unsealed) -> None:
    step(opened, 0)["input"] = "filename"


# ------------------------------------------------------------------- what must hold


@contextmanager
def limited() -> Iterator[dict[str, int]]:
    """Fail after some seconds of the processor, and measure how much memory is taken at most."""

    def too_slow(*_: Any) -> None:
        raise TimeoutError("this hangs")

    measured = {"peak": 0}
    before = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    tracemalloc.start()
    try:
        yield measured
        _, measured["peak"] = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("name", TAMPERS)
def test_refused(name: str, tmp_path: Path) -> None:
    tampered = TAMPERS[name]
    kind, _, _ = tampered.origin.partition("/")
    endings = {"libsvm": "svm.model", "liblinear": "linear.model", "native": "model.mmg"}
    path = tmp_path / endings[kind]
    path.write_bytes((CORPUS / tampered.origin).read_bytes())
    load(kind, path)  # as it was; what loading itself needs is loaded now
    path.write_bytes(make(tampered))
    with limited() as measured, pytest.raises(mm.ModelFileError) as refused:
        load(kind, path)
    message = str(refused.value)
    assert message.startswith(str(path))
    assert re.search(tampered.says, message.removeprefix(str(tmp_path))), message
    assert len(message) < 1000, message
    assert measured["peak"] <= 4 * path.stat().st_size + MORE


# ------------------------------------------------------------------- code, labels, memory


class Trap:
    """A pickle that makes a folder when it is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("kind", ["native", "libsvm", "liblinear"])
@pytest.mark.parametrize("ending", [".mmg", ".pkl", ".joblib", ".skops", ".model"])
def test_pickles_are_not_read(kind: str, ending: str, tmp_path: Path) -> None:
    path, marker = tmp_path / f"model{ending}", tmp_path / "was here"
    path.write_bytes(pickle.dumps(Trap(marker)))
    with pytest.raises(mm.ModelFileError, match=r"model\."):
        load(kind, path)
    with pytest.raises(mm.ModelFileError, match=r"model\."):
        mm.files.load_described(path)
    assert not marker.exists()
    pickle.loads(path.read_bytes())  # it is a trap
    assert marker.exists()


def test_pickles_within_tensors_are_not_read(tmp_path: Path) -> None:
    opened = unseal((CORPUS / "native" / "svc").read_bytes())
    trap = pickle.dumps(Trap(tmp_path / "was here"))
    opened.tensors["99"] = np.frombuffer(trap, dtype=np.uint8)
    opened.state["callback"] = {"json": "99"}
    (tmp_path / "model.mmg").write_bytes(seal(*opened))
    with pytest.raises(mm.ModelFileError, match=r"model\.mmg"):
        mm.load(tmp_path / "model.mmg")
    assert not (tmp_path / "was here").exists()


LABELS = {
    "nothing": b"",
    "no JSON": b"cat, dog",
    "of another kind": b"[1, 2]",
    "twice the same": b'{"labels": {"1": "cat", "-1": "cat"}}',
    "one missing": b'{"labels": {"1": "cat"}}',
    "of other numbers": b'{"labels": {"7": "cat", "8": "dog"}}',
    "key twice": b'{"labels": {"1": "cat", "1": "dog", "-1": "owl"}}',
    "nan": b'{"labels": {"1": NaN, "-1": 1}}',
    "infinity": b'{"labels": {"1": 1e999, "-1": 1}}',
    "lists": b'{"labels": {"1": [1], "-1": [2]}}',
    "words and numbers": b'{"labels": {"1": "cat", "-1": 2}}',
    "of another model": b'{"labels": {"1": "cat", "-1": "dog"}, "sha256": "00"}',
    "nested deep": b'{"labels": ' + b"[" * 100_000,
    "unknown key": b'{"labels": {"1": "cat", "-1": "dog"}, "__reduce__": "os.system"}',
    "no text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("kind", ["libsvm/svc", "liblinear/linear"])
@pytest.mark.parametrize("name", LABELS)
def test_labels_beside_a_model(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "svm.model"
    path.write_bytes((CORPUS / kind).read_bytes())
    (tmp_path / "svm.model.labels.json").write_bytes(LABELS[name])
    with pytest.raises(mm.ModelFileError) as refused:
        load(kind.partition("/")[0], path)
    assert str(refused.value).startswith(str(tmp_path / "svm.model.labels.json"))


BOMBS: dict[str, Callable[[], bytes]] = {
    "many tensors": lambda: frame(
        json.dumps(
            {str(k): {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]} for k in range(100_000)}
        ).encode()
    ),
    "a long text": lambda: frame(
        json.dumps({"__metadata__": {"maxmargin": "[" * 8_000_000}}).encode()
    ),
    "many texts": lambda: frame(
        json.dumps({"__metadata__": {str(k): "" for k in range(500_000)}}).encode()
    ),
    "brackets": lambda: frame(b"[" * 8_000_000),
    "many objects": lambda: frame(
        json.dumps({"__metadata__": {"maxmargin": "[" + "{}," * 2_000_000 + "0]"}}).encode()
    ),
    "a short text of LIBSVM": lambda: b"svm_type " + b"c" * 8_000_000,
}


@pytest.mark.wide
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_headers_do_not_fill_memory(tmp_path: Path) -> None:
    """What compiled code takes is seen from outside only."""
    for k, bomb in enumerate(BOMBS.values()):
        (tmp_path / f"{k}.mmg").write_bytes(bomb())
    code = f"""
import re, sys
import maxmargin as mm
def largest():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
mm.load({str(CORPUS / "native" / "svc")!r})
mm.files.load_libsvm({str(CORPUS / "libsvm" / "svc")!r})
for path in sys.argv[1:]:
    open("/proc/self/clear_refs", "w").write("5")  # the peak is what it is now
    before = largest()
    for load in (mm.load, mm.files.load_libsvm, mm.files.load_liblinear):
        try:
            load(path)
        except mm.ModelFileError as refused:
            assert len(str(refused)) < 1000, str(refused)[:1000]
        else:
            sys.exit(f"{{path}} was accepted")
    print(largest() - before)
"""
    paths = [tmp_path / f"{k}.mmg" for k in range(len(BOMBS))]
    ran = subprocess.run(
        [sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True
    )
    taken = list(map(int, ran.stdout.split()))
    assert ran.returncode == 0, ran.stderr
    # safetensors makes some 800 bytes of a tensor that takes 60 in the header.
    factors = [16 if name == "many tensors" else 4 for name in BOMBS]
    allowed = [k * path.stat().st_size + MORE for k, path in zip(factors, paths, strict=True)]
    assert len(taken) == len(paths)
    assert all(peak <= most for peak, most in zip(taken, allowed, strict=True)), (taken, allowed)
