"""What estimators take: rows, labels and weights, checked once and in one place."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d, validate_data

from maxmargin._typing import Floats
from maxmargin.errors import DataFileError, warn
from maxmargin.validation.parameters import LARGEST_FACTOR, SMALLEST_FACTOR, shown

# Leaves headroom for 1e18 updates.
LARGEST_SQUARE = 1e290
LARGEST_PRODUCT = 1e140  # of two rows, where products of such products are needed


def check_rows(
    estimator: Any, X: Any, *, reset: bool, accept_sparse: bool = True, finite: bool = True
) -> Any:
    """Return X as a C-ordered float32/float64 array or canonical CSR, copied only if needed.

    Without ``finite``, whoever reads the rows next finds out whether they are.
    """
    if type(X).__name__ == "LazyFrame":
        raise TypeError(
            "X is a LazyFrame, whose rows do not exist yet: pass X.collect(), or read it in pieces "
            "and use partial_fit."
        )
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr" if accept_sparse else False,
        accept_large_sparse=True,
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=finite,
    )
    return _canonical(X) if sp.issparse(X) else X


def refuse_infinite(estimator: Any, X: Any) -> None:
    """Raise a ValueError if rows that were not checked by ``check_rows`` are not finite."""
    assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")


def _canonical(X: Any) -> Any:
    X.check_format(full_check=True)  # the loops trust the indices
    if X.has_canonical_format:
        return X
    entries = X.nnz
    X = X.copy()  # summing works in place, and the caller's matrix is not ours to change
    X.sum_duplicates()
    if X.nnz < entries:
        warn(
            f"X holds {entries - X.nnz} entries at repeated positions: they were summed.",
            UserWarning,
        )
    return X


def refuse_swapped(call: str, model: Any, *data: Any) -> None:
    """Raise TypeError if a model stands where data belong, and data where the model belongs."""
    if not hasattr(model, "fit") and any(hasattr(each, "fit") for each in data):
        raise TypeError(f"The arguments are in another order: it is {call}.")


# Sorting or hashing half a million labels takes longer than a perceptron's epoch over their rows:
# two classes are told apart by comparisons, and whole numbers of a short range by a table.
_SHORT_RANGE = 1 << 12


def classes_of(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the classes among labels in their order; raise where one is missing or has none."""
    kind = labels.dtype.kind
    if kind in "fMO":
        _refuse_missing(labels)
    if kind in "biufUS" and len(labels):
        others = labels != labels[0]
        second = labels[np.argmax(others)]  # the first again if there is no other
        if not (others & (labels != second)).any():
            return np.unique(np.array([labels[0], second], dtype=labels.dtype))
    if kind in "iu" and len(labels):
        low, high = int(labels.min()), int(labels.max())
        if high - low < _SHORT_RANGE and high <= np.iinfo(np.int64).max:
            counts = np.bincount(labels.astype(np.int64, copy=False) - low)
            return (np.flatnonzero(counts) + low).astype(labels.dtype)
    try:
        return np.unique(labels)
    except TypeError as no_order:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise ValueError(
            f"y mixes labels that have no order ({kinds}): make them all strings, or all numbers."
        ) from no_order


def _refuse_missing(labels: npt.NDArray[Any]) -> None:
    if labels.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in labels], dtype=bool)
    else:
        missing = np.isnat(labels) if labels.dtype.kind == "M" else ~np.isfinite(labels)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"Input y contains NaN, infinity or None (row {row}): drop such rows.")


def check_labels(y: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return class labels as a 1-D array, one for each row."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    classes = classes_of(y)
    whole = y.dtype.kind in "biu" or (y.dtype.kind == "f" and (classes % 1 == 0).all())
    if not whole or 2 * len(classes) > len(y):
        numbers = y.dtype.kind == "O" and all(isinstance(each, int) for each in classes)
        if numbers and abs(largest := max(classes, key=abs)) >= 2**63:
            raise ValueError(
                f"y contains whole numbers beyond 64 bits, such as {shown(largest)}: "
                "use smaller numbers, or strings, as labels."
            )
        check_classification_targets(y)  # slow; it refuses fractions, and warns of many classes
    if len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"y has {len(y)} labels."
        )
    return np.asarray(y)


def check_targets(y: Any, n_rows: int) -> Floats:
    """Return regression targets as a 1-D float array, one for each row."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers.")
    try:
        target = np.array(y, dtype=np.float64)
    except (TypeError, ValueError) as wrong:
        raise ValueError(f"y must hold numbers for regression, got dtype {y.dtype}.") from wrong
    if not np.isfinite(target).all():
        row = int(np.argmax(~np.isfinite(target)))
        raise ValueError(f"Input y contains NaN or infinity (row {row}): drop such rows.")
    if len(target) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"y has {len(target)} targets."
        )
    return target


def regression_weights(sample_weight: Any, n_rows: int) -> Floats:
    """Return one weight per row, some of them above 0."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = _sample_weight(sample_weight, n_rows)
    if not weight.any():
        raise ValueError(_nothing_left("sample_weight"))
    return weight


def _nothing_left(cause: str) -> str:
    return (
        f"Invalid input - all samples have zero or negative weights: {cause} is above 0 for no "
        "row, and nothing is left to learn from."
    )


def check_classes(estimator: Any, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct labels, of which there must be two or more."""
    classes = classes_of(y)
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes in the data, but y "
            f"contains only one class: {classes.tolist()[0]!r}."
        )
    return classes


def check_weighted_classes(estimator: Any, y: npt.NDArray[Any]) -> None:
    """Refuse weights that leave one class; ``y`` has the labels of rows whose weight is above 0."""
    classes = classes_of(y)
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs rows of at least 2 classes whose weight is above 0, "
            f"but {_cause(estimator.class_weight)} leaves only the class {classes.tolist()[0]!r}."
        )


def check_class_weights(
    estimator: Any, classes: npt.NDArray[Any], totals: Floats
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the factors of class_weight, and the classes of which something is left.

    ``totals`` is what the rows of each class weigh; two classes must be left.
    """
    factors = factors_by_class(estimator.class_weight, classes, totals)
    left = np.flatnonzero(totals * factors > 0)
    if not len(left):
        raise ValueError(_nothing_left(_cause(estimator.class_weight)))
    check_classes(estimator, classes)
    check_weighted_classes(estimator, classes[left])
    if estimator.class_weight is not None:
        _refuse_extremes(_cause(estimator.class_weight), factors)
    return factors, left


def stream_classes(estimator: Any, classes: Any, first: bool) -> npt.NDArray[Any]:
    """Return the classes of a stream: given with the first chunk, and the same ever after."""
    if first:
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return check_classes(estimator, np.asarray(classes))
    known = np.asarray(estimator.classes_)
    if classes is not None and not np.array_equal(np.unique(classes), known):
        raise ValueError(
            f"`classes={np.unique(classes)}` is not the same as on last call to partial_fit, "
            f"was: {known}"
        )
    return known


def class_indices(classes: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the position of each label in ``classes``."""
    whole = y.dtype.kind in "iu" and classes.dtype.kind == "i"
    if len(classes) == 2 and y.dtype.kind in "biufUS":
        index = (y == classes[1]).astype(np.int64)
    elif whole and int(classes[-1]) - int(classes[0]) < _SHORT_RANGE:
        low, high = int(classes[0]), int(classes[-1])
        table = np.zeros(high - low + 1, dtype=np.int64)
        table[classes.astype(np.int64) - low] = np.arange(len(classes))
        index = table[np.clip(y.astype(np.int64, copy=False), low, high) - low]
    else:
        index = np.searchsorted(classes, y)
        index[index == len(classes)] = 0
    unknown = y[classes[index] != y]
    if len(unknown):
        raise ValueError(
            f"y contains {np.unique(unknown).tolist()[0]!r}, which is not among the classes "
            f"{classes.tolist()}: pass all labels in classes= with the first rows."
        )
    return np.asarray(index)


def check_classification(
    estimator: Any, y: Any, n_rows: int, sample_weight: Any, *, reset: bool
) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the class of each row by number, its weight, and the factor of weights by class.

    With ``reset``, ``classes_`` is set. Rows of at least two classes must have a weight above 0.
    """
    y = check_labels(y, n_rows)
    if reset:
        estimator.classes_ = check_classes(estimator, y)
    classes = estimator.classes_
    labels = class_indices(classes, y)
    weight = np.ones(n_rows) if sample_weight is None else _sample_weight(sample_weight, n_rows)
    factors = class_factors(estimator.class_weight, classes, y, weight)
    product = weight * factors[labels]
    if not product.any():
        raise ValueError(_nothing_left(_cause(estimator.class_weight)))
    if not product.all():
        check_weighted_classes(estimator, y[product > 0])
    if estimator.class_weight is not None:
        _refuse_extremes(_cause(estimator.class_weight), product)
    return labels, weight, factors


def check_weights(
    sample_weight: Any, class_weight: Any, classes: npt.NDArray[Any], y: npt.NDArray[Any]
) -> Floats:
    """Return one weight per row, some of them above 0: sample_weight times class_weight."""
    weight = row_weights(sample_weight, class_weight, classes, y)
    if not weight.any():
        raise ValueError(_nothing_left(_cause(class_weight)))
    return weight


def _cause(class_weight: Any) -> str:
    return "sample_weight" if class_weight is None else "sample_weight times class_weight"


def row_weights(
    sample_weight: Any, class_weight: Any, classes: npt.NDArray[Any], y: npt.NDArray[Any]
) -> Floats:
    """Return one weight per row, which may all be 0."""
    weight = np.ones(len(y)) if sample_weight is None else _sample_weight(sample_weight, len(y))
    if class_weight is None:
        return weight
    factors = class_factors(class_weight, classes, y, weight)[class_indices(classes, y)]
    _refuse_extremes("sample_weight times class_weight", weight * factors)
    return weight * factors


def class_factors(
    class_weight: Any, classes: npt.NDArray[Any], y: npt.NDArray[Any], weight: Floats
) -> Floats:
    """Return the factor that class_weight puts on the weights of each class."""
    totals = np.ones(len(classes))
    if isinstance(class_weight, str):
        index = class_indices(classes, y)
        totals = np.bincount(index, weights=weight, minlength=len(classes)).astype(np.float64)
    return factors_by_class(class_weight, classes, totals)


def factors_by_class(class_weight: Any, classes: npt.NDArray[Any], totals: Floats) -> Floats:
    """Return the factor that class_weight puts on each class, given what each weighs in all."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        present = totals > 0  # "balanced" over what is there: weights are repetitions
        per_class = np.zeros(len(classes))
        per_class[present] = totals.sum() / (present.sum() * totals[present])
        return per_class
    if not isinstance(class_weight, dict):
        raise ValueError(
            f"class_weight={class_weight!r} is not valid: it must be None, 'balanced' or a dict "
            "from label to weight."
        )
    try:
        factors = compute_class_weight(class_weight, classes=classes, y=classes)
    except OverflowError:
        factors = np.array([np.inf])
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ValueError(
            f"class_weight={shown(class_weight)} is not valid: weights must be finite and >= 0."
        )
    return np.asarray(factors, dtype=np.float64)


def _sample_weight(sample_weight: Any, n_rows: int) -> Floats:
    weight = np.asarray(sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_rows, weight)
    if weight.dtype.kind not in "buif":
        raise TypeError(f"sample_weight must hold numbers, got dtype {weight.dtype}.")
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected ({n_rows},): one weight per row."
        )
    weight = weight.astype(np.float64)
    if not np.isfinite(weight).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if (weight < 0).any():
        if (weight <= 0).all():
            raise ValueError(_nothing_left("sample_weight"))
        raise ValueError(
            f"sample_weight contains negative values (row {int(np.argmax(weight < 0))}: "
            f"{weight.min():g}): a weight is a number of repetitions."
        )
    _refuse_extremes("sample_weight", weight)
    return weight


def _refuse_extremes(cause: str, weight: Floats) -> None:
    extreme = (weight > LARGEST_FACTOR) | ((weight < SMALLEST_FACTOR) & (weight > 0))
    if extreme.any():
        row = int(np.argmax(extreme))
        raise ValueError(
            f"{cause} contains {weight[row]:g} (row {row}): products with it leave float64. "
            f"Weights must be 0 or between {SMALLEST_FACTOR:g} and {LARGEST_FACTOR:g}."
        )


# ------------------------------------------------------------------- what sources give


def as_rows(X: Any) -> Any:
    """Return rows as a C-ordered array or CSR of float32 or float64, without a copy if they are.

    Unlike ``check_rows`` this is for a part of all rows: there may be none, and whoever reads them
    next finds out whether numbers are finite.
    """
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if X.dtype == object and not sp.issparse(X):
        X = _numbers_of_objects(X)
    if X.dtype.kind not in "biuf" or X.dtype.itemsize > 8:
        raise DataFileError(
            f"X holds {X.dtype}, which is no number of 64 bits; encode it as numbers"
        )
    if X.ndim != 2:
        raise DataFileError(
            f"X has {X.ndim} dimension{'s' * (X.ndim != 1)}, and rows need two; reshape it to "
            "(rows, columns)"
        )
    wanted = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    if sp.issparse(X):
        return _canonical(X).astype(wanted, copy=False)
    return np.ascontiguousarray(X, dtype=wanted)


def _numbers_of_objects(X: Any) -> Any:
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError) as wrong:
        raise DataFileError(f"X holds what is no number ({wrong}); encode it as numbers") from wrong


def as_labels(y: Any) -> Any:
    """Return labels as an array of one dimension: numbers, flags or texts."""
    y = _column(np.asarray(y.toarray() if sp.issparse(y) else y), "y", "a label")
    if y.dtype == object:
        y = _labels_of_objects(y)
    if y.dtype.kind == "T":  # numpy's texts of any length
        y = y.astype(str)
    if y.dtype.kind not in "biufU":
        raise DataFileError(f"labels of type {y.dtype} are not known; use numbers or texts")
    return y


def _labels_of_objects(y: Any) -> Any:
    missing = [i for i, label in enumerate(y) if label is None or label is np.ma.masked]
    if missing:
        raise DataFileError(f"there is no label in row {missing[0]}; leave out such rows")
    kinds = {isinstance(label, str) for label in y}
    if len(kinds) > 1:
        raise DataFileError("some labels are texts and some are not; make them all alike")
    return np.array(y.tolist(), dtype=str) if kinds == {True} else np.array(y.tolist())


def as_weights(weight: Any) -> Floats:
    """Return weights as float64, which are finite and at least 0."""
    try:
        found: Floats = _column(np.asarray(weight, dtype=np.float64), "weight", "a weight")
    except (TypeError, ValueError) as wrong:
        raise DataFileError(f"weights must be numbers ({wrong})") from wrong
    wrong_ones = ~(np.isfinite(found) & (found >= 0))
    if wrong_ones.any():
        row = int(np.argmax(wrong_ones))
        raise DataFileError(
            f"the weight in row {row} is {found[row]}; weights are finite and at least 0"
        )
    _refuse_extremes("weight", found)
    return found


def _column(values: Any, name: str, each: str) -> Any:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataFileError(f"{name} has {values.ndim} dimensions; {each} per row has one")
    return values


def stacked(parts: list[Any]) -> Any:
    """Return rows one below the other: sparse if some are, objects if they are."""
    if any(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)


def refuse_overflow(
    estimator: Any, X: Any, squared_radius: float, largest_square: float = LARGEST_SQUARE
) -> None:
    """Raise a ValueError naming the largest column if sums of many ‖x‖² overflow in float64."""
    if squared_radius < largest_square:
        return
    names = getattr(estimator, "feature_names_in_", None)
    largest = abs(X).max(axis=0)
    largest = largest.toarray().ravel() if sp.issparse(largest) else np.asarray(largest).ravel()
    column = int(np.argmax(largest))
    raise ValueError(name_overflow(names, column, float(largest[column])))


def refuse_tiny(X: Any) -> None:
    """Raise a ValueError if ‖w‖² overflows for any w that gives these rows scores of ±1."""
    largest = float(abs(X).max())
    if 0 < largest < 1 / LARGEST_PRODUCT:
        raise ValueError(
            f"No value of X is larger than {largest:.3g}, and weights that give such rows scores "
            "of ±1 overflow: multiply X by a constant."
        )


def name_overflow(names: Any, column: int, largest: float) -> str:
    """Return the sentence on a column whose products overflow."""
    name = f"{column} ({names[column]!r})" if names is not None else f"{column}"
    return (
        f"Column {name} of X reaches {largest:.3g}, and sums of its products overflow: scale it, "
        "for instance with sklearn.preprocessing.MaxAbsScaler."
    )


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator from a seed, a Generator, a RandomState or None."""
    seed = random_state
    if isinstance(seed, np.random.RandomState):
        seed = seed.randint(2**31)
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as refused:
        raise type(refused)(
            f"random_state={seed!r} is not valid: it must be an integer >= 0, a Generator, a "
            "RandomState or None."
        ) from refused


def held_out_split(
    labels: npt.NDArray[np.int64], fraction: float, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split row numbers into training and held-out ones, class by class."""
    held = []
    for k in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == k))
        count = max(1, round(fraction * len(members)))
        held.append(members[: min(count, len(members) - 1)])
    held_out = np.sort(np.concatenate(held))
    if len(held_out) == 0:
        raise ValueError(
            f"stop='held_out' needs a class with two rows or more, and these {len(labels)} rows "
            "have none: choose another stop."
        )
    return np.setdiff1d(np.arange(len(labels)), held_out), held_out
