"""Fitted models of other libraries, certified as points of the problem they were fitted to."""

from collections.abc import Callable
from typing import Any

from maxmargin.certificates import Certificate
from maxmargin.inspection.foreign.linear import (
    certify_linear_svc,
    certify_linear_svr,
    certify_sgd_classifier,
)
from maxmargin.inspection.foreign.perceptron import PerceptronFacts, describe_perceptron
from maxmargin.inspection.foreign.svm import (
    certify_nu_svc,
    certify_nu_svr,
    certify_one_class,
    certify_svc,
    certify_svr,
)
from maxmargin.inspection.foreign.training import TrainingData

__all__ = ["READERS", "PerceptronFacts", "Reader", "TrainingData"]

Reader = Callable[[Any, TrainingData], Certificate | PerceptronFacts]

_SKLEARN: dict[str, Reader] = {
    "SVC": certify_svc,
    "SVR": certify_svr,
    "NuSVC": certify_nu_svc,
    "NuSVR": certify_nu_svr,
    "OneClassSVM": certify_one_class,
    "LinearSVC": certify_linear_svc,
    "LinearSVR": certify_linear_svr,
    "SGDClassifier": certify_sgd_classifier,
    "Perceptron": describe_perceptron,
}

# By the top-level module and the name of the class: no library must be installed to be known.
READERS: dict[str, dict[str, Reader]] = {
    "sklearn": _SKLEARN,
    "sklearnex": _SKLEARN,
    "daal4py": _SKLEARN,
    "maxmargin": {"Perceptron": describe_perceptron, "AveragedPerceptron": describe_perceptron},
}
