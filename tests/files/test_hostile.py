"""Model files that were tampered with, so that loops would leave their arrays, or worse: refused.

None runs code, crashes, hangs or fills memory, and the message says what is wrong. Native files are
sealed again after the change, so that their digest is right and their content is judged. Files that
only lie are loaded, and ``mm.certify`` tells the truth.
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
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
ALTERED = "altered or damaged"


class Tamper(NamedTuple):
    """A change of a file of the corpus, and what the message must say about it."""

    origin: str  # the kind of file, and its name
    says: str
    change: Change


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


def _relabelled(data: bytes, end: bytes) -> bytes:
    return data.partition(b"labels ")[0] + b"labels " + end + b"\n"


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
    "labels of a regression": ("svr", rb"^rho", b"label 1 2\nrho", "label"),
    "nr_class of a regression": ("svr", rb"^nr_class 2$", b"nr_class 3", "nr_class"),
    "serial of no row": ("precomputed", rb"0:\d+ ?$", b"0:0", "row 0"),
    "serial missing": ("precomputed", rb"0:\d+ ?$", b"1:1", "precomputed"),
    "total_sv as a float": ("svc", rb"^total_sv 11$", b"total_sv 1e6", "total_sv"),
    "total_sv of 2**40": ("svc", rb"^total_sv 11$", b"total_sv 1099511627776", "total_sv"),
    "nr_sv of one class": ("svc", rb"^nr_sv 6 5$", b"nr_sv 11", "nr_sv"),
    "index negative": ("svc", rb"1:0\.64\d+", b"-1:1", "index:value"),
    "two colons": ("svc", rb"1:0\.64\d+", b"1:1:3", "index:value"),
    "long index": ("svc", rb"1:0\.64\d+", b"9" * 5000 + b":1", "index:value"),
    "value whose square is too large": ("svc", rb"1:0\.64\d+", b"1:1e200", "too large"),
    "value with underscores": ("svc", rb"1:0\.64\d+", b"1:1_0", "index:value"),
    "value of nan": ("svc", rb"1:0\.64\d+", b"1:nan", "index:value"),
    "coefficient of infinity": ("svc", rb"^1 1:0\.64", b"inf 1:0.64", "coefficient"),
    "coefficient too many": ("svc", rb"^1 1:0\.64", b"1 1 1:0.64", "index:value"),
    "an empty line": ("svc", rb"^1 1:0\.64.*$", b"", "coefficients"),
    "gamma of two": ("svc", rb"^gamma.*$", b"gamma 1 1", "gamma"),
    "gamma with a zero byte": ("svc", rb"^gamma.*$", b"gamma 0\0005", "gamma"),
    "gamma of many digits": ("svc", rb"^gamma.*$", b"gamma " + b"9" * 5000, "gamma"),
    "degree of a million": ("svc-poly-3", rb"^degree 2$", b"degree 1000000", "degree"),
    "label of 40 bits": ("svc", rb"^label 1 -1$", b"label 1 1099511627776", "label"),
    "label of one class": ("svc", rb"^label 1 -1$", b"label 1", "label"),
    "nr_class of 2**31 - 1": ("svc", rb"^nr_class 2$", b"nr_class 2147483647", "rho"),
    "nr_class negative": ("svc", rb"^nr_class 2$", b"nr_class -3", "nr_class"),
    "probability too many": ("svc-probability", rb"^probA.*$", b"probA 1 2", "probA"),
    "only the header": ("svc", rb"(?s)^SV\n.*", b"SV\n", "only 0 support vectors"),
    "no SV": ("svc", rb"^SV\n", b"", "no key"),
    "nothing": ("svc", rb"(?s).*", b"", "no line 'SV'"),
    "a pickle": ("svc", rb"(?s).*", b"\x80\x04\x95\x10", "truncated"),
    "nr_sv of a regression": ("svr", rb"^rho", b"nr_sv 1 1\nrho", "nr_sv"),
    "serial of a fraction": ("precomputed", rb"0:\d+ ?$", b"0:7.5", "precomputed"),
    "serial and more": ("precomputed", rb"0:\d+ ?$", b"0:7 1:2", "precomputed"),
    "serial of 2**31": ("precomputed", rb"0:\d+ ?$", b"0:2147483648", "row 2147483648"),
    "serial twice": ("precomputed", rb"0:(\d+) ?\n(\S+) 0:\d+ ?$", rb"0:\1\n\2 0:\1", "same row"),
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
    "logistic regression": ("linear", rb"^solver_type \S+", b"solver_type L2R_LR", "logistic"),
    "solver missing": ("linear", rb"^solver_type.*\n", b"", "solver_type"),
    "a regression of classes": (
        "linear-3", rb"^solver_type \S+", b"solver_type L2R_L2LOSS_SVR", "label"),
    "one class": ("linear-3", rb"^solver_type \S+", b"solver_type ONECLASS_SVM", "LIBSVM"),
    "nr_class of 1": ("linear", rb"^nr_class 2$", b"nr_class 1", "nr_class"),
    "nr_class of 2**31 - 1": ("linear-3", rb"^nr_class 3$", b"nr_class 2147483647", "label"),
    "label of 40 bits": ("linear-3", rb"^label 0 1 2$", b"label 0 1 1099511627776", "label"),
    "nr_feature too large": ("linear", rb"^nr_feature 2$", b"nr_feature 3", "lines"),
    "bias missing": ("linear", rb"^bias.*\n", b"", "bias"),
    "weight of infinity": ("linear", rb"^w\n\S+", b"w\ninf", "linear.model:"),
    "weight that is a word": ("linear", rb"^w\n\S+", b"w\nx", "linear.model:"),
    "weight missing": ("linear-3", rb"^w\n\S+ ", b"w\n", "linear.model:"),
    "one more line": ("linear", rb"\Z", b"1 \n", "more lines"),
    "bias times its weight too large": (
        "linear", rb"(?s)^bias \S+\n(.*\n)\S+ \n\Z", rb"bias 1e100\n\g<1>1e100 \n", "too large"),
    "nothing": ("linear", rb"(?s).*", b"", "no line 'w'"),
    "regression of three classes": ("linear-svr", rb"^nr_class 2$", b"nr_class 3", "nr_class"),
}  # fmt: skip
LABELS = {
    # name: what the last line says of the labels 1 and 0, what the message says
    "nothing": (b"", "no JSON"),
    "no JSON": (b"cat, dog", "no JSON"),
    "of another kind": (b'{"0": "cat", "1": "dog"}', "list of strings"),
    "empty": (b"[]", "list of strings"),
    "twice the same": (b'["cat", "cat"]', "the same"),
    "the same but for a zero": (b'["cat", "cat\\u0000"]', "the same"),
    "one missing": (b'["cat"]', "1 labels"),
    "one too many": (b'["cat", "dog", "owl"]', "3 labels"),
    "nan": (b"[NaN, 1]", "NaN"),
    "infinity": (b"[1e999, 1]", "1e999"),
    "lists": (b"[[1], [2]]", "list of strings"),
    "words and numbers": (b'["cat", 2]', "list of strings"),
    "more than 64 bits": (b"[1, 99999999999999999999999]", "64 bits"),
    "nested deep": (b"[" * 9_000, "nested"),
    "no text": (b"\xff\xfe\x00", "no JSON"),
    "twice": (b'["cat", "dog"]\nlabels ["cat", "dog"]', "more lines"),
    "very long": (b'["' + b"x" * 1000 + b'"' + b', "short"' * 2000 + b"]", "much longer"),
}
TEXTS = {
    f"{kind}: {name}": Tamper(f"{kind}/{file}", says, partial(replaced, pattern=old, new=new))
    for kind, table in (("libsvm", LIBSVM), ("liblinear", LIBLINEAR))
    for name, (file, old, new, says) in table.items()
} | {
    f"{origin}: labels: {name}": Tamper(origin, says, partial(_relabelled, end=end))
    for origin in ("libsvm/nusvc-words", "liblinear/linear-words")
    for name, (end, says) in LABELS.items()
}


# ------------------------------------------------------------------- native: the container


def header(change: Callable[[dict[str, Any]], Any]) -> Change:
    """Return a change of the header after sealing, as only bytes of it can say."""

    def rewrite(opened: Unsealed) -> bytes:
        data = seal(opened.document, opened.tensors)
        length = int.from_bytes(data[:8], "little")
        found = json.loads(data[8 : 8 + length])
        change(found)
        return frame(json.dumps(found).encode()) + data[8 + length :]

    return rewrite


def entry(name: str, **values: Any) -> Change:
    """Return a change of what the header says about a tensor."""
    return header(lambda found: found[name].update(values))


def sealed(change: Callable[[bytes], bytes]) -> Change:
    """Return a change of the bytes of a file."""
    return lambda opened: change(seal(*opened))


def swap_tensors(found: dict[str, Any]) -> None:
    found["8"], found["9"] = found["9"], found["8"]


def swapped(opened: Unsealed) -> Any:
    opened.tensors["9"] = opened.tensors["9"] * 2
    return header(swap_tensors)(opened)


def overlapping(found: dict[str, Any]) -> None:
    found["4"]["data_offsets"] = found["5"]["data_offsets"]


def tensor_twice(data: bytes) -> bytes:
    length = int.from_bytes(data[:8], "little")
    entry = b'{"4":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},'
    return frame(entry + data[9 : 8 + length]) + data[8 + length :]


def zip_file(_: Any) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("schema.json", "{}")
    return made.getvalue()


def numpy_file(_: Any) -> bytes:
    made = io.BytesIO()
    np.savez(made, coef_=np.zeros(3))
    return made.getvalue()


NO_FILE = "no model file"
CONTAINER: dict[str, tuple[str, Change]] = {
    "header longer than the file": (
        NO_FILE, sealed(lambda data: (len(data) * 2).to_bytes(8, "little") + data[8:])),
    "header of exabytes": (NO_FILE, sealed(lambda data: (2**62).to_bytes(8, "little") + data[8:])),
    "header of no length": (NO_FILE, sealed(lambda data: bytes(8) + data[8:])),
    "cut within a tensor": (NO_FILE, sealed(lambda data: data[:-3])),
    "cut within the header": (NO_FILE, sealed(lambda data: data[:100])),
    "bytes after the end": (NO_FILE, sealed(lambda data: data + bytes(64))),
    "empty": (NO_FILE, sealed(lambda data: b"")),
    "tensors overlap": (NO_FILE, header(overlapping)),
    "offsets out of the file": (NO_FILE, entry("4", data_offsets=[2**40, 2**40 + 8])),
    "offsets that end before they begin": (
        NO_FILE, header(lambda found: found["4"]["data_offsets"].reverse())),
    "offsets that are negative": (NO_FILE, entry("4", data_offsets=[-8, 0])),
    "shape that is negative": (NO_FILE, entry("10", shape=[-11, -2])),
    "shape that overflows": (NO_FILE, entry("10", shape=[2**32, 2**32, 22])),
    "type of another size": (NO_FILE, entry("10", dtype="F32")),
    "type that nobody knows": (NO_FILE, entry("10", dtype="OBJECT")),
    "type of complex numbers": ("digest|type", entry("10", dtype="C64")),
    "tensors swapped": ("digest", swapped),
    "digest missing": ("digest", header(lambda found: found["__metadata__"].pop("sha256"))),
    "digest of another": (
        "digest", header(lambda found: found["__metadata__"].update(sha256="0" * 64))),
    "document missing": (
        "not of maxmargin", header(lambda found: found["__metadata__"].pop("maxmargin"))),
    "metadata missing": ("not of maxmargin", header(lambda found: found.pop("__metadata__"))),
    "tensor twice": ("no model file|digest|twice", sealed(tensor_twice)),
    "tensor of nothing": ("to nothing", lambda opened: opened.tensors.update({"77": np.zeros(3)})),
    "tensor named like a path": (
        "to nothing", lambda opened: opened.tensors.update({"../../../etc/passwd": np.zeros(3)})),
    "tensor missing": ("no tensor", lambda opened: opened.tensors.pop("10")),
    "zip file": ("begins with", zip_file),
    "numpy file": ("begins with", numpy_file),
    "pickle of a model": ("begins with", lambda _: pickle.dumps(mm.SVC())),
    "model of LIBSVM": ("begins with", lambda _: (CORPUS / "libsvm" / "svc").read_bytes()),
}  # fmt: skip


# ------------------------------------------------------------------- native: the document


def text(old: str, new: str) -> Change:
    """Return a change of the document as a text."""

    def rewrite(opened: Unsealed) -> bytes:
        before = json.dumps(opened.document)
        after = before.replace(old, new)
        assert after != before
        return seal(after, opened.tensors)

    return rewrite


def cost(new: str) -> Change:
    """Return a change of the parameter C as a text."""
    return text('"C": 1.0', f'"C": {new}')


def document(**values: Any) -> Change:
    """Return a change of the document's own entries."""
    return lambda opened: opened.document.update(values)


def tensors(node: Any, **added: Any) -> Change:
    """Return a change of C to a node that names further tensors."""

    def add(opened: Unsealed) -> None:
        opened.tensors.update({name[1:]: array for name, array in added.items()})
        opened.state["C"] = node

    return add


def nodes(value: Any) -> Any:
    """Return a tensor of JSON."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def kernel_alone(opened: Unsealed) -> None:
    opened.document["model"] = {"class": "maxmargin.Linear", "state": {}}
    opened.tensors.clear()


MULTIPLIED = {f"_{k}": nodes([{"json": str(k + 1)}] * 10) for k in range(50, 60)}
DOCUMENT: dict[str, tuple[str, Change]] = {
    "JSON with NaN": ("NaN", cost("NaN")),
    "JSON with too large a number": ("1e999", cost("1e999")),
    "JSON with a key twice": ("twice", cost('1.0, "C": 2.0')),
    "JSON nested deep": ("deep", cost("[" * 5000 + "]" * 5000)),
    "JSON nested very deep": ("deep|items", cost("[" * 200_000 + "]" * 200_000)),
    "JSON cut off": (ALTERED, lambda o: seal(json.dumps(o.document)[:-5], o.tensors)),
    "JSON of another kind": (ALTERED, lambda opened: seal("[]", opened.tensors)),
    "JSON with too many digits": ("64 bits|digit", cost("1" + "0" * 4000)),
    "JSON with a million items": ("items", cost("[" + "[]," * 1_000_000 + "0]")),
    "format of the future": ("format 99", document(format=99)),
    "format of the past": (ALTERED, document(format=0)),
    "key that nobody knows": (ALTERED, document(__reduce__=["os.system", "true"])),
    "JSON that holds itself": (
        "deep|twice|once", tensors({"json": "50"}, _50=nodes([{"json": "50"}]))),
    "JSON that multiplies": (
        "twice|once", tensors({"json": "50"}, _60=nodes([]), **MULTIPLIED)),
    "integers that multiply": (
        "twice|once", tensors([{"ints": "50"}] * 900, _50=np.zeros(100_000, dtype=np.int64))),
    "texts much wider than they are": (
        "text", tensors([{"text": [""], "shape": [1], "width": 10_000}] * 900)),
    "class of another module": ("os.system", document(model={"class": "os.system", "state": {}})),
    "class that starts programs": (
        "Popen", lambda opened: opened.state.update(
            callback={"class": "subprocess.Popen", "state": {"args": ["true"]}})),
    "class by a path": (
        "no class", lambda opened: opened.document["model"].update(
            {"class": "maxmargin.estimators.svm.svc.SVC"})),
    "model that is a kernel": ("holds no estimator", kernel_alone),
    "node of another kind": (
        "no kind", lambda opened: opened.state.update(
            callback={"__reduce__": ["os.system", ["true"]]})),
    "type of another module": (
        "no type", lambda opened: opened.state.update(callback={"type": "os.system"})),
}  # fmt: skip


# ------------------------------------------------------------------- native: the state of models


def put(**values: Any) -> Change:
    """Return a change of attributes: to other nodes."""
    return lambda opened: opened.state.update(values)


def lacking(*names: str) -> Change:
    """Return a change that takes attributes away, and their tensors."""

    def take(opened: Unsealed) -> None:
        for name in names:
            node = opened.state.pop(name)
            if isinstance(node, dict) and "array" in node:
                opened.tensors.pop(node["array"])

    return take


def array(name: Any, change: Callable[[Any], Any], *inside: Any) -> Change:
    """Return a change of an array of the model, or of what is inside of it."""

    def alter(opened: Unsealed) -> None:
        place = at(opened.state, *inside)[name]["array"]
        opened.tensors[place] = np.ascontiguousarray(change(opened.tensors[place]))

    return alter


def at(node: Any, *inside: Any) -> Any:
    """Return the state of an object inside of a model, by names and places."""
    for key in inside:
        node = node[key]
        if isinstance(node, dict) and "tuple" in node:
            node = node["tuple"]
        if isinstance(node, dict) and "class" in node:
            node = node["state"]
    return node


def inner(*inside: Any, **values: Any) -> Change:
    """Return a change of the attributes of an object inside of a model."""
    return lambda opened: at(opened.state, *inside).update(values)


def tensor(name: str, change: Callable[[Any], Any]) -> Change:
    """Return a change of a tensor by its name in the file."""

    def alter(opened: Unsealed) -> None:
        opened.tensors[name] = np.ascontiguousarray(change(opened.tensors[name]))

    return alter


def both(**values: Any) -> Change:
    """Return a change of a parameter of the model and of its kernel."""

    def alter(opened: Unsealed) -> None:
        opened.state.update(values)
        at(opened.state, "kernel_").update(values)

    return alter


def kernel(name: str, **state: Any) -> Change:
    """Return a change of the kernel, given and fitted."""
    node = {"class": f"maxmargin.{name}", "state": state}
    return put(kernel=node, kernel_=node)


def nested(depth: int) -> Change:
    node: Any = LINEAR
    for _ in range(depth):
        node = {"class": "maxmargin.Scaled", "state": {"kernel": node, "factor": 1.0}}
    return put(kernel=node, kernel_=node)


def wide(opened: Unsealed) -> None:
    """Let all say that there are 2**61 columns."""
    opened.state["n_features_in_"] = 2**61
    opened.state["shape_fit_"] = {"tuple": [18, 2**61]}
    opened.state["support_vectors_"]["shape"] = [14, 2**61]


def given_rows(opened: Unsealed) -> None:
    """Give a precomputed kernel rows."""
    vectors = len(opened.array(opened.state["support_"]))
    place = opened.state["support_vectors_"]["array"]
    opened.tensors[place] = np.zeros((vectors, opened.state["n_features_in_"]))


def out_of_order(opened: Unsealed) -> None:
    opened.tensors["12"][3], opened.tensors["12"][4] = 10, 2


def two_labels(opened: Unsealed) -> None:
    opened.tensors["50"] = np.array([3.0, 1.0, 2.0])
    at(opened.state, *ENCODER)["categories_"] = [{"array": "50"}]


def groups(codes: list[int], rare: list[int]) -> Change:
    """Return a change of the codes that categories get when rare ones are grouped."""

    def alter(opened: Unsealed) -> None:
        opened.tensors["50"], opened.tensors["51"] = np.array(codes), np.array(rare)
        at(opened.state, *ENCODER).update(
            _default_to_infrequent_mappings=[{"array": "50"}],
            _infrequent_indices=[{"array": "51"}],
            _infrequent_enabled=True,
        )

    return alter


def word(number: int) -> Change:
    return lambda opened: at(opened.state, *FIRST)["vocabulary_"]["map"].update(bad=number)


def without_steps(opened: Unsealed) -> None:
    opened.state["steps"] = []
    opened.tensors.clear()


def other_machine(opened: Unsealed) -> None:
    """Let a kernel be the machine of a cell, and leave no tensor unused."""
    opened.state["machines_"][0] = LINEAR
    text = json.dumps(opened.document)
    for name in [*opened.tensors]:
        if f'"{name}"' not in text:
            del opened.tensors[name]


def pair(name: str, *classes: int) -> Change:
    return put(**{name: [{"tuple": list(classes)}]})


LINEAR = {"class": "maxmargin.Linear", "state": {}}
MILLION = np.array([10**6, 10**6], dtype=np.int32)
DROPPED = {"objects": [99], "shape": [1]}
FIRST = ("steps", 0, 1)  # of the steps of a pipeline
ENCODER = (*FIRST, "transformers_", 1, 1)
IMPUTER = (*FIRST, "transformers_", 0, 1, "steps", 0, 1)
STATES: dict[str, dict[str, tuple[str, Change]]] = {
    "svc": {
        "attribute too many": ("no attribute", put(predict=1)),
        "attribute with underscores": ("no attribute", put(__class__={"type": "python str"})),
        "attribute missing": ("lacks", lacking("_duals")),
        "parameter missing": ("lacks", lacking("C")),
        "status of another kind": (
            "Status", put(status_={"enum": ["maxmargin.KernelPCAStatus", "OPTIMAL"]})),
        "status that nobody knows": (
            "Status", put(status_={"enum": ["maxmargin.Status", "__members__"]})),
        "cost of nan": ("C", put(C={"float": "nan"})),
        "cost that is negative": ("C", put(C=-1.0)),
        "counts of a million": ("n_support_", array("n_support_", lambda n: MILLION)),
        "counts that are negative": (
            "n_support_", array("n_support_", lambda n: np.array([12, -1], dtype=np.int32))),
        "coefficients cut short": ("dual_coef_", array("dual_coef_", lambda a: a[:, :-1])),
        "coefficients of nan": ("_duals.*finite", array("_duals", lambda a: a * np.nan)),
        "coefficients of float32": (
            "_duals|dual_coef_", array("_duals", lambda a: a.astype(np.float32))),
        "intercept that is empty": ("intercept_|planes", array("intercept_", lambda b: b[:0])),
        "support that is empty": ("support vectors", array("support_", lambda rows: rows[:0])),
        "support of a row that is not there": (
            "support_", array("support_", lambda rows: rows + 10**12)),
        "support of a row twice": ("support_.*twice", array("support_", lambda rows: rows * 0)),
        "support of negative rows": ("support_", array("support_", lambda rows: -1 - rows)),
        "vectors that are narrower": ("columns", array("support_vectors_", lambda Z: Z[:, :1])),
        "vectors that are fewer": ("rows", array("support_vectors_", lambda Z: Z[:-1])),
        "vectors of infinity": (
            "support_vectors_.*finite", array("support_vectors_", lambda Z: Z * np.inf)),
        "columns that are more": ("columns", put(n_features_in_=3)),
        "rows that are fewer": ("shape_fit_|support_|rows", put(shape_fit_={"tuple": [1, 2]})),
        "labels twice": ("classes_.*twice", array("classes_", lambda _: np.array([1, 1]))),
        "labels out of order": ("classes_.*order", array("classes_", lambda _: np.array([1, -1]))),
        "labels of nan": ("classes_", array("classes_", lambda _: np.array([1.0, np.nan]))),
        "labels that are more": ("classes", array("classes_", lambda _: np.arange(3))),
        "gamma of nan": ("gamma", inner("kernel_", gamma={"float": "nan"})),
        "gamma that is negative": ("gamma", inner("kernel_", gamma=-1.0)),
        "gamma without a number": ("gamma", inner("kernel_", gamma="scale")),
        "gamma of an array": ("kernel_: RBF", inner("kernel_", gamma={"array": "10"})),
        "kernel that is a model": ("kernel_", put(kernel_={"class": "maxmargin.SVC", "state": {}})),
        "certificate of nan": ("certificate_", inner("certificate_", dual={"float": "nan"})),
        "certificate missing": ("certificate_", lacking("certificate_")),
    },
    "svc-sparse-ovr": {
        "counts of a million": (
            "n_support_", array("n_support_", lambda _: np.array([10**6, 0, 0], dtype=np.int32))),
        "columns that overflow": (ALTERED, wide),
        "indices out of the matrix": (ALTERED, tensor("11", lambda each: each + 10**9)),
        "indices that are negative": (ALTERED, tensor("11", lambda each: each - 1)),
        "pointers out of the matrix": (ALTERED, tensor("12", lambda each: each * 10**6)),
        "pointers that descend": (ALTERED, out_of_order),
        "planes of another scheme": ("sides", put(_scheme="ovo")),
    },
    "svc-poly-3": {
        "degree of 2**31": ("degree", both(degree=2**31)),
        "degree that is negative": ("degree", both(degree=-1)),
        "degree of a fraction": ("degree", inner("kernel_", degree=2.5)),
    },
    "svc-probability": {
        "weights of another width": ("weights", array("_weights", lambda _: np.zeros((1, 3)))),
        "calibration of another shape": (
            "calibration|planes|pairs", tensor("15", lambda _: np.ones(3))),
        "calibration of other classes": (
            "calibration|classes", inner("calibration_", n_classes=5)),
        "calibration of nan": ("slope", tensor("15", lambda _: np.array([np.nan]))),
    },
    "precomputed": {
        "rows of a precomputed kernel": ("rows|vectors", given_rows),
        "products of others": ("products", array("_given_products", lambda K: K[:-1])),
        "products missing": ("products", lacking("_given_products")),
    },
    "nusvc-words": {
        "words out of order": ("classes_", lambda o: o.state["classes_"]["text"].reverse()),
        "words longer than said": (
            "text", lambda o: o.state["classes_"]["text"].__setitem__(0, "n" * 100)),
    },
    "nusvr": {
        "rows that nobody has": ("more rows", put(shape_fit_={"tuple": [2**40, 2]})),
        "duals of one edge": ("duals", array("_duals", lambda a: a[:1])),
    },
    "kernel-tree": {
        "kernels nested deep": ("deep", nested(200)),
        "factor that is negative": (
            "factor|negative|positive|above|below", kernel("Scaled", kernel=LINEAR, factor=-2.0)),
        "columns that are not there": (
            "column", kernel("Columns", kernel=LINEAR, columns=[0, 99], of=None)),
        "no columns": ("column", kernel("Columns", kernel=LINEAR, columns=[], of=None)),
        "power of 2**31": ("exponent|degree", kernel("Power", kernel=LINEAR, exponent=2**31)),
        "sum of nothing": ("terms|kernel|least", kernel("Sum", terms=[])),
        "sum of words": ("kernel|terms", kernel("Sum", terms=["rbf", "linear"])),
    },
    "linear": {
        "weights of more planes": ("coef_|planes", array("coef_", lambda w: np.zeros((2, 2)))),
        "planes of classes that are not there": ("_pairs|classes|labels", pair("_pairs", 7, 0)),
        "duals of more planes": (
            "duals", lambda o: o.state["_signed_duals"].append(o.state["_signed_duals"][0])),
        "learners of no planes": ("learners", put(_learners=[])),
    },
    "linear-3": {
        "planes of another scheme": ("planes", put(_scheme="ovo")),
        "planes of fewer classes": ("joint", lambda opened: opened.state["_pairs"].pop()),
    },
    "hard-margin": {
        "planes of no classes": ("planes", put(_subproblems=[])),
        "planes of a class below 0": ("class", pair("_subproblems", -1, 0)),
        "counts that are more": ("n_support_", array("n_support_", lambda n: n + 1)),
    },
    "perceptron": {
        "weights of another width": (ALTERED, array("coef_", lambda w: np.zeros((1, 5)))),
        "state of another shape": (
            "weights", array("weights", lambda w: w[:, np.newaxis], "_state")),
        "sums of another width": ("sums", array("lag", lambda each: each[:-1], "_state")),
    },
    "voted": {
        "updates of rows that are not there": (
            "update", array("row", lambda rows: rows + 50, "_votes", 0, "updates")),
        "updates of classes below 0": (
            "update|negative", array("label", lambda each: each * 0 - 1, "_votes", 0, "updates")),
    },
    "bayes": {
        "draws of another width": (
            "draws", array("draws", lambda z: z[..., :-1], "_posteriors", 0)),
        "pairs without draws": (
            "planes|pairs", lambda opened: opened.state["_pairs"].append({"tuple": [1, 0]})),
    },
    "partitioned": {
        "splits that are their own children": (
            "cycle", array("children", lambda each: np.zeros_like(each), "cells_")),
        "children that are not there": (
            "split|cell", array("children", lambda each: each - 9, "cells_")),
        "a cell without a machine": ("machines", lambda opened: opened.state["machines_"].pop()),
        "a machine that is none": ("no SVC", other_machine),
        "classes that are not there": ("_sole", array("_sole", lambda each: each + 9)),
        "cells that are more": ("cells", put(n_cells_=9)),
    },
    "structured": {
        "weights too few": ("weights|size", array("coef_", lambda w: w[:-1])),
        "size too large": ("weights|size", inner("model_", size_=10**9)),
        "outputs of other classes": (
            "outputs|classes", lambda opened: opened.state["support_outputs_"].__setitem__(
                0, {"scalar": ["int64", 77]})),
        "model of another class": ("model_", put(model_=LINEAR)),
        "costs of other classes": ("cost", inner("model_", cost=[1.0, 2.0])),
    },
    "kernel-pca": {
        "components of others": (ALTERED, put(n_components_=5)),
        "more columns": ("columns", put(n_features_in_=3)),
        "rows that are fewer": (
            "rows", array("support_vectors_", lambda Z: Z[:-1], "_projection")),
    },
    "monomials": {
        "monomials of a larger degree": (
            "monomials", inner("_projection", "features", "kernel", degree=9)),
        "weights of fewer monomials": (
            "monomials", array(2, lambda w: w[:-1], "_projection", "features", "monomials")),
    },
    "nystroem": {
        "landmarks of another type": ("_type", inner(*FIRST, _type="object")),
    },
    "scaled": {
        "scale of zero": ("scale_", array("scale_", lambda each: each * 0, *FIRST)),
        "scale of infinity": ("scale_", array("scale_", lambda each: each * np.inf, *FIRST)),
        "scale of another width": ("scale_", array("scale_", lambda _: np.ones(3), *FIRST)),
        "steps missing": ("steps|step", without_steps),
        "cache of pickles": ("memory", put(memory="/tmp")),
        "step that nobody knows": (
            "no class", lambda opened: opened.state["steps"][0]["tuple"][1].update(
                {"class": "sklearn.FunctionTransformerX"})),
    },
    "columns": {
        "statistics of another shape": (
            "statistics_|columns", array("statistics_", lambda _: np.zeros(3), *IMPUTER)),
        "categories too few": (
            "categor", inner(*ENCODER, categories_=[{"objects": ["blue"], "shape": [1]}])),
        "categories of numbers out of order": ("categor", two_labels),
        "categories of very many columns": ("categor", inner(*ENCODER, n_features_in_=2**40)),
        "categories of nothing": ("categor|columns", inner(*ENCODER, categories_=[])),
        "categories grouped out of range": ("groups|categor", groups([9, 9, 9], [1])),
        "rare categories that are not there": ("categor", groups([0, 1, 2], [9])),
        "columns that are not made": ("columns", inner(*ENCODER, _n_features_outs=[1])),
        "categories dropped that are not there": (
            "drop", inner(*ENCODER, drop_idx_=DROPPED, _drop_idx_after_grouping=DROPPED)),
    },
    "texts": {
        "words numbered out of range": ("number", word(10**9)),
        "words numbered below zero": ("number", word(-1)),
        "words with the same number": ("number", word(1)),
        "words missing": (
            "words", lambda opened: at(opened.state, *FIRST)["vocabulary_"]["map"].popitem()),
        "weights of words missing": ("idf_|words", tensor("0", lambda each: each[:-1])),
        "weights of words of nan": ("idf_", tensor("0", lambda each: each * np.nan)),
        "names of files": ("input|file", inner(*FIRST, input="filename")),
    },
}  # fmt: skip
NATIVE = {"svc": CONTAINER | DOCUMENT}
TAMPERS = TEXTS | {
    f"native/{file}: {name}": Tamper(f"native/{file}", *each)
    for table in (NATIVE, STATES)
    for file, changes in table.items()
    for name, each in changes.items()
}


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
    with limited() as measured, pytest.raises(mm.errors.ModelFileError) as refused:
        load(kind, path)
    message = str(refused.value)
    assert message.startswith(str(path))
    assert re.search(tampered.says, message.removeprefix(str(tmp_path))), message
    assert len(message) < 1000, message
    assert measured["peak"] <= 4 * path.stat().st_size + MORE


# ------------------------------------------------------------------- files that only lie


def widened(opened: Unsealed) -> None:
    """Let a scaler be for more columns than the step after it."""
    inner(*FIRST, n_features_in_=3)(opened)
    for name in ("mean_", "var_", "scale_"):
        array(name, lambda _: np.ones(3), *FIRST)(opened)


LIES: dict[str, dict[str, Change]] = {
    "svc": {"counts swapped": array("n_support_", lambda counts: counts[::-1])},
    "linear-3": {"planes of others": array("coef_", lambda planes: planes[::-1])},
    "scaled": {
        "scale of nan": array("scale_", lambda scale: scale * np.nan, *FIRST),
        "steps out of order": lambda opened: opened.state["steps"].reverse(),
        "a step of more columns": widened,
    },
    "columns": {
        "columns that are not there": lambda opened: at(
            opened.state, *FIRST, "transformers_", 0
        ).__setitem__(2, [55]),
        "a transformer that is a word": lambda opened: at(
            opened.state, *FIRST, "transformers_", 1
        ).__setitem__(1, "os.system"),
        "outputs that are not there": lambda opened: at(opened.state, *FIRST)["output_indices_"][
            "map"
        ].update(b={"slice": [1, 10**9, None]}),
    },
    "texts": {"a pattern that is none": inner(*FIRST, token_pattern="((")},
}
ORDINARY = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, re.error)


@pytest.mark.parametrize(("file", "name"), [(file, name) for file in LIES for name in LIES[file]])
def test_lies_crash_nothing(file: str, name: str, tmp_path: Path) -> None:
    """Such a file answers, wrongly, or raises an ordinary error; in little time and memory."""
    opened = unseal((CORPUS / "native" / file).read_bytes())
    LIES[file][name](opened)
    kept = {k: v for k, v in opened.tensors.items() if f'"{k}"' in json.dumps(opened.document)}
    (tmp_path / "model.mmg").write_bytes(seal(opened.document, kept))
    rows: Any = {"texts": ["a good word"], "columns": np.array([[1.0, "red"]], dtype=object)}
    with limited() as measured, suppress(*ORDINARY), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.load(tmp_path / "model.mmg").predict(rows.get(file, np.zeros((3, 2))))
    assert measured["peak"] <= 64 << 20


def test_certify_tells_the_truth_about_a_file_that_lies(tmp_path: Path) -> None:
    X, y = mm.datasets.gaussians(60, random_state=0)
    mm.save(mm.SVC(kernel="poly").fit(X, y), tmp_path / "model.mmg")
    opened = unseal((tmp_path / "model.mmg").read_bytes())
    array("dual_coef_", lambda a: a[:, ::-1])(opened)
    (tmp_path / "model.mmg").write_bytes(seal(*opened))
    found = mm.load(tmp_path / "model.mmg")
    assert found.certificate_.holds(1e-4)  # which is what the file says
    proved: Any = mm.certify(found, X, y)
    assert not proved.holds(1e-4)


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
    with pytest.raises(mm.errors.ModelFileError, match=r"model\."):
        load(kind, path)
    with pytest.raises(mm.errors.ModelFileError, match=r"model\."):
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
    with pytest.raises(mm.errors.ModelFileError, match=r"model\.mmg"):
        mm.load(tmp_path / "model.mmg")
    assert not (tmp_path / "was here").exists()


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
        except mm.errors.ModelFileError as refused:
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
