"""Large-margin learning you can verify, as scikit-learn estimators.

>>> import maxmargin as mm
>>> X, y = mm.datasets.separable(200, margin=0.2, random_state=0)
>>> model = mm.Perceptron().fit(X, y)
>>> model.updates_ <= model.mistake_bound_
True
"""

from importlib import import_module
from typing import Any

from maxmargin import data, datasets, geometry, kernels
from maxmargin.certificates import Certificate
from maxmargin.diagnosis import Diagnosis, diagnose
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
from maxmargin.inspection.certify_model import certify
from maxmargin.kernels import check_kernel
from maxmargin.reports import report
from maxmargin.separability import Separation, separate

__version__ = "0.1.0"

# Loaded when it is asked for: it takes more of scikit-learn than most programs need.
_CHOOSING = ("SVCSearchCV", "compare_gp", "regularization_path")


def __getattr__(name: str) -> Any:
    if name in ("model_selection", *_CHOOSING):
        room = import_module("maxmargin.model_selection")
        return getattr(room, name) if name in _CHOOSING else room
    if name in ("plots", "structured"):
        return import_module(f"maxmargin.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
