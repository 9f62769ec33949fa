"""Perceptrons: plain, averaged, voted, and in dual form with any kernel."""

from maxmargin.estimators.perceptron.kernel import KernelPerceptron
from maxmargin.estimators.perceptron.perceptron import AveragedPerceptron, Perceptron
from maxmargin.estimators.perceptron.voted import VotedPerceptron

__all__ = ["AveragedPerceptron", "KernelPerceptron", "Perceptron", "VotedPerceptron"]
