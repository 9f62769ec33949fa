"""Large-margin learning you can verify, as scikit-learn estimators.

The package tells the course. A perceptron (``estimators.perceptron``) learns w ← w + y x from each
mistake, and makes at most R²/γ² of them:

>>> import maxmargin as mm
>>> X, y = mm.datasets.separable(200, margin=0.2, random_state=0)
>>> online = mm.Perceptron().fit(X, y)
>>> online.updates_ <= online.mistake_bound_
True

Of all planes between two classes, one has the largest margin (``geometry``, ``separability``,
``estimators.hard_margin``):

>>> hard = mm.HardMarginSVC().fit(X, y)
>>> bool(hard.margin_ >= online.margin_)
True

Where classes overlap the margin is soft. The dual bounds the objective from below, and so proves
how good a solution is (``problems``, ``solvers``, ``certificates``):

>>> soft = mm.LinearSVC().fit(*mm.datasets.gaussians(200, random_state=0))
>>> soft.certificate_.relative_gap <= soft.tol
True

Kernels bend the plane (``kernels``, ``estimators.svm``), and find directions of largest variance in
the space where it is flat (``estimators.kernel_pca``):

>>> X, y = mm.datasets.circles(200, random_state=0)
>>> mm.SVC().fit(X, y).score(X, y)
1.0
>>> mm.KernelPCA(2, kernel="rbf").fit_transform(X).shape
(200, 2)

Around this stand files and tables (``data``, ``files``), the choice of a model
(``model_selection``, ``diagnosis``), and its faces: ``plots``, ``reports``, ``studio`` and ``cli``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from maxmargin.errors import no_attribute

if TYPE_CHECKING:
    from maxmargin import (
        data,
        datasets,
        errors,
        files,
        geometry,
        kernels,
        model_selection,
        plots,
        reports,
        structured,
    )
    from maxmargin.certificates import Certificate
    from maxmargin.diagnosis import AutomaticFit, Diagnosis, diagnose, fit_automatically
    from maxmargin.estimators import (
        SVC,
        SVR,
        AveragedPerceptron,
        BayesPointClassifier,
        HardMarginSVC,
        KernelPCA,
        KernelPerceptron,
        LinearSVC,
        LinearSVR,
        NuSVC,
        NuSVR,
        Nystroem,
        OneClassSVM,
        PartitionedSVC,
        Perceptron,
        QuantileSVR,
        VotedPerceptron,
    )
    from maxmargin.estimators.linear.l1_min_c import l1_min_c
    from maxmargin.files import load, save
    from maxmargin.inspection.certify_model import certify
    from maxmargin.kernels import check_kernel
    from maxmargin.reports import report
    from maxmargin.separability import Separation, separate
    from maxmargin.structured import StructuredPerceptron, StructuredSVC
    from maxmargin.studio.widget import Studio

__version__ = "0.1.0"

# Everything is loaded when it is asked for, so that `maxmargin --help` answers at once.
_ROOMS = (
    *("data", "datasets", "errors", "files", "geometry", "kernels"),
    *("model_selection", "plots", "reports", "structured"),
)
_FOUND_IN = {
    "certificates": ("Certificate",),
    "diagnosis": ("AutomaticFit", "Diagnosis", "diagnose", "fit_automatically"),
    "estimators": (
        *("Perceptron", "AveragedPerceptron", "VotedPerceptron", "KernelPerceptron"),
        *("HardMarginSVC", "LinearSVC", "LinearSVR", "SVC", "SVR", "NuSVC", "NuSVR"),
        *("QuantileSVR", "OneClassSVM", "KernelPCA", "Nystroem", "BayesPointClassifier"),
        "PartitionedSVC",
    ),
    "estimators.linear.l1_min_c": ("l1_min_c",),
    "files": ("load", "save"),
    "inspection.certify_model": ("certify",),
    "kernels": ("check_kernel",),
    "model_selection": ("SVCSearchCV", "regularization_path"),
    "reports": ("report",),
    "separability": ("Separation", "separate"),
    "structured": ("StructuredPerceptron", "StructuredSVC"),
    "studio.widget": ("Studio",),
}
_ROOM_OF = {name: room for room, names in _FOUND_IN.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"maxmargin.{name}")
    if name not in _ROOM_OF:
        raise no_attribute(__name__, name)
    found = getattr(import_module(f"maxmargin.{_ROOM_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, "__doc__", "__file__", "__version__"})


__all__ = [
    "SVC",
    "SVR",
    "AutomaticFit",
    "AveragedPerceptron",
    "BayesPointClassifier",
    "Certificate",
    "Diagnosis",
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
    "QuantileSVR",
    "SVCSearchCV",
    "Separation",
    "StructuredPerceptron",
    "StructuredSVC",
    "Studio",
    "VotedPerceptron",
    "certify",
    "check_kernel",
    "data",
    "datasets",
    "diagnose",
    "errors",
    "files",
    "fit_automatically",
    "geometry",
    "kernels",
    "l1_min_c",
    "load",
    "model_selection",
    "plots",
    "regularization_path",
    "report",
    "reports",
    "save",
    "separate",
    "structured",
]
