"""What a search over parameters tried: a map, and the best settings."""

from typing import Any

import numpy as np

from maxmargin.html import Html, joined, table, tag, visible
from maxmargin.reports.figures import drawn, search_picture
from maxmargin.reports.summary import placeless

SHOWN = 10
_LONGEST, _VALUE = 240, 60  # characters of a setting, and of one value in it


def searching(search: Any, theme: str) -> Html:
    """Return the map of a search and a table of its best candidates."""
    results = search.cv_results_
    metric = "test_score"
    if f"mean_{metric}" not in results:  # several scorings
        first = next(key for key in results if key.startswith("mean_test_"))
        metric = f"test_{search.refit}" if isinstance(search.refit, str) else first[len("mean_") :]
    mean, spread = results[f"mean_{metric}"], results[f"std_{metric}"]
    order = np.argsort(results[f"rank_{metric}"], kind="stable")[:SHOWN]
    lines = [(_setting(results["params"][k]), f"{mean[k]:.4g}", f"{spread[k]:.2g}") for k in order]
    words = f"{len(mean)} settings, each fitted in {search.n_splits_} folds."
    if hasattr(search, "sharing_"):
        words += f" Shared between fits: {search.sharing_}."
    caption = f"The best {len(lines)} of {len(mean)}" if len(lines) < len(mean) else "All settings"
    return joined(
        [
            tag("p", words),
            drawn(search_picture(search), theme),
            table(["setting", "mean score", "deviation over the folds"], lines, caption),
        ]
    )


def _setting(params: dict[str, Any]) -> str:
    pairs = (f"{name} = {_short(value)}" for name, value in params.items())
    return visible(", ".join(pairs), _LONGEST)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else visible(placeless(str(value)), _VALUE)
