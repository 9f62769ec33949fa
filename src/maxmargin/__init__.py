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
        CircleMap,
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
        PolynomialMap,
        QuantileSVR,
        RandomFourier,
        StructuredPerceptron,
        StructuredSVC,
        VotedPerceptron,
    )
    from maxmargin.estimators.linear.l1_min_c import l1_min_c
    from maxmargin.estimators.trusted_types import SKOPS_TRUSTED_TYPES
    from maxmargin.files import load, save
    from maxmargin.inspection.certify_model import certify
    from maxmargin.kernels import check_kernel
    from maxmargin.reports import report
    from maxmargin.reports.versions import show_versions
    from maxmargin.rows.cluster import on_cluster
    from maxmargin.separability import Separation, separate
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
        *("SVC", "SVR", "AveragedPerceptron", "BayesPointClassifier", "CircleMap"),
        *("HardMarginSVC", "KernelPCA", "KernelPerceptron", "LinearSVC", "LinearSVR", "NuSVC"),
        *("NuSVR", "Nystroem", "OneClassSVM", "PartitionedSVC", "Perceptron", "PolynomialMap"),
        *("QuantileSVR", "RandomFourier", "StructuredPerceptron", "StructuredSVC"),
        "VotedPerceptron",
    ),
    "estimators.linear.l1_min_c": ("l1_min_c",),
    "estimators.trusted_types": ("SKOPS_TRUSTED_TYPES",),
    "files": ("load", "save"),
    "futures": ("on_cluster",),
    "inspection.certify_model": ("certify",),
    "kernels": ("check_kernel",),
    "model_selection": ("SVCSearchCV", "regularization_path"),
    "reports": ("report",),
    "separability": ("Separation", "separate"),
    "studio.widget": ("Studio",),
    "versions": ("show_versions",),
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
    "SKOPS_TRUSTED_TYPES",
    "SVC",
    "SVR",
    "AutomaticFit",
    "AveragedPerceptron",
    "BayesPointClassifier",
    "Certificate",
    "CircleMap",
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
    "PolynomialMap",
    "QuantileSVR",
    "RandomFourier",
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
    "on_cluster",
    "plots",
    "regularization_path",
    "report",
    "save",
    "separate",
    "show_versions",
    "structured",
]
