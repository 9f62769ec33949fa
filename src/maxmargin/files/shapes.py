"""Shapes and indices that compiled loops and numpy rely on, and that no single attribute shows.

Loops run without bounds checks, so whatever indexes something, is a number of something, or must be
as long as something else is looked at here, for each class whose schema alone does not say it:

    planes, duals    as many as the classes need; support vectors by class; pairs of classes
    kernels          columns that there are, degrees that can be computed, rows as wide as new ones
    trees            splits without cycles, whose children are there; a machine for each cell
    steps            codes of categories and numbers of words within the columns that are made
    memory           a cache is a folder of pickles, which would be read: there must be none

Whether the numbers themselves are those of a fit is not asked: the digest finds what was damaged,
and ``mm.certify`` proves what a model is worth, with the training data.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.estimators.kernel_pca.operators import count_features
from maxmargin.kernels import Columns, Kernel, Linear, Polynomial, Power

Sizes = dict[str, int]  # how many rows, columns, classes … a model says it has, by their names
State = dict[str, Any]  # what a file says of one object
Rule = Callable[[State, Sizes], None]

_MOST_DEGREE = 10_000


def require(holds: Any, complaint: str) -> None:
    """Raise ValueError unless something holds."""
    if not holds:
        raise ValueError(complaint)


def check_shapes(value: Any, state: State, sizes: Sizes) -> None:
    """Raise ValueError if the state of an object could lead a loop, or an index, astray."""
    for rule in _RULES.get(type(value).__name__, ()):
        rule(state, sizes)
    if isinstance(value, Kernel):
        _check_degrees(value)


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


def _check_rows(kernel: Kernel, rows: Any, needed: int, width: int) -> None:
    """Check that the rows of an expansion are as many, and as wide, as loops take them to be."""
    _check_columns(kernel, width)
    require(needed * width < 2**63, "there are more columns than can be counted")
    require(not kernel.takes_objects, "its kernel takes objects, which a model file cannot hold")
    if kernel.takes_gram:
        return require(rows.shape[0] == 0, "a precomputed kernel needs no rows")
    wide = rows.shape[1]
    require(wide == width, f"its support vectors have {wide} columns, but rows have {width}")
    return require(rows.shape[0] == needed, f"it has {rows.shape[0]} rows, but needs {needed}")


def _kernel_of_rows(state: State, sizes: Sizes) -> None:
    kernel, width = state["kernel_"], sizes["n_features"]
    rows = state["support_vectors_"] if "support_vectors_" in state else state["landmarks_"]
    _check_rows(kernel, rows, sizes.get("sv", sizes.get("landmarks", 0)), width)
    square = not kernel.takes_gram or sizes.get("n_rows", width) == width
    require(square, "a precomputed kernel is square")
    require(sizes.get("n_rows", 0) < 2**31, "it was fitted to more rows than there can be")


# ------------------------------------------------------------------- planes of classes


def _planes(state: State, sizes: Sizes) -> None:
    """Check that there are as many planes and sides of duals as the classes ask for."""
    classes = sizes["classes"]
    require(classes >= 2, "there is one class only")
    pairs = classes == 2 or state["_scheme"] == "ovo"
    planes = classes * (classes - 1) // 2 if pairs else classes
    require(sizes["planes"] == planes, f"{classes} classes need {planes} planes")
    sides = classes - 1 if pairs else classes
    require(sizes["sides"] == sizes["dual_sides"] == sides, f"duals need {sides} sides")


def _one_plane(state: State, sizes: Sizes) -> None:
    """Check that there is one function, and one dual of each row; NuSVR has those of both edges."""
    require(sizes["planes"] == sizes["sides"] == 1, "it has coefficients of other functions")
    fits = sizes["dual_sides"] == (2 if "nu" in state and "C" in state else 1)
    require(fits, "it has duals of other functions")


def _one_or_each(state: State, sizes: Sizes) -> None:
    """Check that two classes have one plane, and more have one each."""
    classes = sizes["classes"]
    require(sizes["planes"] == (1 if classes == 2 else classes), f"planes of {classes} classes")


def _check_pairs(pairs: Any, count: int, classes: int) -> None:
    """Check which classes are on both sides of planes: pairs, or single ones against the rest."""
    require(classes >= 2, "there is one class only")
    require(len(pairs) == count, f"{len(pairs)} pairs of classes are not those of {count} planes")
    single = [other < 0 for _, other in pairs]
    same = classes == 2 or all(single) or not any(single)
    require(same, "its planes mix pairs with single classes")
    require(all(one >= 0 for one, _ in pairs), "a plane is of a class that is not there")


def _calibration(state: State, sizes: Sizes) -> None:
    pairs, classes = state["classes"], state["n_classes"]
    _check_pairs(pairs, len(state["offset"]), classes)
    slopes = 1 if classes > 2 and all(other < 0 for _, other in pairs) else len(pairs)
    require(len(pairs) and len(state["slope"]) == slopes, f"{len(pairs)} planes need slopes")


def _calibrated(state: State, sizes: Sizes) -> None:
    planes = len(state["_pairs"]) if "_pairs" in state else len(state["_solved"])
    found = state.get("calibration_")
    fits = found is None or len(found.classes) == planes
    require(fits, f"its calibration is not of {planes} planes")


# ------------------------------------------------------------------- machines


def _proved(state: State, sizes: Sizes) -> None:
    """Check that a model has a certificate, unless it is read from a text file, or of a stream."""
    known = "certificate_" in state or "origin_" in state or "_learners" in state
    require(known, "it lacks 'certificate_'")


def _support(state: State, sizes: Sizes) -> None:
    """Check that support vectors are counted by class."""
    counted = sizes.get("classes", 1)
    require(len(state["n_support_"]) == counted, f"n_support_ is not of {counted} classes")
    require(int(state["n_support_"].sum()) == sizes["sv"], "n_support_ does not add up")


def _products(state: State, sizes: Sizes) -> None:
    """Check that nothing is missing that stands for rows which are not there."""
    require(("_weights" in state) == ("_weights_of" in state), "its weights are of no duals")
    needed = state["kernel_"].takes_gram or not (sizes["sv"] or "_weights" in state)
    there = "origin_" in state or not needed or "_given_products" in state
    require(there, "it lacks '_given_products'")


def _linear(state: State, sizes: Sizes) -> None:
    """Check that planes, learners and duals are as many as each other."""
    planes = sizes["planes"]
    if "classes_" in state and state["_scheme"] == "crammer_singer" and sizes["classes"] > 2:
        _joint(state, sizes)
        planes = 1
    elif "classes_" in state:
        _check_pairs(state["_pairs"], planes, sizes["classes"])
    learners, duals = state.get("_learners"), state.get("_signed_duals")
    require(learners is None or len(learners) == sizes["planes"], "its learners are not of planes")
    require(duals is None or len(duals) == planes, "its duals are not those of its planes")


def _joint(state: State, sizes: Sizes) -> None:
    """Check classes that were learnt together: those with rows have planes, all have weights."""
    classes, pairs = sizes["classes"], state["_pairs"]
    require(sizes["planes"] == classes, f"{classes} classes need {classes} planes")
    _check_pairs(pairs, len(pairs), classes)
    require("origin_" not in state or len(pairs) == classes, "a class has no plane")
    if "origin_" in state:
        return
    w, b = state.get("_joint", (np.zeros(0), np.zeros(0)))
    fits = w.shape == (sizes["n_features"], len(pairs)) and b.shape == (len(pairs),)
    duals = state.get("_signed_duals", ())
    fits = fits and all(each.ndim == 2 and each.shape[1] == len(pairs) for each in duals)
    require(fits, "its joint planes are not those of its classes")


def _hard_margin(state: State, sizes: Sizes) -> None:
    _check_pairs(state["_subproblems"], sizes["planes"], sizes["classes"])
    linear = type(state["kernel_"]) is Linear
    require(not linear or "_weights" in state, "its weights are not there")


def _cells(state: State, sizes: Sizes) -> None:
    """Check that each cell has a machine for rows and classes of the model, or needs none."""
    machines = state["machines_"]
    require(sizes["classes"] >= 2, "there is one class only")
    require(state["cells_"].n_cells == sizes["cells"], "its partition has other cells")
    require(len(machines) == sizes["cells"], f"it has {len(machines)} machines")
    known = set(state["classes_"].tolist())
    for machine in machines:
        if machine is None:
            continue
        require(type(machine).__name__ == "SVC", "the machine of a cell is no SVC")
        wide = machine.n_features_in_
        require(wide == sizes["n_features"], f"a machine is for rows of {wide} columns")
        require(not machine.kernel_.takes_gram, "the kernel of a cell is precomputed")
        alone = machine.decision_function_shape == "ovr"
        require(alone, "a machine has scores of pairs")
        require(known.issuperset(machine.classes_.tolist()), "a machine has classes of its own")


def _tree(state: State, sizes: Sizes) -> None:
    """Check that splits are a tree: each has one parent before it, and so has each cell."""
    children, n = state["children"], len(state["thresholds"])
    require((children > np.arange(n)[:, np.newaxis])[children >= 0].all(), "it has a cycle")
    expected = np.setdiff1d(np.arange(-1 - n, n), [0] if n else [-1])
    same = np.array_equal(np.sort(children.ravel()), expected)
    require(same, "a split or a cell is not there, or has two parents")


# ------------------------------------------------------------------- perceptrons and Bayes points


def _given_columns(state: State, sizes: Sizes) -> None:
    """Check which columns of a precomputed kernel are read; partial_fit needs none."""
    if state["kernel_"].takes_gram:
        require("support_" in state, "it lacks 'support_'")
        inside = state["support_"].max(initial=-1) < sizes["n_features"]
        require(inside, f"support_ is not among {sizes['n_features']} columns")


def _linear_state(state: State, sizes: Sizes) -> None:
    w, lag = state["weights"], state["lag"]
    require(w.ndim == (1 if sizes["planes"] == 1 else 2), "weights have another shape")
    fits = lag.shape in (w.shape, (0,) * w.ndim)
    fits = fits and state["lag_intercept"].shape in (state["intercept"].shape, (0,))
    same = (lag.size > 0) == (state["lag_intercept"].size > 0)
    require(fits and same, "its sums do not fit")


def _votes(state: State, sizes: Sizes) -> None:
    updates, start, columns = state["updates"], state["start"], sizes["n_features"]
    shape = (columns,) if start[0].ndim == 1 else (columns, sizes["planes"])
    fits = len(start) == 2 and start[0].shape == shape and start[1].shape == (sizes["planes"],)
    require(fits, "its start does not fit")
    inside = updates.row.max(initial=-1) < state["rows"].shape[0]
    require(inside, "an update is of a row that is not there")
    least = min(updates.label.min(initial=0), updates.rival.min(initial=0))
    require(least >= 0, "an update is of a class that is not there")


def _bayes(state: State, sizes: Sizes) -> None:
    _check_pairs(state["_pairs"], len(state["_posteriors"]), sizes["classes"])
    require(len(state["_pairs"]), "it has no draws")
    for posterior in state["_posteriors"]:
        chains, draws, width = posterior.draws.shape
        require(chains * draws > 0, "there are no draws")
        if posterior.landmarks is None:
            wide = sizes["n_features"] + (state["_constant"] > 0)
            require(type(state["kernel_"]) is Linear, "it has draws of a linear kernel")
            require(width == wide and posterior.triangle is None, "its draws have another width")
        else:
            fits = posterior.triangle is not None and width == len(posterior.landmarks)
            require(fits, "its draws are not of its landmarks")


# ------------------------------------------------------------------- maps and structured outputs


def _kernel_pca(state: State, sizes: Sizes) -> None:
    projection, width = state["_projection"], sizes["n_features"]
    if hasattr(projection, "features"):
        _check_columns(projection.features.kernel, width)
    else:
        kernel = projection.kernel_
        _check_rows(kernel, projection.support_vectors_, len(projection.base), width)
        require(kernel.takes_gram or projection.columns is None, "its columns do not fit")
    ridge = state.get("_ridge")
    require(ridge is None or ridge.Z.shape[1] == sizes["components"], "its inverse does not fit")


def _explicit(state: State, sizes: Sizes) -> None:
    """Check that monomials are those of the kernel, of which there may be many."""
    kernel, parts = state["kernel"], state["monomials"]
    require(isinstance(kernel, Polynomial) == (parts is not None), "its monomials do not fit")
    if parts is not None:
        fits = type(parts) is tuple and len(parts) == 3 and type(parts[2]) is np.ndarray
        fits = fits and parts[:2] == (kernel.degree, kernel.coef0 > 0)
        row = np.broadcast_to(0.0, (1, sizes["n_features"]))
        fits = fits and parts[2].shape == (count_features(kernel, row),)
        require(fits, "its monomials are not those of its kernel")


def _nystroem(state: State, sizes: Sizes) -> None:
    known = state["_type"] in (np.dtype("float32"), np.dtype("float64"))
    require(known, "_type is no type of numbers")


def _structured(state: State, sizes: Sizes) -> None:
    ready, width = state["model_"], sizes["n_features"]
    multiclass, classes = type(ready).__name__ == "Multiclass", len(ready.classes_)
    expected = width * classes if multiclass else classes * (width + classes + 2)
    require(ready.size_ == expected, f"its outputs need {expected} weights")
    if multiclass:
        ready.costs()  # raises if they are of other classes
    if "_state" in state:
        fits = state["_state"].lag.shape in ((expected,), (0,))
        require(fits, "its weights are not those of its state")
    if "support_outputs_" in state:
        outputs = state["support_outputs_"]
        require(len(outputs) == sizes["sv"], "its outputs are not all there")
        found = np.concatenate([np.ravel(each) for each in outputs] or [ready.classes_])
        require(np.isin(found, ready.classes_).all(), "support_outputs_ are of other classes")


# ------------------------------------------------------------------- steps of scikit-learn


def _pipeline(state: State, sizes: Sizes) -> None:
    require(state["memory"] is None, "memory is a folder of pickles: set_params(memory=None)")
    steps = state["steps"]
    named = type(steps) is list and all(type(each) is tuple and len(each) == 2 for each in steps)
    require(named and steps, "it has no steps, or one without a name")


def _one_hot(state: State, sizes: Sizes) -> None:
    """Check that the codes of all categories are columns that are made."""
    width = len(state["categories_"])
    require(width == sizes["n_features"], f"its categories are of {width} columns")
    absent = [None] * width
    grouped, dropped = state["_infrequent_enabled"], state["_drop_idx_after_grouping"]
    columns = (
        state["categories_"],
        state["_infrequent_indices"] if grouped else absent,
        state["_default_to_infrequent_mappings"] if grouped else absent,
        absent if dropped is None else list(dropped),
        state["_n_features_outs"],
    )
    require({*map(len, columns)} == {width}, f"its categories are not of {width} columns")
    for categories, rare, codes, place, made in zip(*columns, strict=True):
        _check_categories(categories)
        known = _count_codes(len(categories), rare, codes)
        inside = place is None or (isinstance(place, int | np.integer) and 0 <= place < known)
        require(inside, "it drops a category that it does not have")
        expected = known - (place is not None)
        require(made == expected, f"it makes {made} columns of {expected} categories")


def _count_codes(known: int, rare: Any, codes: Any) -> int:
    """Return how many codes categories have, of which rare ones share one."""
    require((codes is None) == (rare is None), "its groups do not fit")
    if codes is None:
        return known
    require(rare.size and rare.min() >= 0 and rare.max() < known, "it has no such category")
    require(len(codes) == known, "its groups do not fit")
    return int(codes.max()) + 1


def _check_categories(values: Any) -> None:
    """Check that categories are values; numbers are searched for, and so must be in order."""
    array = type(values) is np.ndarray and values.ndim == 1 and values.size
    require(array and values.dtype.kind in "biufUO", "its categories are no list of values")
    if values.dtype.kind not in "OU":
        rising = values[1:] > values[:-1]
        in_order = rising.all() or (np.isnan(values[-1]) and rising[:-1].all())
        require(in_order, "its categories are not in order")


def _vectorizer(state: State, sizes: Sizes) -> None:
    """Check that each word has a column of its own."""
    words = state["vocabulary_"]
    require(state["input"] != "filename", "its texts are names of files: use input='content'")
    texts = type(words) is dict and words and all(type(word) is str for word in words)
    require(texts, "its vocabulary is no dict of words")
    numbers = words.values()
    require(all(isinstance(n, int | np.integer) for n in numbers), "a word has no number")
    require(sorted(numbers) == list(range(len(words))), "its words are not numbered one by one")
    fits = sizes.get("words", len(words)) == len(words)
    require(fits, f"it has {len(words)} words, but weights for others")


def _without_function(state: State, sizes: Sizes) -> None:
    given = (state[name] for name in ("func", "inverse_func", "kw_args", "inv_kw_args"))
    require(all(each is None for each in given), "functions are never read from a file")


_MACHINE = (_proved, _kernel_of_rows, _support, _products)
_RULES: dict[str, tuple[Rule, ...]] = {
    "Calibration": (_calibration,),
    **dict.fromkeys(("SVC", "NuSVC"), (_planes, *_MACHINE, _calibrated)),
    **dict.fromkeys(("SVR", "QuantileSVR", "NuSVR", "OneClassSVM"), (_one_plane, *_MACHINE)),
    "HardMarginSVC": (*_MACHINE, _hard_margin),
    "LinearSVC": (_proved, _linear, _calibrated),
    "LinearSVR": (_proved, _linear),
    **dict.fromkeys(("Perceptron", "AveragedPerceptron", "VotedPerceptron"), (_one_or_each,)),
    "KernelPerceptron": (_one_or_each, _kernel_of_rows, _given_columns),
    "LinearState": (_linear_state,),
    "Votes": (_votes,),
    "BayesPointClassifier": (_kernel_of_rows, _bayes),
    "PartitionedSVC": (_cells,),
    "TreeCells": (_tree,),
    "KernelPCA": (_kernel_pca,),
    "ExplicitFeatures": (_explicit,),
    "Nystroem": (_kernel_of_rows, _nystroem),
    **dict.fromkeys(("StructuredSVC", "StructuredPerceptron"), (_structured,)),
    "Pipeline": (_pipeline,),
    "OneHotEncoder": (_one_hot,),
    **dict.fromkeys(("TfidfVectorizer", "CountVectorizer"), (_vectorizer,)),
    "FunctionTransformer": (_without_function,),
}
