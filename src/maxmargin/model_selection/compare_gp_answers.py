"""What the comparison of an SVM with a Gaussian process says."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.html import joined, table, tag
from maxmargin.kernels import Kernel

GP = "GP"
SVM_BY_GP = "SVM, the GP's kernel"
SVM_BY_CV = "SVM, kernel by CV"


@dataclass(frozen=True, eq=False, repr=False)
class GPComparison:
    """An SVM beside a Gaussian process; printed, a small table.

    What belongs to a model goes by its name: "GP", "SVM, the GP's kernel" and "SVM, kernel by CV".

    Attributes
    ----------
    kernel_gp, kernel_cv : Kernel
        The kernel by marginal likelihood, and by cross-validation.
    models : dict
        The fitted models.
    predictions, scores : dict
        What they say of the held-out rows, and accuracy (R² in regression) there.
    support_count : dict
        How many training rows a prediction takes; of the process, all.
    seconds : dict
        To choose parameters and fit; those of the SVMs count the search of the process, on which
        they rest.
    log_marginal_likelihood : dict
        Of the kernels "GP" and "CV", under the process.
    agreement : float
        Share of held-out rows to which the process and the tuned SVM give the same class; in
        regression, the correlation of their predictions.
    n_classes, n_rows : int
        How many classes (0: regression) and training rows there are.
    X_test, y_test : ndarray
        The held-out rows.
    notes : tuple of str
        What else is to be known.
    """

    kernel_gp: Kernel
    kernel_cv: Kernel
    models: dict[str, Any]
    predictions: dict[str, npt.NDArray[Any]]
    scores: dict[str, float]
    support_count: dict[str, int]
    seconds: dict[str, float]
    log_marginal_likelihood: dict[str, float]
    agreement: float
    n_classes: int
    n_rows: int
    X_test: npt.NDArray[np.float64]
    y_test: npt.NDArray[Any]
    notes: tuple[str, ...] = ()

    @property
    def _heading(self) -> str:
        kind = f"{self.n_classes} classes" if self.n_classes else "Regression"
        return f"{kind}: {self.n_rows} training rows, {len(self.y_test)} held out"

    @property
    def _columns(self) -> tuple[str, ...]:
        score = "accuracy" if self.n_classes else "R²"
        return ("", score, "rows used", "seconds", "kernel")

    def _lines(self) -> list[tuple[str, ...]]:
        kernels = {GP: self.kernel_gp, SVM_BY_GP: self.kernel_gp, SVM_BY_CV: self.kernel_cv}
        return [
            (
                name,
                f"{self.scores[name]:.3f}",
                f"{self.support_count[name]}",
                f"{self.seconds[name]:.2f}",
                _short(kernels[name]),
            )
            for name in self.models
        ]

    def _remarks(self) -> list[str]:
        likelihood = self.log_marginal_likelihood
        same = "agree on" if self.n_classes else "correlate by"
        share = f"{self.agreement:.1%} of the held-out rows" if self.n_classes else ""
        return [
            f"Log marginal likelihood: {likelihood['GP']:.4g} (the GP's kernel), "
            f"{likelihood['CV']:.4g} (that of CV).",
            f"GP and SVM {same} {share or f'{self.agreement:.3f} on the held-out rows'}.",
            *self.notes,
        ]

    def __repr__(self) -> str:
        table = [self._columns, *self._lines()]
        widths = [max(len(line[k]) for line in table) for k in range(5)]
        rows = [
            "  ".join(
                [
                    line[0].ljust(widths[0]),
                    *(line[k].rjust(widths[k]) for k in (1, 2, 3)),
                    line[4],
                ]
            )
            for line in table
        ]
        return "\n".join([self._heading, *rows, *self._remarks()])

    def _repr_html_(self) -> str:
        paragraphs = [tag("p", remark) for remark in self._remarks()]
        return joined([table(self._columns, self._lines(), self._heading), *paragraphs])

    def to_dict(self) -> dict[str, Any]:
        """Return all but the models as what JSON can hold; kernels as they print."""
        return {
            "kernel_gp": repr(self.kernel_gp),
            "kernel_cv": repr(self.kernel_cv),
            "predictions": {name: values.tolist() for name, values in self.predictions.items()},
            "scores": dict(self.scores),
            "support_count": dict(self.support_count),
            "seconds": dict(self.seconds),
            "log_marginal_likelihood": dict(self.log_marginal_likelihood),
            "agreement": self.agreement,
            "n_classes": self.n_classes,
            "n_rows": self.n_rows,
            "y_test": self.y_test.tolist(),
            "notes": list(self.notes),
        }


def _short(kernel: Kernel) -> str:
    """Return the kernel with four digits of its numbers."""
    return re.sub(r"\d+\.\d{4,}(e[+-]?\d+)?", lambda found: f"{float(found[0]):.4g}", repr(kernel))
