"""What is learnt from: real sets by name, from a folder, and synthetic ones from a seed."""

import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)

SEED = 20240601

# Columns to declare: the last ones can be empty in a test part.
COLUMNS = {
    "sonar": 60, "heart_scale": 13, "breast-cancer": 10, "diabetes": 8, "fourclass": 2,
    "german.numer": 24, "a1a": 123, "svmguide1": 4, "higgs-7k": 28, "reuters-money-fx": 8315,
    "mushrooms": 112, "magic04": 10, "a9a": 123, "ijcnn1": 22, "kddcup99-10pct": 41,
    "satimage": 36, "usps": 256, "pendigits": 16, "20newsgroups-bydate": 42254, "news20": 62061,
    "shuttle": 9, "mnist": 784, "covtype": 54, "housing_scale": 13, "abalone": 8, "cpusmall": 12,
    "casp": 9,
}  # fmt: skip

REGRESSION = ("housing_scale", "abalone", "cpusmall", "casp")


class UnavailableError(Exception):
    """A data set that cannot be had here; the message says why."""


@dataclass(frozen=True)
class Dataset:
    """Rows and labels to learn from, and others to be judged by where there are any."""

    name: str
    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None
    notes: str = ""

    @property
    def sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return bool(sp.issparse(self.X))

    @property
    def shape(self) -> str:
        """The size in words."""
        n, d = self.X.shape
        kind = f"{self.X.nnz / n:.0f} entries a row" if self.sparse else str(self.X.dtype)
        return f"{n}×{d}, {kind}"


def load(name: str, folder: Path | None, quick: bool = False) -> Dataset:
    """Return a data set by name; ``quick`` makes synthetic ones small and samples real ones."""
    if name in SYNTHETIC:
        return _synthetic(name, quick)
    dataset = DERIVED[name](folder) if name in DERIVED else real(name, folder)
    return sampled(dataset, 2000) if quick else dataset


def available(names: list[str], folder: Path | None, quick: bool = False) -> Iterator[Dataset]:
    """Yield the data sets that can be had, and print why the others cannot."""
    for name in names:
        try:
            yield load(name, folder, quick)
        except UnavailableError as reason:
            print(f"skipped {name}: {reason}")


@cache
def _synthetic(name: str, quick: bool) -> Dataset:
    return SYNTHETIC[name](quick)


@cache
def real(name: str, folder: Path | None) -> Dataset:
    """Return a set from its file, with its test part if there is one."""
    if folder is None:
        raise UnavailableError("no --data folder was given and MAXMARGIN_DATA is not set")
    file = folder / (f"{name}.npz" if name == "mnist" else f"{name}.svm.xz")
    if not file.exists():
        raise UnavailableError(f"there is no {file.name} in the --data folder")
    if file.suffix == ".npz":
        with np.load(file) as arrays:
            X, y, X_test, y_test = (arrays[part] for part in ("X", "y", "X_test", "y_test"))
        return Dataset(name, X, y, X_test, y_test, "uint8 images")
    test = folder / f"{name}.t.svm.xz"
    judged = _svmlight(test, COLUMNS[name]) if test.exists() else (None, None)
    return Dataset(name, *_svmlight(file, COLUMNS[name]), *judged)


def _svmlight(file: Path, columns: int) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    with lzma.open(file) as text:
        X, y = load_svmlight_file(text, n_features=columns, zero_based=False)
    # Some peers refuse the 64-bit indices that some versions return.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def one_against_rest(dataset: Dataset, name: str, label: float | None = None) -> Dataset:
    """Return the two-class problem of one class (by default the largest) against all others."""
    labels, sizes = np.unique(dataset.y, return_counts=True)
    chosen = labels[np.argmax(sizes)] if label is None else label

    def signs(y: Any) -> Any:
        return None if y is None else np.where(y == chosen, 1, -1)

    return replace(
        dataset,
        name=name,
        y=signs(dataset.y),
        y_test=signs(dataset.y_test),
        notes=f"class {chosen:g} against the rest",
    )


def sampled(dataset: Dataset, rows: int) -> Dataset:
    """Return so many rows drawn at random, in their order."""
    if dataset.X.shape[0] <= rows:
        return dataset
    rng = np.random.default_rng(SEED)
    kept = np.sort(rng.choice(dataset.X.shape[0], rows, replace=False))
    return replace(dataset, X=dataset.X[kept], y=dataset.y[kept])


SCALERS: dict[str, Callable[[], Any]] = {
    "as published": FunctionTransformer,
    "[-1,1]": partial(MinMaxScaler, (-1, 1)),
    "standardised": StandardScaler,
    "/255": partial(FunctionTransformer, partial(np.multiply, 1 / 255)),
    "/largest": MaxAbsScaler,  # these two keep sparse rows sparse
    "unit rows": Normalizer,
}


def scaled(dataset: Dataset, how: str) -> Dataset:
    """Return rows scaled by what the training rows say, dense if that makes them so."""
    keep = SCALERS[how] in (MaxAbsScaler, Normalizer)

    def rows(X: Any) -> Any:
        return X if keep else (X.toarray() if sp.issparse(X) else X).astype(np.float64)

    scaler = SCALERS[how]().fit(rows(dataset.X))
    tests = None if dataset.X_test is None else scaler.transform(rows(dataset.X_test))
    return replace(dataset, X=scaler.transform(rows(dataset.X)), X_test=tests)


def with_unit_targets(dataset: Dataset) -> Dataset:
    """Return the set with targets of mean 0 and standard deviation 1."""
    mean, deviation = np.mean(dataset.y), np.std(dataset.y) or 1.0
    tests = None if dataset.y_test is None else (dataset.y_test - mean) / deviation
    return replace(dataset, y=(dataset.y - mean) / deviation, y_test=tests)


def dense(name: str, n: int, d: int, dtype: Any) -> Dataset:
    """Return Gaussian rows on two sides of a plane, with noise: nearly separable."""
    rng = np.random.default_rng(SEED)
    w = rng.standard_normal(d) / np.sqrt(d)
    tests = max(1, n // 10)
    X = rng.standard_normal((n + tests, d), dtype=np.float32).astype(dtype)
    y = np.where(X @ w + 0.1 * rng.standard_normal(n + tests) > 0, 1, -1)
    return Dataset(name, X[:n], y[:n], X[n:], y[n:], "Gaussian, nearly separable")


def sparse(name: str, n: int, d: int, per_row: int) -> Dataset:
    """Return rows like texts: unit length, frequent and rare columns, nearly separable."""
    rng = np.random.default_rng(SEED)
    # Columns drawn by a power law, as words are; a column drawn twice counts twice.
    columns = (d * rng.random((n, per_row)) ** 3).astype(np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int32), per_row)
    X = sp.csr_matrix((np.ones(n * per_row), (rows, columns.ravel())), shape=(n, d))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr))
    y = np.where(X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n) > 0, 1, -1)
    return Dataset(name, X, y, notes="power-law columns, unit rows, nearly separable")


def letters(rows: int) -> Dataset:
    """Return 26 classes that overlap, each of three clusters, in 16 columns of few values."""
    rng = np.random.default_rng(SEED)
    centres = rng.uniform(2, 13, (26, 3, 16))
    y = rng.integers(26, size=rows)
    X = centres[y, rng.integers(3, size=rows)] + rng.normal(0, 2.3, (rows, 16))
    return Dataset("letters", np.clip(np.round(X), 0, 15), y, notes="26 classes")


def word_counts(name: str, n: int, d: int) -> Dataset:
    """Return raw counts of words: Zipf's law, log-normal lengths, all but separable by few words.

    Rows have norms from about 2 to 300, so coordinate descent gains little in each sweep.
    """
    rng = np.random.default_rng(SEED)
    frequency = 1.0 / (np.arange(d) + 2.7) ** 1.05
    lengths = np.maximum(3, np.exp(rng.normal(4.7, 0.9, n))).astype(np.int64)
    drawn = rng.random(int(lengths.sum())) * frequency.sum()
    words = np.minimum(np.searchsorted(np.cumsum(frequency), drawn), d - 1).astype(np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int32), lengths)
    X = sp.csr_matrix((np.ones(len(words)), (rows, words)), shape=(n, d))
    X.sum_duplicates()
    scores = X @ np.where(rng.random(d) < 0.3, rng.standard_normal(d), 0.0)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    away = (scores - np.median(scores)) / norms
    y = np.where(away + 0.02 * rng.standard_normal(n) > 0, 1, -1)
    return Dataset(name, X, y, notes="counts of words, row norms from 2 to 300, all but separable")


SYNTHETIC: dict[str, Callable[[bool], Dataset]] = {
    "dense-float64": lambda quick: dense("dense-float64", 5000 if quick else 500_000, 50, "f8"),
    "dense-float32": lambda quick: dense("dense-float32", 5000 if quick else 500_000, 50, "f4"),
    "sparse-synthetic": lambda quick: (
        sparse("sparse-synthetic", 1000, 5000, 50)
        if quick
        else sparse("sparse-synthetic", 20_000, 50_000, 100)
    ),
    "letters": lambda quick: letters(1000 if quick else 15_000),
    "word-counts": lambda quick: word_counts(
        "word-counts", *((1000, 2500) if quick else (20_000, 40_000))
    ),
}

DERIVED: dict[str, Callable[[Path | None], Dataset]] = {
    "news20-binary": lambda folder: one_against_rest(real("news20", folder), "news20-binary"),
    "20newsgroups-binary": lambda folder: one_against_rest(
        real("20newsgroups-bydate", folder), "20newsgroups-binary"
    ),
}
