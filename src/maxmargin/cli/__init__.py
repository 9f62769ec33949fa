"""The ``maxmargin`` command."""

import click

from maxmargin.cli.command import MEANINGS, CommandLine
from maxmargin.cli.commands import COMMANDS
from maxmargin.cli.warm_up import warm_up

main = CommandLine(
    "maxmargin",
    help="Large-margin learning you can verify: every fit comes with a proof of how good it is.\n\n"
    "Start with: maxmargin try DATA, maxmargin fit DATA, maxmargin predict MODEL DATA.",
    epilog="\b\nExit codes:\n" + "\n".join(f"  {c:<5d}{line}" for c, line in MEANINGS.items()),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
for each in (*COMMANDS, warm_up):
    main.add_command(each)
click.version_option(package_name="maxmargin")(main)
