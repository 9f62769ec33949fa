"""Whether the parts of a model belong together: what no schema of single attributes can say.

    duals          within their boxes, with the sums that intercepts ask for, and those that
                   coefficients and weights come from
    certificate    bounds in order, parts that add up, the intercepts that it says are best, and the
                   dual value of the duals, computed again from the support vectors
    shapes         numbers of planes that follow from classes, widths of one step and of the next

Rounding is forgiven, as far as the certificate itself says how much there is. Rows that are not in
the file cannot be asked: the primal value is checked by ``mm.certify`` with the training data.
"""

from itertools import combinations, islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate
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
_ALIKE = 1e-6  # relative: two ways to the same dual value
_MOST_WORK = 3e8  # pairs of support vectors times columns, beyond which no dual value is computed
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


# ------------------------------------------------------------------- certificates


def _certificate(found: Certificate, sizes: Sizes) -> None:
    """Check that a certificate does not contradict itself."""
    require(not np.isposinf(found.dual) and not np.isneginf(found.primal), "it is no bound")
    require(found.dual > -np.inf or not np.isnan(found.primal), "it is no bound")
    if not np.isfinite([found.primal, found.dual]).all():
        return
    # Certificates whose rounding is larger have no lower bound (``Certificate.resolved``).
    require(found.parts or found.rounding < 0.5, "it is a bound that rounding leaves nothing of")
    slack = (found.rounding + _NEAR) * found.size
    require(found.primal >= found.dual - slack, "its upper bound is below its lower bound")
    if found.parts:
        for name in ("primal", "dual"):
            whole, parts = getattr(found, name), [getattr(part, name) for part in found.parts]
            size = float(np.abs(parts).sum())
            require(_close(whole, sum(parts), size=size), f"the {name} values do not add up")


def _parts(found: Certificate) -> tuple[Certificate, ...]:
    return found.parts or (found,)


def _proved(model: Any, sizes: Sizes) -> None:
    """Check that a model that is said to be proved has a certificate that proves something.

    What the certificate says of rounding, infeasible duals and drift excuses differences: one of
    which all is excused is none that a solver was content with.
    """
    found = vars(model).get("certificate_")
    if found is None or model.status_ is not Status.OPTIMAL:
        return
    for part in (found, *found.parts):
        known = np.isfinite([part.primal, part.dual, part.rounding, part.drift]).all()
        require(known, "its status says that it is proved, but its certificate proves nothing")
        if not type(model).__name__.startswith("Linear"):  # others solve for feasible duals
            feasible = part.infeasibility <= _ROUGHLY
            require(feasible, "its status says that it is proved, but its duals are not feasible")


def _compare_duals(model: Any, values: Floats, sizes_of_terms: Floats) -> None:
    """Compare dual values of the problems with what the certificate says of them."""
    parts = _parts(model.certificate_)
    require(len(parts) == len(values), f"its certificate is of {len(parts)} problems")
    for part, value, size in zip(parts, values, sizes_of_terms, strict=True):
        if np.isfinite([part.dual, part.rounding, part.infeasibility]).all():
            allowed = (_ALIKE + 10 * part.infeasibility) * max(size, abs(part.dual))
            allowed += 2 * part.rounding * part.size
            require(
                abs(value - part.dual) <= allowed,
                f"its certificate says that the dual value is {part.dual:.10g}, but the duals in "
                f"the file have {value:.10g}",
            )


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
    """Check duals, coefficients, weights and intercepts against each other."""
    state, solved = vars(model), vars(model)["_solved"]
    if model.kernel_.takes_gram or (not sizes["sv"] and "_weights" not in state):
        require("_given_products" in state, "it lacks '_given_products'")
    require(("_weights" in state) == ("_weights_of" in state), "its weights are of no duals")
    parts = _parts(model.certificate_)
    require(_is_joint(model) or len(parts) == len(solved), "its certificate is of other problems")
    blocks = [_dual_values(model, sizes, planes) for planes in _plane_blocks(model, sizes)]
    known = [block for block in blocks if block is not None]
    if len(known) < len(blocks):
        return
    values, terms = (np.concatenate(column) for column in zip(*known, strict=True))
    if not _is_joint(model):
        values, terms = values[solved], terms[solved]
    _compare_duals(model, values, terms)


def _dual_values(model: Any, sizes: Sizes, planes: slice) -> tuple[Floats, Floats] | None:
    """Check the duals of some planes, and return their dual values with the sizes of their terms.

    There is one value of all planes that were solved for together; None if that is much work.
    """
    state = vars(model)
    betas = _by_plane(model, state["_duals"], planes)
    coefficients = _by_plane(model, model.dual_coef_, planes)
    by_row = betas.sum(axis=0, keepdims=True) if type(model).__name__ == "NuSVR" else betas
    scales = state["_scales"][planes]
    divisors = np.where(scales > 0, scales, 1.0)[:, np.newaxis]
    require(_close(coefficients * divisors, by_row), "dual_coef_ does not come from its duals")
    unsolved = np.setdiff1d(np.arange(planes.start, planes.stop), state["_solved"]) - planes.start
    require(not coefficients[unsolved].any(), "a plane that was not solved for has duals")
    _boxes(model, betas)
    products = _products(model, sizes, coefficients, planes)
    if products is None:
        return None
    squares = divisors[:, 0] ** 2 * (coefficients.T * products).sum(axis=0)
    linear, terms = _linear_terms(model, betas)
    if _is_joint(model):
        linear, terms, squares = (x.sum(keepdims=True) for x in (linear, terms, squares))
    return linear - squares / 2, terms + np.abs(squares)


def _products(
    model: Any, sizes: Sizes, coefficients: Floats, planes: slice = slice(None)
) -> Floats | None:
    """Return Σ K a at the support vectors, a column for each plane; None if that is much work."""
    state, vectors = vars(model), model.support_vectors_
    if type(model.kernel_) is Linear:
        if "_weights" not in state:
            vectors = _without_empty_columns(vectors)
        implied, size = _implied(coefficients, vectors)
        if "_weights" in state:
            _weights(model, state["_weights"][planes], implied, size)
        return np.asarray(vectors @ implied.T)
    if "_given_products" in state:
        return np.asarray(state["_given_products"][:, planes])
    if float(sizes["sv"]) ** 2 * sizes["n_features"] > _MOST_WORK or not sizes["sv"]:
        return None
    rows = model.kernel_.prepare(vectors.astype(np.float64, copy=False))
    return np.asarray(model.kernel_.dot(rows, rows, np.ascontiguousarray(coefficients.T)))


def _without_empty_columns(rows: Any) -> Any:
    """Return sparse rows with the columns that are used: how many there are is only said."""
    if not sp.issparse(rows):
        return rows
    used, places = np.unique(rows.indices, return_inverse=True)
    return sp.csr_array((rows.data, places, rows.indptr), shape=(rows.shape[0], len(used)))


def _implied(beta: Floats, rows: Any) -> tuple[Floats, Floats]:
    """Return the weights that duals imply, and how large the sums are that each comes from."""
    # (X'b')' is the same for sparse rows, whose product from the left scipy may not have.
    implied = np.asarray((rows.T @ beta.T).T)
    return implied, np.linalg.norm(np.asarray(abs(rows).T @ np.abs(beta).T), axis=0)


def _weights(model: Any, weights: Floats, implied: Floats, size: Floats) -> None:
    """Check weights against those that duals imply, which the certificate bounds."""
    if "_weights_of" in vars(model):
        same = np.array_equal(vars(model)["_weights_of"], model.dual_coef_)
        require(same, "its weights are not those of dual_coef_")
    parts = _parts(model.certificate_)
    drift = np.full(len(weights), float(model.certificate_.drift))  # the largest of all planes
    if len(parts) == len(weights):
        drift = np.array([float(part.drift) for part in parts])
    length = np.linalg.norm(weights, axis=1)
    if getattr(model, "intercept", "free") == "penalized":
        length = np.hypot(
            length, model.intercept_ / float(getattr(model, "intercept_scaling", 1.0))
        )
    if _is_joint(model):
        length = np.full(len(weights), np.linalg.norm(length))
    allowed = 2 * drift * np.where(length > 0, length, 1.0)
    allowed = np.minimum(allowed, _farthest(model)) + _ALIKE * length + _NEAR * size
    apart = np.linalg.norm(weights - implied, axis=1)
    same = (apart <= allowed) | ~np.isfinite(drift)
    require(same.all(), "its weights are not those that its duals imply")


def _farthest(model: Any) -> float:
    """Return how far weights can be from those of feasible duals: ‖w − w(β)‖² ≤ 2(P − D)."""
    found, name = model.certificate_, type(model).__name__
    known = model.status_ is Status.OPTIMAL and found.infeasibility <= _NEAR
    if not known or name not in ("SVC", "SVR", "LinearSVC", "LinearSVR"):
        return np.inf
    gap = max(found.primal - found.dual, 0.0) + (found.rounding + _NEAR) * found.size
    return 2 * float(np.sqrt(2 * gap))


def _linear_terms(model: Any, betas: Floats) -> tuple[Floats, Floats]:
    """Return Σ tβ − ε|β| of each plane, and the sum of its terms in absolute value."""
    sums, name = np.abs(betas).sum(axis=1), type(model).__name__
    if name in ("NuSVC", "OneClassSVM"):
        return np.zeros(len(betas)), sums * 0
    if name in ("SVC", "HardMarginSVC"):
        if _is_joint(model):
            own = betas[_labels(model), np.arange(betas.shape[1])]
            return np.array([own.sum()]), np.array([np.abs(own).sum()])
        return sums, sums
    targets = vars(model)["_support_targets"]
    value = float((betas @ targets).sum())
    size = float((np.abs(betas) @ np.abs(targets)).sum())
    if name == "SVR":
        value -= float(model.epsilon) * float(sums.sum())
        size += float(model.epsilon) * float(sums.sum())
    return np.array([value]), np.array([size])


def _slack(found: Certificate, betas: Floats) -> Floats:
    """Return how far the duals of each plane may be off, as far as the certificate says so."""
    part = _ALIKE + 2 * min(float(found.infeasibility), 1.0)
    return np.asarray(part * np.abs(betas).sum(axis=1) + np.finfo(float).tiny)


def _boxes(model: Any, betas: Floats) -> None:
    """Check that duals are within their boxes, and have the sums that a free intercept asks for."""
    name, found = type(model).__name__, model.certificate_
    allowed = _slack(found, betas)
    if getattr(model, "fit_intercept", True) and name != "OneClassSVM" and not _is_joint(model):
        totals = betas.sum(axis=1) if name != "NuSVR" else betas.sum(keepdims=True)[0]
        require((np.abs(totals) <= allowed).all(), "its duals do not add up to 0")
    if name == "OneClassSVM":
        weights = vars(model)["_shares"] * (betas.sum() / float(model.nu))
        require((betas >= 0).all(), "a dual is negative")
        require((betas[0] <= weights * (1 + _ALIKE) + allowed).all(), "a dual exceeds its bound")
    if not hasattr(model, "classes_"):
        return
    layout, labels = lay_out(len(model.classes_), vars(model)["_scheme"]), _labels(model)
    duals, signs = vars(model)["_duals"], layout.sign[labels].T
    upper = np.inf
    if "_row_costs" in vars(model):
        upper = vars(model)["_row_costs"][model.support_]
    if _is_joint(model):
        own = signs > 0
        require((duals <= np.where(own, upper, 0.0) + allowed.max()).all(), "a dual is too large")
        require((np.abs(duals.sum(axis=0)) <= allowed.max()).all(), "duals of a row do not add up")
    else:
        inside = (signs * duals >= -allowed.max()) & (signs * duals <= upper + allowed.max())
        require(inside.all(), "a dual is outside of its box")


def _intercepts(model: Any, sizes: Sizes) -> None:
    """Check intercepts against those that the certificate says are best."""
    state = vars(model)
    if "certificate_" not in state:
        return
    parts, solved = _parts(model.certificate_), state.get("_solved", slice(None))
    best = np.array([part.intercept for part in parts])
    if _is_joint(model):
        solved = [one for one, _ in state["_pairs"]] if "_pairs" in state else solved
        best = np.array(parts[0].intercepts)
    elif type(model).__name__ in ("NuSVC", "NuSVR"):
        require(all(len(part.intercepts) == 2 for part in parts), "its certificate is of others")
        scales = state["_scales"][solved]
        best = np.array([sum(part.intercepts) / 2 for part in parts])
        best = best / np.where(scales > 0, scales, 1.0) if len(best) == len(scales) else best
    b = model.intercept_[solved]
    rounding = _ALIKE * max(1.0, float(np.abs(b).max(initial=0.0)))
    same = len(best) == len(b) and (np.abs(best - b) <= rounding).all()
    require(same, "its intercepts are not those of its certificate")


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
    _linear_weights(model)


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


def _linear_weights(model: Any) -> None:
    """Check weights, sums of duals and dual values, as far as rows are there."""
    rows, beta, found = vars(model)["_support_rows"], model.dual_coef_, model.certificate_
    l2 = getattr(model, "penalty", "l2") == "l2"
    free = model.fit_intercept and model.intercept == "free"
    sums, allowed = np.abs(beta).sum(axis=1), _slack(found, beta)
    if free:
        require((np.abs(beta.sum(axis=1)) <= allowed).all(), "its duals do not add up to 0")
    if rows is None or not l2:
        return
    implied, size = _implied(beta, rows)
    _weights(model, np.atleast_2d(model.coef_), implied, size)
    if getattr(model, "loss", "") != "hinge" or _is_joint(model):
        return
    squares = (implied**2).sum(axis=1)
    if model.fit_intercept and model.intercept == "penalized":
        squares = squares + (float(model.intercept_scaling) * beta.sum(axis=1)) ** 2
    _compare_duals(model, sums - squares / 2, sums + squares)
    costs = vars(model)["_row_costs"][model.support_]
    require((np.abs(beta) <= costs * (1 + _NEAR) + allowed.max()).all(), "a dual exceeds its bound")


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
    """Check duals of a hard margin, which have no bounds, and the weights they imply."""
    beta, found = model.dual_coef_, model.certificate_
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
    sums = np.abs(beta).sum(axis=1)
    if model.intercept == "free":
        off = np.abs(beta.sum(axis=1)) > _slack(found, beta)
        require(not off.any(), "its duals do not add up to 0")
    products = _products(model, sizes, beta)
    if products is not None and model.intercept != "penalized":
        # Duals of a hard margin have no bounds: the certificate is of their best multiple.
        squares = (beta.T * products).sum(axis=0)
        values = sums**2 / (2 * np.where(squares > 0, squares, np.inf))
        _compare_duals(model, values, values)


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


def _kernel_norm(model: Any, sizes: Sizes) -> None:
    """Check ‖w‖² against coefficients and support vectors."""
    if model.kernel_.takes_gram:
        numbers = vars(model).get("support_")  # which columns are read; partial_fit needs none
        require(numbers is not None, "it lacks 'support_'")
        inside = numbers.max(initial=-1) < sizes["n_features"]
        return require(inside, f"support_ is not among {sizes['n_features']} columns")
    products = _products(model, sizes, model.dual_coef_)
    if products is not None:
        terms = model.dual_coef_.T * products
        allowed = _ROUGHLY * float(np.abs(terms).sum())
        apart = abs(float(terms.sum()) - float(vars(model)["_squared_norm"]))
        require(apart <= allowed, "its coefficients have another norm than it says")
    return None


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
    statuses = []
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
        statuses.append(machine.status_)
    proved = all(each is Status.OPTIMAL for each in statuses) and not state["_unreached"].any()
    same = proved == (model.status_ is Status.OPTIMAL)
    require(same, "its status is not that of its machines")


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
        "Multilabel": width * getattr(ready, "n_labels_", 0) + 4 * _pair_count(ready),
        "Ranking": width,
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
    half = float(model.coef_ @ model.coef_) / 2
    enough = half <= model.certificate_.primal * (1 + _ALIKE) + np.finfo(float).tiny
    return require(enough, "its weights cost more than its certificate says")


def _pair_count(ready: Any) -> int:
    pairs = getattr(ready, "pairs", ())
    if isinstance(pairs, str):
        return len(ready.forest().pairs) if hasattr(ready.forest(), "pairs") else 0
    return len(pairs)


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
    require(sizes["planes"] == 1, "it has more than one intercept")


_MACHINE = (_proved, _kernel_of_rows, _support, _kernel_machine, _intercepts)
_RULES: dict[str, tuple[Rule, ...]] = {
    "Certificate": (_certificate,),
    "MulticlassCertificate": (_certificate,),
    "StructuredCertificate": (_certificate,),
    "Calibration": (_calibration,),
    "SVC": (_planes, *_MACHINE, _calibrated),
    "NuSVC": (_planes, *_MACHINE, _calibrated),
    "SVR": _MACHINE,
    "QuantileSVR": _MACHINE,
    "NuSVR": _MACHINE,
    "OneClassSVM": _MACHINE,
    "HardMarginSVC": (_proved, _kernel_of_rows, _hard_margin, _intercepts),
    "LinearSVC": (_proved, _linear_classes, _linear_machine, _intercepts, _calibrated),
    "LinearSVR": (_proved, _linear_machine, _intercepts),
    "Perceptron": (_one_or_each, _of_state),
    "AveragedPerceptron": (_one_or_each, _of_state),
    "VotedPerceptron": (_one_or_each, _of_state),
    "KernelPerceptron": (_one_or_each, _kernel_of_rows, _kernel_norm),
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
