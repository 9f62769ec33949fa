"""``maxmargin scale``: the columns of a data file, scaled.

Every method is x ↦ (x − centre)/size for each column: mean and standard deviation, least value and
range, or 0 and the largest absolute value. Columns of words stay as they are.
"""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from maxmargin.cli.inputs import data_options, read_blocks, read_data
from maxmargin.cli.output import Exit, Output, command
from maxmargin.runtime.atomic_write import write_atomically

SCHEMA = 1
METHODS = ("standard", "minmax", "maxabs")

EXAMPLE = """
$ maxmargin scale iris.csv -o scaled.csv --save scaling.json
saved           scaled.csv: 150 rows, 4 columns scaled (standard)
$ maxmargin scale new.csv -o new-scaled.csv --restore scaling.json
"""


@command("scale", example=EXAMPLE, see_also=("fit", "convert"))
@data_options
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    required=True,
    help="Where to write the scaled rows: .csv, .tsv or svmlight (.svm).",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="standard: mean 0, deviation 1; minmax: "
    "from 0 to 1; maxabs: up to 1 in size, zeros stay. Default: standard, or maxabs for "
    "sparse rows.",
)
@click.option(
    "--save",
    metavar="PARAMS",
    type=click.Path(dir_okay=False),
    help="Keep what each column was scaled by, for --restore.",
)
@click.option(
    "--restore",
    metavar="PARAMS",
    type=click.Path(dir_okay=False),
    help="Scale as another file was scaled, with what --save kept.",
)
def scale(
    output: Output,
    data: str,
    path: str,
    method: str | None,
    save: str | None,
    restore: str | None,
    **how: Any,
) -> Exit:
    """Scale the columns of a data file.

    maxmargin fit scales by itself, and keeps it in the model; this is for other programs. Rows of a
    second file must be scaled by the numbers of the first: --save them there, --restore them here.
    """
    if restore and (save or method):
        raise click.UsageError("--restore excludes --save and --method.")
    if restore:
        scaling = read_scaling(restore)
        rows = read_like(output, data, scaling, bool(how["zero_based"]))
    else:
        dataset = read_data(data, **how)
        labelled = dataset.rows
        rows = Plain(dataset.X, dataset.y, labelled.feature_names, labelled.label_name)
        scaling = find_scaling(rows.X, method, labelled.layout)
    write_rows(path, rows._replace(X=apply_scaling(rows.X, scaling)))
    if save:
        write_atomically(save, partial(write_scaling, scaling))
    count = len(scaling.columns)
    message = f"{rows.X.shape[0]} rows, {count} columns scaled ({scaling.method})"
    output.facts([("saved", f"{path}: {message}")])
    return output.finish(
        source=data, rows=int(rows.X.shape[0]), method=scaling.method, scaled_columns=count,
        saved=path, params=save or restore,
    )  # fmt: skip


class Plain(NamedTuple):
    """Rows as they are read and written; labels and names may be missing."""

    X: Any
    y: Any
    names: list[str] | None
    label_name: str | None


class Scaling(NamedTuple):
    """What columns of X are scaled by, and how files for it are laid out."""

    method: str
    columns: list[int]
    centre: list[float]
    size: list[float]
    layout: Any


# ------------------------------------------------------------------- the numbers


def find_scaling(X: Any, method: str | None, layout: Any) -> Scaling:
    """Return centre and size of every column of numbers."""
    import numpy as np
    import scipy.sparse as sp
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    sparse = sp.issparse(X)
    method = method or ("maxabs" if sparse else "standard")
    if sparse and method == "minmax":
        raise click.UsageError("--method minmax would fill sparse rows; choose maxabs or standard.")
    columns = [j for j in range(X.shape[1]) if sparse or not _has_words(X, j)]
    if not columns:
        raise click.ClickException("there are no columns of numbers to scale.")
    numbers = X if sparse else X[:, columns].astype(np.float64)
    if method == "standard":
        found = StandardScaler(with_mean=not sparse).fit(numbers)
        centre, size = np.zeros(len(columns)) if sparse else found.mean_, found.scale_
    elif method == "minmax":
        found = MinMaxScaler().fit(numbers)
        centre, size = found.data_min_, 1 / found.scale_
    else:
        centre, size = np.zeros(len(columns)), MaxAbsScaler().fit(numbers).scale_
    return Scaling(method, columns, centre.tolist(), size.tolist(), layout)


def _has_words(X: Any, column: int) -> bool:
    return X.dtype == object and any(isinstance(cell, str) for cell in X[:, column])


def apply_scaling(X: Any, scaling: Scaling) -> Any:
    """Return scaled rows; zeros of sparse rows, words and missing cells stay."""
    import numpy as np
    import scipy.sparse as sp

    centre, size = np.array(scaling.centre), np.array(scaling.size)
    if sp.issparse(X):
        scaled = X.copy()
        scaled.data = scaled.data / size[scaled.indices]
        return scaled
    scaled = X.copy()
    scaled[:, scaling.columns] = (X[:, scaling.columns].astype(np.float64) - centre) / size
    return scaled


def write_scaling(scaling: Scaling, draft: Path) -> None:
    """Write the numbers as JSON."""
    document = {"schema": SCHEMA, **scaling._asdict(), "layout": scaling.layout.to_json()}
    draft.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read_scaling(path: str) -> Scaling:
    """Read what ``write_scaling`` wrote, strictly."""
    from maxmargin.data import Layout

    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(found, dict) or found.pop("schema", None) != SCHEMA:
            raise ValueError(f"it has no schema {SCHEMA}")
        scaling = Scaling(**{**found, "layout": Layout.from_json(found.get("layout"))})
        check_scaling(scaling)
    except (ValueError, TypeError, KeyError, RecursionError) as wrong:
        raise click.ClickException(
            f"{path}: not what maxmargin scale --save writes ({wrong})"
        ) from wrong
    return scaling


def check_scaling(scaling: Scaling) -> None:
    """Refuse numbers that do not fit together."""
    columns, layout = scaling.columns, scaling.layout
    if scaling.method not in METHODS:
        raise ValueError(f"the method {scaling.method!r} is not known")
    if len({len(columns), len(scaling.centre), len(scaling.size), len(set(columns))}) != 1:
        raise ValueError("there are not as many centres and sizes as columns")
    if not all(type(j) is int and 0 <= j < layout.n_features for j in columns):
        raise ValueError(f"a column is not among the {layout.n_features} of the data")
    if layout.kind == "svmlight" and len(columns) != layout.n_features:
        raise ValueError("some columns have no size")
    if layout.kind == "table" and any(layout.columns[j].words for j in columns):
        raise ValueError("a column of words has a size")
    if not all(map(math.isfinite, map(float, scaling.centre))):
        raise ValueError("a centre is not finite")
    if not all(math.isfinite(size) and size > 0 for size in map(float, scaling.size)):
        raise ValueError("a size is not a finite number above 0")


# ------------------------------------------------------------------- the rows


def read_like(output: Output, source: str, scaling: Scaling, zero_based: bool) -> Plain:
    """Read rows as the file that was scaled first; labels may be missing."""
    import numpy as np
    import scipy.sparse as sp

    layout = scaling.layout
    blocks = list(read_blocks(output, source, layout, label=True))
    if not blocks:
        raise click.ClickException(f"{source}: there are no rows")
    parts = [block.X for block in blocks]
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    if sp.issparse(X) and any(scaling.centre):
        X = sp.csr_array(X).toarray()  # it was dense enough when it was scaled first
    labelled = all(block.y is not None for block in blocks)
    y = np.concatenate([block.y for block in blocks]) if labelled else None
    names = None
    if layout.kind == "table" and layout.names is not None:
        names = [layout.names[column.position] for column in layout.columns]
    return Plain(X, y, names, layout.label_name if layout.kind == "table" else None)


def write_rows(path: str, rows: Plain) -> None:
    """Write rows as svmlight text, CSV or TSV, by the ending of the name."""
    ending = Path(path).suffix.lower()
    if ending in (".svm", ".libsvm", ".svmlight"):
        _write_svmlight(path, rows)
    elif ending in (".csv", ".tsv"):
        write_atomically(path, partial(_write_table, rows, "," if ending == ".csv" else "\t"))
    else:
        raise click.UsageError(f"-o {path}: choose an ending .csv, .tsv or .svm.")


def _write_svmlight(path: str, rows: Plain) -> None:
    import numpy as np
    import scipy.sparse as sp

    import maxmargin as mm

    if rows.y is None or np.asarray(rows.y).dtype.kind not in "iufb":
        raise click.ClickException(
            f"{path}: svmlight text needs labels that are numbers; write CSV."
        )
    if rows.X.dtype == object or not np.isfinite(getattr(rows.X, "data", rows.X)).all():
        raise click.ClickException(
            f"{path}: svmlight text cannot have words or missing cells; write CSV."
        )
    mm.data.write_svmlight(path, sp.csr_array(rows.X), rows.y)


def _write_table(rows: Plain, delimiter: str, draft: Path) -> None:
    import csv

    import scipy.sparse as sp

    X = rows.X.toarray() if sp.issparse(rows.X) else rows.X
    with draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        names = rows.names or [f"column {j + 1}" for j in range(X.shape[1])]
        labels = [None] * len(X) if rows.y is None else rows.y.tolist()
        writer.writerow([*names, *([] if rows.y is None else [rows.label_name or "label"])])
        for cells, label in zip(X.tolist(), labels, strict=True):
            shown = ["" if cell is None or cell != cell else cell for cell in cells]
            writer.writerow(shown if rows.y is None else [*shown, label])
