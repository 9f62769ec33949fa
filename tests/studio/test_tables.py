"""Tables on the page: which columns and rows are shown, and what is said of the others."""

import json
from typing import Any

import numpy as np
import pytest

from maxmargin.studio import tables
from maxmargin.studio.scene import MOST_POINTS

FLOWERS = """length,width,colour,species
5.1,3.5,red,setosa
4.9,3.0,red,setosa
6.2,2.9,blue,virginica
6.0,3.1,blue,virginica
"""


def rows_of(reply: Any) -> list[Any]:
    return list(zip(reply["x"], reply["y"], reply["label"], strict=True))


def test_a_labelled_table_becomes_points() -> None:
    reply = tables.read(FLOWERS)
    assert json.loads(json.dumps(reply, allow_nan=False)) == reply
    assert rows_of(reply) == [(5.1, 3.5, 0), (4.9, 3.0, 0), (6.2, 2.9, 1), (6.0, 3.1, 1)]
    assert reply["names"] == ["setosa", "virginica"]
    assert reply["axes"] == ["length", "width"]
    assert reply["chosen"] == {"columns": [0, 1], "label": 3}
    assert [each["numeric"] for each in reply["columns"]] == [True, True, False, False]
    assert reply["message"] == ""
    left, right, bottom, top = reply["view"]
    assert left < 4.9 < 6.2 < right
    assert bottom < 2.9 < 3.5 < top


def test_columns_and_label_can_be_chosen() -> None:
    reply = tables.read(FLOWERS, [1, 0], 2)
    assert rows_of(reply)[0] == (3.5, 5.1, 1)
    assert reply["names"] == ["blue", "red"]
    assert reply["axes"] == ["width", "length"]
    plain = tables.read(FLOWERS, None, tables.NO_LABELS)
    assert (set(plain["label"]), plain["names"]) == ({0}, ["points"])


@pytest.mark.parametrize(
    ("text", "columns", "label"),
    [
        ("x,y,label\n1,2,0\n2,3,1\n", [0, 1], 2),
        ("label,x,y\n0,1,2\n1,2,3\n", [1, 2], 0),
        ("1;2,5;0\n2;3;1\n3;1;0\n", [0, 1], 2),
        ("1\t2\ta\n2\t3\tb\n3\t1\ta\n", [0, 1], 2),
        ("x,y\n1.5,2.5\n2.5,3.5\n", [0, 1], -1),  # y is a coordinate here
        ("x,y,z\n" + "\n".join(f"{k % 9},{k * k},{7 * k % 11}" for k in range(11)), [0, 1], -1),
        # The first column counts rows.
        ("id,a,b,class\n" + "\n".join(f"{k},{k % 7},{k % 5}.5,{k % 2}" for k in range(30)),
         [1, 2], 3),
    ],
)  # fmt: skip
def test_which_columns_are_drawn(text: str, columns: list[int], label: int) -> None:
    assert tables.read(text)["chosen"] == {"columns": columns, "label": label}


def test_rows_that_lack_something_and_rare_classes_are_left_out() -> None:
    reply = tables.read("x,y,label\n1,2,a\n,2,a\n3,NA,b\n2,3,b\n2,1,\n")
    assert rows_of(reply) == [(1.0, 2.0, 0), (2.0, 3.0, 1)]
    assert "3 of the rows" in reply["message"]
    kinds = "aaabbbccdddeefggg"
    text = "x,y,label\n" + "\n".join(f"{k % 4},{k % 3},{kind}" for k, kind in enumerate(kinds))
    reply = tables.read(text)
    assert (reply["names"], len(reply["x"])) == (["a", "b", "c", "d", "g"], 14)
    assert "Of 7 classes, the 5 largest are shown" in reply["message"]


def test_a_long_table_is_sampled_and_the_same_each_time() -> None:
    text = "x,y,label\n" + "\n".join(f"{k % 10},{k % 7},{k % 2}" for k in range(7000))
    reply = tables.read(text)
    assert len(reply["x"]) == MOST_POINTS
    assert reply["message"] == "A random sample of 5,000 of 7,000 rows is shown."
    assert tables.read(text) == reply


@pytest.mark.parametrize("size", [1e300, 1e5, 1e-5])
def test_columns_of_another_size_are_standardised(size: float) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{x * size!r},{x + k % 2!r},{k % 2}" for k, x in enumerate(rng.random(60).tolist())]
    reply = tables.read("income,age,label\n" + "\n".join(lines))
    points = np.column_stack([reply["x"], reply["y"]])
    assert points.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-4)
    assert points.std(axis=0) == pytest.approx([1.0, 1.0], abs=1e-4)
    assert reply["axes"] == ["income (standardised)", "age (standardised)"]


@pytest.mark.parametrize(
    ("text", "columns", "label", "message"),
    [
        (" \n ", None, None, "The file is empty"),
        ("PK\x03\x04\0\0", None, None, "save it as CSV"),
        ('{"a": [1, 2]}', None, None, "save it as CSV"),
        ("+1 1:0.5 2:0.25\n-1 1:0.5\n", None, None, "not a table of rows and columns"),
        ("just a few words\nand more of them\n", None, None, "and this table has none"),
        ("x,label\n1,a\n2,b\n", None, None, "this table has 'x'"),
        ("x,y,label\n1,2,a\n1,2\n3,4,b\n", None, None, "The table:3: "),
        ("x,y,label\n", None, None, "a header but no rows"),
        ("x,y,label\n1,,a\n,2,b\n", None, None, "No row of the table has two numbers and a label"),
        (FLOWERS, [0, 0], None, "two different columns"),
        (FLOWERS, [0, 9], None, "There is no column 9; columns count from 0."),
        (FLOWERS, [0, 2], None, "this table has 'length', 'width'"),
        (FLOWERS, None, -2, "There is no column -2"),
    ],
)
def test_what_is_no_picture_is_refused(text: str, columns: Any, label: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z].*\.$") as refused:
        tables.read(text, columns, label)
    assert message in str(refused.value)


def test_long_names_are_shortened() -> None:
    long = "n" * 50_000
    found = tables.read(f"{long},b,class\n1,2,{long}\n3,4,short\n2,5,{long}\n")
    shown = f"{'n' * 59}…"
    assert (found["axes"], found["names"]) == ([shown, "b"], [shown, "short"])
