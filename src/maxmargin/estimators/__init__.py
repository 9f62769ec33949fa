"""Scikit-learn's surface: check the input, run a solver, adopt what it found.

In the order of the lectures: perceptrons, which learn from mistakes; the hard margin; the soft
margin of linear machines, then of kernel machines, for classes, numbers, quantiles and one class
alone; kernel PCA. Then Nyström's features, averages over all separators, and kernel machines in the
cells of a partition. Read ``perceptron/perceptron.py`` first, then ``machine.py``.
"""

# ruff: noqa: I001, RUF022 (the order is that of the lectures)
from maxmargin.estimators.perceptron import (
    AveragedPerceptron,
    KernelPerceptron,
    Perceptron,
    VotedPerceptron,
)
from maxmargin.estimators.hard_margin.hard_margin import HardMarginSVC
from maxmargin.estimators.linear.linear_svc import LinearSVC
from maxmargin.estimators.linear.linear_svr import LinearSVR
from maxmargin.estimators.svm.svc import SVC
from maxmargin.estimators.svm.svr import SVR
from maxmargin.estimators.svm.nu_svc import NuSVC
from maxmargin.estimators.svm.nu_svr import NuSVR
from maxmargin.estimators.svm.quantile_svr import QuantileSVR
from maxmargin.estimators.svm.one_class import OneClassSVM
from maxmargin.estimators.kernel_pca import KernelPCA
from maxmargin.estimators.feature_maps import Nystroem
from maxmargin.estimators.bayes.bayes_point import BayesPointClassifier
from maxmargin.estimators.partitioned.partitioned_svc import PartitionedSVC

__all__ = [
    "Perceptron",
    "AveragedPerceptron",
    "VotedPerceptron",
    "KernelPerceptron",
    "HardMarginSVC",
    "LinearSVC",
    "LinearSVR",
    "SVC",
    "SVR",
    "NuSVC",
    "NuSVR",
    "QuantileSVR",
    "OneClassSVM",
    "KernelPCA",
    "Nystroem",
    "BayesPointClassifier",
    "PartitionedSVC",
]
