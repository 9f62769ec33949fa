"""``maxmargin diagnose``: which kind of model the data need."""

from typing import Any

from maxmargin.cli import training
from maxmargin.cli.command import Exit
from maxmargin.cli.models import option_words, write_command, write_options
from maxmargin.cli.printing import Output
from maxmargin.cli.reading import read_data, refuse_labels


def run(output: Output, data: tuple[str, ...], seed: int, max_time: float, **how: Any) -> Exit:
    """Run the command."""
    dataset = read_data(data, **how)
    output.facts(dataset.facts())
    output.text()
    refuse_labels(dataset)
    found = training.diagnose(dataset, {"seed": seed, "max_time": max_time})
    output.text(str(found))
    written = write_options(found.recommend())
    given = (*data, *option_words(dataset.given))
    line = write_command("fit", *given, *(["--model", "auto"] if written is None else written))
    searched = _without_searched(written or [])
    search = write_command("search", *given, *searched) if searched else ""
    output.text()
    others = "That is a model of scikit-learn. To fit the best of maxmargin's own all the same:"
    output.text(others if written is None else "To fit it:")
    output.command_line(line)
    if search:
        output.text("To search for better parameters:")
        output.command_line(search)
    return output.finish(data=dataset.summary(), diagnosis=found.to_dict(), fit=line, search=search)


def _without_searched(words: list[str]) -> list[str]:
    """Return the options of a fit but C and γ, or none if the model has neither."""
    if not {"svc", "linear-svc", "svr", "linear-svr"}.intersection(words):
        return []
    pairs = zip(words[::2], words[1::2], strict=True)
    return [word for pair in pairs if pair[0] not in ("--C", "--gamma") for word in pair]
