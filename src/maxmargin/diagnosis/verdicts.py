"""From evidence to a verdict, and from scores to a recommendation."""

from typing import Any, NamedTuple

from maxmargin.diagnosis.candidates import Candidate
from maxmargin.diagnosis.result import Diagnosis
from maxmargin.diagnosis.scores import refined
from maxmargin.diagnosis.significance import Comparison, hopeless
from maxmargin.diagnosis.state import State
from maxmargin.estimators.code import described

_MORE = 0.002  # gain in accuracy for which a more complicated learner is recommended
_WORTH_A_TRY = 0.01  # the same over naming the largest class, where no gain is significant
_PROMISING = 0.1  # p, for how many methods were tried
_SIMPLEST_FIRST = ("planes", "naive Bayes", "k-NN", "kernels", "networks")


BEYOND = {"networks": "multi-layer separable", "kernels": "non-linearly separable"}


class Verdict(NamedTuple):
    """A name, the reason and the witness."""

    name: str
    reason: str
    witness: Any


def concluded(state: State, seed: Any) -> Diagnosis:
    """Put everything together."""
    signal = state.signal
    found = _verdict(state, signal)
    candidate = _recommended(state, found.name)
    estimator = candidate.estimator(state.sample.wide)
    table = state.table
    return Diagnosis(
        verdict=found.name,
        reason=found.reason,
        witness=found.witness,
        rungs=tuple(state.rungs),
        warnings=tuple(_warnings(state, found.name, signal)),
        advice=_advice(found.name, estimator),
        n_rows=table.shape[0],
        n_features=table.shape[1],
        classes=tuple(table.label(k) for k in range(table.n_classes)),
        random_state=seed,
        seconds=state.clock.seconds,
        candidate=candidate,
        wide=state.sample.wide,
    )


def _verdict(state: State, signal: list[Comparison]) -> Verdict:
    if state.inseparable:
        found = state.conflicts
        return Verdict(
            "inseparable",
            f"{found.rows} rows have equals with other labels, which force errors on "
            f"{found.errors} of {len(state.table.y)} rows ({found.share:.2%}).",
            found,
        )
    if state.planes.separable:
        return Verdict("linearly separable", _separable(state), state.planes.decisive)
    if not signal or not signal[0].significant:
        return Verdict("no signal", _no_signal(state, signal), tuple(signal))
    for name, verdict in BEYOND.items():
        gain = state.gain.get(name)
        if gain is not None and gain.significant:
            return Verdict(verdict, f"cross-validated, {gain}.", gain)
    return Verdict("almost linearly separable", _almost(state), state.given_up)


def _separable(state: State) -> str:
    margin = state.planes.margin
    if state.table.n_classes == 2:
        return f"a plane separates the classes with margin {margin:.4g}."
    return f"planes separate every two classes, with margin {margin:.4g} or more."


def _no_signal(state: State, signal: list[Comparison]) -> str:
    if not signal and state.clock.over:
        return "the time ran out before anything could be cross-validated: raise max_time."
    if not signal:
        return f"{len(state.table.y)} rows are too few to cross-validate anything."
    errors = int((~state.sample.majority).sum())
    if hopeless(errors, signal[0].tests, signal[0].level):
        return (
            f"with {len(state.rows)} rows, {errors} of them outside the largest class, not even a "
            "rule without errors would be significantly better than naming that class."
        )
    return (
        f"none of {signal[0].tests} methods is significantly better than naming the largest class; "
        f"the nearest to it is {signal[0].better} (p = {signal[0].p_value:.2g})."
    )


def _almost(state: State) -> str:
    kernel = state.gain.get("kernels")
    if kernel is not None:
        within = f"cross-validated, {kernel}"
    elif any(rung.name == "kernels" and "time ran out" in rung.answer for rung in state.rungs):
        within = "the time ran out before kernels could be compared"
    else:
        within = "planes predict nearly all rows"
    if state.given_up is None:
        return f"{within}; how many rows must be given up is not known."
    count = str(state.given_up)
    if not state.given_up.few:
        return f"{within}; the classes overlap, as {count}."
    return f"{count}; {within}."


def _warnings(state: State, verdict: str, signal: list[Comparison]) -> list[str]:
    found = list(state.remarks)
    if verdict == "linearly separable":
        if state.chance > 0.01:
            found.append(
                f"With so few rows for so many columns, planes would separate random labels with "
                f"probability {state.chance:.2g} (Cover's theorem): separability means little here."
            )
        if signal and not signal[0].significant:
            found.append("Cross-validated, nothing beats naming the largest class significantly.")
    if verdict == "almost linearly separable" and state.given_up and not state.given_up.few:
        found.append("No rung shows more than a plane does, but the classes overlap.")
    if len(state.rows) < len(state.table.y):
        found.append(f"Cross-validation saw {len(state.rows)} of {len(state.table.y)} rows.")
    hurried = [name for name, scored in state.scored.items() if scored.judged < scored.n_settings]
    if hurried:
        found.append(
            f"Not all settings of {', '.join(hurried)} were tried in time: raise max_time."
        )
    late = [rung.name for rung in state.rungs if not rung.ran and "time ran out" in rung.answer]
    if late:
        found.append(f"The time ran out before {', '.join(late)}: raise max_time.")
    return found


def _recommended(state: State, verdict: str) -> Candidate:
    majority = Candidate("majority", (("strategy", "most_frequent"),))
    if not state.scored:
        return Candidate("hard margin") if verdict == "linearly separable" else majority
    best: str | None = None
    for name in _SIMPLEST_FIRST:
        if name in state.scored and (
            best is None or state.scored[name].accuracy > state.scored[best].accuracy + _MORE
        ):
            best = name
    assert best is not None
    found = state.scored[best]
    if verdict == "no signal" and not _promising(state, found.accuracy):
        return majority
    return refined(state.sample, found) if best == "kernels" else found.best


def _promising(state: State, accuracy: float) -> bool:
    """Return whether a learner may be worth more than naming the largest class all the same."""
    signal = state.signal
    ahead = accuracy > state.sample.majority.mean() + _WORTH_A_TRY
    return bool(signal and signal[0].p_value < _PROMISING and ahead)


def _advice(verdict: str, estimator: Any) -> str:
    if verdict == "no signal":
        return f"{described(estimator)} until there are more rows or better columns"
    return described(estimator)
