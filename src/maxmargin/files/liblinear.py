"""Model files of LIBLINEAR, read and written without a change of any prediction.

    solver_type                                     here
    L2R_L1LOSS_SVC_DUAL                             LinearSVC(loss="hinge")
    L2R_L2LOSS_SVC_DUAL, L2R_L2LOSS_SVC             LinearSVC(loss="squared_hinge")
    L1R_L2LOSS_SVC                                  LinearSVC(penalty="l1", loss="squared_hinge")
    MCSVM_CS                                        LinearSVC(multi_class="crammer_singer")
    L2R_L1LOSS_SVR_DUAL                             LinearSVR(loss="epsilon_insensitive")
    L2R_L2LOSS_SVR_DUAL, L2R_L2LOSS_SVR             LinearSVR(loss="squared_epsilon_insensitive")
    ONECLASS_SVM                                    none: LIBSVM files hold one-class machines
    L2R_LR, L2R_LR_DUAL, L1R_LR                     none: logistic regression has no margin

A file has one line of weights for each column, and a last one for the constant column of value
``bias`` if that is not negative. Of two classes there is one plane, positive for the first label;
with MCSVM_CS, each has its own. Rows with a decision value of 0 change sides where signs do; as in
``libsvm.py``, the next float for the intercept puts exactly these back.
"""

import re
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.errors import warn
from maxmargin.estimators import LinearSVC, LinearSVR
from maxmargin.files.text_models import (
    LIBLINEAR,
    NUMBER,
    AnyPath,
    Header,
    ModelText,
    NumberedLabels,
    find_machine,
    fit_to_compute,
    model_of,
    number_labels,
    read_text,
    set_costs,
    shown,
    to_floats,
    write_model,
)
from maxmargin.validation.parameters import check_choice

_KEYS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")
_CLASSIFIERS: dict[str, dict[str, Any]] = {
    "L2R_L1LOSS_SVC_DUAL": {"loss": "hinge"},
    "L2R_L2LOSS_SVC_DUAL": {"loss": "squared_hinge"},
    "L2R_L2LOSS_SVC": {"loss": "squared_hinge"},
    "L1R_L2LOSS_SVC": {"penalty": "l1", "loss": "squared_hinge"},
    "MCSVM_CS": {"loss": "hinge", "multi_class": "crammer_singer"},
}
_REGRESSORS: dict[str, dict[str, Any]] = {
    "L2R_L1LOSS_SVR_DUAL": {"loss": "epsilon_insensitive"},
    "L2R_L2LOSS_SVR_DUAL": {"loss": "squared_epsilon_insensitive"},
    "L2R_L2LOSS_SVR": {"loss": "squared_epsilon_insensitive"},
}
_NOTHING = 5e-324  # the float after 0: an intercept that only says on which side 0 is
_LOGISTIC = (
    "is logistic regression, which has no margin and is no model of maxmargin: train it with "
    "scikit-learn's LogisticRegression"
)
_REFUSED = {
    **dict.fromkeys(("L2R_LR", "L2R_LR_DUAL", "L1R_LR"), _LOGISTIC),
    "ONECLASS_SVM": "is not read: train the model with LIBSVM, or fit mm.OneClassSVM",
}


def load_liblinear(
    path: AnyPath,
    *,
    C: float | None = None,
    class_weight: dict[Any, float] | None = None,
    epsilon: float | None = None,
    intercept: str = "penalized",
) -> Any:
    """Read a model file of LIBLINEAR as a fitted machine that predicts what its programs do.

    Every solver of a classifier or a regression with a margin is read; logistic regression and
    one-class models are refused.

    Parameters
    ----------
    path : path
        The file.
    C : float, optional
        The cost it was trained with. The file does not hold it, and predictions do not need it,
        but ``mm.certify`` does.
    class_weight : dict, optional
        Factors of C by class, likewise. (In LIBLINEAR the rest keeps the factor 1 where each class
        is learnt against the rest.)
    epsilon : float, optional
        Half the width of the tube of a regression, likewise.
    intercept : {"penalized", "free"}, default="penalized"
        Whether the weight of the constant column was penalised like the others, as it is unless the
        model was trained with ``-R``, or cost nothing. The file does not say so.

    Returns
    -------
    LinearSVC or LinearSVR
        With ``origin_`` "LIBLINEAR file", and without a certificate: ``mm.certify(model, X, y)``
        computes it if C (and ε) are given. ``intercept_scaling`` is the file's ``bias``, and
        ``intercept_`` that times the weight of the constant column.

    Raises
    ------
    ModelFileError
        If the file is not what LIBLINEAR writes; the message names line and column.

    Examples
    --------
    >>> import maxmargin as mm, tempfile
    >>> X, y = mm.datasets.gaussians(100, random_state=0)
    >>> model = mm.LinearSVC(intercept="penalized").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mm.files.save_liblinear(model, f"{folder}/plane.model")
    ...     again = mm.files.load_liblinear(f"{folder}/plane.model", C=1.0)
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    >>> mm.certify(again, X, y).holds(1e-4)
    True
    """
    given = {"C": C, "class_weight": class_weight, "epsilon": epsilon}
    _, parsed = read_text(path, _parse)
    constant = parsed.bias > 0  # a constant column of zeros is none
    fit: dict[str, Any] = {
        "intercept": intercept if constant else "none",
        "fit_intercept": constant,
    }
    if constant:
        fit["intercept_scaling"] = parsed.bias
    model: Any
    if parsed.labels is not None:
        model = LinearSVC(**_CLASSIFIERS[parsed.solver_type], **fit)
        state = _planes_of_classes(model.multi_class, parsed, parsed.labels)
    else:
        model = LinearSVR(**_REGRESSORS[parsed.solver_type], **fit)
        state = {"coef_": parsed.weights[:, 0], "intercept_": parsed.intercept}
    check_choice(LinearSVC(intercept=intercept), "intercept", ("penalized", "free"))
    state["n_features_in_"] = len(parsed.weights)
    model = model_of(model, LIBLINEAR, state)
    set_costs(model, given)
    return model


class LiblinearText(NamedTuple):
    """What a model file says."""

    solver_type: str
    labels: npt.NDArray[Any] | None
    bias: float
    weights: Floats  # by (column, plane)
    intercept: Floats  # by plane


def _parse(text: ModelText) -> LiblinearText:
    header = Header(text, _KEYS, "w")
    solver = header.word("solver_type", (*_CLASSIFIERS, *_REGRESSORS, *_REFUSED))
    if solver in _REFUSED:
        raise header.error("solver_type", f"{solver} {_REFUSED[solver]}")
    n_classes, n_features = header.integer("nr_class", 2), header.integer("nr_feature", 0)
    bias = header.number("bias")
    labels = None
    if solver in _CLASSIFIERS:
        labels = header.labels(n_classes)
    elif n_classes != 2 or "label" in header:
        name = "label" if "label" in header else "nr_class"
        raise header.error(name, f"a model of type {solver} has no classes")
    planes = 1 if n_classes == 2 and solver != "MCSVM_CS" else n_classes
    weights = _read_weights(text, n_features + (bias >= 0), planes)
    meaning = text.read_end(labels)
    intercept = np.zeros(planes)
    if bias >= 0:
        intercept, weights = bias * weights[-1], weights[:-1]
    if not fit_to_compute(intercept):
        raise header.error("bias", "times its weight it is too large")
    # A model has at least one column, be it unused.
    weights = weights if len(weights) else np.zeros((1, planes))
    return LiblinearText(solver, meaning, bias, weights, intercept)


def _read_weights(text: ModelText, lines: int, planes: int) -> Floats:
    """Read a line of weights for each column."""
    pattern = re.compile(rb"(?:[ \t]*+%b(?=[ \t]|\Z)){%d}+[ \t]*+" % (NUMBER, planes))
    found = array("d")
    for k in range(lines):
        line = text.next_line()
        if line is None:
            raise text.fault(f"the header says {lines} lines of weights, but only {k} follow")
        if pattern.fullmatch(line) is None:
            raise text.error(f"weights of {planes} planes must stand here: {shown(line)}")
        values = to_floats(line)
        if not fit_to_compute(values):
            raise text.error("a number is too large")
        found.frombytes(values.tobytes())
    return np.array(found, dtype=np.float64).reshape(lines, planes)


# ------------------------------------------------------------------- from text to model


def _planes_of_classes(
    scheme: str, parsed: LiblinearText, labels: npt.NDArray[Any]
) -> dict[str, Any]:
    """Return the state of a classifier: classes sorted, and signs as they are here."""
    place = np.argsort(labels, kind="stable")  # in the file, by class
    W, b = parsed.weights.T, parsed.intercept
    state: dict[str, Any] = {"classes_": labels[place], "_scheme": scheme}
    if len(labels) > 2:
        pairs = [(k, -1) for k in range(len(labels))]
        planes = {"coef_": W[place].copy(), "intercept_": b[place]}
        return state | planes | {"_pairs": pairs, "_tie_order": place}
    swapped = place[0] == 1  # then the first label is the second class, which is positive here
    if len(W) == 2:
        # LIBLINEAR looks at the first of two planes only; the second one is its negative.
        W, b = 2 * W[:1], 2 * b[:1]
    if not swapped:
        W, b = 0.0 - W, np.nextafter(0.0 - b, np.inf)
    return state | {"coef_": W.copy(), "intercept_": b, "_pairs": [(1, 0)]}


# ------------------------------------------------------------------- from model to text


def save_liblinear(model: Any, path: AnyPath) -> None:
    """Write a fitted linear machine as a model file of LIBLINEAR.

    ``liblinear-predict`` then gives the labels of ``predict``; weights are written without loss.

    Parameters
    ----------
    model : fitted estimator
        LinearSVC or LinearSVR, or a search for one. Refused are what the format has no name for
        (more than two classes with multi_class="ovo", the penalties "elasticnet" and "l1" with the
        hinge loss), and pipelines, as the file has no place for their other steps.
    path : path
        The file; it is replaced at once, or left as it is. Labels that are no integers of 32 bits
        are written as 0 … K − 1, with a warning, and a last line, which LIBLINEAR does not read,
        says what these mean.

    Notes
    -----
    A penalised intercept is written as the weight of a constant column of value
    ``intercept_scaling``. A free one is written likewise, with the value 1: predictions are equal,
    but the file does not say that this weight cost nothing (``load_liblinear(path,
    intercept="free")`` does). Probabilities have no place in such a file: a warning says so.

    Examples
    --------
    >>> import maxmargin as mm, pathlib, tempfile
    >>> X, y = mm.datasets.gaussians(100, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mm.files.save_liblinear(mm.LinearSVC().fit(X, y), f"{folder}/plane.model")
    ...     print(pathlib.Path(folder, "plane.model").read_text().splitlines()[0])
    solver_type L2R_L1LOSS_SVC_DUAL
    """
    machine = _find_machine(model)
    labels: NumberedLabels | None = None
    if isinstance(machine, LinearSVC):
        labels = number_labels(machine.classes_)
        lines, W, b = _class_lines(machine, labels.numbers)
    else:
        solver = {"epsilon_insensitive": "L2R_L1LOSS_SVR_DUAL"}.get(
            machine.loss, "L2R_L2LOSS_SVR_DUAL"
        )
        lines, W = [f"solver_type {solver}", "nr_class 2"], np.atleast_2d(machine.coef_)
        b = machine.intercept_
    bias, constant = _written_intercept(machine, b)
    lines += [f"nr_feature {W.shape[1]}", f"bias {bias:.17g}"]
    weights = W.T if constant is None else np.vstack([W.T, constant])
    row = "%.17g " * weights.shape[1] + "\n"
    body = (row % tuple(values.tolist()) for values in weights)
    write_model(Path(path), labels, [*lines, "w"], body)


def _find_machine(model: Any) -> Any:
    """Return the machine itself, if it can be written."""
    machine = find_machine(model, "LIBLINEAR")
    name = type(machine).__name__
    if not isinstance(machine, LinearSVC | LinearSVR):
        raise TypeError(
            f"A LIBLINEAR file holds LinearSVC and LinearSVR of maxmargin, not "
            f"{type(machine).__module__}.{name}: maxmargin.save keeps any model of maxmargin, "
            "save_libsvm kernel machines."
        )
    check_is_fitted(machine)
    if not (np.isfinite(machine.coef_).all() and np.isfinite(machine.intercept_).all()):
        raise ValueError(f"coef_ or intercept_ of this {name} is not finite: fit it again.")
    if getattr(machine, "probability", False) is True:
        warn(
            "A LIBLINEAR file has no place for probabilities: those of this model are left out.",
            UserWarning,
        )
    return machine


def _class_lines(machine: LinearSVC, numbers: Ints) -> tuple[list[str], Floats, Floats]:
    """Return the first lines of the header, and weights and intercepts in the file's order."""
    found = machine.class_planes()
    solver = _name_solver(machine, found.scheme)
    W, b = np.asarray(machine.coef_), np.asarray(machine.intercept_)
    if len(machine.classes_) == 2:
        order = np.array([1, 0])
        if 0 < b[0] <= _NOTHING:  # read from a file: f = 0 is the second class
            order, W = np.array([0, 1]), 0.0 - W
        if solver == "MCSVM_CS":
            W, b = np.vstack([0.5 * W, -0.5 * W]), np.concatenate([0.5 * b, -0.5 * b])
    else:
        order = np.array([one for one, _ in found.pairs])
        order = order if found.ranks is None else order[np.argsort(found.ranks[order])]
        rows = order if len(W) == len(machine.classes_) else slice(None)
        W, b = W[rows], b[rows]
        if len(order) < 3 and solver != "MCSVM_CS":
            raise ValueError(
                "A LIBLINEAR file has one plane for two classes, but this LinearSVC has one for "
                "each, as its other classes had no weight: fit it to the rows of two classes."
            )
    labels = " ".join(map(str, numbers[order].tolist()))
    return [f"solver_type {solver}", f"nr_class {len(order)}", f"label {labels}"], W, b


def _name_solver(machine: LinearSVC, scheme: str) -> str:
    if scheme == "ovo" and len(machine.classes_) > 2:
        raise ValueError(
            "A LIBLINEAR file has a plane for each class, but this LinearSVC was fitted with "
            "multi_class='ovo': fit it with 'ovr' or 'crammer_singer', or save it with "
            "maxmargin.save."
        )
    for name, parameters in _CLASSIFIERS.items():
        wanted = {"penalty": "l2", "multi_class": "ovr", **parameters}
        own = "crammer_singer" if scheme == "crammer_singer" else "ovr"
        if wanted == {"penalty": machine.penalty, "loss": machine.loss, "multi_class": own}:
            return name
    raise ValueError(
        f"LIBLINEAR has no solver for penalty={machine.penalty!r} with loss={machine.loss!r}, so "
        "its files have no name for this LinearSVC: save it with maxmargin.save."
    )


def _written_intercept(machine: Any, b: Floats) -> tuple[float, Floats | None]:
    """Return the value of the constant column, negative if there is none, and its weights."""
    none = not machine.fit_intercept or machine.intercept == "none"
    if none and (np.abs(b) <= _NOTHING).all():
        return -1.0, None
    bias = float(machine.intercept_scaling) if machine.intercept == "penalized" else 1.0
    return bias, b / bias
