"""``svm-predict`` and ``liblinear-predict``: labels or numbers, block by block.

Ties are broken as the originals break them: by the order of labels in the model file.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import click
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit

import maxmargin as mm
from maxmargin._typing import Floats, Ints
from maxmargin.atomic_write import write_atomically
from maxmargin.cli.classic.training import Errors
from maxmargin.data.svmlight import Svmlight, iterate_svmlight
from maxmargin.estimators.probabilities import couple_pairs
from maxmargin.kernels import RBF


class Predicted(NamedTuple):
    """Labels or numbers for some rows, and the probabilities of labels if they are asked for."""

    values: npt.NDArray[Any]
    probabilities: Floats | None = None


Predict = Callable[[Any], Predicted]


def _write_predictions(
    blocks: Iterator[Svmlight],
    predict: Predict,
    output: str,
    header: str = "",
) -> tuple[Errors, int]:
    """Write a line for each row; return the errors, and how many labels are right."""
    errors, correct = Errors(), 0

    def write(draft: Path) -> None:
        nonlocal correct
        with draft.open("w") as file:
            file.write(header)
            for X, y, *_ in blocks:
                predicted = predict(X)
                _write_lines(file, predicted)
                values = np.asarray(predicted.values, dtype=np.float64)
                errors.add(values, y)
                correct += int((values == y).sum())

    write_atomically(output, write)
    return errors, correct


def _write_lines(file: IO[str], predicted: Predicted) -> None:
    values = predicted.values.tolist()
    if predicted.probabilities is None:
        file.writelines(f"{value:.17g}\n" for value in values)
        return
    form = "%.17g" + " %g" * predicted.probabilities.shape[1] + "\n"
    for value, row in zip(values, predicted.probabilities.tolist(), strict=True):
        file.write(form % (value, *row))


def _say_errors(errors: Errors) -> None:
    click.echo(f"Mean squared error = {errors.mean_squared:g} (regression)")
    click.echo(f"Squared correlation coefficient = {errors.correlation:g} (regression)")


def _accuracy(errors: Errors, correct: int) -> str:
    rate = correct / errors.count * 100 if errors.count else np.nan
    return f"Accuracy = {rate:g}% ({correct}/{errors.count})"


def read_header(path: str, end: str) -> dict[str, list[str]]:
    """Return the words after each keyword of a model file, up to the keyword that ends them."""
    found = {}
    with open(path) as file:
        for line in file:
            key, *words = line.split() or [""]
            if key == end:
                break
            found[key] = words
    return found


def _to_width(X: Any, width: int) -> tuple[Any, Floats]:
    """Return rows with as many columns as a model has, and the squared norms of what is cut off."""
    extra = np.zeros(X.shape[0])
    if X.shape[1] > width:
        rest = X[:, width:]
        extra, X = np.asarray(rest.multiply(rest).sum(axis=1)).ravel(), X[:, :width]
    elif X.shape[1] < width:
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    return X, extra


def _places(model: Any, labels: list[str]) -> Ints:
    """Return which class each label of the file is."""
    classes = {float(label): k for k, label in enumerate(model.classes_.tolist())}
    return np.array([classes[float(label)] for label in labels])


# ------------------------------------------------------------------- LIBSVM


def predict_svm(
    test_file: str, model_file: str, output_file: str, *, probability: int, quiet: bool
) -> None:
    """Predict with a LIBSVM model."""
    model = mm.files.load_libsvm(model_file)
    header = read_header(model_file, "SV")
    regresses = isinstance(model, mm.SVR | mm.NuSVR)
    if probability and "probA" not in header:
        raise click.ClickException(
            f"{model_file}: model does not support probability estimates; train it with -b 1."
        )
    if "probA" in header and not probability and not quiet:
        click.echo("Model supports probability estimates, but disabled in prediction.")
    first = ""
    if probability and regresses and not quiet:
        click.echo(
            "Prob. model for test data: target value = predicted value + z,\nz: Laplace "
            f"distribution e^(-|z|/sigma)/(2sigma),sigma={float(header['probA'][0]):g}"
        )
    elif probability and not regresses:
        first = f"labels {' '.join(header['label'])}\n"
    predictor = _SvmPredictor(model, header, bool(probability) and not regresses)
    blocks = iterate_svmlight(test_file, zero_based=predictor.takes_gram)
    errors, correct = _write_predictions(blocks, predictor, output_file, first)
    if quiet:
        return
    if regresses:
        _say_errors(errors)
    else:
        click.echo(f"{_accuracy(errors, correct)} (classification)")


class _SvmPredictor:
    """A model of LIBSVM, called with rows."""

    def __init__(self, model: Any, header: dict[str, list[str]], probability: bool) -> None:
        self._model, self._probability = model, probability
        self.takes_gram = model.kernel_.takes_gram
        self._places = _places(model, header["label"]) if "label" in header else np.empty(0)

    def __call__(self, X: Any) -> Predicted:
        scores = self._scores(X)
        if isinstance(self._model, mm.SVR | mm.NuSVR):
            return Predicted(scores[:, 0])
        if isinstance(self._model, mm.OneClassSVM):
            return Predicted(np.where(scores[:, 0] > 0, 1, -1))
        labels = self._model.classes_[self._places]
        if not self._probability:
            return Predicted(labels[self._votes(scores).argmax(axis=1)])
        p = self._probabilities(scores)[:, self._places]
        return Predicted(labels[p.argmax(axis=1)], p)

    def _scores(self, X: Any) -> Floats:
        """Return the scores of pairs of classes, also of rows with features no row had before."""
        model = self._model
        width = model.n_features_in_
        if self.takes_gram:
            return np.asarray(model.pairwise_scores(_to_width(X[:, 1:], width)[0].toarray()))
        X, extra = _to_width(X, width)
        scores = np.asarray(model.pairwise_scores(X))
        if isinstance(model.kernel_, RBF) and extra.any():
            # What no support vector has adds to the squared distance from each.
            factors = np.exp(-float(model.kernel_.gamma) * extra)[:, np.newaxis]
            scores = (scores - model.intercept_) * factors + model.intercept_
        return scores

    def _votes(self, scores: Floats) -> Ints:
        """Return how many pairs each label wins, in the order of the model file."""
        count = len(self._places)
        votes = np.zeros((len(scores), count), dtype=np.int64)
        rows = np.arange(len(scores))
        columns = {pair: k for k, pair in enumerate(_pairs(count))}
        for a in range(count):
            for b in range(a + 1, count):
                i, j = self._places[a], self._places[b]
                positive = i if (i < j) == (count > 2) else j
                score = scores[:, columns[min(i, j), max(i, j)]]
                wins = score > 0 if positive == i else score < 0
                votes[rows, np.where(wins, a, b)] += 1
        return votes

    def _probabilities(self, scores: Floats) -> Floats:
        """Return probabilities by class; the most probable one need not have the most votes."""
        calibration = self._model.calibration_
        r = expit(calibration.slope * scores + calibration.offset)
        if calibration.n_classes == 2:
            return np.column_stack([1 - r, r])
        return couple_pairs(r, list(calibration.classes), calibration.n_classes)


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


# ------------------------------------------------------------------- LIBLINEAR


def predict_liblinear(
    test_file: str, model_file: str, output_file: str, *, probability: int, quiet: bool
) -> None:
    """Predict with a LIBLINEAR model."""
    model = mm.files.load_liblinear(model_file)
    header = read_header(model_file, "w")
    if probability:
        raise click.ClickException(
            f"{model_file}: probability output is only supported for logistic regression; "
            "svm-train -b 1 makes models with probabilities."
        )
    predict = _linear_predictor(model, header)
    errors, correct = _write_predictions(iterate_svmlight(test_file), predict, output_file)
    if quiet:
        return
    if isinstance(model, mm.LinearSVR):
        _say_errors(errors)
    else:
        click.echo(_accuracy(errors, correct))


def _linear_predictor(model: Any, header: dict[str, list[str]]) -> Predict:
    """Return a function of rows; features that the model does not know are left out."""
    width = model.n_features_in_
    if isinstance(model, mm.LinearSVR):
        return lambda X: Predicted(model.predict(_to_width(X, width)[0]))
    if isinstance(model, mm.OneClassSVM):
        return lambda X: Predicted(
            np.where(model.decision_function(_to_width(X, width)[0]) > 0, 1, -1)
        )
    places = _places(model, header["label"])
    labels, joint = model.classes_[places], header["solver_type"] == ["MCSVM_CS"]

    def predict(X: Any) -> Predicted:
        scores = model.pairwise_scores(_to_width(X, width)[0])
        if len(labels) > 2:
            return Predicted(labels[scores[:, places].argmax(axis=1)])
        # One plane for two labels, the second class being positive; zero goes to the second label,
        # or to the first one where each label has a plane of its own.
        score = scores[:, 0] if places[0] == 1 else -scores[:, 0]
        return Predicted(labels[np.where(score >= 0 if joint else score > 0, 0, 1)])

    return predict
