"""Names of kernels, as users write them for ``kernel=``."""

from typing import Any

from maxmargin.errors import did_you_mean
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.dot_products import Cosine, Linear, Polynomial, Sigmoid
from maxmargin.kernels.histograms import ChiSquared, Intersection
from maxmargin.kernels.precomputed import Precomputed
from maxmargin.kernels.stationary import RBF, Laplacian
from maxmargin.kernels.user_defined import FromFunction

# The class of each, and which parameters it takes.
_NAMED: dict[str, tuple[type[Kernel], tuple[str, ...]]] = {
    "linear": (Linear, ()),
    "poly": (Polynomial, ("degree", "gamma", "coef0")),
    "polynomial": (Polynomial, ("degree", "gamma", "coef0")),
    "rbf": (RBF, ("gamma",)),
    "sigmoid": (Sigmoid, ("gamma", "coef0")),
    "laplacian": (Laplacian, ("gamma",)),
    "cosine": (Cosine, ()),
    "chi2": (ChiSquared, ("gamma",)),
    "intersection": (Intersection, ()),
    "precomputed": (Precomputed, ()),
}

# The parameters of kernels given by name, with scikit-learn's defaults.
NAMED_DEFAULTS = {"gamma": "scale", "degree": 3, "coef0": 0.0}

# What the same kernels are called elsewhere.
_OTHER_NAMES = {"gaussian": "rbf", "gauss": "rbf", "radial": "rbf", "squared_exponential": "rbf"}


def as_kernel(
    kernel: Any, *, gamma: float | str = "scale", degree: int = 3, coef0: float = 0.0
) -> Kernel:
    """Return the kernel that a name, a function or a Kernel stands for.

    Parameters
    ----------
    kernel : str, callable or Kernel
        A name known from scikit-learn ("linear", "poly", "rbf", "sigmoid", "precomputed", and
        "polynomial", "laplacian", "cosine", "chi2", "intersection"); a function of two blocks of
        rows; or a Kernel, which is returned as it is.
    gamma, degree, coef0
        Parameters of the named kernel, with scikit-learn's defaults. A Kernel has its own
        parameters; with a Kernel, these must keep their defaults.

    Examples
    --------
    >>> from maxmargin.kernels import as_kernel
    >>> as_kernel("poly", degree=2)
    Polynomial(degree=2, gamma='scale', coef0=0.0)
    """
    parameters = {"gamma": gamma, "degree": degree, "coef0": coef0}
    if isinstance(kernel, Kernel):
        refuse_for_objects(parameters, NAMED_DEFAULTS)
        return kernel
    if isinstance(kernel, str):
        if kernel not in _NAMED:
            meant = _OTHER_NAMES.get(kernel.lower(), kernel)
            raise ValueError(
                f"kernel={kernel!r} is not known; valid names are {sorted(_NAMED)}."
                f"{did_you_mean(meant, _NAMED)}"
            )
        named, taken = _NAMED[kernel]
        return named(*map(parameters.get, taken))
    if callable(kernel) and not isinstance(kernel, type):
        return FromFunction(kernel)
    raise TypeError(
        f"kernel must be a name, a function of two blocks or a Kernel object, got {kernel!r}"
    )


def refuse_for_objects(parameters: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Raise if one is not at its default: a Kernel object has its own parameters."""
    for name, value in parameters.items():
        if value is not defaults[name] and value != defaults[name]:
            raise ValueError(
                f"{name}={value!r} is for kernels given by name; set it on the Kernel object, "
                f"or leave it at {defaults[name]!r}"
            )


def is_precomputed(kernel: Any) -> bool:
    """Return whether ``kernel`` says that kernel values are given instead of rows."""
    named = isinstance(kernel, str) and kernel == "precomputed"
    return named or isinstance(kernel, Precomputed)
