"""``maxmargin diagnose``: which kind of model the data need."""

import shlex
from typing import Any

from sklearn.base import clone

import maxmargin as mm
from maxmargin.cli.command import Exit
from maxmargin.cli.models import write_command
from maxmargin.cli.printing import Output
from maxmargin.cli.reading import Data, read_data, refuse_labels
from maxmargin.data.columns import number_equal_rows


def run(output: Output, data: str, seed: int, max_time: float, **how: Any) -> Exit:
    """Run the command."""
    dataset = read_data(data, **how)
    output.facts(dataset.facts())
    output.text()
    refuse_labels(dataset)
    found = _diagnose(dataset, random_state=seed, max_time=max_time)
    output.text(str(found))
    model = found.recommend()
    fit, search = (write_command(verb, data, how["label"], model) for verb in ("fit", "search"))
    fit = fit or shlex.join(["maxmargin", "try", data])
    output.text("\nTo fit it, or to search for better parameters:")
    for line in filter(None, (fit, search)):
        output.command_line(line)
    return output.finish(data=dataset.summary(), diagnosis=found.to_dict(), fit=fit, search=search)


def _diagnose(dataset: Data, **options: Any) -> Any:
    """Return the diagnosis of the data; rows are equal if they are so in the file."""
    X, names, prepare = dataset.rows.X, dataset.rows.feature_names, dataset.rows.prepare
    if prepare is not None:
        prepare = clone(prepare).fit(X)
        names = None if names is None else prepare.get_feature_names_out(names).tolist()
        X = prepare.transform(X)
    groups = number_equal_rows(dataset.rows.X)
    return mm.diagnose(
        X, dataset.rows.y, feature_names=names, task=dataset.task, groups=groups, **options
    )
