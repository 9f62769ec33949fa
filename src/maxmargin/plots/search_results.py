"""A fitted search as a table of scores over one or two of its parameters."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """What was tried, and how it scored.

    Attributes
    ----------
    params : list of dict
        Parameters of each candidate.
    means, deviations : ndarray
        Of its scores over the splits.
    abandoned : ndarray of bool
        Whether it was given up before all splits were scored.
    best : int
        Which one is best.
    metric : str
        What the scores are.
    """

    params: list[dict[str, Any]]
    means: Floats
    deviations: Floats
    abandoned: npt.NDArray[np.bool_]
    best: int
    metric: str

    def distinct(self, name: str) -> list[Any]:
        """Return the values of a parameter: numbers ascending, anything else as it came."""
        found = {key_of(one[name]): one[name] for one in self.params if name in one}
        numbers = all(isinstance(key, float) for key in found)
        return [found[key] for key in (sorted(found) if numbers else found)]


def key_of(value: Any) -> float | str:
    """Return what values of a parameter are told apart by."""
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        return float(value)
    return repr(value)


def candidates(search: Any, metric: str | None) -> Candidates:
    """Return what a fitted search tried, by one of its scorings."""
    if hasattr(search, "cv"):
        check_is_fitted(search, "cv_results_")
    if not hasattr(search, "cv_results_"):
        raise TypeError(
            f"search={type(search).__name__} has no cv_results_: give a fitted SVCSearchCV or "
            "GridSearchCV."
        )
    results = search.cv_results_
    scorings = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
    refit = getattr(search, "refit", None)
    judge = refit if isinstance(refit, str) and refit in scorings else scorings[0]
    if metric is None and len(scorings) > 1 and judge != refit:
        raise ValueError(f"the search has several scorings: choose metric= from {scorings}.")
    if metric is not None and metric not in scorings:
        raise ValueError(f"metric={metric!r} is not valid: the search has {scorings}.")
    name = judge if metric is None else metric
    by_search = hasattr(search, "best_index_") and (len(scorings) == 1 or name == refit)
    ranks = results[f"rank_test_{name}"]
    scoring = getattr(search, "scoring", None)
    return Candidates(
        list(results["params"]),
        np.asarray(results[f"mean_test_{name}"], dtype=np.float64),
        np.asarray(results[f"std_test_{name}"], dtype=np.float64),
        np.asarray(results.get("abandoned", np.zeros(len(ranks))), dtype=bool),
        int(search.best_index_ if by_search else np.argmin(ranks)),
        scoring if name == "score" and isinstance(scoring, str) else name,
    )


def axes(found: Candidates, x: str | None, y: str | None) -> tuple[str, str | None]:
    """Return which parameters to draw along x and along y, the latter None for a curve."""
    names = list(found.params[found.best])
    for argument, name in (("x", x), ("y", y)):
        if name is not None and name not in names:
            raise ValueError(
                f"{argument}={name!r} is not valid: the best candidate has {', '.join(names)}."
            )
    if y is not None and (x is None or x == y):
        raise ValueError(f"y={y!r} needs another parameter along x; got x={x!r}.")
    if x is not None:
        return x, y
    comparable = _comparable(found)
    varied = [name for name in names if len(comparable.distinct(name)) > 1] or names[:1]
    if not varied:
        raise ValueError("the search has no parameters to draw: its grid is empty.")
    # The usual map: C to the right, gamma upwards.
    varied.sort(key=lambda name: (name.split("__")[-1] != "C", name.split("__")[-1] != "gamma"))
    return varied[0], varied[1] if len(varied) > 1 else None


def table(found: Candidates, x: str, y: str | None) -> dict[str, Any]:
    """Return scores over x, or over y and x, where all else is as in the best candidate."""
    comparable, best = _comparable(found), found.params[found.best]
    drawn = [name for name in (y, x) if name is not None]
    values = [comparable.distinct(name) for name in drawn]
    places = [{key_of(v): k for k, v in enumerate(each)} for each in values]
    shape = tuple(map(len, values))
    scores, deviations = np.full(shape, np.nan), np.full(shape, np.nan)
    abandoned = np.zeros(shape, dtype=bool)
    others = [name for name in best if name not in drawn]
    for k, one in enumerate(comparable.params):
        if all(key_of(one[name]) == key_of(best[name]) for name in others):
            cell = tuple(at[key_of(one[name])] for at, name in zip(places, drawn, strict=True))
            scores[cell], deviations[cell] = comparable.means[k], comparable.deviations[k]
            abandoned[cell] = comparable.abandoned[k]
    return {
        "x": x,
        "x_values": values[-1],
        "y": y,
        "y_values": values[0] if y is not None else (),
        "scores": scores,
        "deviations": deviations,
        "abandoned": abandoned,
        "best": tuple(at[key_of(best[name])] for at, name in zip(places, drawn, strict=True)),
        "held": {name: best[name] for name in others if len(found.distinct(name)) > 1},
    }


def _comparable(found: Candidates) -> Candidates:
    """Return the candidates with the parameters of the best: grids may be several."""
    names = found.params[found.best].keys()
    kept = [k for k, one in enumerate(found.params) if one.keys() == names]
    return Candidates(
        [found.params[k] for k in kept],
        found.means[kept],
        found.deviations[kept],
        found.abandoned[kept],
        kept.index(found.best),
        found.metric,
    )
