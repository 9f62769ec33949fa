"""The parameter gamma, which may wait for the data."""

from typing import Any, Self

from maxmargin.kernels.base import Kernel
from maxmargin.kernels.bound import Source
from maxmargin.kernels.parameters import DATA_DRIVEN, data_driven_gamma, gamma_of


class WithGamma(Kernel):
    """A kernel with a scale γ > 0, or the words "scale" and "auto" until ``resolved(X)``."""

    gamma: Any

    def _check(self) -> None:
        gamma_of(self)

    def _resolved(self, source: Source) -> Self:
        copy = self._copied()
        if isinstance(self.gamma, str) and self.gamma in DATA_DRIVEN:
            copy.gamma = data_driven_gamma(self, source.rows, source.weight)
        copy._check()
        return copy
