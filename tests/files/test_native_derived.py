"""What follows from other attributes is computed again when a native file is loaded."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

import maxmargin as mm
from tests.files.sealing import Unsealed, seal, unseal

Change = Callable[[Unsealed], None]

_RNG = np.random.default_rng(3)
X = _RNG.normal(size=(48, 4))
X[:, 3] = 7.25  # a constant column, whose scale is 1
Y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.4, 0.5])]
TWO = np.where(X[:, 0] > 0, "b", "a")
WORDS = np.array(["u", "v", "w"], dtype=object)[_RNG.integers(0, 3, (48, 2))]
WORDS[:2] = "rare"
TEXTS = [f"{'good' if k % 2 else 'bad'} film {k % 5}x" for k in range(48)]


def states(node: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield the states of all fitted instances of a class."""
    if isinstance(node, dict) and node.get("class") in (f"sklearn.{name}", f"maxmargin.{name}"):
        ours = node["class"].startswith("maxmargin.")
        if ours or any(key.endswith("_") for key in node["state"]):
            yield node["state"]
    for inner in node.values() if isinstance(node, dict) else node:
        if isinstance(inner, dict | list):
            yield from states(inner, name)


def scrambled(name: str, attribute: str) -> Change:
    """Return a change that writes the numbers of an array in another order, and larger."""

    def change(file: Unsealed) -> None:
        array = file.array(next(states(file.document, name))[attribute])
        array[...] = np.roll(array, 1) * 3 + 1

    return change


def replaced(name: str, alter: Callable[[dict[str, Any]], None]) -> Change:
    """Return a change of the state of the first instance of a class."""
    return lambda file: alter(next(states(file.document, name)))


def reversed_groups(file: Unsealed) -> None:
    groups = next(states(file.document, "OneHotEncoder"))["_default_to_infrequent_mappings"]
    file.array(groups[0])[...] = file.array(groups[0])[::-1].copy()


def columns() -> Any:
    parts = [("first", StandardScaler(), [0, 1]), ("second", StandardScaler(), [2, 3])]
    return make_pipeline(ColumnTransformer(parts), mm.LinearSVC()).fit(X, TWO)


def words(**options: Any) -> Any:
    return make_pipeline(OneHotEncoder(**options), mm.LinearSVC()).fit(WORDS, WORDS[:, 0] == "u")


def texts() -> Any:
    return make_pipeline(TfidfVectorizer(), mm.LinearSVC()).fit(TEXTS, np.arange(48) % 2)


def scaled(scaler: Any) -> Any:
    return make_pipeline(scaler, mm.LinearSVC()).fit(X, TWO)


def swap_slices(state: dict[str, Any]) -> None:
    places = state["output_indices_"]["map"]
    places["first"], places["second"] = places["second"], places["first"]


def bayes(y: Any) -> Any:
    return mm.BayesPointClassifier(kernel="rbf", n_samples=200, random_state=0).fit(X, y)


def partitioned() -> Any:
    return mm.PartitionedSVC(size=16).fit(X, Y)


CASES: dict[str, tuple[Callable[[], Any], Any, Change]] = {
    "scale of root": (lambda: scaled(StandardScaler()), X, scrambled("StandardScaler", "scale_")),
    "variance": (lambda: scaled(StandardScaler()), X, scrambled("StandardScaler", "var_")),
    "scale of range": (lambda: scaled(MinMaxScaler()), X, scrambled("MinMaxScaler", "scale_")),
    "shift": (lambda: scaled(MinMaxScaler()), X, scrambled("MinMaxScaler", "min_")),
    "range": (lambda: scaled(MinMaxScaler()), X, scrambled("MinMaxScaler", "data_range_")),
    "scale of largest": (lambda: scaled(MaxAbsScaler()), X, scrambled("MaxAbsScaler", "scale_")),
    "order of transformers": (
        columns, X, replaced("ColumnTransformer", lambda s: s["transformers_"].reverse())),
    "places of columns": (columns, X, replaced("ColumnTransformer", swap_slices)),
    "groups of categories": (
        lambda: words(min_frequency=3, handle_unknown="infrequent_if_exist"),
        WORDS, reversed_groups),
    "dropped category": (
        lambda: words(drop="first"), WORDS, replaced(
            "OneHotEncoder",
            lambda s: s["_drop_idx_after_grouping"]["objects"].__setitem__(0, 2))),
    "dropped categories": (
        lambda: words(drop="first"), WORDS,
        replaced("OneHotEncoder", lambda s: s.update(_drop_idx_after_grouping=None))),
    "norm of texts": (
        texts, TEXTS, replaced("TfidfTransformer", lambda s: s.update(norm=None))),
    "groups of a pattern": (
        texts, TEXTS, replaced("TfidfVectorizer", lambda s: s.update(token_pattern="(a)(b)"))),
    "sides of planes": (
        lambda: mm.LinearSVC(multi_class="ovo").fit(X, Y), X,
        replaced("LinearSVC", lambda s: s["_pairs"][0]["tuple"].reverse())),
    "order of planes": (
        lambda: mm.LinearSVC().fit(X, Y), X,
        replaced("LinearSVC", lambda s: s["_pairs"].reverse())),
    "order of hard margins": (
        lambda: mm.HardMarginSVC(kernel="rbf").fit(X, Y), X,
        replaced("HardMarginSVC", lambda s: s["_subproblems"].reverse())),
    "children of splits": (partitioned, X, scrambled("TreeCells", "children")),
    "directions of planes": (partitioned, X, scrambled("TreeCells", "directions")),
    "a cell without machine": (
        partitioned, X, replaced("PartitionedSVC", lambda s: s["machines_"].pop())),
    "a cell that was not reached": (
        partitioned, X, scrambled("PartitionedSVC", "_unreached")),
    "order of pairs": (
        lambda: bayes(Y), X,
        replaced("BayesPointClassifier", lambda s: s["_pairs"].reverse())),
    "sides of two classes": (
        lambda: bayes(TWO), X,
        replaced("BayesPointClassifier", lambda s: s["_pairs"][0]["tuple"].reverse())),
    "wrong labels": (
        lambda: bayes(TWO), X, replaced("BayesPointClassifier", lambda s: s.update(_noise=5.0))),
    "order of probabilities": (
        lambda: mm.SVC(probability=True).fit(X, Y), X,
        replaced("Calibration", lambda s: s["classes"]["tuple"].reverse())),
    "weights of monomials": (
        lambda: make_pipeline(mm.PolynomialMap(), mm.LinearSVC()).fit(X, TWO), X,
        scrambled("PolynomialMap", "weights_")),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_follows_from_others_is_compared(case: str, tmp_path: Path) -> None:
    fit, rows, change = CASES[case]
    model, path = fit(), tmp_path / "model.mmg"
    mm.save(model, path)
    assert_array_equal(mm.load(path).predict(rows), model.predict(rows))
    file = unseal(path.read_bytes())
    change(file)
    path.write_bytes(seal(file.document, file.tensors))
    with pytest.raises(mm.ModelFileError, match="altered or damaged"):
        mm.load(path)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        MinMaxScaler((-1, 1)),
        MinMaxScaler(),
        MaxAbsScaler(),
    ],
    ids=str,
)
def test_scales_of_odd_columns_are_kept(scaler: Any, kind: Any, tmp_path: Path) -> None:
    """Constant, tiny, huge and nearly constant columns have scales that follow from the others."""
    odd = np.column_stack(
        [np.zeros(30), np.full(30, 1e6), 1e6 + 1e-3 * X[:30, 0], 1e-12 * X[:30, 1],
         1e12 * X[:30, 2], 0.1 + 1e-16 * X[:30, 0]]
    ).astype(kind)  # fmt: skip
    path = tmp_path / "scaler.mmg"
    fitted = scaler.fit(odd)
    whole = make_pipeline(fitted, mm.CircleMap().fit(fitted.transform(odd)))
    mm.save(whole, path)
    assert_array_equal(mm.load(path)[0].transform(odd), fitted.transform(odd))


@pytest.mark.parametrize("y", [TWO, Y], ids=["two classes", "three classes"])
@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_streams_of_linear_machines_are_kept(first: str, y: Any, tmp_path: Path) -> None:
    path, options = tmp_path / "stream.mmg", {"classes": np.unique(y)}
    model = mm.LinearSVC()
    getattr(model, first)(X, y, **(options if first == "partial_fit" else {}))
    model.partial_fit(X[:9], y[:9])
    mm.save(model, path)
    loaded = mm.load(path)
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    again = loaded.partial_fit(X[9:], y[9:])
    assert_array_equal(
        again.decision_function(X), model.partial_fit(X[9:], y[9:]).decision_function(X)
    )


def test_a_kernel_perceptron_of_a_stream_is_kept(tmp_path: Path) -> None:
    path, model = tmp_path / "stream.mmg", mm.KernelPerceptron()
    model.partial_fit(X[:30], Y[:30], classes=np.unique(Y))
    mm.save(model, path)
    loaded = mm.load(path)
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    again = loaded.partial_fit(X[30:], Y[30:]).decision_function(X)
    assert_array_equal(again, model.partial_fit(X[30:], Y[30:]).decision_function(X))


@pytest.mark.parametrize("how", ["missing", "beyond"])
def test_columns_of_a_given_matrix_are_there(how: str, tmp_path: Path) -> None:
    path, K = tmp_path / "given.mmg", X @ X.T
    mm.save(mm.KernelPerceptron(kernel="precomputed").fit(K, TWO), path)
    mm.load(path).predict(K)
    file = unseal(path.read_bytes())
    if how == "missing":
        del file.tensors[file.state.pop("support_")["array"]]
    else:
        file.array(file.state["support_"])[-1] = len(K)
    path.write_bytes(seal(file.document, file.tensors))
    with pytest.raises(mm.ModelFileError, match="support_"):
        mm.load(path)
