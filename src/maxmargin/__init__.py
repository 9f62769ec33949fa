"""Large-margin learning you can verify, as scikit-learn estimators.

>>> import maxmargin as mm
>>> X, y = mm.datasets.separable(200, margin=0.2, random_state=0)
>>> model = mm.Perceptron().fit(X, y)
>>> model.updates_ <= model.mistake_bound_
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin import (
        data,
        datasets,
        files,
        geometry,
        kernels,
        model_selection,
        plots,
        structured,
    )
    from maxmargin.certificates import Certificate
    from maxmargin.diagnosis import AutomaticFit, Diagnosis, diagnose, fit_automatically
    from maxmargin.errors import (
        DataFileError,
        DistributedFitError,
        ModelFileError,
        NotSeparableError,
    )
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
    *("data", "datasets", "files", "geometry", "kernels", "model_selection", "plots"),
    "structured",
)
_FOUND_IN = {
    "certificates": ("Certificate",),
    "diagnosis": ("AutomaticFit", "Diagnosis", "diagnose", "fit_automatically"),
    "errors": ("DataFileError", "DistributedFitError", "ModelFileError", "NotSeparableError"),
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
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
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
    "DataFileError",
    "Diagnosis",
    "DistributedFitError",
    "HardMarginSVC",
    "KernelPCA",
    "KernelPerceptron",
    "LinearSVC",
    "LinearSVR",
    "ModelFileError",
    "NotSeparableError",
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
    "save",
    "separate",
    "structured",
]
