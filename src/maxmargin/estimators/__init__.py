"""Scikit-learn's surface: check the input, run a solver, adopt what it found."""

from maxmargin.estimators.feature_maps import CircleMap, Nystroem, PolynomialMap, RandomFourier
from maxmargin.estimators.hard_margin import HardMarginSVC
from maxmargin.estimators.kernel_pca import KernelPCA
from maxmargin.estimators.linear_svc import LinearSVC
from maxmargin.estimators.linear_svr import LinearSVR
from maxmargin.estimators.nu_svc import NuSVC
from maxmargin.estimators.nu_svr import NuSVR
from maxmargin.estimators.one_class import OneClassSVM
from maxmargin.estimators.perceptron import (
    AveragedPerceptron,
    KernelPerceptron,
    Perceptron,
    VotedPerceptron,
)
from maxmargin.estimators.svc import SVC
from maxmargin.estimators.svr import SVR

__all__ = [
    "SVC",
    "SVR",
    "AveragedPerceptron",
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
    "Perceptron",
    "PolynomialMap",
    "RandomFourier",
    "VotedPerceptron",
]
