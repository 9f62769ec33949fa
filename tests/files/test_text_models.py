"""What model files of LIBSVM and LIBLINEAR have in common: labels of any kind, and strict text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import maxmargin as mm
from tests.support.official import (
    needs_liblinear_tools,
    needs_libsvm_tools,
    predicted,
    write_rows,
)

SAVE: dict[str, Any] = {"libsvm": mm.files.save_libsvm, "liblinear": mm.files.save_liblinear}
LOAD: dict[str, Any] = {"libsvm": mm.files.load_libsvm, "liblinear": mm.files.load_liblinear}
MODELS: dict[str, Any] = {"libsvm": mm.SVC(), "liblinear": mm.LinearSVC()}
GOOD = {
    "libsvm": b"""svm_type c_svc
kernel_type polynomial
degree 2
gamma 0.5
coef0 1
nr_class 3
total_sv 5
rho 0.25 -0.5 0.75
label 4 -1 7
probA -1 -2 -3
probB 0.1 0.2 0.3
nr_sv 1 2 2
SV
1 0.5 1:1 3:0.5
-0.5 0.25 2:1
-0.5 0.5 1:-1 2:0.125
-0.25 -0.75 3:1
-0.25 0 1:2
""",
    "liblinear": b"""solver_type L2R_L2LOSS_SVC
nr_class 3
label 4 -1 7
nr_feature 3
bias 1
w
0.5 -1 2
1 0.25 -3e-1
1 2 3
0.125 0 1
""",
}
both = pytest.mark.parametrize("kind", ["libsvm", "liblinear"])


def blobs(n_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    return rng.normal(size=(60, 4)) + rng.normal(size=(n_classes, 4))[y], y


@both
@pytest.mark.parametrize(
    "classes",
    [["cat", "dog"], ["é", "a b:1", "Z"], [10**12, 3], [True, False], [-(2**31), 5]],
)
def test_labels_of_any_kind_come_back(kind: str, classes: list[Any], tmp_path: Path) -> None:
    X, codes = blobs(len(classes))
    y = np.array(classes)[codes]
    model, path = MODELS[kind].fit(X, y), tmp_path / "models with ä space"
    if classes == [-(2**31), 5]:
        SAVE[kind](model, path)
    else:
        with pytest.warns(UserWarning, match="0 is .*the last line of the file says so"):
            SAVE[kind](model, path)
    again = LOAD[kind](path)
    assert again.classes_.tolist() == model.classes_.tolist()
    assert_array_equal(again.predict(X), model.predict(X))
    assert path.read_text().count("labels [") == (classes != [-(2**31), 5])


@both
def test_whole_floats_are_written_as_integers(kind: str, tmp_path: Path) -> None:
    X, y = blobs(2)
    model = MODELS[kind].fit(X, 2.0 * y - 1)
    SAVE[kind](model, tmp_path / "model")
    assert "label 1 -1\n" in (tmp_path / "model").read_text()
    assert_array_equal(LOAD[kind](tmp_path / "model").predict(X), model.predict(X))


@needs_libsvm_tools
@needs_liblinear_tools
@both
@pytest.mark.parametrize("words", [["cat", "dog"], ["a:1 2:3", "9", "-1"]])
def test_other_programs_read_files_with_such_labels(
    kind: str, words: list[str], tmp_path: Path
) -> None:
    X, codes = blobs(len(words))
    model, path = MODELS[kind].fit(X, np.array(words)[codes]), tmp_path / "model"
    with pytest.warns(UserWarning, match="numbers stand for them"):
        SAVE[kind](model, path)
    rows = write_rows(tmp_path / "rows", X, codes)
    program = {"libsvm": "svm-predict", "liblinear": "liblinear-predict"}[kind]
    found = model.classes_[predicted(program, rows, path).astype(int)]
    assert_array_equal(found, LOAD[kind](path).predict(X))


@both
def test_any_line_end_is_read(kind: str, tmp_path: Path) -> None:
    path, good = tmp_path / "model", GOOD[kind]
    path.write_bytes(good)
    model = LOAD[kind](path)
    assert model.classes_.tolist() == [-1, 4, 7]
    swapped = good.replace(b"nr_class 3\ntotal_sv 5\n", b"total_sv 5\nnr_class 3\n")
    exponents = good.replace(b" 3:1", b"\t3:+1.0e0").replace(b"0.25 -3e-1", b"+2.5e-1\t-.3")
    for text in (good.replace(b"\n", b"\r\n"), good.replace(b"\n", b" \n"), good + b"\n\n",
                 swapped, exponents):  # fmt: skip
        path.write_bytes(text)
        found = LOAD[kind](path).decision_function(np.eye(3))
        assert_array_equal(found, model.decision_function(np.eye(3)))


@both
def test_every_truncation_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    for end in range(len(GOOD[kind])):
        path.write_bytes(GOOD[kind][:end])
        with pytest.raises(mm.errors.ModelFileError):
            LOAD[kind](path)


@pytest.mark.parametrize(
    ("kind", "old", "new", "place"),
    [
        ("libsvm", b"3:0.5", b"3:x", "14:12"),
        ("libsvm", b"1:-1 2:0.125", b"1:-1 1:0.125", "16:15"),
        ("libsvm", b"gamma 0.5", b"gamma x", "4:7"),
        ("libsvm", b"2:1\n", b"2:1 garbage\n", "15:16"),
        ("liblinear", b"bias 1", b"bias x", "5:6"),
        ("liblinear", b"1 0.25", b"1 x", "8:1"),
    ],
)
def test_errors_name_line_and_column(
    kind: str, old: bytes, new: bytes, place: str, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    path.write_bytes(GOOD[kind].replace(old, new, 1))
    with pytest.raises(mm.errors.ModelFileError) as refused:
        LOAD[kind](path)
    assert str(refused.value).startswith(f"{path}:{place}:"), str(refused.value)
