"""An estimator in one line."""

from typing import Any


def described(estimator: Any) -> str:
    """Return the code that makes an estimator, or a pipeline.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from maxmargin import SVC
    >>> described(make_pipeline(StandardScaler(), SVC(C=10.0)))
    'make_pipeline(StandardScaler(), SVC(C=10.0))'
    """
    steps = getattr(estimator, "steps", None)
    if steps is not None:
        return f"make_pipeline({', '.join(described(step) for _, step in steps)})"
    function = getattr(estimator, "func", None)
    if function is not None:
        return f"FunctionTransformer({function.__name__}, accept_sparse=True)"
    return " ".join(str(estimator).split())
