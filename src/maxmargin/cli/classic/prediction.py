"""``svm-predict`` and ``liblinear-predict``: labels or numbers, block by block."""

import json
from collections.abc import Callable, Iterator
from itertools import takewhile
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
from maxmargin.cli.classic.training import LAPLACE, Errors
from maxmargin.data.svmlight import Svmlight, iterate_svmlight
from maxmargin.estimators.probabilities import couple_pairs
from maxmargin.files.text_models import label_file


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
                if predicted.values.dtype.kind == "U":
                    continue  # words are no labels of svmlight files
                errors.add(predicted.values.astype(np.float64), y)
                correct += int((predicted.values == y).sum())

    write_atomically(output, write)
    return errors, correct


def _write_lines(file: IO[str], predicted: Predicted) -> None:
    values = predicted.values.tolist()
    words = values if predicted.values.dtype.kind == "U" else [f"{value:.17g}" for value in values]
    if predicted.probabilities is None:
        file.writelines(f"{word}\n" for word in words)
        return
    form = "%s" + " %g" * predicted.probabilities.shape[1] + "\n"
    for word, row in zip(words, predicted.probabilities.tolist(), strict=True):
        file.write(form % (word, *row))


def _say_errors(errors: Errors) -> None:
    click.echo(f"Mean squared error = {errors.mean_squared:g} (regression)")
    click.echo(f"Squared correlation coefficient = {errors.correlation:g} (regression)")


def _say_accuracy(model: Any, errors: Errors, correct: int, end: str = "") -> None:
    if getattr(model, "classes_", np.empty(0)).dtype.kind == "U":
        click.echo("WARNING: labels of this model are words, so there is no accuracy", err=True)
        return
    rate = correct / errors.count * 100 if errors.count else np.nan
    click.echo(f"Accuracy = {rate:g}% ({correct}/{errors.count}){end}")


def read_header(path: str) -> dict[str, list[str]]:
    """Return the words after each keyword of a model file, up to the support vectors."""
    with open(path) as file:
        lines = (line.split() for line in takewhile(lambda line: line.split() != ["SV"], file))
        return {words[0]: words[1:] for words in lines if words}


def _to_width(X: Any, width: int) -> Any:
    """Return rows with as many columns as a model has."""
    if X.shape[1] > width:
        return X[:, :width]
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def find_places(model: Any, path: str, labels: list[str]) -> Ints:
    """Return which class each label of a model file is."""
    beside = label_file(path)
    if beside.exists():  # and was checked when the model was loaded
        meaning = json.loads(beside.read_text(encoding="utf-8"))["labels"]
        found = [meaning[label] for label in labels]
    else:
        found = [int(label) for label in labels]
    classes = model.classes_.tolist()
    return np.array([classes.index(label) for label in found])


# ------------------------------------------------------------------- LIBSVM


def predict_svm(
    test_file: str, model_file: str, output_file: str, *, probability: int, quiet: bool
) -> None:
    """Predict with a LIBSVM model."""
    predictor = _SvmPredictor(model_file, probability)
    header, regresses = predictor.header, predictor.regresses
    if probability and "probA" not in header:
        raise click.ClickException(
            f"{model_file}: model does not support probability estimates; train it with -b 1."
        )
    if "probA" in header and not probability and not quiet:
        click.echo("Model supports probability estimates, but disabled in prediction.")
    first = ""
    if probability and regresses and not quiet:
        click.echo(LAPLACE.format(f"sigma={predictor.model.laplace_scale_:g}"))
    elif probability and not regresses:
        first = f"labels {' '.join(header['label'])}\n"
    blocks = iterate_svmlight(test_file, zero_based=predictor.takes_gram)
    errors, correct = _write_predictions(blocks, predictor, output_file, first)
    if quiet:
        return
    if regresses:
        _say_errors(errors)
    else:
        _say_accuracy(predictor.model, errors, correct, " (classification)")


class _SvmPredictor:
    """A LIBSVM model, called with rows."""

    def __init__(self, path: str, probability: int) -> None:
        self._path = path
        self.model = mm.files.load_libsvm(path)
        self.header = read_header(path)
        self.regresses = isinstance(self.model, mm.SVR | mm.NuSVR)
        self.takes_gram = bool(self.model.kernel_.takes_gram)
        self._probable = bool(probability) and not self.regresses

    def __call__(self, X: Any) -> Predicted:
        X = X[:, 1:] if self.takes_gram else X
        if X.shape[1] > self.model.n_features_in_:
            # What no support vector has still counts in distances from them.
            self.model = mm.files.load_libsvm(self._path, n_features=X.shape[1])
        X = _to_width(X, self.model.n_features_in_)
        X = X.toarray() if self.takes_gram else X
        if not self._probable:
            return Predicted(self.model.predict(X))
        places = find_places(self.model, self._path, self.header["label"])
        p = self._probabilities(self.model.pairwise_scores(X))[:, places]
        return Predicted(self.model.classes_[places[p.argmax(axis=1)]], p)

    def _probabilities(self, scores: Floats) -> Floats:
        """Return probabilities by class; the most probable one need not have the most votes."""
        calibration = self.model.calibration_
        r = expit(calibration.slope * scores + calibration.offset)
        if calibration.n_classes == 2:
            return np.column_stack([1 - r, r])
        return couple_pairs(r, list(calibration.classes), calibration.n_classes)


# ------------------------------------------------------------------- LIBLINEAR


def predict_liblinear(
    test_file: str, model_file: str, output_file: str, *, probability: int, quiet: bool
) -> None:
    """Predict with a LIBLINEAR model."""
    model = mm.files.load_liblinear(model_file)
    if probability:
        raise click.ClickException(
            f"{model_file}: probability output is only supported for logistic regression; "
            "svm-train -b 1 makes models with probabilities."
        )

    def predict(X: Any) -> Predicted:
        """Leave out features that the model does not know."""
        return Predicted(model.predict(_to_width(X, model.n_features_in_)))

    errors, correct = _write_predictions(iterate_svmlight(test_file), predict, output_file)
    if quiet:
        return
    if isinstance(model, mm.LinearSVR):
        _say_errors(errors)
    else:
        _say_accuracy(model, errors, correct)
