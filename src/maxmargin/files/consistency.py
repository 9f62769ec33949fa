"""Whether the parts of a model belong together: what no schema of single attributes can say.

    shapes     numbers of planes that follow from classes, widths of one step and of the next
    indices    rows, columns and classes that there are, in the order that loops rely on
    copies     numbers that stand in two places are the same in both

Whether a model is as good as its certificate says is not asked here: ``mm.certify`` proves that,
with the training data. A fit that a time limit ended has duals and bounds that are anything but
optimal, and its file is as good as any other.
"""

from itertools import combinations, islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.feature_maps.polynomial import (
    count_monomials,
    list_monomials,
    weigh_monomials,
)
from maxmargin.estimators.reductions import lay_out
from maxmargin.files.rules import Rule, Sizes, require
from maxmargin.files.step_widths import STEP_RULES
from maxmargin.files.text_models import ORIGINS, fit_to_compute
from maxmargin.kernels import (
    RBF,
    Columns,
    Constant,
    Kernel,
    Linear,
    Polynomial,
    Power,
    Precomputed,
    Sigmoid,
)
from maxmargin.problems.problem import Status

_NEAR = 1e-9  # relative: what sums and products of float64 may lose
_ALIKE = 1e-6  # relative: lengths that should be 1
_MOST_WORK = 3e8  # pairs of rows times columns, beyond which no kernel matrix is computed
_ROUGHLY = 1e-3  # relative: numbers that may be of float32, or of a matrix that is nearly singular
_MOST_DEGREE = 10_000
_MOST_NUMBERS = 1 << 20  # duals by plane that are looked at together
_SIX_DIGITS = 5.1e-6  # relative: what is lost if numbers are written with 6 digits, as few do
_LIBSVM_KERNELS = (Linear, Polynomial, RBF, Sigmoid, Precomputed, Constant)  # the last: if γ = 0


def look_closer(value: Any, sizes: Sizes) -> None:
    """Raise ValueError if attributes contradict each other."""
    was_read = hasattr(value, "origin_")
    same = (getattr(value, "status_", None) is Status.READ) == was_read
    require(same, "its status is not that of a model that was fitted, or was read")
    rules = _READ_RULES if was_read else _RULES
    for rule in rules.get(type(value).__name__, ()):
        rule(value, sizes)
    if isinstance(value, Kernel):
        _check_degrees(value)


def _close(a: Any, b: Any, relative: float = _NEAR, size: float = 0.0) -> bool:
    """Return whether arrays are equal but for rounding, relative to the largest number."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        return False
    largest = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)), size)
    return not a.size or float(np.abs(a - b).max()) <= relative * largest


# ------------------------------------------------------------------- kernels


def _check_degrees(kernel: Kernel) -> None:
    degree = kernel.degree if isinstance(kernel, Polynomial) else 1
    exponent = kernel.exponent if isinstance(kernel, Power) else 1
    require(max(degree, exponent) <= _MOST_DEGREE, f"{max(degree, exponent)} is no degree")


def _check_columns(kernel: Any, width: int) -> None:
    """Check that kernels of columns name columns that there are."""
    if isinstance(kernel, Columns):
        numbers = np.asarray(kernel.columns)
        require(numbers.ndim == 1 and numbers.size, "a kernel of columns has none")
        require(numbers.dtype.kind in "iu", "columns are not numbers")
        require(kernel.of in (None, width), f"a kernel is for {kernel.of} columns")
        inside = numbers.min() >= -width and numbers.max() < width
        require(inside, f"a kernel is about columns that are not among {width}")
        width = len(numbers)
    require(getattr(kernel, "gamma", 1.0) not in ("scale", "auto"), "its kernel has no gamma")
    for each in vars(kernel).values():
        for member in each if isinstance(each, list | tuple) else (each,):
            if isinstance(member, Kernel):
                _check_columns(member, width)


_ROWS = ("support_vectors_", "landmarks_")


def _kernel_of_rows(model: Any, sizes: Sizes) -> None:
    """Check that the kernel is for rows of the model, and that there are as many as needed."""
    kernel, needed = model.kernel_, sizes.get("sv", sizes.get("landmarks", 0))
    _check_columns(kernel, sizes["n_features"])
    require(needed * sizes["n_features"] < 2**63, "there are more columns than can be counted")
    require(not kernel.takes_objects, "its kernel takes objects, which a model file cannot hold")
    if kernel.takes_gram:
        require(sizes["vectors"] == 0, "a precomputed kernel needs no rows")
        rows = sizes.get("n_rows", sizes["n_features"])
        require(rows == sizes["n_features"], "a precomputed kernel is square")
    else:
        rows = next(vars(model)[name] for name in _ROWS if name in vars(model))
        wide = rows.shape[1] if len(rows.shape) == 2 else 0
        width = sizes["n_features"]
        require(wide == width, f"its support vectors have {wide} columns, but rows have {width}")
        require(rows.shape[0] == needed, f"it has {rows.shape[0]} rows, but needs {needed}")


# ------------------------------------------------------------------- kernel machines


def _planes(model: Any, sizes: Sizes) -> None:
    """Check that there are as many planes and sides as the classes ask for."""
    classes = sizes["classes"]
    require(classes >= 2, "there is one class only")
    pairs = classes == 2 or vars(model)["_scheme"] == "ovo"
    planes = classes * (classes - 1) // 2 if pairs else classes
    require(sizes["planes"] == planes, f"{classes} classes need {planes} planes")
    if "sides" in sizes:
        sides = classes - 1 if pairs else classes
        require(sizes["sides"] == sizes["dual_sides"] == sides, f"duals need {sides} sides")


def _support(model: Any, sizes: Sizes) -> None:
    """Check that support vectors are counted by class, and are of the classes that rows have."""
    counted = sizes.get("classes", 1)
    require(len(model.n_support_) == counted, f"n_support_ is not of {counted} classes")
    require(int(model.n_support_.sum()) == sizes["sv"], "n_support_ does not add up")
    if "_row_labels" in vars(model):
        own = vars(model)["_row_labels"][model.support_]
        require(np.array_equal(_labels(model), own), "n_support_ is not that of the rows' labels")


def _labels(model: Any) -> Ints:
    return np.repeat(np.arange(len(model.n_support_)), model.n_support_)


def _plane_blocks(model: Any, sizes: Sizes) -> list[slice]:
    """Return the planes in blocks, each with about as many duals by plane as a file may have."""
    count = max(1, _MOST_NUMBERS // max(1, sizes["sv"]))
    planes = sizes["planes"]
    blocks = [slice(start, min(start + count, planes)) for start in range(0, planes, count)]
    return blocks if _has_pairs(model) else [slice(0, planes)]


def _has_pairs(model: Any) -> bool:
    classes = getattr(model, "classes_", ())
    return len(classes) > 2 and vars(model)["_scheme"] == "ovo"


def _by_plane(model: Any, values: Floats, planes: slice) -> Floats:
    """Return values by (side, support vector) by plane."""
    if not hasattr(model, "classes_"):
        return values
    layout = lay_out(len(model.classes_), vars(model)["_scheme"])
    if not _has_pairs(model):
        return np.asarray(layout.spread(values, _labels(model)))
    ends = np.cumsum(model.n_support_)
    pairs = islice(combinations(range(len(ends)), 2), planes.start, planes.stop)
    out = np.zeros((planes.stop - planes.start, values.shape[1]))
    for row, (i, j) in zip(out, pairs, strict=True):
        for own, side in ((i, j - 1), (j, i)):
            mine = slice(ends[own] - model.n_support_[own], ends[own])
            row[mine] = values[side, mine]
    return out


def _is_joint(model: Any) -> bool:
    joint = vars(model).get("_scheme") == "crammer_singer"
    return joint and len(model.classes_) > 2


def _kernel_machine(model: Any, sizes: Sizes) -> None:
    """Check that nothing is missing that is needed to compute with the model."""
    state = vars(model)
    if model.kernel_.takes_gram or (not sizes["sv"] and "_weights" not in state):
        require("_given_products" in state, "it lacks '_given_products'")
    require(("_weights" in state) == ("_weights_of" in state), "its weights are of no duals")
    parts = len(model.certificate_.parts) or 1
    require(parts == len(state["_solved"]), "its certificate is of other problems")


# ------------------------------------------------------------------- calibration


def _calibration(found: Any, sizes: Sizes) -> None:
    pairs = found.classes
    require(len(pairs) >= 1 and found.n_classes >= 2, "it is of no classes")
    if found.n_classes == 2 or all(other >= 0 for _, other in pairs):
        expected = len(pairs), len(pairs)
    else:
        require(all(other < 0 for _, other in pairs), "it mixes pairs with single classes")
        expected = 1, len(pairs)
    found_sizes = len(found.slope), len(found.offset)
    require(found_sizes == expected, f"{len(pairs)} planes have {found_sizes} numbers")
    require(len(set(pairs)) == len(pairs), "it has a pair twice")


def _calibrated(model: Any, sizes: Sizes) -> None:
    found = vars(model).get("calibration_")
    if found is None:
        return
    planes = sizes.get("solved", sizes["planes"])
    if "_pairs" in vars(model):
        planes = len(vars(model)["_pairs"])
    require(len(found.classes) == planes, f"its calibration is not of {planes} planes")
    # LIBSVM may find that large scores make a class less likely.
    if not hasattr(model, "origin_"):
        require((found.slope >= 0).all(), "a slope of its calibration is negative")
        _check_sides(found.classes, found.n_classes, vars(model)["_scheme"])


# ------------------------------------------------------------------- linear machines


_OF_EACH_ROW = (
    "_signed_duals", "_known_duals", "support_", "dual_coef_", "_support_rows", "alpha_", "slack_"
)  # fmt: skip
_OF_ROWS = {
    "LinearSVC": (*_OF_EACH_ROW, "n_support_"),
    "LinearSVR": (*_OF_EACH_ROW, "support_kind_"),
}


def _linear_machine(model: Any, sizes: Sizes) -> None:
    state = vars(model)
    if "_learners" in state:
        means = [learner.mean() for learner in state["_learners"]]
        same = len(means) == sizes["planes"]
        planes = zip(np.atleast_2d(model.coef_), model.intercept_, strict=True)
        same = same and all(
            _close(mean[0], w) and _close(mean[1], b, size=1.0)
            for mean, (w, b) in zip(means, planes, strict=True)
        )
        require("_signed_duals" in state or same, "its weights are not those of its learners")
    if "certificate_" not in state:
        require("support_" not in state and "_learners" in state, "it lacks 'certificate_'")
        return
    names = _OF_ROWS[type(model).__name__]
    if not any(name in state for name in names):  # it was fitted to too many rows to keep them
        return
    for name in names:
        require(name in state, f"it lacks {name!r}")
    rows = model.dual_coef_.shape[0]
    require(rows == sizes["planes"], f"dual_coef_ is not of {sizes['planes']} planes")
    several = len(getattr(model, "classes_", ())) > 2
    spread = np.zeros((rows, sizes["n_rows"]) if several else sizes["n_rows"])
    spread[..., model.support_] = np.abs(model.dual_coef_)
    require(np.array_equal(spread, model.alpha_), "alpha_ is not |dual_coef_|")
    _signed(model)


def _signed(model: Any) -> None:
    """Check that the duals by problem are those by support vector."""
    lists = vars(model)["_signed_duals"]
    if _is_joint(model):
        require(len(lists) == 1 and lists[0].ndim == 2, "its duals are not those of one problem")
        present = [k for k, _ in vars(model)["_pairs"]]
        duals = lists[0].T
        require(len(duals) == len(present), "its duals are not those of its classes")
        own = model.dual_coef_[present]
    else:
        require(len(lists) == len(model.dual_coef_), "its duals are not those of its planes")
        duals, own = lists, model.dual_coef_
    for beta, kept in zip(duals, own, strict=True):
        same = beta.ndim == 1 and np.array_equal(np.sort(beta[beta != 0]), np.sort(kept[kept != 0]))
        require(same, "its duals are not those of dual_coef_")


def _check_sides(pairs: Any, classes: int, scheme: str) -> None:
    """Check which class is on which side of each plane: the order that all fits have."""
    if classes == 2:
        usual = list(pairs) in ([(1, 0)], [(1, -1)])  # the rest: as partial_fit says it
        return require(usual, "its plane has other sides than two classes")
    sides = [(other < 0) if scheme != "ovo" else (0 <= one < other) for one, other in pairs]
    require(all(sides) and all(one >= 0 for one, _ in pairs), f"its planes are not of {scheme!r}")
    return require(list(pairs) == sorted(set(pairs)), "its planes are not in their order")


def _linear_classes(model: Any, sizes: Sizes) -> None:
    """Check which classes are on both sides of each plane."""
    state, classes = vars(model), sizes["classes"]
    pairs = state["_pairs"]
    require(classes >= 2, "there is one class only")
    _check_sides(pairs, classes, state["_scheme"])
    if _is_joint(model):
        require(sizes["planes"] == classes, f"{classes} classes need {classes} planes")
        w, b = state.get("_joint", (None, None))
        present = [k for k, _ in pairs]
        same = w is not None and b is not None and w.ndim == 2 and b.ndim == 1
        same = same and np.array_equal(model.coef_[present].T, w)
        require(same and np.array_equal(model.intercept_[present], b), "its planes are of others")
    else:
        require(sizes["planes"] == len(pairs), f"{len(pairs)} pairs of classes need planes")
        possible = classes * (classes - 1) // 2 if state["_scheme"] == "ovo" else classes
        require(len(pairs) <= max(possible, 1), "there are more planes than classes allow")
    if "certificate_" in state:
        require("margin_" in state, "it lacks 'margin_'")
        kept = any(name in state for name in _OF_ROWS["LinearSVC"])
        for name in ("_row_labels", "_row_costs"):
            wanted = kept and model.loss == "hinge"
            require((name in state) == wanted, f"{name} is there, or is missing")
        if kept:
            require("n_support_" in state, "it lacks 'n_support_'")
            require(int(model.n_support_.sum()) == sizes["sv"], "n_support_ does not add up")


def _hard_margin(model: Any, sizes: Sizes) -> None:
    """Check that the duals of a hard margin are counted, and are those of its planes."""
    beta = model.dual_coef_
    require(len(vars(model)["_subproblems"]) == sizes["planes"], "planes are not of its classes")
    _check_sides(vars(model)["_subproblems"], sizes["classes"], vars(model)["_scheme"])
    require(int(model.n_support_.sum()) == sizes["sv"], "n_support_ does not add up")
    if sizes["classes"] == 2:
        positive = int((beta > 0).sum())
        require(model.n_support_[1] == positive, "n_support_ does not count its coefficients")
    spread = (
        np.zeros((len(beta), sizes["n_rows"]))
        if sizes["classes"] > 2
        else np.zeros(sizes["n_rows"])
    )
    spread[..., model.support_] = np.abs(beta)
    require(_close(spread, model.alpha_), "alpha_ is not |dual_coef_|")
    linear = type(model.kernel_) is Linear
    has = ("_weights" in vars(model)) == ("_weights_of" in vars(model)) == linear
    require(has, "its weights are of no duals")
    products = "_given_products" in vars(model) or not model.kernel_.takes_gram
    require(products, "it lacks '_given_products'")


# ------------------------------------------------------------------- perceptrons


def _one_or_each(model: Any, sizes: Sizes) -> None:
    """Check that two classes have one plane, and more have one each."""
    classes = sizes["classes"]
    require(sizes["planes"] == (1 if classes == 2 else classes), f"planes of {classes} classes")


def _of_state(model: Any, sizes: Sizes) -> None:
    """Check that the planes are those that training has reached, or their mean."""
    state = vars(model)["_state"]
    averaged = type(model).__name__ == "AveragedPerceptron" and state.lag.size
    w, b = state.mean() if averaged else (state.weights, state.intercept)
    same = _close(w.reshape(len(w), -1).T, model.coef_) and _close(b, model.intercept_)
    require(same, "its planes are not those of its state")


def _given_columns(model: Any, sizes: Sizes) -> None:
    """Check which columns of a precomputed kernel are read; partial_fit needs none."""
    if model.kernel_.takes_gram:
        numbers = vars(model).get("support_")
        require(numbers is not None, "it lacks 'support_'")
        inside = numbers.max(initial=-1) < sizes["n_features"]
        require(inside, f"support_ is not among {sizes['n_features']} columns")


def _linear_state(state: Any, sizes: Sizes) -> None:
    require(state.weights.ndim == (1 if sizes["planes"] == 1 else 2), "weights have another shape")
    lag = state.lag.shape in (state.weights.shape, (0,) * state.weights.ndim)
    require(
        lag and state.lag_intercept.shape in (state.intercept.shape, (0,)), "its sums do not fit"
    )
    require((state.lag.size > 0) == (state.lag_intercept.size > 0), "its sums do not fit")


def _votes(votes: Any, sizes: Sizes) -> None:
    rows, w = votes.updates.row, votes.start[0]
    fits = len(votes.start) == 2 and votes.start[1].shape == (sizes["planes"],)
    require(fits, "its start does not fit")
    require(w.shape[0] == sizes["n_features"] and w.ndim <= 2, "its start does not fit")
    require(rows.max(initial=-1) < votes.rows.shape[0], "an update is of a row that is not there")
    require(min(votes.updates.label.min(initial=0), votes.updates.rival.min(initial=0)) >= 0,
             "an update is of a class that is not there")  # fmt: skip


# ------------------------------------------------------------------- maps and others


def _bayes(model: Any, sizes: Sizes) -> None:
    state = vars(model)
    pairs = list(combinations(range(sizes["classes"]), 2)) if sizes["classes"] < 1000 else []
    require(len(state["_pairs"]) == len(state["_posteriors"]), "a pair of classes has no draws")
    require(len(state["_pairs"]) <= max(len(pairs), 1), "there are too many pairs of classes")
    _check_sides(state["_pairs"], sizes["classes"], "ovo")
    require(state["_noise"] < 0.5, f"{state['_noise']:g} of the labels cannot be wrong")
    same = state["_constant"] == model.intercept_scaling
    require(same, "it was not fitted with its intercept_scaling: set it back, or fit again")
    for posterior in state["_posteriors"]:
        chains, draws, width = posterior.draws.shape
        require(chains * draws > 0, "there are no draws")
        if posterior.landmarks is None:
            wide = sizes["n_features"] + (state["_constant"] > 0)
            require(type(model.kernel_) is Linear, "it has draws of a linear kernel")
            require(width == wide and posterior.triangle is None, "its draws have another width")
        else:
            fits = posterior.triangle is not None and width == len(posterior.landmarks)
            require(fits, "its draws are not of its landmarks")
            _triangle(model, posterior, sizes)


def _partitioned(model: Any, sizes: Sizes) -> None:
    """Check that each cell has a machine for rows and classes of the model, or needs none."""
    state, machines = vars(model), model.machines_
    require(sizes["classes"] >= 2, "there is one class only")
    require(model.cells_.n_cells == sizes["cells"], "its partition has another number of cells")
    require(len(machines) == sizes["cells"], f"it has {len(machines)} machines")
    for machine, unreached in zip(machines, state["_unreached"].tolist(), strict=True):
        if machine is None:
            continue
        require(type(machine).__name__ == "SVC", "the machine of a cell is no SVC")
        require(not unreached, "a cell that was not reached has a machine")
        require(not hasattr(machine, "origin_"), "the machine of a cell was read from a file")
        wide = machine.n_features_in_
        require(wide == sizes["n_features"], f"a machine is for rows of {wide} columns")
        require(not machine.kernel_.takes_gram, "the kernel of a cell is precomputed")
        alone = machine.decision_function_shape == "ovr"
        require(alone, "a machine has scores of pairs")
        known = set(model.classes_.tolist())
        require(known.issuperset(machine.classes_.tolist()), "a machine has classes of its own")


def _tree_cells(tree: Any, sizes: Sizes) -> None:
    """Check that splits are a tree: each has one parent before it, and so has each cell."""
    children, n = tree.children, len(tree.thresholds)
    require(((children >= -1 - n) & (children < n)).all(), "it has children that there are not")
    require((children > np.arange(n)[:, np.newaxis])[children >= 0].all(), "it has a cycle")
    expected = np.setdiff1d(np.arange(-1 - n, n), [0] if n else [-1])
    same = np.array_equal(np.sort(children.ravel()), expected)
    require(same, "a split or a cell has no parent, or two")
    lengths = np.linalg.norm(tree.directions, axis=1)
    require(_close(lengths, np.ones(n), _ALIKE), "its directions are not of length 1")


def _triangle(model: Any, posterior: Any, sizes: Sizes) -> None:
    """Check that the factor of the landmarks' matrix is one."""
    kernel, work = model.kernel_, len(posterior.landmarks) ** 2 * float(sizes["n_features"])
    if not kernel.takes_gram and work < _MOST_WORK:
        K = kernel.gram(model.landmarks_[posterior.landmarks]) + vars(model)["_constant"] ** 2
        same = _close(posterior.triangle @ posterior.triangle.T, K, _ROUGHLY)
        require(same or not K.any(), "its triangle is no factor of the landmarks' matrix")
    require(np.diagonal(posterior.triangle).all(), "its triangle is singular")


def _orthonormal(products: Floats, count: int) -> None:
    """Check that as many directions as there are eigenvalues above 0 have products 0 and 1."""
    same = _close(products[:count, :count], np.eye(count), 0.01)
    require(same, "its directions are not of length 1")


def _kernel_pca(model: Any, sizes: Sizes) -> None:
    projection = vars(model)["_projection"]
    if hasattr(projection, "features"):
        _check_columns(projection.features.kernel, sizes["n_features"])
    else:
        kernel, rows = projection.kernel_, projection.support_vectors_.shape[0]
        _check_columns(kernel, sizes["n_features"])
        require(kernel.takes_gram or rows == len(projection.base), "its rows are not all there")
        wide, width = projection.support_vectors_.shape[1], sizes["n_features"]
        same = kernel.takes_gram or wide == width
        require(same, f"its support vectors have {wide} columns, but rows have {width}")
        require(kernel.takes_gram or projection.columns is None, "its columns do not fit")
        require(not kernel.takes_objects, "its kernel takes objects")
        known = kernel.psd is True and not kernel.takes_gram
        if known and rows**2 * float(sizes["n_features"]) < _MOST_WORK:
            prepared = kernel.prepare(projection.support_vectors_.astype(np.float64, copy=False))
            a = np.ascontiguousarray(projection.coefficients)
            _orthonormal(a.T @ kernel.dot(prepared, prepared, a), int(model.rank_))
    require(0 <= model.rank_ <= sizes["components"], "its rank does not fit")
    if hasattr(projection, "features"):
        _orthonormal(projection.directions.T @ projection.directions, int(model.rank_))
    ridge = vars(model).get("_ridge")
    require(ridge is None or ridge.Z.shape[1] == sizes["components"], "its inverse does not fit")


def _explicit(features: Any, sizes: Sizes) -> None:
    parts = features.monomials
    if parts is not None:
        fits = type(parts) is tuple and len(parts) == 3 and type(parts[2]) is np.ndarray
        require(fits and isinstance(features.kernel, Polynomial), "its monomials do not fit")
        require(parts[0] == features.kernel.degree and parts[1] is (features.kernel.coef0 > 0),
                 "its monomials are not those of its kernel")  # fmt: skip


def _nystroem(model: Any, sizes: Sizes) -> None:
    kind = vars(model)["_type"]
    require(kind in (np.dtype("float32"), np.dtype("float64")), "_type is no type of numbers")


def _fourier(model: Any, sizes: Sizes) -> None:
    pairs = sizes["frequencies"]
    require(sizes["components"] in (2 * pairs, 2 * pairs - 1), "its frequencies are not all there")


def _monomials(model: Any, sizes: Sizes) -> None:
    kernel, columns = model.kernel_, sizes["n_features"]
    require(isinstance(kernel, Polynomial), "its kernel is no polynomial")
    require(not isinstance(kernel.gamma, str), "its kernel has no number for gamma")
    require(sizes["degree"] == kernel.degree, "its monomials have another degree")
    expected = count_monomials(columns, int(kernel.degree), kernel.coef0 > 0)
    require(sizes["components"] == expected, f"{columns} columns have {expected} monomials")
    powers = list_monomials(columns, int(kernel.degree), kernel.coef0 > 0)
    require(np.array_equal(model.powers_, powers), "its monomials are not in their order")
    weights = weigh_monomials(powers, float(kernel.gamma), float(kernel.coef0))
    same = (np.abs(model.weights_ - weights) <= _NEAR * weights).all()
    require(same, "its monomials have other weights than those of its kernel")


def _circle(model: Any, sizes: Sizes) -> None:
    more = 2 if model.lift == "square" else 1
    require(model.n_components_ == sizes["n_features"] + more, "its columns are not all there")


def _structured(model: Any, sizes: Sizes) -> None:
    ready, width = model.model_, sizes["n_features"]
    classes = len(getattr(ready, "classes_", ()))
    expected = {
        "Multiclass": width * classes,
        "Chain": classes * (width + classes + 2),
    }[type(ready).__name__]
    require(getattr(ready, "size_", None) == expected, f"its outputs need {expected} weights")
    if type(ready).__name__ == "Multiclass":
        ready.costs()  # raises if they are of other classes
    if type(model).__name__ == "StructuredPerceptron":
        mean = vars(model)["_state"].mean()
        same = len(mean) == expected and _close(mean, model.coef_)
        return require(same, "its weights are not those of its state")
    outputs = model.support_outputs_
    require(len(outputs) == sizes["sv"], "its outputs are not all there")
    if classes:
        found = np.concatenate([np.ravel(each) for each in outputs] or [ready.classes_])
        require(np.isin(found, ready.classes_).all(), "support_outputs_ are of other classes")
    return None


# ------------------------------------------------------------------- models of LIBSVM and LIBLINEAR


def _read_from_file(model: Any, sizes: Sizes) -> None:
    """Check what a model says that was read from a file of LIBSVM or LIBLINEAR."""
    require(model.origin_ in ORIGINS, f"origin_ is {model.origin_!r:.40}")
    require(model.solver_ == model.origin_, "its solver is not where it comes from")
    for name in ("intercept_", "coef_", "dual_coef_", "support_vectors_"):
        numbers = vars(model).get(name, 0.0)
        numbers = numbers.data if sp.issparse(numbers) else numbers
        require(fit_to_compute(np.asarray(numbers)), f"{name} has a number that is too large")
    if "classes_" in vars(model):
        ranked = vars(model).get("_tie_order") is not None
        require(ranked == (sizes["classes"] > 2), "its classes have no order, or should not")


def _read_expansion(model: Any, sizes: Sizes) -> None:
    """Check duals as the reader of LIBSVM files does: their signs, and their sums.

    Nothing bounds their sizes: rows may have had weights, which C is multiplied with.
    """
    state, name = vars(model), type(model).__name__
    require(type(model.kernel_) in _LIBSVM_KERNELS, "LIBSVM has no such kernel")
    require((state["_scales"] == 1).all(), "its scales are not 1")
    if not model.kernel_.takes_gram:
        order = np.arange(sizes["sv"])
        same = np.array_equal(model.support_, order) and sizes["n_rows"] == sizes["sv"]
        require(same, "support_ does not number its support vectors")
    beta, duals = model.dual_coef_, state["_duals"]
    edges = np.vstack([np.maximum(beta, 0.0), np.minimum(beta, 0.0)]) if name == "NuSVR" else beta
    require(np.array_equal(edges, duals), "dual_coef_ does not come from its duals")
    if name == "OneClassSVM":
        require((beta >= 0).all(), "a dual is negative")
        return require(beta.any() or not beta.size, "all its duals are 0")
    for planes in _plane_blocks(model, sizes):
        _read_duals(model, sizes, planes)
    return None


def _read_duals(model: Any, sizes: Sizes, planes: slice) -> None:
    """Check the signs and sums of the duals of some planes."""
    by_plane = _by_plane(model, model.dual_coef_, planes)
    require(len(by_plane) == planes.stop - planes.start, f"there are {sizes['planes']} planes")
    if hasattr(model, "classes_"):
        signs = lay_out(sizes["classes"], "ovo").sign[_labels(model)].T
        own = _by_plane(model, signs * model.dual_coef_, planes)
        if type(model).__name__ == "NuSVC":  # divided by ρ, which some kernels make negative
            own = own * np.where(own.sum(axis=1) < 0, -1.0, 1.0)[:, np.newaxis]
        require((own >= 0).all(), "a dual has a sign that its class does not have")
    allowed = _SIX_DIGITS * np.abs(by_plane).sum(axis=1)
    off = np.abs(by_plane.sum(axis=1)) > allowed
    require(not off.any(), "its duals do not add up to 0")


def _read_linear_classes(model: Any, sizes: Sizes) -> None:
    """Check that each class has its plane; of two, the second is positive."""
    classes, pairs = sizes["classes"], vars(model)["_pairs"]
    require(classes >= 2, "there is one class only")
    expected = [(1, 0)] if classes == 2 else [(k, -1) for k in range(classes)]
    require(pairs == expected, f"its planes are not those of {classes} classes")
    require(sizes["planes"] == len(pairs), f"{classes} classes need {len(pairs)} planes")


def _one_plane(model: Any, sizes: Sizes) -> None:
    """Check that there is one function, and one dual of each row; NuSVR has those of both edges."""
    require(sizes["planes"] == 1, "it has more than one intercept")
    if "sides" in sizes:
        expected = 1, 2 if type(model).__name__ == "NuSVR" else 1
        found = sizes["sides"], sizes["dual_sides"]
        require(found == expected, "it has coefficients of other functions")


_MACHINE = (_kernel_of_rows, _support, _kernel_machine)
_RULES: dict[str, tuple[Rule, ...]] = {
    "Calibration": (_calibration,),
    "SVC": (_planes, *_MACHINE, _calibrated),
    "NuSVC": (_planes, *_MACHINE, _calibrated),
    "SVR": (_one_plane, *_MACHINE),
    "QuantileSVR": (_one_plane, *_MACHINE),
    "NuSVR": (_one_plane, *_MACHINE),
    "OneClassSVM": (_one_plane, *_MACHINE),
    "HardMarginSVC": (_kernel_of_rows, _hard_margin),
    "LinearSVC": (_linear_classes, _linear_machine, _calibrated),
    "LinearSVR": (_linear_machine,),
    "Perceptron": (_one_or_each, _of_state),
    "AveragedPerceptron": (_one_or_each, _of_state),
    "VotedPerceptron": (_one_or_each, _of_state),
    "KernelPerceptron": (_one_or_each, _kernel_of_rows, _given_columns),
    "LinearState": (_linear_state,),
    "Votes": (_votes,),
    "BayesPointClassifier": (_kernel_of_rows, _bayes),
    "PartitionedSVC": (_partitioned,),
    "TreeCells": (_tree_cells,),
    "KernelPCA": (_kernel_pca,),
    "ExplicitFeatures": (_explicit,),
    "Nystroem": (_kernel_of_rows, _nystroem),
    "RandomFourier": (_fourier,),
    "PolynomialMap": (_monomials,),
    "CircleMap": (_circle,),
    "StructuredSVC": (_structured,),
    "StructuredPerceptron": (_structured,),
    **STEP_RULES,
}
_READ_EXPANSION = (_read_from_file, _kernel_of_rows, _support, _read_expansion)
_READ_RULES: dict[str, tuple[Rule, ...]] = {
    "SVC": (_planes, *_READ_EXPANSION, _calibrated),
    "NuSVC": (_planes, *_READ_EXPANSION, _calibrated),
    "SVR": (_one_plane, *_READ_EXPANSION),
    "NuSVR": (_one_plane, *_READ_EXPANSION),
    "OneClassSVM": (_one_plane, *_READ_EXPANSION),
    "LinearSVC": (_read_from_file, _read_linear_classes),
    "LinearSVR": (_read_from_file, _one_plane),
}
