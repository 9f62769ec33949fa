"""``report``: one HTML file about a fitted model."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin.diagnosis import Diagnosis
from maxmargin.runtime.atomic_write import write_atomically
from maxmargin.validation.data import refuse_swapped

if TYPE_CHECKING:
    from maxmargin.reports.context import Context


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | Path,
    *,
    X_test: Any = None,
    y_test: Any = None,
    diagnosis: Diagnosis | None = None,
    search: Any = None,
    title: str | None = None,
    feature_names: Any = None,
    theme: str = "auto",
    rows: Any = None,
    rows_test: Any = None,
    row_name: str = "row",
    label_name: str = "label",
    script: str | None = None,
    remarks: Sequence[str] = (),
) -> Path:
    """Write one HTML file about a fitted model, its data and what is proved; return its path.

    The file needs no network and nothing beside it: it can be mailed, kept and printed. Equal input
    gives an equal file.

    Parameters
    ----------
    model : fitted estimator
        A classifier, regressor or outlier detector of ours, or of scikit-learn; a pipeline that
        ends in one; a fitted search, of which its best model and its results are taken.
    X : array-like, sparse matrix or frame of shape (n, d)
        The rows the model was fitted to. If there are very many, some figures are computed from a
        sample, and the page says so.
    y : array-like of shape (n,)
        Their labels or targets; None for an outlier detector.
    path : str or Path
        Where to write. An existing file is replaced when the new one is complete.
    X_test, y_test : array-like, optional
        Rows the model has not seen, and their labels.
    diagnosis : Diagnosis, optional
        Result of ``diagnose``. By default the data are diagnosed, if they have classes and are
        tables of numbers.
    search : SVCSearchCV or GridSearchCV, optional
        The search that the parameters came from.
    title : str, optional
        Heading of the page; the name of the model by default.
    feature_names : sequence of str, optional
        Names of the columns; those of a frame by default.
    theme : {"auto", "light", "dark"}, default="auto"
        Colours of the page; "auto" follows the reader's system.
    rows, rows_test : sequences, optional
        What the training and the test rows are called wherever the page names one, such as their
        lines in a file; by default their positions in X and in X_test, from 0.
    row_name : str, default="row"
        What a row is called, such as "line" or "patient".
    label_name : str, default="label"
        What the label is called: the name of its column.
    script : str, optional
        Source of a program that makes the same model, shown as it is. The default is a program
        that does everything except reading the data.
    remarks : sequence of str, optional
        Further warnings for the reader, such as how a file was read.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, maxmargin as mm
    >>> from maxmargin.reports import report
    >>> X, y = mm.datasets.separable(60, margin=0.4, random_state=0)
    >>> model = mm.HardMarginSVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = report(model, X, y, f"{folder}/report.html")
    ...     "Proved: no other hyperplane" in path.read_text(encoding="utf-8")
    True
    """
    if theme not in ("auto", "light", "dark"):
        raise ValueError(f"theme must be 'auto', 'light' or 'dark', got {theme!r}")
    if diagnosis is not None and not isinstance(diagnosis, Diagnosis):
        raise TypeError(f"diagnosis must be what mm.diagnose returns, got {diagnosis!r:.80}")
    refuse_swapped("report(model, X, y, path)", model, X, y, path)
    _target(path)  # refuse a bad path before any work
    # Imported here: it needs most of the package.
    from maxmargin.reports.context import Wording, make_context

    context = make_context(
        model,
        X,
        y,
        X_test=X_test,
        y_test=y_test,
        search=search,
        title=title,
        feature_names=feature_names,
        rows=rows,
        rows_test=rows_test,
        wording=Wording(row_name, label_name, tuple(remarks)),
    )
    write_page(path, context, diagnosis, theme, script)
    return Path(path)


def write_page(
    path: str | Path,
    context: "Context",
    diagnosis: Diagnosis | None,
    theme: str = "auto",
    script: str | None = None,
) -> None:
    """Write the file about a model whose rows are scored already."""
    from maxmargin.reports.page import page

    text = page(context, diagnosis, theme, script)
    write_atomically(
        _target(path), lambda draft: draft.write_text(text, encoding="utf-8", newline="\n")
    )


def _target(path: str | Path) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r:.80} is not valid: give the name of the file to write")
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise ValueError(f"path={str(path)!r} is not a file; give the name of a file to write")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"path={str(path)!r}: there is no folder {str(target.parent)!r}; make it first"
        )
    return target
