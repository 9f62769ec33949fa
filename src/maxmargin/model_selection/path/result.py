"""What a regularization path is: arrays along C, its ends, and a model for any C."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate
from maxmargin.problems.problem import Status
from maxmargin.runtime.html import bullets, table, tag

_SHOWN = 12  # costs in a notebook's table


@dataclass(frozen=True, eq=False, repr=False)
class RegularizationPath:
    """The solutions of a machine for one C after the other, each with its certificate.

    Arrays have one entry for each C. With several binary problems (classes one against one, or one
    against the rest) they have one more axis, over problems as the estimator lists them.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        Costs of slack, ascending.
    coefs : ndarray of shape (n_Cs, n_features), or None
        Weights w; None for kernels other than the linear one.
    intercepts : ndarray of shape (n_Cs,)
        Intercepts b.
    alphas : ndarray of shape (n_Cs, n_samples)
        Dual variables of all rows, ≥ 0.
    certificates : tuple of Certificate
        Bounds on each optimum, recomputed from the data.
    margins : ndarray of shape (n_Cs,)
        1/‖w‖; with the penalty ½‖w‖² and a free intercept or none it never grows with C.
    slack_sums : ndarray of shape (n_Cs,)
        Σ c·ξ, with c the weights (and ξ² for squared losses); it never grows with C.
    support_counts : dict of str to ndarray of shape (n_Cs,)
        How many support vectors are of each kind: "margin", "inside" and "wrong side"; "on the
        tube" and "outside" in regression.
    training_errors : ndarray of shape (n_Cs,)
        Rows with y f ≤ 0; in regression, rows outside the tube. It may go up and down.
    statuses : tuple of Status
        Why each fit stopped. Only if it is OPTIMAL does the certificate hold at ``tol``.
    seconds : ndarray of shape (n_Cs,)
        Spent on solving.
    small_C, small_C_reason : float or None, str
        Below small_C the solution is proportional to C: α/C is constant.
    hard_C, hard_C_reason : float or None, str
        From hard_C on, the soft margin is the hard margin; None if the classes overlap, or if it
        was not searched for: the reason says which.
    breakpoints : ndarray or None
        Exact path only: between neighbouring ones α, b and f are linear in C.
    exact_until : float
        Up to this C models come from the exact path; 0 without one.
    exact_reason : str
        Why the exact path ends there, or why there is none.
    tol : float
        Relative duality gap that was asked for.
    estimator : estimator
        The machine whose path this is, as it was given.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(60, random_state=0)
    >>> path = mm.regularization_path(X, y)
    >>> bool((np.diff(path.margins) <= 1e-6 * path.margins[:-1]).all())
    True
    >>> path.model(0.3).certificate_.holds(path.tol)
    True
    """

    Cs: Floats
    coefs: Floats | None
    intercepts: Floats
    alphas: Floats
    certificates: tuple[Certificate, ...]
    margins: Floats
    slack_sums: Floats
    support_counts: dict[str, Ints]
    training_errors: Ints
    statuses: tuple[Status, ...]
    seconds: Floats
    small_C: float | None
    small_C_reason: str
    hard_C: float | None
    hard_C_reason: str
    breakpoints: Floats | None
    exact_until: float
    exact_reason: str
    tol: float
    estimator: Any
    _models: Any  # makes the model for a C

    @property
    def certified(self) -> bool:
        """Whether the certificate of every C holds."""
        return all(certificate.holds(self.tol) for certificate in self.certificates)

    def model(self, C: float) -> Any:
        """Return the estimator fitted at any C > 0, with its certificate.

        On an exact path, and at the ``Cs`` themselves, nothing is left to solve; elsewhere a fit
        starts from the nearest solution.

        Parameters
        ----------
        C : float
            Cost of slack, > 0.
        """
        if not (isinstance(C, int | float | np.number) and np.isfinite(C) and C > 0):
            raise ValueError(f"C={C!r} is not valid: it must be a finite number > 0.")
        return self._models.model(float(C))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts."""
        plain = {
            name: None if (value := getattr(self, name)) is None else value.tolist()
            for name in ("Cs", "coefs", "intercepts", "alphas", "margins", "slack_sums",
                         "training_errors", "seconds", "breakpoints")
        }  # fmt: skip
        return {
            "estimator": repr(self.estimator),
            "tol": self.tol,
            **plain,
            "support_counts": {kind: n.tolist() for kind, n in self.support_counts.items()},
            "statuses": [status.value for status in self.statuses],
            "certificates": [
                {"primal": float(c.primal), "dual": float(c.dual), "gap": float(c.gap),
                 "relative_gap": float(c.relative_gap)}
                for c in self.certificates
            ],
            **{name: getattr(self, name) for name in (
                "small_C", "small_C_reason", "hard_C", "hard_C_reason", "exact_until",
                "exact_reason")},
        }  # fmt: skip

    def __len__(self) -> int:
        return len(self.Cs)

    def __repr__(self) -> str:
        return "\n  ".join([f"RegularizationPath of {self.estimator!r}", *self._sentences()])

    def _repr_html_(self) -> str:
        picked = np.unique(np.linspace(0, len(self) - 1, _SHOWN).round().astype(int))
        more = f"{len(picked)} of {len(self)} costs" if len(picked) < len(self) else ""
        errors = "Outside the tube" if "outside" in self.support_counts else "Training errors"
        kinds = [f"Support: {kind}" for kind in self.support_counts]
        columns = ["C", "Margin 1/‖w‖", "Σ slack", *kinds, errors, "Relative gap", "Certified"]
        return tag(
            "div",
            tag("p", tag("b", "Regularization path"), f" of {self.estimator!r}"),
            bullets(self._sentences()),
            table(columns, map(self._line, picked), more),
        )

    def _line(self, k: int) -> list[str]:
        """Return the table's line for a cost; several problems: the least margin, and sums."""
        certificate = self.certificates[k]
        return [
            f"{self.Cs[k]:.4g}",
            f"{np.min(self.margins[k]):.4g}",
            f"{np.sum(self.slack_sums[k]):.4g}",
            *(f"{np.sum(counts[k])}" for counts in self.support_counts.values()),
            f"{np.sum(self.training_errors[k])}",
            f"{certificate.relative_gap:.2g}",
            "yes" if certificate.holds(self.tol) else f"no: {self.statuses[k].value}",
        ]

    def _sentences(self) -> list[str]:
        """Return what there is to say about the path."""
        held = sum(certificate.holds(self.tol) for certificate in self.certificates)
        gap = max(certificate.relative_gap for certificate in self.certificates)
        proof = "all" if held == len(self) else f"{held}"
        ends = self.margins.reshape(len(self), -1)
        sentences = [
            f"{len(self)} costs from C={self.Cs[0]:.4g} to {self.Cs[-1]:.4g}, {proof} certified "
            f"at tol={self.tol:g} (largest relative gap {gap:.2g})",
            f"margin 1/‖w‖ from {ends[0].min():.4g} down to {ends[-1].min():.4g}",
            _end("α/C is constant up to", self.small_C, self.small_C_reason),
            _end("soft ≡ hard from", self.hard_C, self.hard_C_reason),
        ]
        if self.breakpoints is not None:
            sentences.append(
                f"exact up to C={self.exact_until:.4g}, with {len(self.breakpoints)} breakpoints"
            )
        return sentences


def _end(what: str, C: float | None, reason: str) -> str:
    return f"{what} C={C:.4g}" if C is not None else f"{what}: not known ({reason})"
