"""Scikit-learn's surface: check the input, run a solver, adopt what it found."""

from maxmargin.estimators.bayes.bayes_point import BayesPointClassifier
from maxmargin.estimators.feature_maps import CircleMap, Nystroem, PolynomialMap, RandomFourier
from maxmargin.estimators.hard_margin.hard_margin import HardMarginSVC
from maxmargin.estimators.kernel_pca import KernelPCA
from maxmargin.estimators.linear.linear_svc import LinearSVC
from maxmargin.estimators.linear.linear_svr import LinearSVR
from maxmargin.estimators.partitioned.partitioned_svc import PartitionedSVC
from maxmargin.estimators.perceptron import (
    AveragedPerceptron,
    KernelPerceptron,
    Perceptron,
    VotedPerceptron,
)
from maxmargin.estimators.svm.nu_svc import NuSVC
from maxmargin.estimators.svm.nu_svr import NuSVR
from maxmargin.estimators.svm.one_class import OneClassSVM
from maxmargin.estimators.svm.quantile_svr import QuantileSVR
from maxmargin.estimators.svm.svc import SVC
from maxmargin.estimators.svm.svr import SVR

__all__ = [
    "SVC",
    "SVR",
    "AveragedPerceptron",
    "BayesPointClassifier",
    "CircleMap",
    "HardMarginSVC",
    "KernelPCA",
    "KernelPerceptron",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "PartitionedSVC",
    "Perceptron",
    "PolynomialMap",
    "QuantileSVR",
    "RandomFourier",
    "VotedPerceptron",
]
