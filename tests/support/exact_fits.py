"""Random fits of every estimator for the oracle of ``tests.support.exact``, one for each seed.

``python -m tests.support.exact_fits 0:1000`` judges the fits of these seeds and prints a line for
each claim that does not hold; a single seed shows one of them. ``--only SVC`` skips the others.
"""

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import kernels
from tests.support.exact import Violation, judged, read

ESTIMATORS = (
    "SVC", "LinearSVC", "SVR", "HardMarginSVC", "NuSVC", "LinearSVC", "NuSVR", "OneClassSVM",
    "SVC", "LinearSVR", "QuantileSVR",
)  # fmt: skip


class Fit(NamedTuple):
    """A model that is not fitted yet, and the data to fit it to."""

    model: Any
    X: Any
    y: Any
    sample_weight: Any
    words: str  # what the data are like

    def __str__(self) -> str:
        weighted = "" if self.sample_weight is None else ", weighted"
        shape = "x".join(map(str, self.X.shape))
        model = " ".join(repr(self.model).split())
        return f"{model} on {shape} {self.X.dtype} ({self.words}{weighted})"


def draw(seed: int) -> Fit:
    """Return the fit of a seed: its estimator goes round, everything else is random."""
    rng = np.random.default_rng([14, seed])
    name = ESTIMATORS[seed % len(ESTIMATORS)]
    classes = int(rng.choice([2, 2, 2, 3, 4])) if name.endswith("SVC") else 2
    n = int(rng.integers(max(2, classes), rng.choice([8, 16, 24, 40]) + 1))
    labels = rng.permutation(np.arange(n) % classes)
    X, words = _rows(rng, n, labels, apart=name == "HardMarginSVC")
    parameters = _parameters(rng, name)
    if name not in ("LinearSVC", "LinearSVR"):
        more, X, kernel_words = _with_kernel(rng, X)
        parameters |= more
        words += kernel_words
    weight = _weights(rng, labels)
    y = labels if name.endswith("SVC") else _targets(rng, X)
    if name == "NuSVC":
        parameters["nu"] = _feasible_share(rng, labels, weight, parameters.get("class_weight"))
    return Fit(getattr(mm, name)(**parameters), X, y, weight, words)


# ------------------------------------------------------------------- rows


def _rows(rng: Any, n: int, labels: Any, apart: bool) -> tuple[Any, str]:
    """Return rows, most of the time such that a hard margin exists if they are to be apart."""
    d = int(rng.integers(1, 7))
    names = ["separable", "separable", "touching", "integers"] if apart else list(_FAMILIES)
    family, scaling = str(rng.choice(names)), str(rng.choice(["", "", "", *_SCALINGS]))
    X = _FAMILIES[family](rng, rng.normal(size=(n, d)), labels[:, None])
    if apart and family == "integers":
        X = X + 7.0 * labels[:, None]
    if scaling:
        X = _SCALINGS[scaling](rng, X)
    words = " ".join(filter(None, [family, scaling]))
    kind = str(rng.choice(["float64", "float64", "float32", "sparse", "sparse float32", "int"]))
    if kind == "int" and abs(X).max() < 1e15:
        return np.round(X).astype(np.int64), words
    if "float32" in kind:
        X = X.astype(np.float32)
    if "sparse" in kind:
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.6, X, X.dtype.type(0)))
        words += " sparse"
    return X, words


Change = Callable[..., Any]
_FAMILIES: dict[str, Change] = {
    "gaussian": lambda _, X, y: X,
    "separable": lambda rng, X, y: X + rng.choice([1.5, 3.0, 8.0]) * y,
    "touching": lambda rng, X, y: np.round(X) + y * rng.integers(1, 4),
    "conflicting": lambda rng, X, y: X[rng.integers(0, max(1, len(X) // 2), size=len(X))],
    "low rank": lambda rng, X, y: X[:, :1] @ rng.normal(size=(1, X.shape[1])) + y,
    "collinear": lambda _, X, y: np.repeat(np.round(3 * X[:, :1]), X.shape[1], axis=1) / 3,
    "integers": lambda rng, X, y: rng.integers(-5, 6, size=X.shape).astype(float),
}
_SCALINGS: dict[str, Change] = {
    "a column at 1e9": lambda _, X: X * np.where(np.arange(X.shape[1]) == 0, 1e9, 1.0),
    "scales": lambda rng, X: X * 10 ** rng.uniform(-8, 8, size=X.shape[1]),
    "far": lambda _, X: X + 1e6,
    "small": lambda _, X: X * 1e-8,
    "large": lambda _, X: X * 1e8,
}


def _targets(rng: Any, X: Any) -> Any:
    y = rng.normal(size=X.shape[0]) * rng.choice([1.0, 1.0, 100.0, 1e-3])
    kind = str(rng.choice(["noise", "whole", "far", "a column"]))
    if kind == "whole":
        return np.round(3 * y)
    if kind == "far":
        return y + 1e6
    if kind == "a column":  # then errors are small, or none
        column = X[:, [0]].toarray() if sp.issparse(X) else X[:, [0]]
        return column[:, 0] / (abs(column).max() or 1) + 1e-3 * y * (rng.random() < 0.5)
    return y


def _weights(rng: Any, labels: Any) -> Any:
    n = len(labels)
    kind = rng.choice(["none", "none", "counts", "spread"])
    if kind == "none":
        return None
    weight = rng.integers(0, 4, size=n).astype(float)
    if kind == "spread":
        weight *= 10 ** rng.uniform(-6, 6, size=n)
    for label in (0, 1):  # somebody must be there of two classes
        weight[np.flatnonzero(labels == label)[0]] = 1.0
    return weight


def _feasible_share(rng: Any, labels: Any, weight: Any, class_weight: Any) -> float:
    weight = np.ones(len(labels)) if weight is None else weight
    totals = np.bincount(labels, weights=weight)
    if isinstance(class_weight, dict):
        totals = totals * [class_weight.get(c, 1.0) for c in range(len(totals))]
    elif class_weight == "balanced":
        totals = (totals > 0).astype(float)
    totals = totals[totals > 0]
    most = min(2 * min(a, b) / (a + b) for a in totals for b in totals)
    return float(most * rng.choice([0.05, 0.3, 0.6, 0.9, 1.0]))


# ------------------------------------------------------------------- parameters


def _parameters(rng: Any, name: str) -> dict[str, Any]:
    tol = float(10 ** rng.uniform(-12, -3))
    parameters: dict[str, Any] = {"tol": float(f"{tol:.2g}"), "max_iter": 100}
    C = 10 ** (rng.uniform(-10, 10) if rng.random() < 0.5 else rng.uniform(-2, 4))
    if name not in ("HardMarginSVC", "NuSVC", "OneClassSVM"):
        parameters["C"] = float(f"{C:.2g}")
    if name in ("NuSVR", "OneClassSVM"):
        parameters["nu"] = float(rng.choice([0.05, 0.2, 0.5, 0.8, 1.0]))
    if name in ("SVR", "LinearSVR"):
        parameters["epsilon"] = float(rng.choice([0.0, 0.1, 1.0]))
    if name in ("SVC", "NuSVC", "LinearSVC"):
        parameters["class_weight"] = [None, None, "balanced", {0: 3.0}][rng.integers(4)]
    if name == "QuantileSVR":
        parameters["quantile"] = float(rng.choice([0.001, 0.1, 0.3, 0.5, 0.9]))
    if name in ("SVC", "SVR", "QuantileSVR"):
        parameters["fit_intercept"] = bool(rng.random() < 0.8)
    if name == "SVC":
        parameters["multi_class"] = str(rng.choice(["ovo", "ovr"]))
    if name == "HardMarginSVC":
        parameters["intercept"] = str(rng.choice(["free", "free", "none"]))
        parameters["multi_class"] = str(rng.choice(["ovo", "ovr"]))
    if name.startswith("Linear"):
        parameters |= _linear_parameters(rng, name)
    return parameters


def _linear_parameters(rng: Any, name: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "intercept": str(rng.choice(["free", "free", "penalized", "none"])),
        "intercept_scaling": float(rng.choice([1.0, 10.0])),
        "solver": str(rng.choice(["auto", "newton", "dual_cd"])),
    }
    if name == "LinearSVR":
        losses = ["epsilon_insensitive", "squared_epsilon_insensitive"]
        return parameters | {"loss": str(rng.choice(losses))}
    multi_class = str(rng.choice(["ovr", "ovo", "crammer_singer"]))
    penalty, loss = "l2", "hinge"
    if multi_class != "crammer_singer":
        penalty = str(rng.choice(["l2", "l2", "l1", "elasticnet"]))
        loss = str(rng.choice(["hinge", "squared_hinge"]))
    if penalty == "elasticnet":
        parameters["l1_ratio"] = float(rng.choice([0.1, 0.5, 0.9]))
    return parameters | {"multi_class": multi_class, "penalty": penalty, "loss": loss}


def _with_kernel(rng: Any, X: Any) -> tuple[dict[str, Any], Any, str]:
    """Return parameters that say the kernel, and rows that it takes."""
    kind = str(rng.choice(["linear", "linear", "poly", "poly", "rbf", "rbf", "laplacian", "chi2",
                           "intersection", "cosine", "composed", "precomputed",
                           "function"]))  # fmt: skip
    gamma: Any = ["scale", "auto", 0.01, 1.0][rng.choice(4, p=[0.55, 0.15, 0.15, 0.15])]
    if kind in ("chi2", "intersection"):
        X = abs(X)
    if kind in ("rbf", "laplacian", "chi2"):
        return {"kernel": kind, "gamma": gamma}, X, ""
    if kind == "poly":
        degree, coef0 = int(rng.integers(2, 6)), float(rng.choice([0.0, 1.0]))
        return {"kernel": "poly", "degree": degree, "gamma": gamma, "coef0": coef0}, X, ""
    if kind == "composed":
        members: list[Any] = [
            kernels.RBF("scale") + 0.5 * kernels.Linear(),
            kernels.Columns(kernels.Laplacian("scale"), [0]) * (kernels.Cosine() + 1.0),
            (kernels.Polynomial(2, "scale") * kernels.RBF("scale")) ** 2,
        ]
        return {"kernel": members[rng.integers(3)]}, X, ""
    if kind == "function":
        return {"kernel": in_common}, sp.csr_array(X).toarray().astype(np.float64), ""
    if kind == "precomputed":
        return {"kernel": kind}, _given_gram(rng, X), " precomputed"
    return {"kernel": kind}, X, ""


def in_common(A: Any, B: Any) -> Any:
    """Return 1/(1 + ‖x − x′‖²), rounded in the same way in every block."""
    squares = (A[:, None] - B[None]) ** 2
    total = squares[:, :, 0]
    for j in range(1, squares.shape[2]):
        total = total + squares[:, :, j]
    return 1.0 / (1.0 + total)


def _given_gram(rng: Any, X: Any) -> Any:
    kernel: Any = [kernels.Linear(), kernels.RBF("scale"), kernels.Polynomial(2, "scale")]
    K = kernel[rng.integers(3)].resolved(X).gram(X)
    K = 0.5 * (K + K.T)
    return K.astype(rng.choice([np.float64, np.float64, np.float32]))


# ------------------------------------------------------------------- judging


def fitted(fit: Fit) -> bool:
    """Fit the model, and return whether there is something to judge: some data are refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit.model.fit(fit.X, fit.y, sample_weight=fit.sample_weight)
        except mm.errors.NotSeparableError:
            return False
        except ValueError as refusal:
            if "positive semidefinite" in str(refusal):
                return False
            raise
    return True


def judge(seed: int) -> list[Violation] | None:
    """Return what does not hold of a seed's fit, None if its data were refused."""
    fit = draw(seed)
    if not fitted(fit):
        return None
    parts = read(fit.model, fit.X, fit.y, fit.sample_weight)
    found = judged(fit.model, parts, fit.model.certificate_)
    if seed % 4 == 0:  # the same claims of the public function
        own = mm.certify(fit.model, fit.X, fit.y, fit.sample_weight)
        again = judged(fit.model, parts, own)
        found += [Violation(f"certify {v.claim}", v.detail) for v in again if v not in found]
    return found


def _seeds(text: str) -> Iterable[int]:
    first, _, end = text.partition(":")
    return range(int(first), int(end) if end else int(first) + 1)


def lines(seeds: Iterable[int], only: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (estimator, claim, line) for each violation."""
    for seed in seeds:
        name = ESTIMATORS[seed % len(ESTIMATORS)]
        if only and name != only:
            continue
        try:
            found = judge(seed)
        except Exception as error:
            found = [Violation("error", f"{type(error).__name__}: {error}"[:300])]
        for violation in found or ():
            yield name, violation.claim, f"{seed}: {violation}; {draw(seed)}"


def main() -> None:
    """Judge the seeds named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=_seeds, metavar="FIRST:END")
    parser.add_argument("--only", default="", choices=sorted(set(ESTIMATORS)))
    options = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    for name, claim, line in lines(options.seeds, options.only):
        counts[name, claim] += 1
        print(line, flush=True)  # noqa: T201
    for (name, claim), count in sorted(counts.items()):
        print(f"{name:14} {claim:16} {count}")  # noqa: T201


if __name__ == "__main__":
    main()
