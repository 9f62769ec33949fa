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
    assert set(plain["label"]) == {0}
    assert plain["names"] == ["points"]
    assert "all points have one class" in plain["message"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("x,y,label\n1,2,0\n2,3,1\n", 2),
        ("label,x,y\n0,1,2\n1,2,3\n", 0),
        ("1;2;0\n2;3;1\n3;1;0\n", 2),
        ("1\t2\ta\n2\t3\tb\n3\t1\ta\n", 2),
        ("x,y\n1.5,2.5\n2.5,3.5\n", -1),  # y is a coordinate here
        ("x,y,z\n" + "\n".join(f"{k},{k * k},{7 * k % 11}" for k in range(11)), -1),
    ],
)
def test_which_column_holds_labels(text: str, label: int) -> None:
    assert tables.read(text)["chosen"]["label"] == label


def test_a_column_that_counts_rows_is_not_drawn() -> None:
    text = "id,a,b,class\n" + "\n".join(f"{k},{k % 7},{k % 5}.5,{k % 2}" for k in range(1, 30))
    reply = tables.read(text)
    assert reply["chosen"] == {"columns": [1, 2], "label": 3}


def test_numbers_of_the_file_are_kept_to_the_last_digit() -> None:
    points = np.random.default_rng(0).standard_normal((50, 2))
    lines = [f"{x!r},{y!r},{k % 2}" for k, (x, y) in enumerate(points.tolist())]
    reply = tables.read("\n".join(lines))
    assert np.array_equal(np.column_stack([reply["x"], reply["y"]]), points)


def test_decimal_commas_and_quoted_cells() -> None:
    reply = tables.read('a;b;kind\n1,5;2,5;"one; of them"\n2,5;0,5;other\n')
    assert rows_of(reply) == [(1.5, 2.5, 0), (2.5, 0.5, 1)]
    assert reply["names"] == ["one; of them", "other"]


def test_rows_that_lack_something_are_left_out_and_said() -> None:
    reply = tables.read("x,y,label\n1,2,a\n,2,a\n3,NA,b\n2,3,b\n2,1,\n")
    assert rows_of(reply) == [(1.0, 2.0, 0), (2.0, 3.0, 1)]
    assert reply["message"] == "3 rows that lack a number or a label are left out."
    reply = tables.read("x,y,label\n1,2,a\n,2,a\n2,3,b\n")
    assert reply["message"] == "1 row that lacks a number or a label is left out."


def test_the_five_most_frequent_classes_stay() -> None:
    kinds = "aaabbbccdddeefggg"
    text = "x,y,label\n" + "\n".join(f"{k % 4},{k % 3},{kind}" for k, kind in enumerate(kinds))
    reply = tables.read(text)
    assert reply["names"] == ["a", "b", "c", "d", "g"]
    assert len(reply["x"]) == 14
    assert (
        reply["message"] == "There are 7 classes; the 5 most frequent are shown (3 rows left out)."
    )


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
    assert "standardised" in reply["message"]


def test_two_labels_of_one_spelling_stay_one() -> None:
    reply = tables.read("x,y,label\n1,2, a\n2,3,a \n3,4,b\n")
    assert reply["names"] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The file is empty"),
        (" \n ", "The file is empty"),
        ("PK\x03\x04\0\0", "This file is not text; save the table as CSV."),
        ('{"a": [1, 2]}', "not a table of rows and columns"),
        ("+1 1:0.5 2:0.25\n-1 1:0.5\n", "not a table of rows and columns"),
        ("just a few words\nand more of them\n", "A picture needs two columns of numbers"),
        ("x,label\n1,a\n2,b\n", "this table has only 'x'"),
        (
            "x,y,label\n1,2,a\n1,2\n3,4,b\n",
            "Line 3 of the table: 2 cells where",
        ),
        ('x,y,label\n1,2,a\n1,2,"b\n', "of the table: unexpected end of data"),
        ("x\n1\n2\n", "The table has only one column"),
        ("x,y,label\n", "The table cannot be read: a header but no rows"),
        ("a" * 200_000 + ",1\n2,3\n", "Line 1 of the table: a cell has more than 131,072 "),
        ("x,y,label\n1,,a\n,2,b\n", "No row of the table has two numbers and a label"),
    ],
)
def test_wrong_files_are_refused_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z].*[.]$") as refused:
        tables.read(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("columns", "label", "message"),
    [
        ([0, 0], None, "Choose two different columns."),
        ([0, 9], None, "There is no column 9; columns count from 0."),
        ([0, 2], None, "Column 'colour' holds words, such as 'red' (line 2)"),
        ([0, 4], None, "Column 'note' is empty"),
        (None, 7, "There is no column 7"),
        (None, -2, "There is no column -2"),
    ],
)
def test_wrong_choices_are_refused(columns: Any, label: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z].*\.$") as refused:
        tables.read(FLOWERS.replace("\n", ",\n").replace("s,\n", "s,note\n", 1), columns, label)
    assert message in str(refused.value)


def test_long_names_are_shortened() -> None:
    long = "n" * 50_000
    found = tables.read(f"{long},b,class\n1,2,{long}\n3,4,short\n2,5,{long}\n")
    shown = f"{'n' * 59}…"
    assert found["axes"] == [shown, "b"]
    assert found["columns"][0]["name"] == shown
    assert found["names"] == [shown, "short"]
