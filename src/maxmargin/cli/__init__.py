"""The ``maxmargin`` command. Each subcommand is imported when it runs, and what it needs then."""

import click

from maxmargin.cli.output import CommandLine

_HERE = "maxmargin.cli"
_SECTIONS = {
    "Learn": {
        "fit": (f"{_HERE}.fit:fit", "Fit a model, and save it with a proof of how good it is."),
        "search": (f"{_HERE}.search:search", "Find the best parameters by cross-validation."),
        "predict": (f"{_HERE}.predict:predict", "Predict rows of any number with a saved model."),
        "score": (f"{_HERE}.score:score", "Say how good a saved model is on labelled rows."),
        "try": (f"{_HERE}.try_command:try_command", "All at once: diagnose, search, fit, report."),
    },
    "Understand": {
        "diagnose": (f"{_HERE}.diagnose:diagnose", "Say which kind of model the data need."),
        "separate": (f"{_HERE}.separate:separate", "Say whether a plane separates the classes."),
        "certify": (f"{_HERE}.certify:certify", "Prove how near a model is to the optimum."),
        "path": (f"{_HERE}.path:path", "Solve for one C after the other."),
        "inspect": (f"{_HERE}.inspect:inspect", "Show what is in a model file."),
        "report": (f"{_HERE}.report:report", "Write a page about a model, with pictures."),
        "studio": (f"{_HERE}.studio:studio", "Open a page to draw points and watch models move."),
    },
    "Files": {
        "convert": (f"{_HERE}.convert:convert", "Convert data files, or model files."),
        "scale": (f"{_HERE}.scale:scale", "Scale the columns of a data file."),
    },
}

main = CommandLine(
    "maxmargin",
    sections=_SECTIONS,
    hidden_commands={"warm-up": f"{_HERE}.try_command:warm_up_command"},
    help="Large-margin learning you can verify: every fit comes with a proof of how good it is.\n\n"
    "Start with: maxmargin diagnose DATA, maxmargin fit DATA, maxmargin predict MODEL DATA.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
click.version_option(package_name="maxmargin")(main)
