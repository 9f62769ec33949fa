"""LIBSVM and LIBLINEAR themselves: bindings for decision values, programs for labels."""

import os
import shutil
import subprocess
from ctypes import c_double
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm

FOLDER = os.environ.get("MAXMARGIN_DATA", "")

needs_libsvm_tools = pytest.mark.skipif(
    shutil.which("svm-predict") is None, reason="svm-train and svm-predict are not installed"
)
needs_liblinear_tools = pytest.mark.skipif(
    shutil.which("liblinear-predict") is None, reason="liblinear-predict is not installed"
)
needs_data = pytest.mark.skipif(
    not Path(FOLDER, "a1a.svm.xz").exists(),
    reason="MAXMARGIN_DATA names no folder of .svm.xz files",
)


def real(name: str, rows: int) -> tuple[Any, Any]:
    """Return some rows of a real data set."""
    found = mm.data.read_labelled(Path(FOLDER, f"{name}.svm.xz"))
    chosen = np.random.default_rng(0).permutation(found.X.shape[0])[:rows]
    return found.X[chosen], np.asarray(found.y)[chosen]


def write_rows(path: Path, X: Any, y: Any) -> Path:
    """Write rows as these programs read them, with all digits."""
    X = sp.csr_matrix(X)
    with path.open("w") as file:
        for k in range(X.shape[0]):
            row = X[[k]]
            pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
            file.write(f"{y[k]!s} {' '.join(f'{j + 1}:{value!r}' for j, value in pairs)}\n")
    return path


def write_gram(path: Path, K: Any, y: Any) -> Path:
    """Write kernel values as LIBSVM reads them."""
    with path.open("w") as file:
        for k, row in enumerate(np.asarray(K).tolist()):
            pairs = " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row))
            file.write(f"{y[k]!s} 0:{k + 1} {pairs}\n")
    return path


def run(*command: Any) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def predicted(program: str, rows: Path, model: Path) -> Any:
    """Return what a program predicts."""
    out = rows.with_suffix(".out")
    run(program, rows, model, out)
    return np.atleast_1d(np.loadtxt(out))


def libsvm_values(path: Path, X: Any, planes: int, *, gram: bool = False) -> tuple[Any, Any]:
    """Return labels and decision values of libsvm-official for a model file."""
    svm = pytest.importorskip("libsvm.svm", reason="libsvm-official is not installed")
    # The pointer itself: what svmutil makes of it crashes for nu_svc, read by libsvm-official 3.37.
    model = svm.libsvm.svm_load_model(os.fsencode(path))
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    labels, values = [], []
    for k, row in enumerate(X.tolist()):
        named = {j + 1: value for j, value in enumerate(row) if value != 0 or gram}
        nodes, _ = svm.gen_svm_nodearray(
            {0: k + 1, **named} if gram else named, isKernel=gram or None
        )
        dec = (c_double * planes)()
        labels.append(svm.libsvm.svm_predict_values(model, nodes, dec))
        values.append(list(dec))
    svm.libsvm.svm_free_and_destroy_model(svm.byref(model))
    return np.array(labels), np.array(values)


def liblinear_values(path: Path, X: Any, planes: int) -> tuple[Any, Any]:
    """Return labels and decision values of liblinear-official for a model file."""
    linear = pytest.importorskip("liblinear.liblinear", reason="liblinear-official is absent")
    model = linear.liblinear.load_model(os.fsencode(path))
    bias = float(model.contents.bias)
    width = int(model.contents.nr_feature)
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    labels, values = [], []
    for row in X.tolist():
        named = {j + 1: value for j, value in enumerate(row) if value != 0}
        if bias >= 0:
            named[width + 1] = bias
        nodes, _ = linear.gen_feature_nodearray(named)
        dec = (c_double * max(planes, 2))()
        labels.append(linear.liblinear.predict_values(model, nodes, dec))
        values.append(list(dec)[:planes])
    return np.array(labels), np.array(values)
