"""What a diagnosis says: a verdict, its rungs with evidence and witness, and what to use."""

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from maxmargin.diagnosis.learners import Candidate
from maxmargin.inspection.code import describe
from maxmargin.runtime.html import bullets, table, tag

_MOST = 1000  # entries of an array that are written out


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
    late : bool
        Whether it was skipped because the time ran out.
    """

    name: str
    answer: str
    ran: bool = True
    rows_seen: int = 0
    evidence: dict[str, Any] = field(default_factory=dict)
    witness: Any = None
    late: bool = False

    @classmethod
    def skipped(cls, name: str, why: str) -> "Rung":
        """Return a rung that was not asked."""
        return cls(name, f"not asked: {why}", ran=False)

    def __str__(self) -> str:
        return f"{self.name}: {self.answer}"


@dataclass(frozen=True)
class Alternative:
    """What a rung of the ladder offers.

    Attributes
    ----------
    rung : str
        "perceptron", "planes", "kernels", "k-NN", "networks" or "gradient boosting".
    score, low, high : float or None
        Cross-validated score by the diagnosis's ``scoring``, with a 95 % interval; None if it was
        not tried.
    note : str
        How it compares, or why it was not tried.
    metric : str
        "R²" for regressors, else "": shares, written in percent.
    """

    rung: str
    candidate: Candidate
    score: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""
    metric: str = ""

    @property
    def figures(self) -> tuple[str, str]:
        """The score and its interval as text, if it was tried."""
        form = ".3f" if self.metric else ".2%"
        score, low, high = (format(of, form) for of in (self.score, self.low, self.high))
        return score, f"{low} to {high}"

    @property
    def estimator(self) -> Any:
        """The estimator, or a pipeline, unfitted."""
        return self.candidate.estimator()

    def __str__(self) -> str:
        sentence = f"{self.rung}: {describe(self.estimator)}"
        if self.score is not None:
            score, interval = self.figures
            sentence += f", {self.metric}{' ' if self.metric else ''}{score} ({interval})"
        return f"{sentence}; {self.note}" if self.note else sentence

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        return {
            "rung": self.rung,
            "estimator": describe(self.estimator),
            "score": self.score,
            "interval": None if self.score is None else [self.low, self.high],
            "note": self.note,
        }


@dataclass(frozen=True)
class Diagnosis:
    """What ``diagnose`` found; ``print`` it for a few lines, ``recommend()`` for an estimator.

    Attributes
    ----------
    verdict : str
        "inseparable", "linearly separable", "almost linearly separable", "non-linearly separable",
        "multi-layer separable", "not linear" (only neighbours or trees find the structure), "no
        signal"; or "undecided", where there is evidence for none of these. For
        numbers "linear", "curved", "not linear", "no signal" or "undecided".
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
        What to use, and why.
    alternatives : tuple of Alternative
        What every rung of the ladder offers, with the scores of those that were tried, and boosted
        trees from outside.
    scoring : str
        By which models were compared: "accuracy", "balanced_accuracy", or for numbers
        "neg_mean_absolute_error".
    n_rows, n_features : int
        The shape of the data.
    classes : tuple
        The labels; none for numbers.
    random_state : int, RandomState instance or None
        The seed.
    seconds : float
        How long it took.
    candidate, ladder : Candidate
        The recommended learner, and the best on the ladder: another one if that is boosting.
    """

    verdict: str
    reason: str
    witness: Any
    rungs: tuple[Rung, ...]
    warnings: tuple[str, ...]
    advice: str
    alternatives: tuple[Alternative, ...]
    scoring: str
    n_rows: int
    n_features: int
    classes: tuple[Any, ...]
    random_state: Any
    seconds: float
    candidate: Candidate
    ladder: Candidate

    @property
    def evidence(self) -> dict[str, dict[str, Any]]:
        """The numbers of each rung, by its name."""
        return {rung.name: rung.evidence for rung in self.rungs}

    def recommend(self, family: str = "any") -> Any:
        """Return an unfitted estimator, or a pipeline, with the parameters that scored best.

        A step that scales columns is in it only where the estimator needs one (networks), or where
        columns are uneven and scaling scored no worse beyond noise.

        Parameters
        ----------
        family : {"any", "ladder"}, default="any"
            "ladder": planes, unless kernels, local rules or networks are better beyond noise.
            "any": gradient boosting, if it is better than all of these beyond noise.

        Examples
        --------
        >>> import maxmargin as mm
        >>> X, y = mm.datasets.circles(200, random_state=0)
        >>> mm.diagnose(X, y).recommend().fit(X, y).score(X, y)
        1.0
        """
        if family not in ("ladder", "any"):
            raise ValueError(f"family must be 'ladder' or 'any', got {family!r}")
        return (self.candidate if family == "any" else self.ladder).estimator()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts, ready for JSON."""
        found = {**vars(self), "recommendation": self.candidate}
        del found["candidate"], found["ladder"]
        return dict(plain(found))

    def __str__(self) -> str:
        lines = [f"Verdict: {self.verdict}", f"Why: {self.reason}", f"Use: {self.advice}"]
        lines += [f"Beware: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.verdict}; print it for the reasons>"

    def _repr_html_(self) -> str:
        counted = f", {len(self.classes)} classes" if self.classes else ""
        size = f" ({self.n_rows} rows, {self.n_features} columns{counted})"
        scoring = self.scoring.replace("_", " ") if self.classes else "R²"
        answers: list[tuple[Any, ...]] = []
        for rung in self.rungs:
            skipped = rung.name, tag("i", rung.answer), "–"
            answers.append((rung.name, rung.answer, rung.rows_seen) if rung.ran else skipped)
        offers: list[tuple[Any, ...]] = []
        for offer in self.alternatives:
            named = f"{offer.rung}: {describe(offer.estimator)}"
            if offer.score is None:
                offers.append((named, "–", "–", tag("i", offer.note)))
            else:
                offers.append((named, *offer.figures, offer.note))
        return tag(
            "div",
            tag("p", tag("b", self.verdict.capitalize()), size),
            tag("p", "Why: ", self.reason),
            tag("p", "Use: ", self.advice),
            bullets(self.warnings),
            table(["Question", "Answer", "Rows seen"], answers),
            table(["Alternative", f"Score ({scoring})", "95 % interval", ""], offers),
        )


def plain(value: Any) -> Any:
    """Return numbers, strings, lists and dicts that say the same; NaN and infinity become None.

    Examples
    --------
    >>> plain({(0, 1): np.float64(0.5), "margin": float("nan")})
    {'0, 1': 0.5, 'margin': None}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        names = (", ".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in value)
        return dict(zip(names, map(plain, value.values()), strict=True))
    if isinstance(value, np.ndarray):
        value = list(value[:_MOST])
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if is_dataclass(value):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if hasattr(value, "w") and hasattr(value, "b"):
        return {"w": plain(np.asarray(value.w)), "b": plain(float(value.b))}
    return str(value)
