"""Labelled files: what is read equals what was written; what is wrong is named, line and all."""

import bz2
import gzip
import lzma
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from maxmargin.data import Labelled, chunks, read_labelled
from maxmargin.errors import DataFileError

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TABLES = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=FINITE)


def read(folder: Path, content: str | bytes, name: str, label: str | int | None = None) -> Labelled:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_labelled(path, label)


def column(name: str, cells: list[str]) -> str:
    """Return a CSV file with a column of cells beside its labels."""
    rows = (f'"{cell}",{"uv"[i % 2]}' for i, cell in enumerate(cells))
    return "\n".join([f"{name},label", *rows])


def dense(X: Any) -> Any:
    return np.asarray(X) if isinstance(X, np.ndarray) else X.toarray()


# What was written is what is read.


@given(table=TABLES)
@settings(deadline=None, max_examples=50)
def test_csv_round_trip_is_exact(
    tmp_path_factory: pytest.TempPathFactory, table: np.ndarray
) -> None:
    lines = [",".join(repr(float(value)) for value in row) for row in table]
    data = read(tmp_path_factory.mktemp("csv"), "\n".join(lines), "table.csv")
    assert_array_equal(data.X, table[:, :-1])
    assert_array_equal(data.y, table[:, -1])


@pytest.mark.parametrize("name", ["rows", "rows.txt", "rows.t", "rows.dat", "ROWS.SVM", "a.scale"])
def test_svmlight_is_recognised(tmp_path: Path, name: str) -> None:
    data = read(tmp_path, "# made by hand\n\n+1 1:0.5 3:-2 # good\n-1 2:1e-3\n", name)
    assert_array_equal(data.X.toarray(), [[0.5, 0, -2], [0, 1e-3, 0]])
    assert data.y.tolist() == [1, -1]
    assert data.y.dtype == np.int64
    assert data.format == "svmlight text, indices from 1"


def test_long_lines_are_recognised(tmp_path: Path) -> None:
    line = " ".join(["1", *(f"{j}:1" for j in range(1, 5000))])
    assert read(tmp_path, f"{line}\n{line}\n", "rows").X.shape == (2, 4999)


def test_counting_from_zero_is_stated(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1\n1 0:2 1:3\n")
    data = read_labelled(tmp_path / "a.svm", zero_based=True)
    assert_array_equal(data.X.toarray(), [[0, 1], [2, 3]])
    assert data.format == "svmlight text, indices from 0"
    with pytest.raises(DataFileError, match=r"a\.svm:2:3: index 0 .* zero_based=True"):
        read_labelled(tmp_path / "a.svm")


# Tables: header, label, separator.


@pytest.mark.parametrize(
    ("text", "label", "features", "y"),
    [
        ("a,Class,b\n1,u,2\n3,v,4\n", None, ["a", "b"], ["u", "v"]),
        ("a,b,c\n1,2,u\n3,4,v\n", None, ["a", "b"], ["u", "v"]),
        ("a,b,c\nu,2,3\nv,3,4\n", "a", ["b", "c"], ["u", "v"]),
        ("a,b,c\nu,2,3\nv,3,4\n", "1", ["b", "c"], ["u", "v"]),
        ("a,b,c\nu,2,3\nv,3,4\n", -3, ["b", "c"], ["u", "v"]),
        ("0,1,label\n1,2,u\n3,4,v\n", None, ["0", "1"], ["u", "v"]),
        ("PAR1,Target,class\n1,u,2\n3,v,4\n", None, ["PAR1", "class"], ["u", "v"]),
        ("2,3,u\n3,4,v\n", None, None, ["u", "v"]),
        ("u;2;3\nv;3;4\n", 1, None, ["u", "v"]),
        ('"a, b"\tb\ty\n1\t2\tu\n3\t4\tv', None, ["a, b", "b"], ["u", "v"]),
        ("a,b,y\n1,2,1.5\n1,2,2\n", None, ["a", "b"], [1.5, 2.0]),
        ("a,b,y\n1,2,1.0\n1,2,2\n", None, ["a", "b"], [1, 2]),
        ("a,b,y\n1,2,9007199254740993\n1,2,2\n", None, ["a", "b"], [9007199254740993, 2]),
    ],
)
def test_header_and_label_are_found(
    tmp_path: Path,
    text: str,
    label: str | int | None,
    features: list[str] | None,
    y: list[str | float],
) -> None:
    data = read(tmp_path, text, "a.csv", label)
    assert data.feature_names == features
    assert data.y.tolist() == y
    assert data.X.shape == (2, 2)


# Tables as people have them.

ROWS = 60


def table(header: str, row: Callable[[int], str], rows: int = ROWS) -> str:
    return "\n".join([header, *map(row, range(rows))]) + "\n"


def wave(i: int) -> str:
    """Return a number that is neither whole nor counting."""
    return f"{np.sin(7 * i + 1):.4f}"


def remarked(data: Labelled, *words: str) -> bool:
    return any(all(word in remark for word in words) for remark in data.remarks)


def values(
    folder: Path, cells: list[str], name: str = "a.csv", delimiter: str = ","
) -> list[float]:
    """Return what the cells of a column, beside a plain one, are read as."""
    rows = (f'"{cell}"{delimiter}{wave(i)}{delimiter}{"uv"[i % 2]}' for i, cell in enumerate(cells))
    text = "\n".join([delimiter.join(["c", "d", "label"]), *rows])
    data = read(folder, text, name)
    assert data.X.dtype == np.float64
    found: list[float] = data.X[:, 0].tolist()
    return found


@pytest.mark.parametrize(
    ("cells", "delimiter", "expected"),
    [
        (["1,234", "999", "12,345,678.5"], ",", [1234, 999, 12345678.5]),
        (["1,234", "999"], ",", [1234, 999]),
        (["1,234", "999"], ";", [1.234, 999]),
        (["1,5", "-2", "0,25"], ",", [1.5, -2, 0.25]),
        (["1,5", "2", "3e2"], "\t", [1.5, 2, 300]),
        (["0,123", "1,234"], "\t", [0.123, 1.234]),
        (["1.234,5", "1.234"], ";", [1234.5, 1234]),
        (["1.234.567", "1.234"], ";", [1234567, 1234]),
        (["1 234", "5"], ",", [1234, 5]),
        (["1\u00a0234,5", "5"], ";", [1234.5, 5]),
        (["1'234.5", "1’000"], ",", [1234.5, 1000]),
        (["12%", "3.5 %"], ",", [12, 3.5]),
        (["$1,234.50", "-$5", "$-6", "7"], ",", [1234.5, -5, -6, 7]),
        (["1,234 CHF", "CHF 5", "7 CHF"], ",", [1234, 5, 7]),
        (["1.234,50 €", "5 €"], ";", [1234.5, 5]),
        (["\u22125", "5"], ",", [-5, 5]),
        (["2020-01-02", "1970-01-01", "1969/12/31"], ",", [18263, 0, -1]),
        (["1970-01-02T12:00:00Z", "1970-01-02 12:00:00.0"], ",", [1.5, 1.5]),
        (["1970-02", "1970-03"], ",", [31, 59]),
        (["31/01/1970", "02/01/1970"], ",", [30, 1]),
        (["1/31/1970", "1/2/1970"], ",", [30, 1]),
        (["02.01.1970", "03.01.1970"], ",", [1, 2]),
        (["01/01/1970 18:00", "1/1/1970 0:00"], ",", [0.75, 0]),
        (["6:30", "18:30:00", "0:15"], ",", [6.5, 18.5, 0.25]),
    ],
)
def test_numbers_and_dates_are_read_as_people_write_them(
    tmp_path: Path, cells: list[str], delimiter: str, expected: list[float]
) -> None:
    assert_allclose(values(tmp_path, cells, delimiter=delimiter), expected, rtol=1e-12, atol=1e-12)


def test_commas_that_nothing_explains_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"column 1 \(c\): '1,234' may mean 1234 or 1\.234"):
        values(tmp_path, ["1,234", "5"], "a.tsv", "\t")


@pytest.mark.parametrize(
    "cells",
    [["5$", "5€"], ["5%", "5"], ["1.2.3", "4.5.6"], ["1,2,3", "1"], ["2 Jan 1970", "3 Feb 1970"],
     ["1/31/70", "2/28/70"], ["6:30 PM", "7:15 am"], ["45/67/2020", "1/2/2020"]],
)  # fmt: skip
def test_what_is_no_number_stays_words(tmp_path: Path, cells: list[str]) -> None:
    data = read(tmp_path, column("c", cells), "a.csv")
    assert data.X[:, 0].tolist() == cells


def test_many_missing_numbers_are_marked(tmp_path: Path) -> None:
    text = table("a,b,label", lambda i: f"{'' if i % 4 == 0 else wave(i)},{wave(i + 9)},{i % 2}")
    data = read(tmp_path, text, "a.csv")
    assert remarked(data, "column 'a'", "mark them")
    names = data.prepare.fit(data.X).get_feature_names_out(data.feature_names)
    assert names.tolist() == ["a", "b", "missingindicator_a"]


def mixed(folder: Path) -> Labelled:
    text = table(
        "id,age,city,ok,gap,town,label",
        lambda i: (
            f"{i},{wave(i)},{('Rome', 'Oslo', 'Bonn', 'NA')[i % 4]},{('yes', 'no')[i % 2]},"
            f"{'' if i % 3 else wave(i)},t{i * 7 % 40},{'uv'[i % 2]}"
        ),
        rows=200,
    )
    return read(folder, text, "a.csv")


def test_words_stay_words_until_they_are_prepared(tmp_path: Path) -> None:
    data = mixed(tmp_path)
    assert data.feature_names == ["age", "gap", "ok", "city", "town"]
    assert data.X.dtype == object
    assert data.X[3, 3] is None
    assert data.X[:2, 2].tolist() == ["yes", "no"]
    Z = data.prepare.fit_transform(data.X)
    names = data.prepare.get_feature_names_out(data.feature_names).tolist()
    assert Z.dtype == np.float64
    assert Z.shape == (200, len(names))
    assert names[:8] == [
        *("age", "gap", "missingindicator_gap", "ok_yes"),
        *("city_Bonn", "city_Oslo", "city_Rome", "city_missing"),
    ]
    assert len([name for name in names if name.startswith("town_")]) == 40
    assert_array_equal(Z[:, names.index("city_Rome")], data.X[:, 3] == "Rome")
    assert_array_equal(Z[:, names.index("ok_yes")], data.X[:, 2] == "yes")
    assert remarked(data, "The two words of column 'ok' become 0 and 1.")
    assert remarked(data, "The words of columns 'city' and 'town' become 44 columns of 0 and 1.")
    assert remarked(data, "Empty cells of column 'city' (50 in all)", "one more word")


def test_missing_words_have_a_name_that_no_word_has(tmp_path: Path) -> None:
    text = table("job,label", lambda i: f"{('cook', 'missing', '')[i % 3]},{'uv'[i % 2]}")
    data = read(tmp_path, text, "a.csv")
    names = data.prepare.fit(data.X).get_feature_names_out(data.feature_names).tolist()
    assert names == ["job_(missing)", "job_cook", "job_missing"]


def test_texts_alone_are_refused_with_the_way_out(tmp_path: Path) -> None:
    text = table("said,label", lambda i: f"'so {i % 31} it is',{'uv'[i % 2]}")
    with pytest.raises(DataFileError, match=r"'said': different words.*--label"):
        read(tmp_path, text, "a.csv")


def test_preparation_is_unfitted_clonable_picklable_and_prints_as_code(tmp_path: Path) -> None:
    data = mixed(tmp_path)
    with pytest.raises(NotFittedError):
        data.prepare.transform(data.X)
    known = (ColumnTransformer, OneHotEncoder, Pipeline, SimpleImputer, slice)
    pasted = eval(repr(data.prepare), {one.__name__: one for one in known})
    expected = data.prepare.fit_transform(data.X)
    for copy in (clone(data.prepare), pickle.loads(pickle.dumps(data.prepare)), pasted):
        assert_array_equal(copy.fit(data.X).transform(data.X), expected)


def test_preparation_of_many_columns_prints_in_full(tmp_path: Path) -> None:
    header = ",".join([*(f"x{j},w{j}" for j in range(40)), "label"])
    text = table(header, lambda i: f"{wave(i)},{'abc'[i % 3]}," * 40 + str(i % 2))
    printed = repr(read(tmp_path, text, "a.csv").prepare)
    assert "..." not in printed
    assert "slice(40, 80, None)" in printed


def test_preparation_learns_from_training_rows_only(tmp_path: Path) -> None:
    data = mixed(tmp_path)
    train = np.array([i for i in range(200) if data.X[i, 3] in ("Rome", "Oslo")])
    prepare = data.prepare.fit(data.X[train])
    names = prepare.get_feature_names_out(data.feature_names).tolist()
    assert "city_Bonn" not in names
    Z = prepare.transform(data.X)  # unseen words and gaps
    assert not Z[2, [names.index("city_Rome"), names.index("city_Oslo")]].any()
    assert np.isfinite(Z).all()


def test_few_columns_are_dense_and_many_are_sparse(tmp_path: Path) -> None:
    letters = [f"c{j}" for j in range(20)]
    text = table(
        ",".join([*letters, "label"]),
        lambda i: ",".join([*(f"w{i * (j + 3) % 23}" for j in range(20)), str(i % 2)]),
        rows=230,
    )
    data = read(tmp_path, text, "a.csv")
    Z = data.prepare.fit_transform(data.X)
    assert sp.issparse(Z)
    assert Z.shape == (230, 20 * 23)
    assert not sp.issparse(mixed(tmp_path).prepare.fit_transform(mixed(tmp_path).X))


def test_names_that_would_collide_are_told_apart(tmp_path: Path) -> None:
    text = table("a,a_b,label", lambda i: f"{('b_c', 'd', 'e')[i % 3]},{'cdf'[i % 3]},{i % 2}")
    data = read(tmp_path, text, "a.csv")
    names = data.prepare.fit(data.X).get_feature_names_out(data.feature_names)
    assert len(set(names)) == 6


# Columns that are left out.


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("n", lambda i: str(i)),
        ("n", lambda i: str(100 + i * 7 % 60)),
        ("n", lambda i: str(i + i // 3)),
        ("", lambda i: str(i * i)),
        ("Unnamed: 0", lambda i: str(i * i)),
        ("CustomerID", lambda i: str(i * i + 10**6)),
        ("user_id", lambda i: f"u{i * i}"),
        ("name", lambda i: f"person {i}"),
        ("uuid", lambda i: f"{i * 77773:08x}-q"),
    ],
)
def test_columns_that_name_rows_are_left_out(
    tmp_path: Path, name: str, cell: Callable[[int], str]
) -> None:
    text = table(f"{name},x,label", lambda i: f"{cell(i)},{wave(i)},{i % 2}")
    data = read(tmp_path, text, "a.csv")
    assert data.feature_names == ["x"]
    assert data.X.shape == (ROWS, 1)
    shown = repr(name) if name else "1"
    assert remarked(data, f"Left out column {shown}: values that differ in every row")


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("income", lambda i: str(1000 + 1000 * (i * 7 % 60))),
        ("code", lambda i: str(i % 9)),
        ("id", lambda i: str(i % 9)),
        ("when", lambda i: f"2020-01-{i % 28 + 1:02d} {i % 24:02d}:00"),
        ("width", lambda i: wave(i + 5)),
    ],
)
def test_numbers_that_describe_rows_are_kept(
    tmp_path: Path, name: str, cell: Callable[[int], str]
) -> None:
    text = table(f"{name},x,label", lambda i: f"{cell(i)},{wave(i)},{i % 2}")
    data = read(tmp_path, text, "a.csv")
    assert data.feature_names == [name, "x"]
    assert data.prepare is None


def test_a_counter_is_kept_where_there_is_nothing_else(tmp_path: Path) -> None:
    data = read(tmp_path, table("x,label", lambda i: f"{i},{i // 30}"), "a.csv")
    assert data.feature_names == ["x"]
    assert remarked(data, "Kept column 'x', which only counts rows")


def test_constant_empty_and_free_text_columns_are_left_out(tmp_path: Path) -> None:
    text = table(
        "one,same,void,note,x,label",
        lambda i: f"7,red,,note {i * 5 % 41},{wave(i)},{i % 2}",
    )
    data = read(tmp_path, text, "a.csv")
    assert data.feature_names == ["x"]
    assert remarked(data, "Left out columns 'one' and 'same': one value only.")
    assert remarked(data, "Left out column 'void': no values.")
    assert remarked(data, "Left out column 'note': different words in most rows")


def test_columns_without_a_header_keep_their_numbers(tmp_path: Path) -> None:
    data = read(tmp_path, table("0,x,5.5,u", lambda i: f"7,x,{wave(i)},{'uv'[i % 2]}"), "a.csv", 4)
    assert data.feature_names == ["column 1", "column 3"]
    assert remarked(data, "Left out column 2: one value only")


def test_many_columns_take_few_words(tmp_path: Path) -> None:
    header = ",".join([*(f"c{j}" for j in range(12)), "x", "label"])
    text = table(header, lambda i: "7," * 12 + f"{wave(i)},{i % 2}")
    data = read(tmp_path, text, "a.csv")
    assert remarked(
        data, "Left out columns 'c0', 'c1', 'c2', 'c3', 'c4' and 7 more: one value only"
    )


def test_small_tables_are_not_judged(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b,y\n1,5,0\n2,5,1\n3,5,0\n", "a.csv").X.shape == (3, 2)


def test_dots_between_thousands_are_remarked_beside_decimal_commas(tmp_path: Path) -> None:
    data = read(tmp_path, "a;b;y\n1.234,5;1,5;0\n2.000,25;2,5;1\n", "a.csv")
    assert data.X.tolist() == [[1234.5, 1.5], [2000.25, 2.5]]
    assert remarked(data, "Separators between thousands in column 'a' are dropped.")
    assert remarked(data, "Commas in columns 'a' and 'b' are decimal commas")


def test_columns_of_one_name_are_told_apart(tmp_path: Path) -> None:
    data = read(tmp_path, "a,a,,y\n1,5,6,0\n2,5,6,1\n", "a.csv")
    assert data.feature_names == ["a", "a (2)", "column 3"]
    assert remarked(data, "Column 2 is called 'a (2)', since its name is that of another column.")
    assert remarked(data, "Column 3 is called 'column 3', since it has no name.")


# Which column is the label.


def test_rows_without_a_label_are_left_out(tmp_path: Path) -> None:
    data = read(tmp_path, "a,y\n1,u\n2,\n3,NA\n4,none\n5,-\n", "a.csv")
    assert data.y.tolist() == ["u", "none", "-"]
    assert data.X.tolist() == [[1], [4], [5]]
    assert data.numbers.tolist() == [2, 5, 6]
    assert remarked(data, "2 rows have no label", "(lines 3 and 4)")


def test_the_only_classes_are_the_label_if_the_last_column_cannot_be(tmp_path: Path) -> None:
    first = "\n".join(f"{i % 3 + 1},{wave(i)},{wave(i + 3)}" for i in range(ROWS))
    with pytest.warns(UserWarning, match="Column 1 is taken as the label"):
        data = read(tmp_path, first, "wine.data")
    assert data.y[:3].tolist() == [1, 2, 3]
    assert data.X.shape == (ROWS, 2)
    assert remarked(data, "Column 1 is taken as the label")
    second = table("size,kind,width", lambda i: f"{wave(i)},{'MB'[i % 2]},{wave(i + 3)}")
    with pytest.warns(UserWarning, match="Column 'kind' is taken as the label"):
        data = read(tmp_path, second, "a.csv")
    assert data.label_name == "kind"
    assert data.feature_names == ["size", "width"]


def test_a_quantity_in_the_last_column_is_the_label_unless_classes_are_clear(
    tmp_path: Path,
) -> None:
    houses = table("rooms,garden,price", lambda i: f"{i % 5},{'yn'[i % 2]},{wave(i)}")
    data = read(tmp_path, houses, "a.csv")
    assert data.label_name == "price"
    assert remarked(data, "so the last column, 'price', is taken as the label")
    assert read(tmp_path, houses, "a.csv", "garden").y[:2].tolist() == ["y", "n"]
    assert read(tmp_path, houses.replace("rooms,", "size,"), "a.csv").label_name == "price"
    counted = table("rooms,garden,id", lambda i: f"{i % 5},{'yn'[i % 2]},{i}")
    with pytest.raises(DataFileError, match="for example rooms or garden, or -1"):
        read(tmp_path, counted, "a.csv")
    letters = "\n".join(f"{'ABC'[i % 3]},{i % 7},{i % 5}" for i in range(ROWS))
    with pytest.raises(DataFileError, match="label=1 or label=-1"):
        read(tmp_path, letters, "a.csv")


def test_prices_are_numbers_and_a_label_in_the_midst_is_remarked(tmp_path: Path) -> None:
    price = [f"€ {1 + i // 20}.{500 + 7 * i:03},50" if i % 9 else "-" for i in range(ROWS)]
    text = "a;target;b\n" + "".join(f"{wave(i)};{price[i]};{i % 4}\n" for i in range(ROWS))
    data = read(tmp_path, text, "a.csv")
    assert data.y.dtype == np.float64
    assert len(data.y) == ROWS - len(range(0, ROWS, 9))
    assert data.y[:2].tolist() == [1507.5, 1514.5]
    assert remarked(data, "Column 'target' is the label by its name, not the last column.")
    assert data.layout is not None
    assert data.layout.task == "regression"
    with pytest.raises(DataFileError, match="'call us' appears among numbers"):
        read(tmp_path, text.replace(price[1], "call us"), "a.csv")


def test_pixels_that_are_never_set_are_no_label(tmp_path: Path) -> None:
    digits = "\n".join(f"{i % 10},{i * 37 % 251},{i % 2},0" for i in range(ROWS))
    with pytest.warns(
        UserWarning, match="Column 1 is taken as the label, since the last column, 4"
    ):
        data = read(tmp_path, digits, "a.csv")
    assert len(set(data.y)) == 10
    assert data.feature_names == ["column 2", "column 3"]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("p,x,s\ne,x,y\np,b,s\ne,b,y\n", False),
        ("republican,n,y\ndemocrat,y,n\nrepublican,n,y\n", False),
        ("color,shape,kind\nred,round,a\nblue,square,b\n", True),
        ("name,2019,2020,kind,zone\n" + "fr,1,2,a,x\nde,2,3,b,z\n" * 9, True),
        ("fr,2019,2020,kind,zone\n" + "fr,1,2,a,x\nde,2,3,b,z\n" * 9, False),
        ("0,1,2,3\n5,6,7,8\n9,9,9,1\n", True),
        ("2020-01-01,red,5\n2020-01-02,blue,6\n", False),
        ("#,Name,Kind\n1,Bob,a\n2,Eve,b\n", True),
        ("NA,red,u\nNA,blue,v\n4,red,u\n5,blue,v\n", False),
    ],
)
def test_headers_are_told_from_rows(tmp_path: Path, text: str, header: bool) -> None:
    data = read(tmp_path, text, "a.csv")
    assert (data.label_name is not None) is header
    assert len(data.y) == text.count("\n") - header


# Separators, encodings, line numbers.


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.txt", "  1.5   2 u \n 3 4  v\n", "spaces, without"),
        ("a.data", "a b label\n1.5 2 u\n3 4 v\n", "spaces, with"),
        ("a.dat", "1.5\t 2\tu\n3\t4\tv\n", "tabs, without"),
        ("a.tsv", "a,b,label\n1.5,2,u\n3,4,v\n", "commas, with"),
        ("a.csv", "a|b|label\n1.5|2|u\n3|4|v\n", "bars, with"),
        ("a.csv", "sep=;\na;b;label\n1,5;2;u\n3;4;v\n", "semicolons, with"),
        ("a.csv", "a;b;label\n1,5;2;u\n3;4;v\n", "semicolons, with"),
        ("a.csv", "a,b,label,\n1.5,2,u,\n3,4,v,\n", "commas, with"),
        ("a.csv", "a,b,label\n1.5,2,u,\n3,4,v,\n", "commas, with"),
        ("a.csv", "1.5,2,u,\n3,4,v,\n", "commas, without"),
        ("a.csv", "# by hand\n# in May\na,b,label\n1.5,2,u\n3,4,v\n", "commas, with"),
        ("a.csv", "#a,b,label\n1.5,2,u\n3,4,v\n", "commas, with"),
        ("a.csv", "a,b,label\r1.5,2,u\r3,4,v\r", "commas, with"),
        ("a.csv", 'a, b, label\n1.5, 2, "u"\n\n3, 4, v\n', "commas, with"),
        ("a.txt", '"a" "b" "label"\n"1" 1.5 2 "u"\n"2" 3 4 "v"\n', "spaces, with"),
    ],
)
def test_separators_are_recognised(tmp_path: Path, name: str, text: str, kind: str) -> None:
    data = read(tmp_path, text, name)
    assert data.X.tolist() == [[1.5, 2], [3, 4]]
    assert data.y.tolist() == ["u", "v"]
    assert data.format.startswith(f"table with {kind}")


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_rows_know_their_lines(tmp_path: Path, end: str) -> None:
    words = end.join(["# note", "text,b,label", '"a', 'b",1,u', "", "c,2,v", "a,3,", "c,4,u"])
    assert read(tmp_path, words, "a.csv").numbers.tolist() == [3, 6, 8]
    numbers = end.join(["a,label", "", "1,0", '2,"1"', "", "3,0"])
    data = read(tmp_path, numbers, "a.csv")
    assert data.numbers.tolist() == [3, 4, 6]
    assert data.numbers.dtype == np.int64
    assert data.numbered == "line"
    rows = end.join(["# note", "1 1:1", "", "2 1:2"])
    assert read(tmp_path, rows, "a.svm").numbers.tolist() == [2, 4]


# JSON lines, ARFF, and what is not read.


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.ndjson", "a"])
def test_json_lines_are_read(tmp_path: Path, name: str) -> None:
    text = '{"a": 1.5, "b": "x", "y": true}\n\n{"b": "z", "y": false, "a": null}\n'
    data = read(tmp_path, text, name)
    assert data.X[:, 1].tolist() == ["x", "z"]
    assert data.X[0, 0] == 1.5
    assert np.isnan(data.X[1, 0])
    assert data.y.tolist() == ["true", "false"]
    assert data.feature_names == ["a", "b"]
    assert (data.numbered, data.numbers.tolist()) == ("row", [0, 1])
    long = read(tmp_path, '{"a": 1, "y": 9007199254740993}\n{"a": 2, "y": 2}', name)
    assert long.y.tolist() == [9007199254740993, 2]


def test_arff_is_read(tmp_path: Path) -> None:
    text = (
        "% made by hand\n@RELATION r\n@ATTRIBUTE 'size in m' NUMERIC\n@attribute b {u,v}\n"
        "@attribute class {yes,no}\n@DATA\n% rows\n1.5,u,yes\n?,v,no\n"
    )
    data = read(tmp_path, text, "a.arff")
    assert data.feature_names == ["size in m", "b"]
    assert data.X[:, 1].tolist() == ["u", "v"]
    assert np.isnan(data.X[1, 0])
    assert data.y.tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", '[{"a": 1, "y": 1}]', "not JSON lines .* write one record per line"),
        ("a", "[1, 2]", "not JSON lines .* write one record per line"),
        ("a.json", '{"a": [1, 2], "y": [0, 1]}', "holds list<.*make columns of single values"),
        ("a.json", '{"y": 1}', "only one column"),
        ("a.jsonl", '{"a": 1, "y": 1}\n{"a": 1', "not JSON lines .* write one record per line"),
        ("a.jsonl", '{"a": 1, "y": 1}\n{"a": "x", "y": 1}', "the values of a column alike"),
        ("a.json", '{"a":' * 100_000, "not JSON lines"),
        ("a.arff", "@relation x\n@data\n1,2\n", "save it as CSV|only one column|no rows"),
        ("a.arff", "@relation x\n@attribute a real\n@data\n{0 1}\n", "save it as CSV"),
        ("a.xlsx", "PK\x03\x04", "a spreadsheet, which is not supported; save the table as CSV"),
        ("a", "PK\x03\x04", "a zip archive"),
        ("a.csv", "PAR1\x15\x00", "damaged .* fetch or write it again"),
        ("a.npz", "PK\x03\x04", "numpy arrays"),
        ("a.pkl", "x", "a pickle"),
        ("a.csv", "<!DOCTYPE html>\n<html>", "a page of markup"),
    ],
)
def test_other_files_are_refused_in_a_sentence(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    with pytest.raises(DataFileError, match=words):
        read(tmp_path, text, name)


def test_frames_that_pandas_writes_are_read_back(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=100),
            "city": rng.choice(np.array(["Rome", "Oslo", None]), 100),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.permutation(365)[:100], "D"),
            "label": rng.integers(0, 3, 100),
        }
    )
    written = {
        "a.csv": frame.to_csv(),
        "b.csv": frame.to_csv(index=False, sep=";", decimal=","),
        "a.tsv": frame.to_csv(index=False, sep="\t"),
        "a.jsonl": frame.to_json(orient="records", lines=True, date_format="iso"),
    }
    days = (frame["day"] - pd.Timestamp(0)).dt.days
    for name, text in written.items():
        data = read(tmp_path, text, name)
        assert data.feature_names == ["size", "day", "city"]
        assert_allclose(data.X[:, 0].astype(float), frame["size"], atol=1e-9)
        assert [word or None for word in data.X[:, 2]] == [
            word if isinstance(word, str) else None for word in frame["city"]
        ]
        assert_allclose(data.X[:, 1].astype(float), days)
        assert_array_equal(data.y, frame["label"])


# What is wrong is named: file, line, and the way out.

MANY = [f"{i * i % 97}.5" for i in range(30)]
WRONG_TABLES = {
    "short row of words": ("a,b,y\nu,2,3\n1,2\n", ":3:", "2 cells where the first row has 3"),
    "word among numbers": (
        column("b", [*MANY, "red"]),
        ":32:",
        "column 1 (b): 'red' appears among numbers",
    ),
    "word in line 1": (
        "\n".join([f"{MANY[0]},red,3", *(f"{x},{x},3" for x in MANY)]),
        ":1:",
        "column 2: 'red' appears among numbers",
    ),
    "inf": ("a,b,y\n-inf,2,3\n1,2,3\n", ":2:", "'-inf' is not a finite number"),
    "overflow": ("a,b,y\n1,1e400,3\n", ":2:", "'1e400'"),
    "infinite label": ("a,y\n1,2\n2,inf\n", ":3:", "'inf'"),
    "label overflows": ("a,y\n1,2\n2,1e400\n", ":3:", "'1e400'"),
    "no labels": ("a,b,y\n1,2,\n1,2,NA\n", "", "column 3 (y) is the label, and it is empty"),
    "two labels": ("class,a,y\n0,1,2\n", "", "columns 1 and 3"),
    "quotes": ('a,b,y\n1,"2"3,4\n', ":2:", "quotation marks"),
    "neither UTF-8 nor Windows-1252": (b"a,b,y\n1,2,\x81\x8d\n", ":2:", "UTF-8"),
    "broken UTF-16": (b"\xff\xfea\x00\xd8", "", "marked as"),
    "day and month": (column("d", ["13/04/2020", "04/13/2020"]), "", "write all dates as"),
    "no such date": (
        column(
            "d", [f"2020-{m:02d}-{d:02d}" for m in (1, 3) for d in range(1, 20)] + ["2020-02-30"]
        ),
        ":40:",
        "'2020-02-30' appears among dates",
    ),
    "commas of both kinds": (
        column("c", [f"{i},5" for i in range(20)] + [f"{i}.5" for i in range(20)]),
        "",
        "column 1 (c): its numbers are not all written in the same way",
    ),
    "nothing but names": (column("c", [f"name {i}" for i in range(30)]), "", "no column is left"),
}


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [pytest.param("bad.csv", *case, id=key) for key, case in WRONG_TABLES.items()]
    + [("bad.svm", "1\n2\n", "", "no features")],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, name: str, content: str | bytes, line: str, words: str
) -> None:
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, content, name)
    assert f"{name}{line}" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("label", ["missing", "0", 4, -4])
def test_unknown_label_columns_are_refused(tmp_path: Path, label: str | int) -> None:
    with pytest.raises(DataFileError, match="no column"):
        read(tmp_path, "a,b,c\n1,2,3\n", "a.csv", label)


def test_ambiguous_label_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="two columns"):
        read(tmp_path, "a,a,c\n1,2,3\n", "a.csv", "a")


def test_a_label_column_means_nothing_in_svmlight(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="label first"):
        read(tmp_path, "1 1:1\n", "a.svm", "a")


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("content", [b"1 1:1\n", b""], ids=["not packed", "empty"])
def test_broken_packing_is_refused(tmp_path: Path, ending: str, content: bytes) -> None:
    with pytest.raises(DataFileError, match=r"a\.svm"):
        read(tmp_path, content, "a.svm" + ending)


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.csv"):
        read_labelled(tmp_path / "gone.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_labelled(tmp_path)


FRAGMENTS = st.text("01:., ;\n\t#-+eaq_\"'{}[]/%$", max_size=40) | st.binary(max_size=40)
SAMPLES = {
    "a.csv": b'id,size,city,when,label\n1,"1,234",Rome,2020-01-31,u\n2,,Oslo,NA,v\n3,5,?,3/4/20,\n',
    "a.txt": b"1.5 red 3\n2.5 blue 4\n",
    "a.jsonl": b'{"a": 1.5, "y": 1}\n{"a": -2, "y": 0}\n',
    "a.arff": b"@relation r\n@attribute a numeric\n@attribute y {0,1}\n@data\n1,0\n2,1\n",
    "a.svm": b"1 1:1\n-1 2:0.5 # x\n",
    "a": b"a;b;y\n1,5;x;1\n2,5;y;0\n",
}


def read_or_refused(folder: Path, name: str, content: str | bytes) -> None:
    try:
        data = read(folder, content, name)
    except DataFileError:
        return
    assert data.X.shape[0] == len(data.y) == len(data.numbers) > 0
    assert data.feature_names is None or len(data.feature_names) == data.X.shape[1]
    X = data.X if data.prepare is None else data.prepare.fit_transform(data.X)
    assert np.isfinite(dense(X)).all()


@given(content=FRAGMENTS)
@settings(max_examples=60)
@pytest.mark.parametrize("name", SAMPLES)
def test_any_content_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: str | bytes
) -> None:
    read_or_refused(tmp_path_factory.getbasetemp(), name, content)


@given(data=st.data())
@settings(max_examples=60)
@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    content = SAMPLES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 8))
        inserted = data.draw(
            st.sampled_from(b'0 9 , . ; " \n { } [ ] : a NA - / \xe9 \0'.split(b" "))
        )
        content = content[:start] + inserted + content[start + length :]
    read_or_refused(tmp_path_factory.getbasetemp(), name, content)


# Chunks.


@pytest.mark.parametrize(
    "make", [np.asarray, sp.csr_array, sp.csr_matrix], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_chunks_are_views_of_all_rows_in_order(make: Callable[..., object], rows: int) -> None:
    table = np.arange(21.0).reshape(7, 3)
    X, y = make(table), np.arange(7)
    parts = list(chunks(X, y, rows=rows))
    assert all(len(labels) <= rows for _, labels in parts)
    assert_array_equal(np.concatenate([labels for _, labels in parts]), y)
    assert_array_equal(np.vstack([dense(part) for part, _ in parts]), table)
    for part, labels in parts:
        assert np.shares_memory(labels, y)
        assert type(part) is type(X)
        assert np.shares_memory(getattr(part, "data", part), getattr(X, "data", X))


@pytest.mark.parametrize(
    ("X", "rows", "error"),
    [
        (np.ones((3, 2)), 0, ValueError),
        (np.ones((2, 2)), 1, ValueError),
        (sp.csc_array(np.ones((3, 2))), 1, TypeError),
        ([[1.0], [2.0], [3.0]], 1, TypeError),
    ],
)
def test_bad_chunks_are_refused_at_once(X: object, rows: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        chunks(X, np.ones(3), rows=rows)
