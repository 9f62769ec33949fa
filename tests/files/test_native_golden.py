"""Files of every format so far are read, and their models say what they said when they were saved.

Never change or remove a file in ``golden``: when the format grows, ``make_golden`` adds a folder.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from maxmargin.files.native import FORMAT, load, load_described
from tests.files.make_golden import MODELS, outputs

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*/*.mmg"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_golden_file_predicts_as_it_did(path: Path) -> None:
    with np.load(path.with_suffix(".npz")) as kept:
        expected = dict(kept)
    rows = expected.pop("rows")
    found = outputs(load(path), rows)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if values.dtype.kind == "f":  # other processors round sums in another order
            assert_allclose(found[name], values, rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            assert_array_equal(found[name], values, err_msg=name)


def test_there_are_files_of_every_format_and_every_model() -> None:
    formats = {load_described(path).header["format"] for path in FILES}
    assert formats == set(range(1, FORMAT + 1))
    latest = {path.stem for path in FILES if path.parent.name == f"format-{FORMAT}"}
    assert latest == set(MODELS)


def test_golden_files_are_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*.*")) < 400_000
