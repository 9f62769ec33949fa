"""The parameters of KernelPCA: which they allow, and what they mean; and the rows it takes."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.estimators.inputs import LARGEST_PRODUCT, check_rows, generator, refuse_overflow
from maxmargin.estimators.kernel_models import as_objects, checked_gram
from maxmargin.estimators.parameters import (
    NamedParameters,
    check_choice,
    check_flag,
    check_number,
    check_threads,
)
from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.kernels import Kernel, Precomputed, as_kernel
from maxmargin.kernels.bound import is_numeric
from maxmargin.kernels.names import is_precomputed
from maxmargin.problems.gram import free_memory

SOLVERS = ("auto", "dense", "iterative", "nystroem", "explicit")


class KernelPCAParameters(NamedParameters):
    """Checks of parameters and of input."""

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    memory: Any
    n_jobs: Any
    kernel_: Kernel

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        given = is_precomputed(self.kernel)
        tags.input_tags.pairwise, tags.input_tags.sparse = given, not given
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_parameters(self) -> None:
        self._named_kernel()
        for name in ("n_components", "n_landmarks"):
            check_number(self, name, at_least=1, integer=True, optional=True)
        check_choice(self, "eigen_solver", SOLVERS)
        check_choice(self, "inverse", ("auto", "ridge", "fixed_point"))
        check_flag(self, "fit_inverse_transform")
        check_number(self, "tol", at_least=0)
        check_number(self, "max_iter", at_least=1, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        check_number(self, "alpha", above=0)
        if not (isinstance(self.memory, str) and self.memory == "auto"):
            check_number(self, "memory", at_least=1, integer=True)
        check_threads(self)
        generator(getattr(self, "random_state", None))

    def _named_kernel(self, objects: bool = False) -> Kernel:
        """Return the kernel as the parameters say it."""
        if isinstance(self.kernel, Kernel):
            self._refuse_others()
            if self.kernel.takes_gram and not isinstance(self.kernel, Precomputed):
                raise ValueError(
                    f"kernel={self.kernel!r} composes a precomputed matrix: compute the composed "
                    "matrix yourself and pass that with kernel='precomputed'."
                )
            return self.kernel.for_objects() if objects else self.kernel
        gamma = "auto" if self.gamma is None else self.gamma
        kernel = as_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)
        return kernel.for_objects() if objects else kernel

    def _refuse_others(self) -> None:
        for name, default in (("gamma", None), ("degree", 3), ("coef0", 1.0)):
            value = getattr(self, name)
            if value is not default and value != default:
                raise ValueError(
                    f"{name}={value!r} is for kernels given by name; set it on the Kernel object, "
                    f"or leave it at {default!r}"
                )

    def _bytes(self) -> int:
        return free_memory() if isinstance(self.memory, str) else int(self.memory)

    def _threads(self) -> int | None:
        return None if self.n_jobs in (None, -1) else int(self.n_jobs)

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        """Return rows, kernel values or objects."""
        objects = not is_numeric(X) if reset else self.kernel_.takes_objects
        kernel = self._named_kernel(objects)
        if kernel.takes_objects and (objects or not is_numeric(X)):
            return as_objects(X)
        if not isinstance(kernel, Precomputed):
            X = check_rows(self, X, reset=reset)
            refuse_overflow(self, X, largest_squared_norm(X), LARGEST_PRODUCT)
            return X
        if sp.issparse(X):
            raise TypeError(
                "Sparse precomputed kernels are not supported, as dense data is required: pass "
                "X.toarray()."
            )
        X = check_rows(self, X, reset=reset)
        return checked_gram(X) if reset else X

    @staticmethod
    def _typed(values: Any, X: Any) -> Any:
        """Return projections in the type of the rows."""
        single = getattr(X, "dtype", None) == np.float32
        return np.ascontiguousarray(values, np.float32 if single else np.float64)
