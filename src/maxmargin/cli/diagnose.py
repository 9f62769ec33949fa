"""``maxmargin diagnose``: which kind of model the data need."""

from typing import Any

from maxmargin.cli import training
from maxmargin.cli.command import Exit
from maxmargin.cli.models import option_words, write_command, write_options
from maxmargin.cli.printing import Output
from maxmargin.cli.reading import read_data, refuse_labels


def run(
    output: Output, data: tuple[str, ...], seed: int, max_time: float, thorough: bool, **how: Any
) -> Exit:
    """Run the command."""
    dataset = read_data(data, **how)
    output.facts(dataset.facts())
    output.text()
    refuse_labels(dataset)
    found = training.diagnose(dataset, random_state=seed, max_time=max_time, thorough=thorough)
    output.text(str(found))
    written = write_options(found.recommend())
    given = (*data, *option_words(dataset.given))
    line = write_command("try" if written is None else "fit", *given, *(written or ()))
    searched = _without_searched(written or [])
    search = write_command("search", *given, *searched) if searched else ""
    output.text()
    output.text("To tune and fit it:" if written is None else "To fit it:")
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
