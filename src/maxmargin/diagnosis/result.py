"""What a diagnosis says: a verdict, its rungs with evidence and witness, and what to use."""

from dataclasses import dataclass, field
from typing import Any

from maxmargin.diagnosis.candidates import Candidate
from maxmargin.diagnosis.page import as_html
from maxmargin.diagnosis.plain import plain

VERDICTS = (
    "inseparable",
    "linearly separable",
    "almost linearly separable",
    "non-linearly separable",
    "multi-layer separable",
    "no signal",
)


@dataclass(frozen=True)
class Rung:
    """One question of the ladder.

    Attributes
    ----------
    name : str
        What it is about.
    answer : str
        The answer in a sentence; for a rung that was skipped, why.
    ran : bool
        False if it was skipped, or the time ran out.
    rows_seen : int
        How many rows the answer rests on.
    evidence : dict
        The numbers.
    witness : object
        What proves it, if anything does: Conflicts, Separation, GivingUp or Comparison.
    """

    name: str
    answer: str
    ran: bool = True
    rows_seen: int = 0
    evidence: dict[str, Any] = field(default_factory=dict)
    witness: Any = None

    def __str__(self) -> str:
        return f"{self.name}: {self.answer}"


@dataclass(frozen=True)
class Diagnosis:
    """What ``diagnose`` found; ``print`` it for a few lines, ``recommend()`` for an estimator.

    Attributes
    ----------
    verdict : str
        "inseparable", "linearly separable", "almost linearly separable", "non-linearly separable",
        "multi-layer separable" or "no signal".
    reason : str
        Why, in a sentence.
    witness : object
        What proves it: Conflicts, Separation, GivingUp or Comparison(s).
    rungs : tuple of Rung
        Every question in order, also those that were skipped, with the reason.
    evidence : dict
        The numbers of each rung, by its name.
    warnings : tuple of str
        What could mislead: too few rows, imbalance, uneven columns, time that ran out.
    advice : str
        What to use.
    n_rows, n_features, classes
        Of the data.
    random_state, seconds
        The seed, and how long it took.
    """

    verdict: str
    reason: str
    witness: Any
    rungs: tuple[Rung, ...]
    warnings: tuple[str, ...]
    advice: str
    n_rows: int
    n_features: int
    classes: tuple[Any, ...]
    random_state: Any
    seconds: float
    candidate: Candidate
    wide: bool

    @property
    def evidence(self) -> dict[str, dict[str, Any]]:
        """The numbers of each rung, by its name."""
        return {rung.name: rung.evidence for rung in self.rungs}

    def recommend(self) -> Any:
        """Return an unfitted estimator, or a pipeline, with the parameters that scored best.

        A step that scales columns is in it only where the estimator needs one (networks), or where
        columns are uneven and scaling scored no worse.

        Examples
        --------
        >>> import maxmargin as mm
        >>> X, y = mm.datasets.circles(200, random_state=0)
        >>> mm.diagnose(X, y).recommend().fit(X, y).score(X, y)
        1.0
        """
        return self.candidate.estimator(self.wide)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts, ready for JSON."""
        found = {
            "verdict": self.verdict,
            "reason": self.reason,
            "witness": self.witness,
            "rungs": [{**vars(rung), "witness": rung.witness} for rung in self.rungs],
            "warnings": list(self.warnings),
            "advice": self.advice,
            "recommendation": self.candidate.to_dict(),
            "n_rows": self.n_rows,
            "n_features": self.n_features,
            "classes": list(self.classes),
            "random_state": self.random_state,
            "seconds": self.seconds,
        }
        return dict(plain(found))

    def __str__(self) -> str:
        lines = [f"Verdict: {self.verdict}", f"Why: {self.reason}", f"Use: {self.advice}"]
        lines += [f"Beware: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.verdict}; print it for the reasons>"

    def _repr_html_(self) -> str:
        return as_html(self)
