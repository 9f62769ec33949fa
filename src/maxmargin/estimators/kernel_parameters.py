"""The parameters of kernel machines: which they allow, and what they mean for kernel and solver."""

from numbers import Integral
from typing import Any

import numpy as np

from maxmargin.estimators.callbacks import announced
from maxmargin.estimators.inputs import generator
from maxmargin.estimators.parameters import (
    NamedParameters,
    check_choice,
    check_flag,
    check_number,
    check_progress,
    check_threads,
)
from maxmargin.estimators.solving import Settings
from maxmargin.kernels import Kernel, Precomputed, as_kernel
from maxmargin.kernels.compose import Constant
from maxmargin.kernels.names import is_precomputed

_MAX_ITER = 10_000  # what -1, scikit-learn's word for no limit, stands for


class KernelParameters(NamedParameters):
    """Checks of the parameters that all kernel machines have."""

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    tol: float
    max_iter: int
    max_time: float | None
    memory: Any
    cache_size: Any
    n_jobs: int | None
    callback: Any
    verbose: Any
    trace: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        given = is_precomputed(self.kernel)
        tags.input_tags.pairwise, tags.input_tags.sparse = given, not given
        return tags

    def _check_parameters(self) -> None:
        self._named_kernel()
        check_number(self, "tol", at_least=0)
        if not (isinstance(self.max_iter, Integral) and self.max_iter == -1):
            check_number(self, "max_iter", at_least=1, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        check_number(self, "cache_size", above=0, optional=True)
        if not (isinstance(self.memory, str) and self.memory == "auto"):
            self._check_memory()
        for name in ("shrinking", "warm_start", "trace"):
            check_flag(self, name)
        check_threads(self)
        check_progress(self)

    def _check_memory(self) -> None:
        try:
            check_number(self, "memory", at_least=1, integer=True)
        except (TypeError, ValueError) as wrong:
            raise type(wrong)(f"{wrong} It is a number of bytes, or 'auto'.") from None

    def _check_share(self) -> None:
        """Raise unless nu is in (0, 1]."""
        check_number(self, "nu", above=0, at_most=1)

    def _check_classifier(self) -> None:
        """Raise for parameters that only classifiers have."""
        probability: Any = getattr(self, "probability", False)
        if probability is not False and not (
            isinstance(probability, str) and probability == "deprecated"
        ):
            name = type(self).__name__
            raise ValueError(
                f"probability={probability!r} is not valid for {name}: its scores are not "
                f"probabilities. Use CalibratedClassifierCV({name}(), ensemble=False) of "
                "sklearn.calibration."
            )
        check_choice(self, "decision_function_shape", ("ovr", "ovo"))
        check_flag(self, "break_ties")
        generator(getattr(self, "random_state", None))

    # ------------------------------------------------------------ what they mean

    def _named_kernel(self, objects: bool = False) -> Kernel:
        """Return the kernel as the parameters say it; of a function, for objects or for rows."""
        if self._is_flat():
            return self._flat()
        kernel = as_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        if objects:
            kernel = kernel.for_objects()
        if kernel.takes_gram and not isinstance(kernel, Precomputed):
            raise ValueError(
                f"kernel={kernel!r} composes a precomputed matrix: compute the composed matrix "
                "yourself and pass that with kernel='precomputed'."
            )
        return kernel

    def _is_flat(self) -> bool:
        """Return whether gamma is 0, as scikit-learn allows: then rows do not matter."""
        named = isinstance(self.kernel, str) and self.kernel in ("rbf", "poly", "sigmoid")
        gamma = self.gamma
        number = isinstance(gamma, int | float | np.number) and not isinstance(gamma, bool)
        return named and number and gamma == 0

    def _flat(self) -> Kernel:
        if self.kernel == "rbf":
            return Constant(1.0)
        inner = float(self.coef0)
        return Constant(inner**self.degree if self.kernel == "poly" else float(np.tanh(inner)))

    def _bytes(self) -> int | None:
        """Return the memory for kernel values, None: what is free decides."""
        if not isinstance(self.memory, str):
            return int(self.memory)
        return None if self.cache_size is None else int(float(self.cache_size) * (1 << 20))

    def _threads(self) -> int | None:
        return None if self.n_jobs in (None, -1) else int(self.n_jobs)

    def _settings(self) -> Settings:
        seed = getattr(self, "random_state", None)
        return Settings(
            "auto",
            float(self.tol),
            _MAX_ITER if self.max_iter == -1 else int(self.max_iter),
            self.max_time,
            announced(self, self.callback),
            bool(self.verbose),
            bool(self.trace),
            self._threads(),
            0 if seed is None else int(generator(seed).integers(2**31)),
        )
