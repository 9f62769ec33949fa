"""The plane inside a fitted model, ours or scikit-learn's."""

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from maxmargin.geometry.inputs import is_sparse
from maxmargin.geometry.planes import Hyperplane, KernelHyperplane

_NAMED = ("linear", "rbf", "poly", "sigmoid")  # kernels of rows that scikit-learn's machines have


def hyperplane(model: Any) -> Hyperplane | KernelHyperplane:
    """Return the plane of a fitted model with two classes; its f is the model's decision function.

    The vote of many planes of a VotedPerceptron is not a plane: the last one is returned.

    Parameters
    ----------
    model : fitted model
        With ``coef_`` and ``intercept_``; or with ``dual_coef_``, ``support_vectors_``,
        ``intercept_`` and a kernel: ``kernel_`` with ``gram``, or the parameters of
        scikit-learn's SVC.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> model = LinearSVC().fit([[0, 0], [0, 1], [2, 0], [2, 1]], list("aabb"))
    >>> plane = hyperplane(model)
    >>> plane.predict([[0, 0], [2, 0]])
    array([-1,  1])
    """
    name = type(model).__name__
    linear = hasattr(model, "coef_")
    if not linear and not hasattr(model, "dual_coef_"):
        _explain_missing(model, name)
    if len(getattr(model, "classes_", ())) > 2:
        raise ValueError(
            f"{name} has {len(model.classes_)} classes, so several planes; fit two classes, or "
            "build Hyperplane(coef_[k], intercept_[k]) yourself"
        )
    if not hasattr(model, "intercept_"):
        raise ValueError(f"{name} has no intercept_; build the plane from its weights yourself")
    b = _single(model.intercept_, "intercept_", name)
    if linear:
        return Hyperplane(_only_row(model.coef_, "coef_", name), b)
    a = _only_row(model.dual_coef_, "dual_coef_", name)
    named = getattr(model, "kernel", None)
    if not hasattr(getattr(model, "kernel_", None), "gram") and named not in _NAMED:
        raise ValueError(
            f"{name} has kernel={named!r}, but not the rows it belongs to; write "
            "KernelHyperplane(kernel, X[model.support_], model.dual_coef_[0], b) yourself"
        )
    return KernelHyperplane(read_kernel(model), model.support_vectors_, a, b)


def read_kernel(model: Any) -> Any:
    """Return the kernel of a fitted model, ours or scikit-learn's."""
    if hasattr(getattr(model, "kernel_", None), "gram"):
        return model.kernel_
    # Imported here: most planes are linear.
    from maxmargin.kernels import as_kernel

    if not isinstance(model.kernel, str):
        return as_kernel(model.kernel)
    # scikit-learn keeps the number that it computed for gamma="scale" or "auto" in _gamma.
    gamma = getattr(model, "_gamma", model.gamma)
    return as_kernel(model.kernel, gamma=gamma, degree=model.degree, coef0=model.coef0)


def _explain_missing(model: Any, name: str) -> None:
    fitted = any(
        key.endswith("_") and not key.startswith("_") for key in getattr(model, "__dict__", ())
    )
    # A pipeline keeps its fitted attributes in its steps.
    if hasattr(model, "fit") and not fitted and not hasattr(model, "steps"):
        raise NotFittedError(f"{name} is not fitted yet; call fit first")
    raise ValueError(
        f"{name} has neither coef_ nor dual_coef_, so no plane; for a pipeline, give its last step"
    )


def _only_row(values: Any, attribute: str, name: str) -> Any:
    rows = np.atleast_2d(values.toarray() if is_sparse(values) else np.asarray(values))
    if rows.ndim != 2 or len(rows) != 1:
        raise ValueError(f"{name}.{attribute} has shape {rows.shape}: not the weights of one plane")
    return rows[0]


def _single(value: Any, attribute: str, name: str) -> float:
    values = np.ravel(value)
    if len(values) != 1:
        raise ValueError(f"{name}.{attribute} has {len(values)} entries: not those of one plane")
    return float(values[0])
