"""Writes golden files of the present format: models, rows, and what the models say about them.

    python -m tests.files.make_golden

Files of a format are added when it grows, and never changed: every later version of the library has
to read them and to predict the same.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

import maxmargin as mm
from maxmargin.files.native import FORMAT, save
from maxmargin.kernels import RBF, Columns, Linear, Polynomial

FOLDER = Path(__file__).parent / "golden" / f"format-{FORMAT}"
RNG = np.random.default_rng(7)
X = np.round(RNG.normal(size=(24, 3)), 3)
TWO = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "yes", "no")
THREE = np.digitize(X[:, 0], [-0.4, 0.4])
TARGET = X[:, 0] + X[:, 1] ** 2
APART = X + 2.0 * np.where(TWO == "yes", 1.0, -1.0)[:, np.newaxis]
TEXTS = np.array(["red apple", "green pear", "blue sky", "green apple pie"] * 6)
FILLED = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
TREE = RBF(0.5) + 2.0 * Linear() ** 2 + Columns(Polynomial(2, 0.5), [0, 2])
MODELS: dict[str, tuple[Any, Any, Any]] = {
    "svc": (mm.SVC(probability=True), X, TWO),
    "svc-three-classes": (mm.SVC(probability=True, trace=True), X, THREE),
    "svc-linear-sparse": (mm.SVC(kernel="linear"), sp.csr_array(np.round(X)), THREE),
    "svc-kernel-tree": (mm.SVC(kernel=TREE), X.astype(np.float32), TWO),
    "nu-svc": (mm.NuSVC(nu=0.3), X, TWO),
    "svr": (mm.SVR(), X, TARGET),
    "nu-svr": (mm.NuSVR(kernel="poly"), X, TARGET),
    "quantile-svr": (mm.QuantileSVR(quantile=0.8), X, TARGET),
    "one-class": (mm.OneClassSVM(nu=0.2), X, None),
    "linear-svc": (mm.LinearSVC(probability=True), X, THREE),
    "linear-svc-l1": (mm.LinearSVC("l1", "squared_hinge"), X, TWO),
    "linear-svc-jointly": (mm.LinearSVC(multi_class="crammer_singer"), X, THREE),
    "linear-svr": (mm.LinearSVR(epsilon=0.1), X, TARGET),
    "hard-margin": (mm.HardMarginSVC(), APART, TWO),
    "bayes-point": (mm.BayesPointClassifier(n_samples=40, n_chains=2), APART, TWO),
    "partitioned-tree": (mm.PartitionedSVC(size=8, C=[1.0, 10.0]), X, THREE),
    "partitioned-voronoi": (
        mm.PartitionedSVC(cells="voronoi", size=8, overlap=0.0), X.astype(np.float32), TWO),
    "perceptron": (mm.Perceptron(max_epochs=5, stop="epochs"), X, THREE),
    "averaged-perceptron": (mm.AveragedPerceptron(max_epochs=5), X, TWO),
    "voted-perceptron": (mm.VotedPerceptron(max_epochs=2), X, TWO),
    "kernel-perceptron": (mm.KernelPerceptron(max_epochs=5, stop="epochs"), X, THREE),
    "structured-svc": (mm.StructuredSVC(mm.structured.Multiclass()), X, TWO),
    "structured-perceptron": (
        mm.StructuredPerceptron(mm.structured.Multiclass(), max_epochs=3, stop="epochs"), X, TWO),
    "kernel-pca": (mm.KernelPCA(2, kernel="rbf"), X, None),
    "nystroem": (mm.Nystroem(n_components=5), X, None),
    "pipeline": (make_pipeline(StandardScaler(), MinMaxScaler(), MaxAbsScaler(), mm.SVC()), X, TWO),
    "pipeline-of-texts": (make_pipeline(TfidfVectorizer(), mm.LinearSVC()), TEXTS, TWO),
    "pipeline-of-columns": (
        make_pipeline(
            ColumnTransformer([
                ("numbers", FILLED, [0, 1]),
                ("codes", OneHotEncoder(handle_unknown="ignore"), [2]),
            ]),
            mm.LinearSVC(),
        ),
        np.column_stack([np.where(X[:, 0] < -1, np.nan, X[:, 0]), X[:, 1], THREE]), TWO),
    "read-libsvm": (mm.SVC(probability=True), X, THREE),
    "read-libsvm-one-class": (mm.OneClassSVM(nu=0.2), X, None),
    "read-liblinear": (mm.LinearSVC(), X, THREE),
}  # fmt: skip
METHODS = ("predict", "decision_function", "predict_proba", "transform")


def outputs(model: Any, rows: Any) -> dict[str, Any]:
    """Return what a model says about rows, by method."""
    found = {name: getattr(model, name)(rows) for name in METHODS if hasattr(model, name)}
    return {name: v.toarray() if sp.issparse(v) else np.asarray(v) for name, v in found.items()}


def as_read(name: str, model: Any) -> Any:
    """Return a model as it is read from the text file that its name in ``MODELS`` says, if any."""
    word, _, program = name.partition("-")
    if word != "read":
        return model
    program = program.partition("-")[0]
    with tempfile.TemporaryDirectory() as folder:
        getattr(mm.files, f"save_{program}")(model, f"{folder}/text.model")
        return getattr(mm.files, f"load_{program}")(f"{folder}/text.model")


def main() -> None:
    """Write what is not there yet."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (model, rows, y) in MODELS.items():
        if (FOLDER / f"{name}.mmg").exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = as_read(name, model.fit(rows, y))
        save(model, FOLDER / f"{name}.mmg")
        some = rows[:8].toarray() if sp.issparse(rows) else rows[:8]
        np.savez_compressed(FOLDER / f"{name}.npz", rows=some, **outputs(model, some))


if __name__ == "__main__":
    main()
