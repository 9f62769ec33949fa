"""Which learner suits these data? A ladder of questions, each answered with evidence.

Do equal rows contradict each other? Does a plane separate the classes, or all but a few rows? Does
a kernel predict better than a plane, a network better than a kernel, and does anything predict
better than always naming the largest class? ``diagnose`` asks in this order and returns a
``Diagnosis``: a verdict, what proves it, and an estimator to use. ``fit_automatically`` goes on
from there: it tunes this estimator and fits it, within a time.
"""

from maxmargin.diagnosis.automatic import AutomaticFit, fit_automatically
from maxmargin.diagnosis.ladder import diagnose
from maxmargin.diagnosis.result import Alternative, Diagnosis, Rung

__all__ = [
    "Alternative",
    "AutomaticFit",
    "Diagnosis",
    "Rung",
    "diagnose",
    "fit_automatically",
]
