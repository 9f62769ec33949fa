"""``python -m maxmargin`` is the ``maxmargin`` command."""

from maxmargin.cli import main

if __name__ == "__main__":
    main(prog_name="python -m maxmargin")
