"""The ladder: which question comes when, the verdict from the answers, and the advice.

Verdict and advice rest on the same comparisons.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.clock import Clock
from maxmargin.diagnosis.families import Scored, refine_kernel
from maxmargin.diagnosis.inputs import Arguments, check_table, choose_scoring
from maxmargin.diagnosis.learners import Candidate
from maxmargin.diagnosis.result import Alternative, Diagnosis
from maxmargin.diagnosis.rungs import OVERLAP, Rungs
from maxmargin.diagnosis.significance import hopeless
from maxmargin.inspection.code import describe
from maxmargin.progress import progress
from maxmargin.validation.data import generator

_WORTH_A_TRY = 0.01  # gain over naming the largest class, where no gain is significant
_PROMISING = 0.1  # p, for how many tests were made


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
    concluded from how well a kernel fits what it has seen, as an RBF kernel separates any distinct
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
    arguments = Arguments(scoring, max_time, thorough, random_state)
    arguments.check()
    clock = Clock(float(max_time))
    table = check_table(arguments, X, y, feature_names)
    chosen = choose_scoring(scoring, table.y)
    rungs = Rungs(table, chosen, clock, generator(random_state), bool(thorough))
    with progress("Diagnosing", len(rungs.questions), unit="question", even=False) as bar:
        for done, (name, ask) in enumerate(rungs.questions.items()):
            bar.update(done, note=name)
            rungs.answers.append(ask())
    verdict, reason, witness = _decide(rungs)
    candidate, because = _advise(rungs, verdict)
    wide = rungs.sample.wide
    return Diagnosis(
        verdict=verdict,
        reason=reason,
        witness=witness,
        rungs=tuple(rungs.answers),
        warnings=tuple(_warnings(rungs, verdict)),
        advice=f"{describe(candidate.estimator(wide))}: {because}",
        alternatives=tuple(_alternatives(rungs, candidate)),
        scoring=chosen,
        n_rows=table.X.shape[0],
        n_features=table.X.shape[1],
        classes=tuple(table.label(k) for k in range(table.n_classes)),
        random_state=random_state if isinstance(random_state, int | np.integer) else None,
        seconds=clock.seconds,
        candidate=candidate,
        outside=_outside(rungs),
        wide=wide,
    )


# ------------------------------------------------------------------------- the verdict


def _decide(rungs: Rungs) -> tuple[str, str, Any]:
    """Return the verdict, the reason and the witness."""
    conflicts, planes, best = rungs.conflicts, rungs.planes, rungs.best
    if conflicts.decisive:
        reason = (
            f"{conflicts.rows} rows have equals with other labels, which force errors on "
            f"{conflicts.errors} of {len(rungs.table.y)} rows ({conflicts.share:.2%})"
            f"{_boundary(rungs)}."
        )
        return "inseparable", reason, conflicts
    if planes.separable:
        reason = f"a plane separates the classes with margin {planes.margin:.4g}."
        if rungs.table.n_classes > 2:
            reason = f"planes separate every two classes, with margin {planes.margin:.4g} or more."
        return "linearly separable", reason, planes.decisive
    if rungs.unfinished:
        return "undecided", _unfinished(rungs), None
    if rungs.silent:
        return _no_signal(rungs)
    assert best is not None
    if rungs.overlapping:
        return "inseparable", f"{_overlapping(rungs, best)}.", best
    if rungs.curved:
        gain = rungs.gain[rungs.chosen]
        kind = "multi-layer" if rungs.chosen == "networks" else "non-linearly"
        return f"{kind} separable", f"on rows that were not fitted to, {gain}.", gain
    if "giving up" in rungs.late:
        return "undecided", _unfinished(rungs), None
    given_up = rungs.given_up
    if given_up is not None and not given_up.few and 1 - best.score > OVERLAP:
        return "inseparable", f"{_overlapping(rungs, best)}; {given_up}.", given_up
    return "almost linearly separable", _almost(rungs), given_up


def _unfinished(rungs: Rungs) -> str:
    known = " ".join(_capitalize(rung.answer) for rung in rungs.answers[1:] if rung.ran)
    return _run_out(rungs) + (f" What is known: {known}" if known else "")


def _run_out(rungs: Rungs) -> str:
    *others, last = rungs.late
    missing = f"{', '.join(others)} and {last}" if others else last
    return f"the time ran out: raise max_time. Missing: {missing}."


def _no_signal(rungs: Rungs) -> tuple[str, str, Any]:
    witness = tuple(rungs.signal)
    if not rungs.signal:
        few = f"{len(rungs.table.y)} rows are too few to cross-validate anything."
        return "undecided", few, witness
    if rungs.too_few:
        reason = (
            f"{rungs.n_compared} rows are too few: not even a rule without errors could be shown "
            "to be better than chance."
        )
        return "undecided", reason, witness
    reason = (
        f"none of {len(rungs.scored)} methods ranks rows better than chance, or is right more "
        f"often than naming the largest class. The one that comes nearest: {rungs.signal[0]}."
    )
    return "no signal", reason, witness


def _overlapping(rungs: Rungs, best: Scored) -> str:
    low, high = rungs.bayes_error
    mean = "" if rungs.scoring == "accuracy" else ", as a mean over the classes"
    return (
        f"the classes overlap: the best of {len(rungs.scored)} methods, {best.name}, errs on "
        f"{1 - best.score:.1%} of the rows that it was not fitted to{mean}. The least possible "
        f"(Bayes) error is about that, between {low:.1%} and {high:.1%}{_boundary(rungs)}"
    )


def _almost(rungs: Rungs) -> str:
    predicted = "planes predict nearly all rows"
    if "kernels" in rungs.gain:
        predicted = f"on rows that were not fitted to, {rungs.gain['kernels']}"
    if rungs.given_up is None:
        return f"{predicted}; how many rows planes cannot get right is not known."
    return f"{rungs.given_up}; {predicted}."


def _boundary(rungs: Rungs) -> str:
    """Return whether a plane is the best boundary, as the end of a sentence."""
    if rungs.silent or rungs.unfinished:
        return ""
    if rungs.curved:
        return f"; the best boundary is curved: {rungs.gain[rungs.chosen]}"
    return "; no curved boundary is better than a plane beyond noise"


def _warnings(rungs: Rungs, verdict: str) -> list[str]:
    found = list(rungs.messages)
    if verdict == "linearly separable":
        if rungs.chance > 0.01:
            found.append(
                "With this few rows for this many columns, planes would separate random labels "
                f"with probability {rungs.chance:.2g} (Cover's theorem): separability means little "
                "here."
            )
        if rungs.signal and rungs.silent:
            found.append("In cross-validation, nothing is significantly better than chance.")
    y, seen = rungs.table.y, len(rungs.rows)
    if rungs.scored and rungs.scoring != "accuracy":
        uneven = choose_scoring("auto", y) != "accuracy"
        why = "The classes are of unequal size, so models" if uneven else "Models"
        found.append(
            f"{why} are compared by balanced accuracy, the mean share of right answers over the "
            "classes."
        )
    if rungs.scored and rungs.sample.y_fresh is not None:
        found.append(
            f"Models were fitted to {seen} of {len(y)} rows, and compared on {rungs.n_compared} "
            "others."
        )
    elif rungs.scored and seen < len(y):
        found.append(f"Models were cross-validated on {seen} of {len(y)} rows.")
    if rungs.late and verdict != "undecided":
        found.append(_capitalize(_run_out(rungs)))
    if _outside(rungs) is not None:
        gain = rungs.gain["gradient boosting"]
        found.append(
            f"Gradient boosting, which is not on the ladder, predicts better than all that is: "
            f"{gain}. recommend(family='any') returns it."
        )
    return found


def _capitalize(message: str) -> str:
    return message[:1].upper() + message[1:]


# -------------------------------------------------------------------------- the advice


def _advise(rungs: Rungs, verdict: str) -> tuple[Candidate, str]:
    """Return what to use and why: planes, unless something else is better beyond noise."""
    if not rungs.scored:
        if verdict == "linearly separable":
            widest = "a plane separates the rows, and this one has the largest margin."
            return Candidate("hard margin"), widest
        simplest = Candidate("linear", scaled=True, sparse=rungs.sample.sparse)
        return simplest, "it is the simplest, and nothing could be compared."
    chosen = rungs.chosen
    found = rungs.scored[chosen]
    decided = verdict not in ("linearly separable", "undecided")
    if rungs.signal and rungs.silent and decided:
        # A learner may still be worth more than naming the largest class.
        majority = rungs.sample.compared.score(rungs.sample.majority)
        if rungs.signal[0].p_value >= _PROMISING or found.score <= majority + _WORTH_A_TRY:
            return Candidate("majority", (("strategy", "most_frequent"),)), (
                "nothing predicts better than always naming the largest class; more rows or other "
                "columns are needed."
            )
    best = refine_kernel(rungs.sample, found) if chosen == "kernels" else found.best
    if chosen != "planes":
        return best, _better(rungs, chosen, verdict)
    if rungs.unfinished:
        return best, "it is the best of what could be compared in time."
    rivals = [gain for name, gain in rungs.gain.items() if name != "gradient boosting"]
    if not rivals or hopeless(~found.right, found.metric):
        return best, "a plane errs so rarely that nothing could be shown to be better."
    nearest = max(rivals, key=lambda gain: gain.lead)
    points, where = f"{100 * abs(nearest.lead):.1f}", "ahead" if nearest.lead > 0 else "behind"
    distance = "level with it" if points == "0.0" else f"{points} points {where}"
    return best, (
        f"no other method is better than a plane beyond noise; the nearest, {nearest.better}, is "
        f"{distance} (p = {nearest.p_value:.2g})."
    )


def _better(rungs: Rungs, chosen: str, verdict: str) -> str:
    gain = rungs.gain.get(chosen)
    if gain is None:
        return "nothing else could be compared."
    however = "a plane separates these rows, but " if verdict == "linearly separable" else ""
    also = "" if rungs.curved else " Its boundary is a plane as well."
    return (
        f"{however}{gain.better} predicts rows that it was not fitted to better than {gain.worse}, "
        f"by {100 * gain.lead:.1f} points (p = {gain.p_value:.2g}).{also}"
    )


def _outside(rungs: Rungs) -> Candidate | None:
    """Return gradient boosting, with all its trees, if it is better than the ladder's best."""
    gain = rungs.gain.get("gradient boosting")
    if gain is None or not gain.significant:
        return None
    best = rungs.scored["gradient boosting"].best
    hurried = ("max_iter", "learning_rate")  # for cross-validation only
    kept = tuple((name, value) for name, value in best.settings if name not in hurried)
    return replace(best, settings=kept)


# What each rung of the ladder offers if it was not tried, and under which heading it is reported.
_OFFERS = {
    "planes": (Candidate("linear"), "planes"),
    "kernels": (Candidate("kernel"), "kernels"),
    "networks": (Candidate("network", (("hidden_layer_sizes", (64,)),), True), "networks"),
    "k-NN": (Candidate("k-NN"), "local rules"),
    "naive Bayes": (Candidate("Gaussian naive Bayes"), "local rules"),
    "gradient boosting": (Candidate("gradient boosting"), "gradient boosting"),
}


def _alternatives(rungs: Rungs, advised: Candidate) -> list[Alternative]:
    """Return what each rung offers, with its score if it was tried."""
    found, sample = [_perceptron(rungs)], rungs.sample
    for name, (candidate, heading) in _OFFERS.items():
        scored, gain = rungs.scored.get(name), rungs.gain.get(name)
        if scored is not None:
            low, high = scored.metric.interval(scored.right)
            best = advised if advised.kind == scored.best.kind else scored.best
            note = "" if gain is None else f"{gain}."
            found.append(Alternative(name, best, sample.wide, scored.score, low, high, note))
            continue
        rung = next(rung for rung in rungs.answers if rung.name == heading)
        why = rung.answer
        if rung.ran:
            why = "not tried: it is for counts, and some entries are negative."
        candidate = replace(candidate, sparse=sample.sparse)
        if sample.wide and name == "naive Bayes":
            candidate = Candidate("multinomial naive Bayes")
        found.append(Alternative(name, candidate, sample.wide, note=why))
    return found


def _perceptron(rungs: Rungs) -> Alternative:
    wide = rungs.sample.wide
    if rungs.planes.separable:
        note = f"finds a separating plane after at most {rungs.planes.mistake_bound:.4g} mistakes."
        return Alternative("perceptron", Candidate("perceptron"), wide, note=note)
    note = "it may make mistakes forever, so use the average of its planes."
    return Alternative("perceptron", Candidate("averaged perceptron"), wide, note=note)
