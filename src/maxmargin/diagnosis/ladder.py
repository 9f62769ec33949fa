"""The ladder: which question comes when, and when it need not be asked any more."""

from typing import Any

import numpy as np

from maxmargin.clock import Clock
from maxmargin.diagnosis.inputs import Arguments, check_table, chosen_scoring
from maxmargin.diagnosis.result import Diagnosis
from maxmargin.diagnosis.rungs import Rungs
from maxmargin.diagnosis.verdicts import concluded
from maxmargin.estimators.inputs import generator
from maxmargin.progress import progress


def diagnose(
    X: Any,
    y: Any,
    *,
    scoring: str = "auto",
    max_time: float = 30.0,
    thorough: bool = False,
    random_state: Any = 0,
) -> Diagnosis:
    """Say which kind of learner suits the data, with evidence for every step.

    The questions, in this order: do equal rows have different labels, so that no rule can be right
    (verdict "inseparable" if that forces errors on 2 % of the rows)? Does a plane separate the
    classes ("linearly separable")? Does a kernel predict better than a plane ("non-linearly
    separable"), a network better than a kernel ("multi-layer separable"), and how do local rules
    do? Does anything predict better than always naming the largest class ("no signal" if not)? If
    there is signal and nothing beats a plane, the verdict is "almost linearly separable", and how
    many rows must be given up for that is bounded from both sides.

    To predict better means: on rows not fitted to, settings chosen without them (nested 5-fold
    cross-validation), with p < 0.01 in McNemar's test; against the largest class p is multiplied by
    the number of methods and must be below 0.005. Nothing is concluded from how well a kernel fits
    what it has seen, as an RBF kernel separates any distinct rows.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels; two or more classes.
    max_time : float, default=30.0
        Seconds it may take. How many rows are cross-validated follows from it (2500 at 30 seconds,
        2000 with more than four classes); every rung says how many it saw. The clock itself only
        ends what takes far too long, and the diagnosis says so.
    thorough : bool, default=False
        Whether to ask all questions, also those that cannot change the verdict any more.
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
    Use: HardMarginSVC()
    """
    arguments = Arguments(scoring, max_time, thorough, random_state).check()
    clock = Clock(float(max_time))
    table = check_table(arguments, X, y)
    chosen = chosen_scoring(scoring, table.y)
    rungs = Rungs(table, chosen, clock, generator(random_state), bool(thorough))
    questions = (
        ("columns", rungs.look_at_columns),
        ("equal rows", rungs.look_for_conflicts),
        ("separating planes", rungs.look_for_planes),
        ("planes", rungs.try_planes),
        ("kernels", rungs.try_kernels),
        ("local rules", rungs.try_local_rules),
        ("networks", rungs.try_networks),
        ("gradient boosting", rungs.try_trees),
        ("signal", rungs.look_for_signal),
        ("overlap", rungs.look_for_overlap),
        ("rows to give up", rungs.give_up_rows),
    )
    with progress("Diagnosing", len(questions), unit="question", even=False) as bar:
        for done, (about, ask) in enumerate(questions):
            bar.update(done, note=about)
            ask()
    seed = random_state if isinstance(random_state, int | np.integer) else None
    return concluded(rungs, seed)
