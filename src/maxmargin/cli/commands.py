"""The commands: arguments, options and help.

What a command does is ``run`` of the module of its name, which is imported when it runs.
"""

import click

from maxmargin.cli import options
from maxmargin.cli.command import Exit, command


@command(
    "try",
    "All at once: diagnose, search, fit, report.",
    example="""
$ maxmargin try iris.csv --max-time 10
…
Report
    maxmargin-report.html has all this and more: open it in a browser. …
""",
    exits=(Exit.DONE, Exit.ERROR, Exit.USAGE, Exit.INTERRUPTED),
    see_also=("diagnose", "search", "fit", "report"),
    module="trial",
)
@click.argument("data", nargs=-1, type=click.Path(allow_dash=True), metavar="[FILE...]")
@options.reading
@options.held_back("Part of the rows held back for testing.", 0.3)
@options.max_time(30.0, "Time allowed for learning: diagnosis, search and fit together.")
@options.seed
@click.option(
    "--report",
    metavar="PATH",
    type=click.Path(dir_okay=False),
    help="Where to write the report, and beside it the fitted model with the ending .mmg; files "
    "of these names are replaced. "
    "Default: maxmargin-report.html here, with -2, -3, … where that exists.",
)
@click.option("--no-report", is_flag=True, help="Write no report and no model.")
def try_command() -> None:
    """Diagnose labelled data, take what is recommended, search around it, fit it, certify it.

    If the label is a number with many different values, that is a regression.

    All of it, with pictures, goes into one HTML file that needs no network.

    FILE is svmlight (LIBSVM) text, a table (CSV, TSV, separated by spaces, ARFF, Parquet) or JSON
    lines, also with .xz, .gz or .bz2 at the end of its name. Columns may have words, dates and
    missing values. Without FILE, scikit-learn's breast cancer data is used.
    """


@command(
    "fit",
    "Fit a model, and save it with a proof of how good it is.",
    example="""
$ maxmargin fit iris.csv --C 10 --test 0.3 -o iris.mmg
…
model           SVC(C=10.0) after StandardScaler()
stopped         After 5 iterations (block_smo): the duality gap is below tol.
certificate     The objective 101.3964 is within 1.9e-10 (relative 1.9e-12) of the best possible.
test rows       45: accuracy 97.78% (88.4% to 99.6%), balanced accuracy 97.78% (85.5% to 99.6%)
saved           iris.mmg
""",
    exits=tuple(Exit),
    see_also=("search", "predict", "certify", "report", "diagnose"),
)
@options.data
@options.reading
@options.output(
    "MODEL", "Where to save the model. Default: here, with DATA's name and the ending .mmg."
)
@options.force
@options.fixed
@options.machine((*options.MODELS, "auto"))
@options.held_back("Hold back this part of the rows, and score the model on it. Default: none.")
@options.memory
@options.checkpoint
@options.cluster("read the rows in blocks")
def fit() -> None:
    """Fit a model to labelled data, and save it with a proof of how good the fit is.

    DATA is a table (CSV, TSV, ARFF, JSON lines, Parquet) or svmlight (LIBSVM) text, also packed as
    .xz, .gz or .bz2; - is standard input. Columns may have words, dates and missing cells.

    The model file holds the whole pipeline: how columns become numbers, how they are scaled, the
    machine, its certificate, and which columns a file needs for predictions. It is written
    completely or not at all, and loading it never runs code.

    --model auto takes what the diagnosis of the data recommends.

    Several files, a pattern in quotes or a folder (Parquet, CSV, TSV or svmlight text, numbers in
    all columns but the label) are read in blocks, so that they may be larger than memory; so is one
    file with --memory, --checkpoint or --cluster. Models are then linear-svc, or linear-svr for
    regression: those of the same rows in memory.

    Ctrl-C stops the fit, and the best model reached so far is saved; a second Ctrl-C aborts.
    """


@command(
    "search",
    "Find the best parameters by cross-validation.",
    example="""
$ maxmargin search iris.csv -o best.mmg
…
best            C=10, gamma=0.016: accuracy 96.67% (deviation over the folds 2.11%)
certificate     The objective 292.44118 is within 2e-09 (relative 6.8e-12) of the best possible.
saved           best.mmg
The same model without a search:
  maxmargin fit iris.csv --model svc --C 10.0 --gamma 0.016 --scale standard
""",
    exits=tuple(Exit),
    see_also=("fit", "diagnose", "try"),
)
@options.data
@options.reading
@options.output(
    "MODEL", "Fit the best candidate to all rows, and save it. Default: it is not saved."
)
@options.force
@options.searched
@options.machine(options.SEARCHED_MODELS)
@click.option(
    "--folds", type=click.IntRange(2), default=5, show_default=True, help="Of cross-validation."
)
@click.option("--scoring", metavar="NAME", help="Scorer of scikit-learn. Default: accuracy, or r2.")
@click.option(
    "--refine",
    type=click.Choice(["contenders", "all"]),
    default="contenders",
    show_default=True,
    help="Which candidates are solved to --tol.",
)
@options.cluster("do the fits")
def search() -> None:
    """Find the best C, γ and other parameters by cross-validation.

    Candidates on one kernel share one matrix of kernel values, and each C starts from the solution
    of the one before. The columns of each training part are prepared and scaled by themselves.

    Prints the best candidates, and the command that fits the best one without a search.

    With --cluster every kernel setting is a task of a Dask cluster, with the same results. A worker
    that is lost costs time only.

    Ctrl-C ends the search; nothing is saved.
    """


@command(
    "predict",
    "Predict rows of any number, or score the predictions.",
    example="""
$ maxmargin predict iris.mmg new.csv
setosa
setosa
setosa
$ maxmargin predict iris.mmg iris.csv --test 0.3 --score
model           iris.mmg: SVC, a maxmargin model
rows            45
accuracy        97.78%  88.4% to 99.6%
…
""",
    see_also=("fit", "certify", "report"),
)
@options.saved_model
@options.data
@options.output(
    "FILE",
    "Where to write the predictions, completely or not at all. Default: standard output.",
    dash=True,
)
@click.option("--proba", is_flag=True, help="Write probabilities of the classes as CSV.")
@click.option("--decision", is_flag=True, help="Write values of the decision function as CSV.")
@click.option(
    "--score", is_flag=True, help="Print how good the predictions of labelled rows are instead."
)
@click.option(
    "--scoring",
    multiple=True,
    metavar="NAME",
    help="For --score: one more scorer of scikit-learn, such as f1_macro; may be repeated.",
)
@options.split
@options.zero_based
def predict() -> None:
    """Predict the label of each row with a saved model: one line per row, in their order.

    MODEL is a file of maxmargin fit or search, or a text model of LIBSVM or LIBLINEAR.

    DATA has the columns of the training file, in any order; its label column may be missing and is
    not looked at. - is standard input. Several files, a pattern in quotes or a folder are read one
    file after the other. Rows are read, predicted and written in blocks, so their number does not
    matter.

    --score reads all rows with their labels, and prints figures with 95 % intervals. With the
    --test and --seed of maxmargin fit, only the rows that it held back are scored.
    """


@command(
    "diagnose",
    "Say which kind of model the data need.",
    example="""
$ maxmargin diagnose iris.csv
Verdict: almost linearly separable
…
To fit it:
  maxmargin fit iris.csv --model linear-svc --C 0.22 --multi-class ovo --scale none
To search for better parameters:
  maxmargin search iris.csv --model linear-svc --multi-class ovo --scale none
""",
    see_also=("fit", "search", "try"),
)
@options.data
@options.reading
@options.max_time(30.0, "Time allowed, compilation aside; more rows are compared if there is more.")
@options.seed
def diagnose() -> None:
    """Say which kind of model the data need, with evidence, and the command that fits it.

    For classes: do identical rows have different labels, does a plane separate the classes, does a
    kernel predict better than a plane, a network better than a kernel, do the classes overlap, or
    is there no signal?

    For numbers: does anything predict better than a constant, a kernel machine better than a plane,
    and boosted trees better than both?

    To predict better means significantly better on held-out rows.
    """


@command(
    "certify",
    "Prove how near a model is to the optimum.",
    example="""
$ maxmargin certify iris.mmg iris.csv --test 0.3
model           iris.mmg: SVC, a maxmargin model
…
holds           yes, to 0.0001
in words        The objective 101.3964 is within 1.9e-10 (relative 1.9e-12) of the best possible.
$ maxmargin certify heart.model heart_scale.svm --C 1
""",
    exits=(Exit.DONE, Exit.ERROR, Exit.USAGE, Exit.NOT_CONVERGED),
    see_also=("fit", "report"),
)
@options.saved_model
@options.data
@click.option(
    "--tol",
    type=float,
    metavar="NUMBER",
    help="Relative gap to prove. Default: what the model was fitted with; 0.001 for text models.",
)
@options.lacking
@options.max_time(60.0, "Time for finding a bound if the model has no dual variables.")
@options.split
@options.zero_based
@options.memory
@options.cluster("read the rows in blocks")
def certify() -> None:
    """Prove how near a model is to the best possible one, from the data it was fitted to.

    Nothing that the model file says about itself is trusted: the objective is computed from the
    weights, the lower bound from dual variables, both on the rows of DATA. If the model was fitted
    with --test, give the same --test and --seed here.

    Several files, a pattern in quotes or a folder are read in blocks, and so is one file with
    --memory or --cluster: models of linear-svc and linear-svr.

    Models of LIBSVM and LIBLINEAR are certified, too; their files lack C, ε and ν, so these are
    given here.
    """


@command(
    "report",
    "Show what is in a model, or write a page about it.",
    example="""
$ maxmargin report iris.mmg
file            iris.mmg: maxmargin model, format 1
steps           StandardScaler() → SVC(C=10.0)
…
support         32 support vectors of 105 training rows
…
$ maxmargin report iris.mmg iris.csv --test 0.3 -o iris.html
saved           iris.html: open it in a browser
""",
    see_also=("fit", "certify", "predict", "try"),
)
@options.saved_model
@click.argument("data", nargs=-1, type=click.Path(allow_dash=True), metavar="[DATA...]")
@options.output("FILE", "Where to write the page. Default: here, with MODEL's name and .html.")
@click.option("--title", help="Heading of the page. Default: DATA's name.")
@options.split
@options.zero_based
def report() -> None:
    """Show what is in a model file; with DATA, write a page about the model and its data.

    Without DATA: steps, classes, kernel, support vectors, columns, and the certificate as it was
    recorded when the model was fitted; maxmargin certify computes it anew from the data.

    With DATA, one HTML file with figures, pictures and what is proved, which needs no network. DATA
    are the rows the model was fitted to; if it was fitted with --test, give the same --test and
    --seed, and the rows held back are the test rows of the page.
    """


@command(
    "studio",
    "Open a page to draw points and watch models move.",
    example="""
$ maxmargin studio --data iris.csv
The studio opens in your browser; Ctrl-C ends it. Its address:
  http://127.0.0.1:41523/?token=…
""",
    see_also=("diagnose", "try"),
)
@click.argument("lesson", required=False, type=click.Path(dir_okay=False))
@click.option(
    "--data",
    metavar="CSV",
    type=click.Path(dir_okay=False),
    help="A table to begin with: two of its columns are drawn, and the page can choose others.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 is any that is free.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Any other than the default can be reached from other machines.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address of the page.")
def studio() -> None:
    """Open a page to draw points, drag them, and watch models answer.

    The page is served by this machine to this machine, and needs no network. Its address has a
    random token, without which nobody can use it.

    LESSON is a Markdown file with fenced studio states, which the page opens as a lesson; ten
    lessons come with it.
    """


@command(
    "convert",
    "Convert data files, or model files.",
    example="""
$ maxmargin convert heart_scale.svm heart.csv
heart.csv is written.
$ maxmargin convert heart.mmg heart.model
heart.model is a LIBSVM model: svm-predict reads it.
""",
    see_also=("fit", "predict", "report"),
)
@click.argument("source", type=click.Path(dir_okay=False))
@click.argument("target", type=click.Path(dir_okay=False))
@click.option(
    "--to",
    "target_format",
    type=click.Choice((*options.MODEL_FORMATS, "onnx")),
    help="Which model file TARGET is. Default: native for .mmg, ONNX for .onnx, else LIBLINEAR for "
    "linear machines and LIBSVM for the others.",
)
@click.option(
    "--from",
    "model_format",
    type=click.Choice(options.MODEL_FORMATS),
    help="Which model file SOURCE is. Default: native for .mmg, else what its first line says.",
)
@options.label
@options.zero_based
@options.lacking
def convert() -> None:
    """Convert a data file, or a model file; endings of names say from what to what.

    Data: svmlight text (.svm, .libsvm, .svmlight) to CSV or Parquet, and back.

    Models: those of maxmargin (.mmg), LIBSVM and LIBLINEAR, to each other and to ONNX (.onnx). A
    text model holds the machine alone: columns must be numbers that are scaled already. It has no
    certificate, and neither has a file of maxmargin that it becomes.
    """


SECTIONS = {
    "Learn": (try_command, fit, search, predict),
    "Understand": (diagnose, certify, report, studio),
    "Files": (convert,),
}
