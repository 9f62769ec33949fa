"""The ``maxmargin`` command."""

import click

from maxmargin.cli.command import CommandLine
from maxmargin.cli.commands import SECTIONS
from maxmargin.cli.warm_up import warm_up

main = CommandLine(
    "maxmargin",
    sections=SECTIONS,
    help="Large-margin learning you can verify: every fit comes with a proof of how good it is.\n\n"
    "Start with: maxmargin try DATA, maxmargin fit DATA, maxmargin predict MODEL DATA.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
main.add_command(warm_up)
click.version_option(package_name="maxmargin")(main)
