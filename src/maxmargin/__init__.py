"""Large-margin learning you can verify, as scikit-learn estimators.

>>> import maxmargin as mm
>>> X, y = mm.datasets.separable(200, margin=0.2, random_state=0)
>>> model = mm.Perceptron().fit(X, y)
>>> model.updates_ <= model.mistake_bound_
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from maxmargin import data, datasets, geometry, kernels
from maxmargin.certificates import Certificate
from maxmargin.errors import DataFileError, NotSeparableError
from maxmargin.estimators import (
    SVC,
    SVR,
    AveragedPerceptron,
    BayesPointClassifier,
    CircleMap,
    HardMarginSVC,
    KernelPCA,
    KernelPerceptron,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    Perceptron,
    PolynomialMap,
    QuantileSVR,
    RandomFourier,
    StructuredPerceptron,
    StructuredSVC,
    VotedPerceptron,
)
from maxmargin.estimators.trusted_types import SKOPS_TRUSTED_TYPES
from maxmargin.kernels import check_kernel
from maxmargin.separability import Separation, separate

if TYPE_CHECKING:
    from maxmargin.diagnosis import Diagnosis, diagnose
    from maxmargin.inspection.certify_model import certify
    from maxmargin.reports import report

__version__ = "0.1.0"

# Loaded when they are asked for: a fit needs none of them. A room, or where the name is found.
_LATER = {
    "model_selection": None,
    "plots": None,
    "structured": None,
    "Diagnosis": "diagnosis",
    "SVCSearchCV": "model_selection",
    "certify": "inspection.certify_model",
    "compare_gp": "model_selection",
    "diagnose": "diagnosis",
    "regularization_path": "model_selection",
    "report": "reports",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = import_module(f"maxmargin.{_LATER[name] or name}")
    return getattr(room, name) if _LATER[name] else room


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "SKOPS_TRUSTED_TYPES",
    "SVC",
    "SVR",
    "AveragedPerceptron",
    "BayesPointClassifier",
    "Certificate",
    "CircleMap",
    "DataFileError",
    "Diagnosis",
    "HardMarginSVC",
    "KernelPCA",
    "KernelPerceptron",
    "LinearSVC",
    "LinearSVR",
    "NotSeparableError",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "Perceptron",
    "PolynomialMap",
    "QuantileSVR",
    "RandomFourier",
    "SVCSearchCV",
    "Separation",
    "StructuredPerceptron",
    "StructuredSVC",
    "VotedPerceptron",
    "certify",
    "check_kernel",
    "compare_gp",
    "data",
    "datasets",
    "diagnose",
    "geometry",
    "kernels",
    "model_selection",
    "plots",
    "regularization_path",
    "report",
    "separate",
    "structured",
]
