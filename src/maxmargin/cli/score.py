"""``maxmargin score``: how good a saved model is on labelled rows."""

import click

from maxmargin.cli.inputs import (
    OUTLIERS,
    files_argument,
    held_back_options,
    model_argument,
    read_like_training,
    read_model,
    split_rows,
    zero_based_option,
)
from maxmargin.cli.output import Exit, Output, command

EXAMPLE = """
$ maxmargin score iris.mmg iris.csv --test 0.3
model              iris.mmg: SVC, a maxmargin model
rows               45
accuracy           97.78% ± 2.22%
balanced accuracy  97.78% ± 2.27%

class       rows  precision    recall        F1
setosa        15          1         1         1
versicolor    15          1  0.933333  0.965517
virginica     15     0.9375         1  0.967742
"""


@command("score", example=EXAMPLE, see_also=("predict", "fit", "certify", "report"))
@model_argument
@files_argument
@click.option(
    "--scoring",
    multiple=True,
    metavar="NAME",
    help="Scorer of scikit-learn, such as f1_macro, roc_auc or neg_root_mean_squared_error; may be "
    "repeated. Default: accuracy and balanced_accuracy, or r2 and neg_mean_absolute_error.",
)
@held_back_options
@zero_based_option
def score(
    output: Output,
    model: str,
    model_format: str | None,
    data: tuple[str, ...],
    scoring: tuple[str, ...],
    test_fraction: float | None,
    seed: int,
    zero_based: bool,
) -> Exit:
    """Say how good a saved model is on labelled rows, with standard errors.

    DATA has the columns of the training file and the label column; several files, a pattern in
    quotes or a folder are scored together. With the --test and --seed of
    maxmargin fit, only the rows that it held back are scored. Standard errors are those of a
    jackknife that leaves out a fiftieth of the rows at a time.
    """
    from maxmargin.cli.figures import (
        DEFAULTS,
        check_scoring,
        readable,
        remember,
        score_classes,
        score_remembered,
    )
    from maxmargin.inspection.model_view import view_model

    check_scoring(scoring)
    saved = read_model(model, model_format)
    if saved.task == OUTLIERS:
        raise click.ClickException(
            f"{model} detects outliers, and learnt no labels; maxmargin predict writes 1 "
            "for rows inside and -1 for outliers."
        )
    names = scoring or DEFAULTS[saved.task]
    rows = read_like_training(output, saved, data, zero_based)
    if test_fraction is not None:
        rows = rows.taken(split_rows(rows.y, saved.task, test_fraction, seed)[1])
    X, y, _ = rows
    seen = view_model(saved.model).is_training(X)
    remembered = remember(saved.model, X)
    found = [score_remembered(remembered, y, name) for name in names]
    output.facts([
        ("model", f"{model}: {type(saved.machine).__name__}, a {saved.called}"),
        ("rows", f"{len(y)}{', which the model was fitted to: new ones score lower' * seen}"),
        *((readable(one.name), one.figures) for one in found),
    ])  # fmt: skip
    classes = []
    if saved.task == "classification":
        classes = score_classes(y, remembered.answers("predict"))
        output.text()
        table = [list(one.values()) for one in classes]
        output.table(["class", "rows", "precision", "recall", "F1"], table)
    return output.finish(
        model=model,
        rows=len(y),
        training_rows=seen,
        scores={s.name: {"value": s.value, "standard_error": s.error} for s in found},
        classes=classes or None,
    )
