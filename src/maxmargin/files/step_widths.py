"""Whether steps of scikit-learn fit together: what one makes is what the next one takes."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from maxmargin.files.rules import Rule, Sizes, require

# ------------------------------------------------------------------- widths


def width_in(step: Any) -> int | None:
    """Return how many columns a fitted step takes; None: any, or texts."""
    if isinstance(step, Pipeline):
        return next((width_in(each) for _, each in step.steps if _is_step(each)), None)
    return getattr(step, "n_features_in_", None)


def width_out(step: Any) -> int | None:
    """Return how many columns a fitted step makes; None if that cannot be said."""
    name = type(step).__name__
    if name in _WIDTHS:
        return _WIDTHS[name](step)
    return getattr(step, "n_components_", None)


def _of_pipeline(step: Any) -> int | None:
    width = width_in(step)
    for _, each in step.steps:
        width = width_out(each) if _is_step(each) else width
    return width


def _of_imputer(step: Any) -> int | None:
    more = 0 if step.indicator_ is None else width_out(step.indicator_)
    if step.keep_empty_features or step.strategy == "constant":
        return int(step.n_features_in_) + (more or 0)
    there = sum(not (isinstance(value, float) and value != value) for value in step.statistics_)
    return there + (more or 0)


def _of_columns(step: Any) -> int:
    return max((int(columns.stop) for columns in step.output_indices_.values()), default=0)


_WIDTHS: dict[str, Callable[[Any], int | None]] = {
    **dict.fromkeys(
        ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer",
         "FunctionTransformer", "TfidfTransformer"), width_in),
    "Pipeline": _of_pipeline,
    "SimpleImputer": _of_imputer,
    "MissingIndicator": lambda step: len(step.features_),
    "OneHotEncoder": lambda step: sum(vars(step)["_n_features_outs"]),
    "TfidfVectorizer": lambda step: len(step.vocabulary_),
    "CountVectorizer": lambda step: len(step.vocabulary_),
    "ColumnTransformer": _of_columns,
}  # fmt: skip


def _is_step(step: Any) -> bool:
    return isinstance(step, BaseEstimator)


def is_unfitted(step: Any) -> bool:
    """Return whether an estimator has nothing but parameters; a pipeline, whether all steps do."""
    if not isinstance(step, BaseEstimator) or type(step).__name__ == "FunctionTransformer":
        return False
    if isinstance(step, Pipeline):
        entries = [e[1] for e in vars(step).get("steps", ()) if type(e) is tuple and len(e) == 2]
        return all(is_unfitted(each) for each in entries if _is_step(each))
    return bool(vars(step).keys() <= set(inspect.signature(type(step)).parameters))


def _require_fitted(step: Any, name: str) -> None:
    require(not is_unfitted(step), f"{name!r} is not fitted")


# ------------------------------------------------------------------- steps of steps


def _pipeline(model: Any, sizes: Sizes) -> None:
    steps = model.steps
    require(model.memory is None, "memory is a folder of pickles: set_params(memory=None)")
    require(type(steps) is list and steps, "it has no steps")
    width, before = None, ""
    for entry in steps:
        named = type(entry) is tuple and len(entry) == 2 and isinstance(entry[0], str)
        require(named, "a step is a name and an estimator")
        name, step = entry
        if not _is_step(step):
            require(step in (None, "passthrough"), f"{name!r} is no estimator")
            continue
        _require_fitted(step, name)
        last = entry is steps[-1]
        require(last or hasattr(step, "transform"), f"{name!r} transforms nothing")
        require(not before or not hasattr(step, "vocabulary_"), f"{name!r} needs texts")
        taken = width_in(step)
        if width is not None and taken is not None:
            fits = width == taken
            require(fits, f"{before!r} makes {width} columns, but {name!r} takes {taken}")
        width, before = width_out(step), name


def _column_transformer(model: Any, sizes: Sizes) -> None:
    state = vars(model)
    inputs, outputs = state["_transformer_to_input_indices"], model.output_indices_
    require(isinstance(inputs, dict) and isinstance(outputs, dict), "its columns do not fit")
    for numbers in inputs.values():
        whole = isinstance(numbers, list) and all(type(n) in (int, np.int64) for n in numbers)
        require(whole, "its columns are not numbers")
        require(all(0 <= n < sizes["n_features"] for n in numbers), "it has no such column")
    for columns in outputs.values():
        require(type(columns) is slice and columns.step is None, "its columns are no slices")
        ends = columns.start, columns.stop
        require(all(type(end) is int and end >= 0 for end in ends), "its columns are no slices")
    _check_order(model)
    for name, step, columns in model.transformers_:
        require(name in inputs and name in outputs, f"it does not know the columns of {name!r:.40}")
        chosen = _chosen_columns(columns, model)
        require(chosen == inputs[name], f"{name!r} is of columns that are not there, or of others")
        if not _is_step(step):
            require(step in ("drop", "passthrough"), f"{name!r} is no transformer")
        elif inputs[name]:
            _check_part(step, name, len(inputs[name]), outputs[name])
    end = 0
    for name, step, _ in model.transformers_:
        if inputs[name] and step != "drop":
            require(outputs[name].start == end, f"{name!r} makes columns at another place")
            end = outputs[name].stop


def _check_order(model: Any) -> None:
    """Check that fitted transformers are those that were asked for, in their order."""
    for entry in [*model.transformers, *model.transformers_]:
        named = type(entry) is tuple and len(entry) == 3 and isinstance(entry[0], str)
        require(named, "a transformer has a name and columns")
    asked, fitted = ([e[0] for e in each] for each in (model.transformers, model.transformers_))
    same = fitted[: len(asked)] == asked and fitted[len(asked) :] in ([], ["remainder"])
    require(same, "its fitted transformers are not those of its parameters, in their order")


def _chosen_columns(columns: Any, model: Any) -> list[int] | None:
    """Return the numbers of the columns that are chosen by number, name, slice or mask."""
    width = model.n_features_in_
    names = list(getattr(model, "feature_names_in_", ()))
    if isinstance(columns, slice):
        ends = columns.start, columns.stop
        if not any(isinstance(end, str) for end in ends):
            return list(range(*columns.indices(width)))
        first, last = (names.index(end) if end in names else None for end in ends)
        return list(range(width))[first : None if last is None else last + 1]
    items = [columns] if isinstance(columns, str | int) else list(columns)
    if items and all(isinstance(each, bool | np.bool_) for each in items):
        return [k for k, each in enumerate(items) if each] if len(items) == width else None
    if all(isinstance(each, str) for each in items):
        return [names.index(each) for each in items] if set(items) <= set(names) else None
    whole = all(isinstance(each, int | np.integer) for each in items)
    inside = whole and all(-width <= each < width for each in items)
    return [int(each) % width for each in items] if inside else None


def _check_part(step: Any, name: str, taken: int, columns: slice) -> None:
    _require_fitted(step, name)
    expected, made = width_in(step), width_out(step)
    require(expected in (None, taken), f"{name!r} takes {expected} columns, but gets {taken}")
    wide = columns.stop - columns.start
    require(made in (None, wide), f"{name!r} makes {made} columns, but has room for {wide}")


# ------------------------------------------------------------------- single steps


def _imputer(model: Any, sizes: Sizes) -> None:
    asked = model.indicator_ is not None
    require(asked == bool(model.add_indicator), "its indicator is not what add_indicator says")
    types = [vars(model)[name] for name in ("_fit_dtype", "_fill_dtype") if name in vars(model)]
    require(all(isinstance(each, np.dtype) for each in types), "_fit_dtype is no type")


def _one_hot(model: Any, sizes: Sizes) -> None:
    state, width = vars(model), sizes["n_features"]
    _require_numbers(model)
    categories, made = model.categories_, state["_n_features_outs"]
    require(len(categories) == len(made) == width, f"its categories are not of {width} columns")
    rare = state.get("_infrequent_indices") or [None] * width
    maps = state.get("_default_to_infrequent_mappings") or [None] * width
    require(len(rare) == len(maps) == width, f"its groups are not of {width} columns")
    asked = bool(state["_infrequent_enabled"])
    require(asked == ("_infrequent_indices" in state), "its groups are not all there")
    dropped = [None] * width if model.drop_idx_ is None else list(model.drop_idx_)
    grouped = state["_drop_idx_after_grouping"]
    grouped = [None] * width if grouped is None else list(grouped)
    for k in range(width):
        _check_categories(categories[k])
        known = len(categories[k])
        groups = _check_groups(known, rare[k], maps[k])
        for place, most in ((dropped[k], known), (grouped[k], groups)):
            inside = place is None or (isinstance(place, int | np.integer) and 0 <= place < most)
            require(inside, "it drops a category that it does not have")
        kept = dropped[k] if dropped[k] is None or maps[k] is None else maps[k][dropped[k]]
        require(kept == grouped[k], "it drops another category than it says")
        expected = groups - (dropped[k] is not None)
        require(made[k] == expected, f"it makes {made[k]} columns of {expected} categories")


def _check_groups(known: int, rare: Any, places: Any) -> int:
    """Check that rare categories share the last place, and return how many places there are."""
    require((places is None) == (rare is None), "its groups do not fit")
    if rare is None:
        return known
    inside = rare.size and rare.min() >= 0 and rare.max() < known
    require(inside, "it has no such category")
    is_rare = np.isin(np.arange(known), rare)
    expected = np.where(is_rare, known - len(rare), np.cumsum(~is_rare) - 1)
    require(np.array_equal(places, expected), "its groups do not fit")
    return known - len(rare) + 1


def _require_numbers(model: Any) -> None:
    """Check the type of what a step makes, which scikit-learn does not check."""
    kind = model.dtype
    known = isinstance(kind, np.dtype) or (isinstance(kind, type) and issubclass(kind, np.generic))
    known = known or kind in (int, float, bool)
    require(known and np.dtype(kind).kind in "biuf", "dtype is no type of numbers")


def _check_categories(values: Any) -> None:
    array = type(values) is np.ndarray and values.ndim == 1 and values.size
    require(array and values.dtype.kind in "biufUO", "its categories are no list of values")
    if values.dtype.kind in "OU":
        require(len(set(values.tolist())) == len(values), "it has one of its categories twice")
    else:
        rising = values[1:] > values[:-1]
        in_order = rising.all() or (np.isnan(values[-1]) and rising[:-1].all())
        require(in_order, "its categories are not in order")


def _vectorizer(model: Any, sizes: Sizes) -> None:
    words = model.vocabulary_
    require(model.input != "filename", "its texts are names of files: use input='content'")
    _require_numbers(model)
    _check_pattern(model.token_pattern)
    lengths = model.ngram_range
    pair = type(lengths) is tuple and len(lengths) == 2 and all(type(n) is int for n in lengths)
    require(pair and lengths[0] <= lengths[1], "ngram_range is no range of integers")
    texts = type(words) is dict and words and all(type(word) is str for word in words)
    require(texts, "its vocabulary is no dict of words")
    numbers = words.values()
    require(all(isinstance(n, int | np.integer) for n in numbers), "a word has no number")
    require(sorted(numbers) == list(range(len(words))), "its words are not numbered one by one")
    if "_tfidf" in vars(model):
        fits = sizes["words"] == len(words)
        require(fits, f"it has {len(words)} words, but weights for {sizes['words']}")
        for name in ("norm", "use_idf", "smooth_idf", "sublinear_tf"):
            same = getattr(model, name) == getattr(vars(model)["_tfidf"], name)
            require(same, f"its words are weighed with another {name} than it says")


def _check_pattern(pattern: Any) -> None:
    try:
        groups = re.compile(pattern or "").groups
    except (re.error, TypeError, RecursionError, OverflowError) as wrong:
        raise ValueError(f"token_pattern is no regular expression ({wrong})") from None
    require(groups <= 1, "token_pattern has more than one group")


def _weighted(model: Any, sizes: Sizes) -> None:
    require(not model.use_idf or "idf_" in vars(model), "it lacks 'idf_'")


_SEEN = ("var_", "data_min_", "max_abs_")  # of the rows, nan for columns without a value


def _scaled(model: Any, sizes: Sizes) -> None:
    for flag, name in (("with_mean", "mean_"), ("with_centering", "center_")):
        asked = getattr(model, flag, False)
        require(not asked or getattr(model, name) is not None, f"it lacks {name!r}")
    asked = getattr(model, "with_std", True) and getattr(model, "with_scaling", True)
    require(not asked or model.scale_ is not None, "it lacks 'scale_'")
    seen = next((getattr(model, name) for name in _SEEN if hasattr(model, name)), None)
    for name in ("mean_", "scale_", "min_"):
        own = getattr(model, name, None)
        if seen is not None and own is not None:
            same = np.array_equal(np.isnan(own), np.isnan(seen))
            require(same, f"{name} is nan where the rows were not, or the other way round")


def _equal(found: Any, expected: Any, size: Any = 0.0) -> bool:
    """Return whether numbers are equal but for the rounding of float32."""
    close = np.abs(found - expected) <= 1e-6 * np.maximum(np.abs(expected), size)
    return bool((close | (found == expected) | (np.isnan(found) & np.isnan(expected))).all())


def _without_tiny(values: Any) -> Any:
    """Return divisors as scikit-learn does: 1 for columns that hardly vary."""
    return np.where(values < 10 * np.finfo(values.dtype).eps, values.dtype.type(1), values)


def _standardized(model: Any, sizes: Sizes) -> None:
    """Check scales against variances; columns that are constant but for rounding have scale 1."""
    if not model.with_std:
        return
    require(model.var_ is not None, "it lacks 'var_'")
    noise = 2 * np.finfo(np.float64).eps * np.asarray(model.n_samples_seen_, dtype=np.float64)
    mean = 0.0 if model.mean_ is None else model.mean_
    constant = (model.scale_ == 1) & (model.var_ <= noise * model.var_ + (noise * mean) ** 2)
    expected = np.where(constant, 1.0, np.sqrt(model.var_))
    require(_equal(model.scale_, expected), "scale_ is not the root of var_")


def _into_range(model: Any, sizes: Sizes) -> None:
    """Check scales and shifts against the least and the largest value of each column."""
    ends = model.feature_range
    numbers = len(ends) == 2 and all(isinstance(e, int | float | np.number) for e in ends)
    require(numbers and ends[0] < ends[1], "feature_range is no range")
    span = model.data_max_ - model.data_min_
    require(_equal(model.data_range_, span), "data_range_ is not from data_min_ to data_max_")
    scale = (ends[1] - ends[0]) / _without_tiny(span)
    require(_equal(model.scale_, scale), "scale_ does not come from data_range_")
    moved = model.data_min_ * model.scale_
    same = _equal(model.min_, ends[0] - moved, np.abs(moved))
    require(same, "min_ does not come from data_min_")


def _by_largest(model: Any, sizes: Sizes) -> None:
    same = _equal(model.scale_, _without_tiny(model.max_abs_))
    require(same, "scale_ does not come from max_abs_")


def _without_function(model: Any, sizes: Sizes) -> None:
    given = (model.func, model.inverse_func, model.kw_args, model.inv_kw_args)
    require(all(each is None for each in given), "functions are never read from a file")


STEP_RULES: dict[str, tuple[Rule, ...]] = {
    "Pipeline": (_pipeline,),
    "ColumnTransformer": (_column_transformer,),
    "SimpleImputer": (_imputer,),
    "OneHotEncoder": (_one_hot,),
    "TfidfVectorizer": (_vectorizer,),
    "CountVectorizer": (_vectorizer,),
    "TfidfTransformer": (_weighted,),
    "StandardScaler": (_scaled, _standardized),
    "MinMaxScaler": (_scaled, _into_range),
    "MaxAbsScaler": (_scaled, _by_largest),
    "RobustScaler": (_scaled,),
    "FunctionTransformer": (_without_function,),
}
