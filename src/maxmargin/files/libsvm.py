"""Model files of LIBSVM, read and written without a change of any prediction.

    LIBSVM                                       here
    dec = Σ coef K − ρ, first class if dec > 0   f = Σ coef K + b
    classes in the order of the training file    classes sorted; of two the second is positive
    ties of votes: the first class in the file   models read from such a file: the same
    one_class: usual if dec > 0                  usual if f ≥ 0

Where a class is on the other side here, f = −dec, and a row with dec = 0 would change sides, as
would one on the boundary of a one-class machine. The next float for b puts exactly these rows back:
Σ ≥ ρ is the same as Σ > ρ⁻, with the float ρ⁻ before ρ.
"""

import re
from array import array
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR
from maxmargin.estimators.kernel_input import named_kernel
from maxmargin.estimators.probabilities import Calibration
from maxmargin.estimators.reductions import Pairs, lay_out
from maxmargin.files.text_models import (
    LIBSVM,
    NUMBER,
    AnyPath,
    Header,
    ModelText,
    column_of,
    find_machine,
    fit_to_compute,
    joined,
    model_of,
    number_labels,
    read_text,
    set_costs,
    shown,
    to_floats,
    write_model,
)
from maxmargin.inspection.foreign.svm import refuse_altered
from maxmargin.kernels import RBF, Constant, Linear, Polynomial, Precomputed, Sigmoid

_LARGEST_INDEX = 2**31 - 1
_LARGEST_DEGREE = 1000  # whose powers of nearly all numbers are 0 or infinite
_DRIFT = 1e-9  # part of Σ|coef| that may be missing from Σ coef = 0 after many steps
_SHOWS = 1e-14  # part of Σ|coef·x| that may be missing from weights
_PIECE = 1 << 20  # bytes of a line that are read at a time
_KEYS = (
    "svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label",
    "probA", "probB", "prob_density_marks", "nr_sv",
)  # fmt: skip
_MODELS: dict[str, type] = {
    "c_svc": SVC, "nu_svc": NuSVC, "one_class": OneClassSVM, "epsilon_svr": SVR, "nu_svr": NuSVR,
}  # fmt: skip
_KERNELS = {
    "linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}  # fmt: skip
_TAKEN = {
    "polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0"),
}  # fmt: skip
_TYPES = [*_MODELS.items(), ("epsilon_svr", QuantileSVR)]


def load_libsvm(
    path: AnyPath,
    *,
    C: float | None = None,
    class_weight: dict[Any, float] | None = None,
    epsilon: float | None = None,
    nu: float | None = None,
    n_features: int | None = None,
) -> Any:
    """Read a model file of LIBSVM as a fitted machine that predicts what ``svm-predict`` does.

    Every ``svm_type`` and ``kernel_type`` is read; labels are equal for every row, ties of votes
    included. Whatever contradicts itself is refused: counts, indices, labels.

    Parameters
    ----------
    path : path
        The file.
    C, class_weight : float and dict, optional
        The costs it was trained with, for c_svc, epsilon_svr and nu_svr (class_weight for c_svc).
        The file does not hold them, and they do not matter for predictions. By default C is the
        largest coefficient in size, the smallest cost that allows them all: an optimal model is
        then one of the problem it was trained with, too, unless classes had weights of their own.
    epsilon : float, optional
        Half the width of the tube of epsilon_svr, which ``mm.certify`` needs and the file does not
        hold.
    nu : float, optional
        ν of nu_svc, one_class and nu_svr, likewise.
    n_features : int, optional
        The number of columns of the training data; of rows, for a precomputed kernel. By default
        the largest index in the file, but support vectors may have zeros in the last columns.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        With ``origin_`` "LIBSVM file", and without a certificate: ``mm.certify(model, X, y)`` finds
        the support vectors among the training rows and computes it. Probabilities of classes are in
        ``calibration_``; the distributions that LIBSVM writes for other models are left out.

    Raises
    ------
    ModelFileError
        If the file is not what LIBSVM writes; the message names line and column.

    Examples
    --------
    >>> import maxmargin as mm, tempfile
    >>> X, y = mm.datasets.circles(100, random_state=0)
    >>> model = mm.SVC(C=10.0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mm.files.save_libsvm(model, f"{folder}/circles.model")
    ...     again = mm.files.load_libsvm(f"{folder}/circles.model", C=10.0)
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    >>> mm.certify(again, X, y).holds(1e-4)
    True
    """
    given = {"C": C, "class_weight": class_weight, "epsilon": epsilon, "nu": nu}
    text, parsed = read_text(path, _parse)
    model = _MODELS[parsed.svm_type](**parsed.kernel_parameters)
    state = _plane(parsed) if parsed.labels is None else _planes_of_classes(parsed, parsed.labels)
    state |= _support(parsed, text, state["support_"], n_features)
    model = model_of(model, LIBSVM, state | {"kernel_": named_kernel(model)})
    set_costs(model, given)
    if given["C"] is None and hasattr(model, "C"):
        model.C = float(np.abs(parsed.coefficients).max(initial=0.0)) or 1.0
    if parsed.labels is not None:
        _set_class_weight(model)
    return model


# ------------------------------------------------------------------- the text


class LibsvmText(NamedTuple):
    """What a model file says; all of it fits together."""

    svm_type: str
    kernel_parameters: dict[str, Any]
    rho: Floats
    labels: npt.NDArray[Any] | None
    n_support: Ints
    probabilities: tuple[Floats, Floats] | None  # A and B
    coefficients: Floats  # by (support vector, column)
    vectors: Any  # CSR; rows of numbers 0 … for precomputed kernels
    size: int  # bytes of the file


def _parse(text: ModelText) -> LibsvmText:
    header = Header(text, _KEYS, "SV")
    svm_type = header.word("svm_type", _MODELS)
    parameters = _kernel_parameters(header)
    classifies = svm_type in ("c_svc", "nu_svc")
    n_classes = header.integer("nr_class", 2)
    if not classifies and n_classes != 2:
        raise header.error("nr_class", f"it is 2 for {svm_type}, not {n_classes}")
    pairs = n_classes * (n_classes - 1) // 2 if classifies else 1
    rho = header.numbers("rho", pairs)
    total = header.integer("total_sv", 0)
    labels, n_support = _parse_classes(header, n_classes, total, classifies)
    ab = None
    if classifies and ("probA" in header or "probB" in header):
        ab = header.numbers("probA", pairs), header.numbers("probB", pairs)
    body = _read_body(text, total, n_classes - 1, parameters["kernel"] == "precomputed")
    meaning = text.read_end(labels)
    return LibsvmText(svm_type, parameters, rho, meaning, n_support, ab, *body, text.size)


def _kernel_parameters(header: Header) -> dict[str, Any]:
    name = header.word("kernel_type", _KERNELS)
    found: dict[str, Any] = {"kernel": _KERNELS[name]}
    for key in _TAKEN.get(name, ()):
        integer = key == "degree"
        found[key] = header.integer(key, 0, _LARGEST_DEGREE) if integer else header.number(key)
    if found.get("gamma", 0.0) < 0:
        raise header.error("gamma", f"{found['gamma']!r} is below 0")
    return found


def _parse_classes(
    header: Header, n_classes: int, total: int, classifies: bool
) -> tuple[Ints | None, Ints]:
    """Return the labels and the number of support vectors of each class, in the file's order."""
    if not classifies:
        for name in ("label", "nr_sv"):
            if name in header:
                raise header.error(name, "only classifiers have it")
        return None, np.array([total])
    labels, n_support = header.labels(n_classes), header.integers("nr_sv", n_classes, least=0)
    if (found := n_support.sum()) != total:
        raise header.error("nr_sv", f"the numbers sum to {found}, but total_sv is {total}")
    return labels, n_support


_PAIRS = re.compile(rb"(?:[ \t]++\d{1,10}+:%b(?=[ \t]|\Z))*+[ \t]*+" % NUMBER)
_PRECOMPUTED = re.compile(rb"[ \t]++0:\d{1,10}+[ \t]*+")
_COLON_TO_SPACE = bytes.maketrans(b":", b" ")


def _read_body(
    text: ModelText, total: int, columns: int, precomputed: bool
) -> tuple[Floats, sp.csr_matrix]:
    """Read the lines of the support vectors: coefficients, and index:value for each column."""
    start = re.compile(rb"(?:[ \t]*+%b(?=[ \t]|\Z)){%d}+" % (NUMBER, columns))
    coefficients, values, indices = array("d"), array("d"), array("i")
    ends = array("q", [0])
    for k in range(total):
        line = text.next_line()
        if line is None:
            raise text.fault(f"total_sv is {total}, but only {k} support vectors follow")
        found = start.match(line)
        if found is None:
            raise text.error(f"{columns} coefficients must stand here: {shown(line)}")
        coefficients.frombytes(_finite(text, found[0]).tobytes())
        if precomputed:
            _read_serial(text, line, found.end(), values, indices)
        else:
            _read_pairs(text, line, found.end(), values, indices)
        ends.append(len(values))
    width = max(indices, default=-1) + 1
    vectors = sp.csr_matrix(
        (_as_numpy(values, np.float64), _as_numpy(indices, np.int32), _as_numpy(ends, np.int64)),
        shape=(total, width),
    )
    return _as_numpy(coefficients, np.float64).reshape(total, columns), vectors


def _as_numpy(values: Any, dtype: Any) -> npt.NDArray[Any]:
    return np.frombuffer(values, dtype=dtype) if len(values) else np.zeros(0, dtype)


def _finite(text: ModelText, piece: bytes, start: int = 0) -> Floats:
    found = to_floats(piece.translate(_COLON_TO_SPACE))
    if not fit_to_compute(found):
        raise text.error("a number is too large", start + 1)
    return found


def _read_serial(
    text: ModelText, line: bytes, start: int, values: "array[float]", indices: "array[int]"
) -> None:
    """Read 0:i, the number of a training row whose kernel values are given."""
    if _PRECOMPUTED.fullmatch(line, start) is None:
        raise text.error(
            f"for a precomputed kernel, 0:i must follow, not {shown(line[start:].strip())}",
            start + 1,
        )
    serial = int(line[start:].strip()[2:])
    if not 1 <= serial <= _LARGEST_INDEX:
        raise text.error(f"row {serial} is not between 1 and {_LARGEST_INDEX}", start + 1)
    values.append(1.0)
    indices.append(serial - 1)


def _read_pairs(
    text: ModelText, line: bytes, start: int, values: "array[float]", indices: "array[int]"
) -> None:
    """Read index:value pairs, whose indices ascend from 1, piece by piece."""
    before = 0
    while start < len(line):
        stop = len(line)
        if stop - start > _PIECE and (space := line.find(b" ", start + _PIECE)) > 0:
            stop = space
        found = _PAIRS.match(line, start, stop)
        end = start if found is None else found.end()
        if end < stop:
            raise text.error(f"{shown(line[end:].lstrip())} is no index:value", end + 2)
        numbers = _finite(text, line[start:stop], start)
        own = numbers[0::2]
        wrong = np.diff(own, prepend=before) < 1
        if wrong.any() or (len(own) and own[-1] > _LARGEST_INDEX):
            nth = int(np.argmax(wrong)) if wrong.any() else len(own) - 1
            raise text.error(
                f"index {own[nth]:.0f}: indices must ascend from 1 to {_LARGEST_INDEX} at most",
                start + column_of(line[start:stop], nth),
            )
        if len(own):
            before = int(own[-1])
        values.frombytes(np.ascontiguousarray(numbers[1::2]).tobytes())
        indices.frombytes((own - 1).astype(np.int32).tobytes())
        start = stop


def _file_signs(n_classes: int) -> Floats:
    """Return the sign of coefficients by class and column: the first class of a pair has +."""
    each = np.arange(n_classes)
    return np.where(each[:-1] >= each[:, np.newaxis], 1.0, -1.0)


# ------------------------------------------------------------------- from text to model


def _plane(parsed: LibsvmText) -> dict[str, Any]:
    """Return the state of a machine with one plane."""
    beta, rho = parsed.coefficients.T.copy(), parsed.rho
    state: dict[str, Any] = {
        "support_": np.arange(len(parsed.coefficients)),
        "dual_coef_": beta,
        "n_support_": parsed.n_support.astype(np.int32),
        # A one-class machine here counts rows on the boundary as usual.
        "intercept_": 0.0 - (np.nextafter(rho, np.inf) if parsed.svm_type == "one_class" else rho),
        "_scales": np.ones(1),
        "_solved": np.arange(1),
        "_duals": beta,
    }
    if parsed.svm_type == "nu_svr":  # a dual for either edge of the tube
        state["_duals"] = np.vstack([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
    return state


def _planes_of_classes(parsed: LibsvmText, labels: npt.NDArray[Any]) -> dict[str, Any]:
    """Return the state of a classifier: classes sorted, and signs as they are here."""
    place = np.argsort(labels, kind="stable")  # in the file, by class
    n_classes, n_support = len(labels), parsed.n_support
    layout = lay_out(n_classes, "ovo")
    starts = np.cumsum(n_support) - n_support
    rows, duals = [], []
    for c, p in enumerate(place):
        own = np.arange(starts[p], starts[p] + n_support[p])
        rivals = place[np.delete(np.arange(n_classes), c)]
        columns = rivals - (rivals > p)
        sizes = (parsed.coefficients[own] * _file_signs(n_classes)[p])[:, columns]
        rows.append(own)
        duals.append(sizes.T * layout.sign[c][:, np.newaxis])
    number = {pair: k for k, pair in enumerate(combinations(range(n_classes), 2))}
    pairs = [(1, 0)] if n_classes == 2 else layout.pairs  # the positive class first
    same = np.array([place[i] < place[j] for i, j in pairs])
    found = [number[min(place[i], place[j]), max(place[i], place[j])] for i, j in pairs]
    rho = parsed.rho[found]
    beta = np.hstack(duals)
    state = {
        "classes_": labels[place],
        "support_": np.concatenate(rows),
        "dual_coef_": beta,
        "n_support_": n_support[place].astype(np.int32),
        "intercept_": np.where(same, 0.0 - rho, np.nextafter(rho, np.inf)),
        "_scales": np.ones(len(rho)),
        "_solved": np.arange(len(rho)),
        "_duals": beta,
        "_scheme": "ovo",
        "_tie_order": place if n_classes > 2 else None,
    }
    if parsed.probabilities is not None:
        A, B = (values[found] for values in parsed.probabilities)
        state["probability"] = True
        state["calibration_"] = Calibration(
            0.0 - A, np.where(same, 0.0 - B, B), tuple(pairs), n_classes, LIBSVM
        )
    return state


def _support(
    parsed: LibsvmText, text: ModelText, order: Ints, n_features: int | None
) -> dict[str, Any]:
    """Return the state about support vectors, which the file has in another order."""
    vectors = parsed.vectors[order]
    width = vectors.shape[1]
    if n_features is not None and n_features < width:
        raise text.fault(f"it has index {width}, but n_features={n_features!r}")
    width = max(width, 1) if n_features is None else int(n_features)
    if parsed.kernel_parameters["kernel"] == "precomputed":
        serials = vectors.indices.astype(np.int64)
        if len(np.unique(serials)) < len(serials):
            raise text.fault("two support vectors are the same row of the precomputed matrix")
        none = np.zeros((0, width))
        return {"support_": serials, "support_vectors_": none, "shape_fit_": (width, width),
                "n_features_in_": width}  # fmt: skip
    vectors.eliminate_zeros()
    vectors.resize(len(order), width)
    if len(order) * width * 8 <= parsed.size:
        vectors = vectors.toarray()
    return {"support_": np.arange(len(order)), "support_vectors_": vectors,
            "shape_fit_": (len(order), width), "n_features_in_": width}  # fmt: skip


def _set_class_weight(model: Any) -> None:
    """Set the factors of all classes, as far as they are given."""
    classes, given = model.classes_.tolist(), model.class_weight or {}
    known = isinstance(given, dict) and set(given) <= set(classes)
    values = [float(given.get(label, 1.0)) for label in classes] if known else [0.0]
    if not all(0 < value < np.inf for value in values):
        raise ValueError(
            f"class_weight={model.class_weight!r} must be a dict of numbers above 0 for some of "
            f"the classes {classes}."
        )
    model.class_weight_ = np.array(values)


# ------------------------------------------------------------------- from model to text


def save_libsvm(model: Any, path: AnyPath) -> None:
    """Write a fitted kernel machine as a model file of LIBSVM.

    ``svm-predict`` then gives the labels of ``predict``, and decision values are equal but for
    rounding: all numbers have 17 digits. Among more than two classes, LIBSVM gives a row for which
    several classes have most votes to the first of them, and so does the file; ``SVC`` and
    ``NuSVC`` compare sums of scores then. Such rows are rare (up to 4 of 1,000 on satimage,
    pendigits and usps), but they may get another label.

    Parameters
    ----------
    model : fitted estimator
        SVC (with a plane for every two classes), NuSVC, SVR, NuSVR, OneClassSVM or QuantileSVR
        (written as epsilon_svr, which predicts by the same formula), with a linear, polynomial,
        RBF, sigmoid or precomputed kernel, or a search for one. Pipelines are refused, as such a
        file has no place for their other steps.
    path : path
        The file; it is replaced at once, or left as it is. Labels that are no integers of 32 bits
        are written as 0 … K − 1, with a warning, and a last line, which LIBSVM does not read, says
        what these mean.

    Notes
    -----
    Probabilities of classes are written as ``probA`` and ``probB``. Parameters such as C, ε and ν
    have no place in the file. With kernel="linear", predictions come from weights w that the duals
    give back up to the duality gap only; where that shows, two more vectors for each plane add what
    is missing.

    Examples
    --------
    >>> import maxmargin as mm, pathlib, tempfile
    >>> X, y = mm.datasets.circles(100, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mm.files.save_libsvm(mm.SVC(C=10.0).fit(X, y), f"{folder}/circles.model")
    ...     print(pathlib.Path(folder, "circles.model").read_text().splitlines()[0])
    svm_type c_svc
    """
    machine = _find_machine(model)
    kernel = _kernel_lines(machine)
    svm_type = next(name for name, kind in _TYPES if isinstance(machine, kind))
    labels = number_labels(machine.classes_) if hasattr(machine, "classes_") else None
    planes = _written_planes(machine, svm_type)
    lines = [f"svm_type {svm_type}", *kernel, f"nr_class {len(planes.order) or 2}"]
    lines += [f"total_sv {len(planes.coefficients)}", f"rho {joined(planes.rho)}"]
    if labels is not None:
        lines.append(f"label {' '.join(map(str, labels.numbers[planes.order].tolist()))}")
    lines += planes.probabilities
    if labels is not None:
        n_support = np.bincount(planes.own, minlength=len(planes.order))
        lines.append(f"nr_sv {' '.join(map(str, n_support.tolist()))}")

    write_model(Path(path), labels, [*lines, "SV"], _body_lines(planes))


def _find_machine(model: Any) -> Any:
    """Return the machine itself, if it can be written."""
    machine = find_machine(model, "LIBSVM")
    name = type(machine).__name__
    if not isinstance(machine, tuple(kind for _, kind in _TYPES)):
        known = ", ".join(dict.fromkeys(kind.__name__ for _, kind in _TYPES))
        raise TypeError(
            f"A LIBSVM file holds {known} of maxmargin, not {type(machine).__module__}.{name}: "
            "maxmargin.save keeps any model of maxmargin, save_liblinear linear ones."
        )
    check_is_fitted(machine)
    if isinstance(machine, SVC | NuSVC) and len(machine.classes_) > 2:
        scheme = machine.class_planes().scheme
        if scheme != "ovo":
            raise ValueError(
                f"A LIBSVM file has a plane for every two classes, but this {name} was fitted with "
                f"multi_class={scheme!r}: fit it with multi_class='ovo', or save it with "
                "maxmargin.save."
            )
    return machine


def _kernel_lines(machine: Any) -> list[str]:
    """Return the lines about the kernel, or raise if LIBSVM does not have it."""
    kernel = machine.kernel_
    if type(kernel) is Constant and machine.kernel in ("rbf", "poly", "sigmoid"):  # γ = 0
        name = {"poly": "polynomial"}.get(machine.kernel, machine.kernel)
        values = {"degree": machine.degree, "gamma": 0.0, "coef0": machine.coef0}
    else:
        names = {Linear: "linear", Polynomial: "polynomial", RBF: "rbf", Sigmoid: "sigmoid",
                 Precomputed: "precomputed"}  # fmt: skip
        if type(kernel) not in names:
            raise ValueError(
                f"A LIBSVM file cannot hold the kernel {kernel!r}, only a linear, polynomial, RBF, "
                "sigmoid or precomputed one: save the model with maxmargin.save."
            )
        name = names[type(kernel)]
        values = kernel.get_params(deep=False)
    return [f"kernel_type {name}", *(f"{key} {values[key]:.17g}" for key in _TAKEN.get(name, ()))]


class _Written(NamedTuple):
    """A model as it stands in a file."""

    order: Ints  # of the classes; empty if there are none
    own: Ints  # the place of each support vector's class in this order, which ascends
    rho: Floats
    probabilities: list[str]
    coefficients: Floats  # by (support vector, column)
    vectors: Any  # CSR, or numbers of rows


def _written_planes(machine: Any, svm_type: str) -> _Written:
    n_classes = len(machine.classes_) if hasattr(machine, "classes_") else 2
    refuse_altered(machine, n_duals=n_classes - 1, n_planes=n_classes * (n_classes - 1) // 2)
    if isinstance(machine.kernel_, Precomputed):
        vectors: Any = machine.support_ + 1
    else:
        vectors = sp.csr_matrix(machine.support_vectors_, copy=True)
        vectors.eliminate_zeros()
        vectors.sort_indices()
    if hasattr(machine, "classes_"):
        planes, signs = _written_classes(machine, vectors)
    else:
        rho, none = 0.0 - machine.intercept_, np.zeros(0, dtype=np.int64)
        if svm_type == "one_class":  # which counts rows on the boundary as usual
            rho = np.nextafter(rho, -np.inf)
        own, a = np.zeros(machine.dual_coef_.shape[1], dtype=np.int64), machine.dual_coef_.T
        planes = _Written(none, own, rho, [], a, vectors)
        signs = {0: 1.0}
    if type(machine.kernel_) is Linear:
        W = np.array([sign * machine.coef_[k] for k, sign in signs.items()])
        planes = _with_missing_weights(planes, W)
    if svm_type != "one_class":
        _refuse_other_sums(machine, planes)
    return planes


def _written_classes(machine: Any, vectors: Any) -> tuple[_Written, dict[int, float]]:
    """Return a classifier in the order of the file, and our planes in it with their signs there."""
    n_classes = len(machine.classes_)
    # Of two classes the second is positive here and the first one there.
    ranks: Any = [1, 0] if n_classes == 2 else machine.class_planes().ranks
    place = np.arange(n_classes) if ranks is None else np.asarray(ranks)
    order, layout = np.argsort(place), lay_out(n_classes, "ovo")
    ends, a = np.cumsum(machine.n_support_), []
    for p, c in enumerate(order):
        rivals = np.delete(order, p)
        sides = rivals - (rivals > c)
        duals = machine.dual_coef_[sides][:, ends[c] - machine.n_support_[c] : ends[c]]
        a.append(duals.T * (layout.sign[c][sides] * _file_signs(n_classes)[p]))
    own = place[np.repeat(np.arange(n_classes), machine.n_support_)]
    signs = {}
    for i, j in combinations(order.tolist(), 2):
        first = (i < j) == (n_classes > 2)  # whether the first class is positive here, too
        signs[layout.pairs.index((min(i, j), max(i, j)))] = 1.0 if first else -1.0
    same, b = np.array(list(signs.values())) > 0, machine.intercept_[list(signs)]
    rho = np.where(same, 0.0 - b, np.nextafter(b, -np.inf))
    by_place = np.argsort(own, kind="stable")
    written = _Written(
        order, own[by_place], rho, _sigmoid_lines(machine, signs), np.vstack(a), vectors[by_place]
    )
    return written, signs


def _by_plane(planes: _Written) -> Floats:
    """Return coefficients by (support vector, plane)."""
    a = planes.coefficients
    return Pairs(len(planes.order)).spread(a.T, planes.own).T if len(planes.order) else a


def _refuse_other_sums(machine: Any, planes: _Written) -> None:
    """Raise if coefficients do not sum to 0: that is so with a free intercept only."""
    a = _by_plane(planes)
    if (np.abs(a.sum(axis=0)) > _DRIFT * np.abs(a).sum(axis=0)).any():
        raise ValueError(
            f"A LIBSVM file holds machines with a free intercept, but this "
            f"{type(machine).__name__}(fit_intercept={getattr(machine, 'fit_intercept', True)!r}) "
            "has none: its coefficients do not sum to 0. Save it with maxmargin.save."
        )


def _with_missing_weights(planes: _Written, W: Floats) -> _Written:
    """Add vectors for what weights have that Σ coef·x does not, if that shows in 1e-12."""
    a, vectors = _by_plane(planes), planes.vectors
    missing = W - np.asarray((vectors.T @ a).T)
    sizes = np.asarray((abs(vectors).T @ np.abs(a)).T)
    if (np.abs(missing) <= _SHOWS * sizes).all():
        return planes
    n_classes = len(planes.order)
    rows, coefficients, classes = [], [], []
    pairs = list(combinations(range(n_classes), 2)) or [(0, 0)]
    for k, (i, j) in enumerate(pairs):
        size = float(np.abs(a[:, k]).max(initial=0.0)) or 1.0
        columns = (j - 1, i) if n_classes else (0, 0)
        for sign, c, column in zip((1.0, -1.0), (i, j), columns, strict=True):
            line = np.zeros(planes.coefficients.shape[1])
            line[column] = sign * size
            coefficients.append(line)
            classes.append(c)
            rows.append(missing[k] / size if sign > 0 else np.zeros(W.shape[1]))
    own = np.concatenate([planes.own, np.array(classes, dtype=np.int64)])
    by_place = np.argsort(own, kind="stable")
    return planes._replace(
        own=own[by_place],
        coefficients=np.vstack([planes.coefficients, coefficients])[by_place],
        vectors=sp.vstack([vectors, sp.csr_matrix(np.array(rows))], format="csr")[by_place],
    )


def _sigmoid_lines(machine: Any, signs: dict[int, float]) -> list[str]:
    """Return A and B of 1/(1 + exp(A f + B)) for each pair of classes, if they are known."""
    if machine.probability is not True or not hasattr(machine, "calibration_"):
        return []
    found = machine.calibration_
    if len(found.slope) != len(machine.intercept_):
        raise ValueError(
            "A LIBSVM file has a probability for every two classes, but some classes of this "
            f"{type(machine).__name__} had no weight in the training data: fit it without them."
        )
    A = 0.0 - found.slope[list(signs)]
    B = 0.0 - found.offset[list(signs)] * np.array(list(signs.values()))
    return [f"probA {joined(A)}", f"probB {joined(B)}"]


def _body_lines(planes: _Written) -> Iterator[str]:
    starts = "%.17g " * planes.coefficients.shape[1]
    if not sp.issparse(planes.vectors):
        for row, serial in zip(planes.coefficients.tolist(), planes.vectors.tolist(), strict=True):
            yield f"{starts % tuple(row)}0:{serial}\n"
        return
    data, indices, ends = (getattr(planes.vectors, name) for name in ("data", "indices", "indptr"))
    for k, row in enumerate(planes.coefficients.tolist()):
        own = slice(ends[k], ends[k + 1])
        pairs = [each for pair in zip((indices[own] + 1).tolist(), data[own].tolist(), strict=True)
                 for each in pair]  # fmt: skip
        yield f"{starts % tuple(row)}{('%d:%.17g ' * (len(pairs) // 2)) % tuple(pairs)}\n"
