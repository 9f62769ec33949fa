"""Fitted models of other libraries, certified as points of the problem they were fitted to."""

from collections.abc import Callable
from typing import Any

from maxmargin.certificates import Certificate
from maxmargin.inspection.foreign import linear, svm
from maxmargin.inspection.foreign.linear import PerceptronFacts, describe_perceptron
from maxmargin.inspection.foreign.training import TrainingData

__all__ = ["READERS", "PerceptronFacts", "Reader", "TrainingData"]

Reader = Callable[[Any, TrainingData], Certificate | PerceptronFacts]

_SKLEARN: dict[str, Reader] = {
    "SVC": svm.certify_svc,
    "SVR": svm.certify_svr,
    "NuSVC": svm.certify_nu_svc,
    "NuSVR": svm.certify_nu_svr,
    "OneClassSVM": svm.certify_one_class,
    "LinearSVC": linear.certify_linear_svc,
    "LinearSVR": linear.certify_linear_svr,
    "SGDClassifier": linear.certify_sgd_classifier,
    "Perceptron": describe_perceptron,
}

# By the top-level module and the name of the class: no library must be installed to be known.
READERS: dict[str, dict[str, Reader]] = {
    **dict.fromkeys(("sklearn", "sklearnex", "daal4py"), _SKLEARN),
    "maxmargin": {"Perceptron": describe_perceptron, "AveragedPerceptron": describe_perceptron},
}
