"""The ladder: which question comes when."""

from typing import Any

import numpy as np

from maxmargin.clock import Clock
from maxmargin.diagnosis.inputs import Arguments, check_table, choose_scoring
from maxmargin.diagnosis.result import Diagnosis
from maxmargin.diagnosis.rungs import Rungs
from maxmargin.diagnosis.verdicts import conclude
from maxmargin.progress import progress
from maxmargin.validation.data import generator


def diagnose(
    X: Any,
    y: Any,
    *,
    scoring: str = "auto",
    feature_names: Any = None,
    max_time: float = 30.0,
    thorough: bool = False,
    random_state: Any = 0,
) -> Diagnosis:
    """Say which kind of learner suits the data, with evidence for every step.

    The questions, in this order: do equal rows have different labels, so that no rule can be right
    (verdict "inseparable" if that forces errors on 2 % of the rows)? Does a plane separate the
    classes ("linearly separable")? Does a kernel predict better than a plane ("non-linearly
    separable"), a network better than a kernel ("multi-layer separable"), and how do local rules
    do? Does anything rank rows, or name classes, better than chance ("no signal" if not)? Do the
    classes overlap for good ("inseparable" if the best of all rules errs on more than 10 %, with
    its interval; or, where nothing beats a plane, if a plane cannot do without giving up more than
    10 % of the rows either)? If there is signal and nothing beats a plane, the verdict is "almost
    linearly separable", and how many rows must be given up for that is bounded from both sides. If
    time or rows are too few to tell, it is "undecided".

    To predict better means: on rows not fitted to, settings chosen without them (nested 5-fold
    cross-validation), with p < 0.01 in a paired sign test. A plane is recommended unless something
    is better in this sense. To be better than chance, p must be below 0.005, times the number of
    tests, for the ranking of rows (AUC) or for accuracy beside the largest class. Nothing is
    conclude from how well a kernel fits what it has seen, as an RBF kernel separates any distinct
    rows.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels; two or more classes.
    scoring : {"auto", "accuracy", "balanced_accuracy"}, default="auto"
        By which models are compared. "auto": balanced accuracy, the mean share of right answers
        over the classes, if the largest class has more than 60 % of the rows; else accuracy.
    feature_names : sequence of str, optional
        What to call the columns; by default those of a frame, else numbers.
    max_time : float, default=30.0
        Seconds it may take, compilation aside. How many rows are cross-validated follows from it
        (2500 at 30 seconds, 2000 with more than four classes); every rung says how many it saw.
        What is tried follows from the numbers of rows, columns and classes. If the clock runs out
        before the questions are answered, the verdict is "undecided".
    thorough : bool, default=False
        Whether to ask all questions, also those that cannot change verdict or advice any more.
    random_state : int, Generator, RandomState or None, default=0
        For drawing rows and folds. The same seed gives the same diagnosis.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import maxmargin as mm
    >>> found = mm.diagnose(*mm.datasets.circles(200, random_state=0))
    >>> found.verdict
    'non-linearly separable'
    >>> found = mm.diagnose(*mm.datasets.separable(100, margin=0.5, random_state=0))
    >>> print(found)
    Verdict: linearly separable
    Why: a plane separates the classes with margin 0.5.
    Use: HardMarginSVC(): a plane errs so rarely that nothing could be shown to be better.
    """
    arguments = Arguments(scoring, max_time, thorough, random_state).check()
    clock = Clock(float(max_time))
    table = check_table(arguments, X, y, feature_names)
    chosen = choose_scoring(scoring, table.y)
    rungs = Rungs(table, chosen, clock, generator(random_state), bool(thorough))
    questions = (
        ("columns", rungs.describe_columns),
        ("equal rows", rungs.find_conflicts),
        ("separating planes", rungs.find_planes),
        ("planes", rungs.try_planes),
        ("kernels", rungs.try_kernels),
        ("local rules", rungs.try_local_rules),
        ("networks", rungs.try_networks),
        ("gradient boosting", rungs.try_trees),
        ("signal", rungs.find_signal),
        ("overlap", rungs.estimate_overlap),
        ("rows to give up", rungs.give_up_rows),
    )
    with progress("Diagnosing", len(questions), unit="question", even=False) as bar:
        for done, (about, ask) in enumerate(questions):
            bar.update(done, note=about)
            ask()
    seed = random_state if isinstance(random_state, int | np.integer) else None
    return conclude(rungs, seed)
