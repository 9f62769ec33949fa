"""LIBSVM's and LIBLINEAR's programs as subcommands, with their flags, files and lines of output.

Scripts that call ``svm-train``, ``svm-predict``, ``svm-scale``, ``train`` or ``predict`` work with
``maxmargin`` before these names. What differs is stated in the help of each command: models are at
least as accurate as asked for, folds are drawn with a fixed seed, and mistakes in flags and files
are refused instead of being read as 0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from maxmargin.cli.output import Command, Exit

# ------------------------------------------------------------------- flags


@dataclass(frozen=True)
class Flag:
    """A flag that comes before the files, with one value, two, or none."""

    name: str
    key: str  # what commands call it
    kind: "click.ParamType[Any] | None"  # of its values; None: there is none
    default: Any
    help: str
    metavar: str = ""
    count: int = 1  # of its values

    def convert(self, words: Sequence[str]) -> Any:
        """Return what the words after the flag say."""
        if self.kind is None:
            return True
        try:
            values = [self.kind.convert(word, None, None) for word in words]
        except click.BadParameter as wrong:
            raise click.BadParameter(wrong.message, param_hint=self.name) from None
        return values[0] if self.count == 1 else tuple(values)


_POSITIVE = click.FloatRange(0, min_open=True)
_AT_LEAST_0 = click.FloatRange(0)
_SWITCH = click.IntRange(0, 1)
_WEIGHT = "-w"  # followed by a label


class Classic(Command):
    """A subcommand that reads flags as LIBSVM's programs do: before the files, one by one."""

    def __init__(
        self, name: str, *, flags: Sequence[Flag], files: Sequence[str], **named: Any
    ) -> None:
        # -h is a flag of svm-train.
        super().__init__(name, context_settings={"help_option_names": ["--help"]}, **named)
        self.flags = {flag.name: flag for flag in flags}
        self.files = files

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what follows the name of the command."""
        return ["[FLAGS]", *self.files]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the flags."""
        with formatter.section("Flags"):
            rows = [
                (f"{flag.name}{'' if flag.name == _WEIGHT else ' '}{flag.metavar}", flag.help)
                for flag in self.flags.values()
            ]
            formatter.write_dl([*rows, ("--help", "Show this and exit.")])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the flags and the files apart."""
        if "--help" in args:
            click.echo(ctx.get_help())
            ctx.exit()
        if not ctx.resilient_parsing:
            try:
                ctx.params = self._parse([word for word in args if word != "--debug"])
            except click.UsageError as wrong:
                wrong.ctx = ctx
                raise
        return []

    def _parse(self, words: list[str]) -> dict[str, Any]:
        options = {flag.key: flag.default for flag in self.flags.values() if flag.name != _WEIGHT}
        if _WEIGHT in self.flags:
            options["weights"] = {}
        place = 0
        while place < len(words) and words[place].startswith("-"):
            word = words[place]
            flag = self._find(word)
            count = 0 if flag.kind is None else flag.count
            values = words[place + 1 : place + 1 + count]
            if len(values) < count:
                raise click.UsageError(f"{word} needs {flag.metavar} after it.")
            if flag.name == _WEIGHT:
                options["weights"][_label(word)] = flag.convert(values)
            else:
                options[flag.key] = flag.convert(values)
            place += 1 + count
        return {"options": options, "files": self._check_files(words[place:])}

    def _find(self, word: str) -> Flag:
        found = self.flags.get(word)
        if found is None and word.startswith(_WEIGHT) and len(word) > len(_WEIGHT):
            found = self.flags.get(_WEIGHT)
        if found is None or word == _WEIGHT:
            known = " ".join(self.flags).replace(_WEIGHT, "-wLABEL")
            hint = " Standard input is not read: give a file." if word == "-" else ""
            raise click.UsageError(f"There is no flag {word!r}, only {known}.{hint}")
        return found

    def _check_files(self, files: list[str]) -> list[str]:
        least = sum(not name.startswith("[") for name in self.files)
        if len(files) < least:
            raise click.UsageError(f"{self.files[len(files)]} is missing.")
        if len(files) > len(self.files):
            raise click.UsageError(
                f"There is one file too many: {files[len(self.files)]!r}. Flags come before files."
            )
        return files


def _label(word: str) -> float:
    """Return the label that a flag such as -w-1 is about."""
    try:
        return float(word[len(_WEIGHT) :])
    except ValueError:
        raise click.UsageError(
            f"{word}: the label after -w is a number, as in -w1 5 or -w-1 2."
        ) from None


def _classic(
    name: str, *, flags: Sequence[Flag], files: Sequence[str], example: str, see_also: Sequence[str]
) -> Callable[[Callable[..., Any]], Classic]:
    def decorate(run: Callable[..., Any]) -> Classic:
        return Classic(
            name,
            flags=flags,
            files=files,
            callback=run,
            help=run.__doc__,
            example=example,
            exits=(Exit.DONE, Exit.ERROR, Exit.USAGE, *([Exit.NOT_CONVERGED] * ("train" in name))),
            see_also=see_also,
        )

    return decorate


# ------------------------------------------------------------------- commands

_QUIET = Flag("-q", "quiet", None, False, "Print nothing but the figures of -v, and errors.")
_FOLDS = Flag(
    "-v", "folds", click.IntRange(2), None, "Cross-validate with N folds; write no model.", "N"
)
_WEIGHTS = Flag(
    _WEIGHT, "weights", _POSITIVE, None, "Multiply C of this label by WEIGHT.", "LABEL WEIGHT"
)


@_classic(
    "svm-train",
    files=("TRAINING_FILE", "[MODEL_FILE]"),
    flags=(
        Flag(
            *("-s", "machine", click.IntRange(0, 4), 0),
            "0: C-SVC (default); 1: nu-SVC; 2: one-class; 3: epsilon-SVR; 4: nu-SVR.",
            "TYPE",
        ),
        Flag(
            *("-t", "kernel", click.IntRange(0, 4), 2),
            "0: linear; 1: polynomial (gamma u'v + coef0)^degree; 2: RBF exp(-gamma |u-v|^2) "
            "(default); 3: sigmoid tanh(gamma u'v + coef0); 4: kernel values are in TRAINING_FILE.",
            "KERNEL",
        ),
        Flag("-d", "degree", click.IntRange(0), 3, "Of the polynomial (default 3).", "DEGREE"),
        Flag("-g", "gamma", _AT_LEAST_0, 0.0, "Default: 1 / number of features.", "GAMMA"),
        Flag("-r", "coef0", click.FLOAT, 0.0, "Default 0.", "COEF0"),
        Flag("-c", "cost", _POSITIVE, 1.0, "C, the cost of errors (default 1).", "COST"),
        Flag(
            *("-n", "nu", click.FloatRange(0, 1, min_open=True), 0.5),
            "Of nu-SVC, one-class and nu-SVR (default 0.5).",
            "NU",
        ),
        Flag("-p", "epsilon", _AT_LEAST_0, 0.1, "Of epsilon-SVR (default 0.1).", "EPSILON"),
        Flag(
            *("-m", "cache", _POSITIVE, None),
            "Megabytes for kernel values (default: half of what is free).",
            "SIZE",
        ),
        Flag(
            *("-e", "tolerance", _POSITIVE, 1e-3),
            "Default 0.001. The relative duality gap goes down to a thousandth of it, at most to "
            "1e-9.",
            "TOLERANCE",
        ),
        Flag("-h", "shrinking", _SWITCH, 1, "Accepted; has no effect on the model.", "0|1"),
        Flag("-b", "probability", _SWITCH, 0, "1: estimate probabilities, too.", "0|1"),
        _WEIGHTS,
        _FOLDS,
        _QUIET,
    ),
    example="""
maxmargin svm-train -q -c 10 -g 0.1 heart_scale heart.model
maxmargin svm-predict heart_scale.t heart.model labels.txt
""",
    see_also=("svm-predict", "svm-scale", "fit"),
)
def svm_train(options: Mapping[str, Any], files: Sequence[str]) -> int:
    """Train a support vector machine as LIBSVM's svm-train does, and write a LIBSVM model.

    TRAINING_FILE is svmlight text with indices from 1. With -t 4 a line is LABEL 0:NUMBER
    1:VALUE 2:VALUE …, the kernel values of row NUMBER with all rows. The model goes to MODEL_FILE,
    or to the current folder with the name of TRAINING_FILE and .model at its end.

    The lines on standard output are those of svm-train, with figures of the exact solution. With
    -v, the folds are stratified and drawn with a fixed seed, so that figures differ a little from
    those of svm-train but are the same every time. Probabilities (-b 1) are fitted to the scores of
    left-out rows without chance, and are the same every time, too.
    """
    from maxmargin.cli.classic.training import SvmTraining

    return SvmTraining(files=files, **options).run()


@_classic(
    "liblinear-train",
    files=("TRAINING_FILE", "[MODEL_FILE]"),
    flags=(
        Flag(
            *("-s", "machine", click.INT, None),
            "1 (default), 2: squared hinge; 3: hinge; 4: Crammer and Singer; 5: squared hinge with "
            "L1 penalty; 11, 12: squared epsilon-insensitive; 13: epsilon-insensitive; 21: "
            "one-class.",
            "SOLVER",
        ),
        Flag("-c", "cost", _POSITIVE, None, "C, the cost of errors (default 1).", "COST"),
        Flag("-p", "epsilon", _AT_LEAST_0, 0.1, "Of -s 11, 12, 13 (default 0.1).", "EPSILON"),
        Flag(
            *("-n", "nu", click.FloatRange(0, 1, min_open=True), 0.5),
            "Of -s 21 (default 0.5).",
            "NU",
        ),
        Flag(
            *("-e", "tolerance", _POSITIVE, None),
            "Default as in LIBLINEAR: 0.1, 0.01 or 0.0001. The relative duality gap goes down to a "
            "thousandth of it, at most to 1e-9.",
            "TOLERANCE",
        ),
        Flag(
            *("-B", "bias", click.FLOAT, -1.0),
            "If at least 0, rows have one more feature of this value (default -1).",
            "BIAS",
        ),
        Flag("-R", "free_bias", None, False, "Do not penalise the bias; with -B 1."),
        _WEIGHTS,
        _FOLDS,
        Flag("-C", "find_cost", None, False, "Find the best C by cross-validation; with -s 2."),
        _QUIET,
    ),
    example="""
maxmargin liblinear-train -q -s 3 -B 1 heart_scale heart.model
maxmargin liblinear-predict heart_scale.t heart.model labels.txt
""",
    see_also=("liblinear-predict", "fit"),
)
def liblinear_train(options: Mapping[str, Any], files: Sequence[str]) -> int:
    """Train a linear machine as LIBLINEAR's train does, and write a LIBLINEAR model.

    TRAINING_FILE is svmlight text with indices from 1. The model goes to MODEL_FILE, or to the
    current folder with the name of TRAINING_FILE and .model at its end. Logistic regression
    (-s 0, 6, 7) is not a large-margin machine and is refused.

    With -v, the folds are stratified and drawn with a fixed seed, so that figures differ a little
    from those of LIBLINEAR but are the same every time. -C tries C = 2^k as LIBLINEAR does.
    """
    from maxmargin.cli.classic.training import LinearTraining

    return LinearTraining(files=files, **options).run()


_PREDICTING = ("TEST_FILE", "MODEL_FILE", "OUTPUT_FILE")


@_classic(
    "svm-predict",
    files=_PREDICTING,
    flags=(
        Flag("-b", "probability", _SWITCH, 0, "1: write probabilities, too.", "0|1"),
        _QUIET,
    ),
    example="""
maxmargin svm-predict -b 1 heart_scale.t heart.model probabilities.txt
""",
    see_also=("svm-train", "predict"),
)
def svm_predict(options: Mapping[str, Any], files: Sequence[str]) -> None:
    """Predict with a LIBSVM model, one label or number per line, as LIBSVM's svm-predict does.

    Reads models of svm-train, the original and this one. Rows are read and written in blocks, so
    that files may be larger than memory. The accuracy or the error on the labels of TEST_FILE goes
    to standard output.
    """
    from maxmargin.cli.classic.prediction import predict_svm

    predict_svm(*files, **options)


@_classic(
    "liblinear-predict",
    files=_PREDICTING,
    flags=(
        Flag("-b", "probability", _SWITCH, 0, "1 is for logistic regression only.", "0|1"),
        _QUIET,
    ),
    example="""
maxmargin liblinear-predict heart_scale.t heart.model labels.txt
""",
    see_also=("liblinear-train", "predict"),
)
def liblinear_predict(options: Mapping[str, Any], files: Sequence[str]) -> None:
    """Predict with a LIBLINEAR model, one label or number per line, as LIBLINEAR's predict does.

    Reads models of LIBLINEAR's train and of liblinear-train. Rows are read and written in blocks,
    so that files may be larger than memory. The accuracy or the error on the labels of TEST_FILE
    goes to standard output.
    """
    from maxmargin.cli.classic.prediction import predict_liblinear

    predict_liblinear(*files, **options)


@_classic(
    "svm-scale",
    files=("DATA_FILE",),
    flags=(
        Flag("-l", "lower", click.FLOAT, -1.0, "Least value of a feature (default -1).", "LOWER"),
        Flag("-u", "upper", click.FLOAT, 1.0, "Largest value of a feature (default 1).", "UPPER"),
        Flag(
            *("-y", "targets", click.FLOAT, None),
            "Scale labels to these limits, too (default: leave them).",
            "LOWER UPPER",
            2,
        ),
        Flag("-s", "save", click.STRING, None, "Write the ranges of features here.", "RANGE_FILE"),
        Flag("-r", "restore", click.STRING, None, "Take the ranges from here.", "RANGE_FILE"),
    ),
    example="""
maxmargin svm-scale -l 0 -s heart.range heart > heart.scaled
maxmargin svm-scale -r heart.range heart.t > heart.t.scaled
""",
    see_also=("svm-train", "scale"),
)
def svm_scale(options: Mapping[str, Any], files: Sequence[str]) -> None:
    """Scale each feature to a range and print the rows, as LIBSVM's svm-scale does.

    DATA_FILE is svmlight text. It is read twice, so it cannot be a pipe. Features with one value
    only are left out. Range files are those of svm-scale, and standard output is the same to the
    byte.
    """
    from maxmargin.cli.classic.scaling import scale

    scale(*files, **options)
