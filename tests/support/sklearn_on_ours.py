"""A pytest plugin: scikit-learn's own tests of its support vector machines meet ours instead."""

import sklearn.svm

import maxmargin as mm

CLASSES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")


def pytest_configure() -> None:
    """Put our classes where the suite imports them from: only in a run that loads this plugin."""
    for name in CLASSES:
        setattr(sklearn.svm, name, getattr(mm, name))
