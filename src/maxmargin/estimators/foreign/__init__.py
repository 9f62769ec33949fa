"""Fitted models of other libraries, read back as points of the problem they were fitted to."""

from collections.abc import Callable
from typing import Any

from maxmargin.certificates import Certificate
from maxmargin.estimators.foreign.kernel_machines import svc, svr
from maxmargin.estimators.foreign.linear_machines import linear_svc, linear_svr, sgd_classifier
from maxmargin.estimators.foreign.nu_machines import nu_svc, nu_svr, one_class
from maxmargin.estimators.foreign.perceptrons import PerceptronFacts, perceptron
from maxmargin.estimators.foreign.training import Training

__all__ = ["READERS", "PerceptronFacts", "Reader", "Training"]

Reader = Callable[[Any, Training], Certificate | PerceptronFacts]

_SKLEARN: dict[str, Reader] = {
    "SVC": svc,
    "SVR": svr,
    "NuSVC": nu_svc,
    "NuSVR": nu_svr,
    "OneClassSVM": one_class,
    "LinearSVC": linear_svc,
    "LinearSVR": linear_svr,
    "SGDClassifier": sgd_classifier,
    "Perceptron": perceptron,
}

# By the first name of the module and the name of the class: nothing need be installed to be known.
READERS: dict[str, dict[str, Reader]] = {
    "sklearn": _SKLEARN,
    "sklearnex": _SKLEARN,
    "daal4py": _SKLEARN,
    "maxmargin": {"Perceptron": perceptron, "AveragedPerceptron": perceptron},
}
