"""``python -m tests.fuzz.make_corpus``: write the inputs that mutants descend from, once more.

Files that were added because they were refused wrongly stay as they are.
"""

import json
import warnings
from collections.abc import Iterator
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
from maxmargin.data import read_labelled
from tests.fuzz.targets import CORPUS

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(18, 2)), 2)
SIGNS = np.where(X[:, 0] + 0.2 * RNG.normal(size=18) > 0, 1, -1)
THREE = np.where(X[:, 1] > 0.4, 2, (X[:, 0] > 0).astype(int))
WORDS = np.array(["no", "yes"])[(SIGNS > 0).astype(int)]
CELLS = np.array(
    [[each, ("red", "blue", "green")[k % 3]] for k, each in enumerate(X[:, 0])], object
)
TEXTS = [f"{'good' if s > 0 else 'bad'} word{k % 4} two" for k, s in enumerate(SIGNS)]


def kernel_machines() -> Iterator[tuple[str, Any]]:
    """Yield fitted machines that model files of LIBSVM can hold, too."""
    yield "svc", mm.SVC().fit(X, SIGNS)
    yield "svc-poly-3", mm.SVC(kernel="poly", degree=2, coef0=1.0).fit(X, THREE)
    yield "svc-probability", mm.SVC(kernel="linear", probability=True).fit(X, SIGNS)
    yield "nusvc-words", mm.NuSVC(nu=0.3).fit(X, WORDS)
    yield "svr", mm.SVR(C=2.0).fit(X, X[:, 0])
    yield "nusvr", mm.NuSVR(kernel="sigmoid", gamma=0.1).fit(X, X[:, 0])
    yield "one-class", mm.OneClassSVM(nu=0.3).fit(X)
    yield "precomputed", mm.SVC(kernel="precomputed").fit(X @ X.T, SIGNS)


def linear_machines() -> Iterator[tuple[str, Any]]:
    """Yield fitted machines that model files of LIBLINEAR can hold, too."""
    yield "linear", mm.LinearSVC().fit(X, SIGNS)
    yield "linear-3", mm.LinearSVC(multi_class="crammer_singer").fit(X, THREE)
    yield "linear-words", mm.LinearSVC(fit_intercept=False).fit(X, WORDS)
    yield "linear-svr", mm.LinearSVR().fit(X, X[:, 0])


def other_models() -> Iterator[tuple[str, Any]]:
    """Yield what only native files hold."""
    k = mm.kernels
    tree = 0.5 * k.RBF(1.0) + k.Columns(k.Linear(), [0]) * k.Polynomial(2)
    yield "kernel-tree", mm.SVC(kernel=tree).fit(X, SIGNS)
    yield "svc-sparse-ovr", mm.SVC(multi_class="ovr").fit(sp.csr_array(X), THREE)
    yield "hard-margin", mm.HardMarginSVC().fit(np.vstack([X + 9, X - 9]), np.repeat([0, 1], 18))
    yield "perceptron", mm.AveragedPerceptron(max_epochs=2).fit(X, SIGNS)
    yield "voted", mm.VotedPerceptron(max_epochs=2).fit(X, SIGNS)
    yield "kernel-perceptron", mm.KernelPerceptron(max_epochs=2).fit(X, SIGNS)
    yield "bayes", mm.BayesPointClassifier(n_samples=20).fit(X, SIGNS)
    yield "partitioned", mm.PartitionedSVC(size=6).fit(X, THREE)
    structured = mm.StructuredSVC(mm.structured.Multiclass(), tol=0.1)
    yield "structured", structured.fit(X, THREE)
    yield "kernel-pca", mm.KernelPCA(n_components=2, kernel="rbf").fit(X)
    yield "nystroem", make_pipeline(mm.Nystroem(n_components=3), mm.LinearSVC()).fit(X, SIGNS)
    yield "monomials", mm.KernelPCA(n_components=2, kernel="poly", degree=2).fit(X)
    yield "scaled", make_pipeline(StandardScaler(), MinMaxScaler(), mm.SVC()).fit(X, SIGNS)
    columns = ColumnTransformer(
        [("a", make_pipeline(SimpleImputer(), MaxAbsScaler()), [0]), ("b", OneHotEncoder(), [1])]
    )
    yield "columns", make_pipeline(columns, mm.LinearSVC()).fit(CELLS, SIGNS)
    yield "texts", make_pipeline(TfidfVectorizer(), mm.LinearSVC()).fit(TEXTS, SIGNS)


def keep(target: str, name: str, content: bytes) -> Path:
    """Write an input."""
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


SVMLIGHT = {
    "plain": b"+1 1:0.5 3:-2e-3\n-1 2:1\n+1 1:.5 2:1e10 # words\n",
    "ranking": b"# comment\n3 qid:1 1:1 2:0.25\n1 qid:1 2:7\n2 qid:2 1:0.1\n",
    "windows": b"\xef\xbb\xbf1 1:1\r\n0 2:2\r\n\r\n0\r\n",
    "digits": b"-1.5 7:0.1234567890123456789 8:1.7976931348623157e308 9:4.9e-324\n0.5 100:123456\n",
    "zero": b"1 0:1 1:2\n-1 0:2\n",
}
TABLES = {
    "plain": b"a,b,label\n1.5,x,yes\n2,y,no\n,x,yes\n-1e3,y,no\n",
    "german": b'"Preis";Datum;Klasse\n1.234,5;31.12.2020;1\n2,5;01.02.2021;0\n3,0;05.02.2021;1\n',
    "tabs": b"1\t5%\t1,000\t0\n2\t6%\t2,000\t1\n3\t7%\t\t1\n",
    "spaces": b"0.1 0.2 1\n0.3 0.4 -1\n0.5 0.6 1\n",
    "quoted": b'id,text,"y ""z"""\n1,"two\nlines",a\n2,"c,d",b\n3,e,a\n',
    "times": b"when,cost,label\n2020-01-02 18:00,$5,a\n2020-02-03 19:30,$7.5,b\n2021-01-01,$1,a\n",
    "arff": b"@relation r\n@attribute a numeric\n@attribute c {x,y}\n@data\n1,x\n2,y\n?,x\n",
    "records": b'[{"a": 1, "b": "x", "label": 0}, {"a": 2.5, "b": null, "label": 1}]',
    "lines": b'{"a": 1, "label": "p"}\n{"a": 2, "label": "q"}\n{"a": 3, "label": "q"}\n',
    "wide": "naïve,größe,label\n1,2,é\n3,4,ü\n".encode("utf-16"),
}
OPTIONS = {
    "params": b"--param C=10\n--param kernel=rbf\n--param shrinking=True\n--param tol=1e-3",
    "grids": b"--C 0.1,1,10\n--C 0.01:100:5\n--gamma 1e-3:1:3\n--C 1",
    "lists": b"--param a=[1, 2.5, (3, None)]\n--param b={'x': 1}\n--param c=-1_000",
}


KERNELS = {
    "named": b"RBF(gamma) + 0.5 * Linear() * Polynomial(degree, gamma=2 * gamma, coef0=1)",
    "powers": b"(Linear() + 1) ** 2 * Laplacian(.5)^3 + 1e-3 * Cosine()",
    "columns": b"Columns(kernel=RBF(gamma), columns=[0, 1]) * Columns(Intersection(), 1)",
    "others": b"sigmoid(0.5, -coef0) + chi2(1) + ((Constant(value=2)))",
}
SCENE = {
    "x": [0.0, 1.5, -2], "y": [0.5, -1.0, 3e-2], "label": [0, 1, 4], "view": [-3, 3.0, -2, 2],
    "model": "SVC", "parameters": {"C": 10, "gamma": 0.5, "degree": 2}, "kernel": "RBF(gamma)",
}  # fmt: skip
POINTS = {name: SCENE[name] for name in ("x", "y", "label", "view")}
MESSAGES: dict[str, dict[str, Any]] = {
    "hello": {},
    "fit": {**SCENE, "pane": 1, "grid": [96, 64], "wants": ["separability"]},
    "run": {**SCENE, "pane": 0, "kind": "path", "kernel": ""},
    "lift": {**SCENE, "kind": "circle", "center": [0.5, 1], "scale": None},
    "diagnose": {**SCENE, "model": "LinearSVC", "kernel": ""},
    "preset": {"name": "moons", "parameters": {"noise": 0.25}, "seed": 7},
    "table": {"text": "a,b,c\n1,2,x\n3,4,y\n", "columns": [1, 0], "label": -1},
    "kernel": {"text": "2 * RBF(gamma) ** 2 + Columns(Linear(), 0)", "parameters": {"gamma": 3}},
    "code": {**POINTS, "panes": [{"model": "SVR", "kernel": "rbf(2)"}, {"model": "Perceptron"}]},
    "lesson": {"id": "margins"},
    "answer": {**SCENE, "lesson": "margins", "page": 2, "item": 1, "value": "½ or \U0001f600"},
    "tasks": {**SCENE, "lesson": "margins", "page": 2},
    "cancel": {"pane": 1},
}


def main() -> None:
    """Write everything."""
    sent = {
        name: json.dumps({"type": name, "seq": 5, **fields}).encode()
        for name, fields in MESSAGES.items()
    }
    texts = {
        "svmlight": SVMLIGHT, "csv": TABLES, "options": OPTIONS,
        "kernel": KERNELS, "message": sent,
    }  # fmt: skip
    for target, inputs in texts.items():
        for name, content in inputs.items():
            path = keep(target, name, content)
            if target == "csv" and name in ("plain", "german", "times", "quoted"):
                found = read_labelled(path).layout
                assert found is not None
                layout = found.to_json()
                keep("layout", name, json.dumps(layout).encode())
    layout = {"kind": "svmlight", "task": None, "n_features": 3, "zero_based": False}
    keep("layout", "svmlight", json.dumps(layout).encode())
    kernel, linear = dict(kernel_machines()), dict(linear_machines())
    for name, model in (kernel | linear | dict(other_models())).items():
        mm.save(model, keep("native", name, b""))
    for name, model in kernel.items():
        mm.files.save_libsvm(model, keep("libsvm", name, b""))
    for name, model in linear.items():
        mm.files.save_liblinear(model, keep("liblinear", name, b""))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
