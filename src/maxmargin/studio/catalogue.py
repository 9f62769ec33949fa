"""The models that the page offers, with the sliders of each."""

from typing import Any, NamedTuple


class Slider(NamedTuple):
    """A number that is set by a slider, on a log scale or in whole numbers if it says so."""

    symbol: str
    help: str
    low: float
    high: float
    default: float
    log: bool = False
    whole: bool = False


class Model(NamedTuple):
    """A model, as the page offers it.

    ``runs`` are the runs that can be stepped through: "perceptron", "solver" and "path".
    """

    title: str
    help: str
    sliders: tuple[str, ...] = ()
    kernel: str = ""  # the expression to begin with; empty for models without a kernel
    most_classes: int = 5  # 1: labels are not used
    runs: tuple[str, ...] = ()


# Those of kernels are shown if the expression names them.
SLIDERS = {
    "C": Slider("C", "What a point on the wrong side of its margin costs.", 1e-3, 1e4, 1.0, True),
    "gamma": Slider("γ", "How quickly the kernel falls with distance.", 1e-2, 1e2, 1.0, True),
    "degree": Slider("degree", "Degree of the polynomial.", 1, 8, 3, whole=True),
    "coef0": Slider("coef0", "Constant added to the product.", 0.0, 5.0, 1.0),
    "nu": Slider("ν", "At least the share of errors, at most that of support vectors.",
                 0.01, 0.99, 0.3),
    "epsilon": Slider("ε", "Half the height of the tube.", 1e-3, 2.0, 0.2, True),
    "eta": Slider("η", "How far one update moves the line.", 1e-2, 1e1, 1.0, True),
    "margin": Slider("θ", "Points with y f ≤ θ count as mistakes.", 0.0, 5.0, 0.0),
    "epochs": Slider("epochs", "Passes over the points, at most.", 1, 1000, 100, True, True),
    "label_noise": Slider("noise", "The share of labels that may be wrong.", 0.0, 0.3, 0.0),
    "component": Slider("component", "Which component is drawn.", 1, 3, 1, whole=True),
}  # fmt: skip
KERNEL_SLIDERS = ("gamma", "degree", "coef0")

_PERCEPTRON = ("eta", "margin", "epochs")
MODELS = {
    "Perceptron": Model(
        "Perceptron", "Learns from its mistakes, one by one.", _PERCEPTRON, runs=("perceptron",)
    ),
    "AveragedPerceptron": Model(
        "Averaged perceptron", "The mean of all lines on the way.", _PERCEPTRON,
        runs=("perceptron",),
    ),
    "VotedPerceptron": Model(
        "Voted perceptron", "All lines on the way have a vote.", _PERCEPTRON, runs=("perceptron",)
    ),
    "KernelPerceptron": Model(
        "Kernel perceptron", "The perceptron in the space of a kernel.", _PERCEPTRON, "RBF(gamma)",
        runs=("perceptron",),
    ),
    "HardMarginSVC": Model(
        "Hard margin", "The widest street between the classes, with nobody in it.", (), "Linear()"
    ),
    "LinearSVC": Model(
        "Soft margin (LinearSVC)", "The widest street, in which points may stand at a price.",
        ("C",), runs=("solver", "path"),
    ),
    "SVC": Model(
        "Kernel SVM (SVC)", "The soft margin in the space of a kernel.", ("C",), "RBF(gamma)",
        runs=("solver", "path"),
    ),
    "NuSVC": Model(
        "ν-SVM (NuSVC)", "The soft margin, with a share ν instead of a price C.", ("nu",),
        "RBF(gamma)", runs=("solver",),
    ),
    "BayesPointClassifier": Model(
        "Bayes point", "The average of all separators.", ("label_noise",), "Linear()"
    ),
    "OneClassSVM": Model(
        "One class", "Where the points are, whatever their labels.", ("nu",), "RBF(gamma)", 1,
        ("solver",),
    ),
    "SVR": Model(
        "Regression tube (SVR)", "A curve through the points: height as a function of position.",
        ("C", "epsilon"), "RBF(gamma)", 1, ("solver",),
    ),
    "KernelPCA": Model(
        "Kernel PCA", "The directions in which the points spread most.", ("component",),
        "RBF(gamma)", 1,
    ),
}  # fmt: skip


def describe() -> dict[str, Any]:
    """Return sliders and models as the page reads them."""
    return {
        "sliders": {name: slider._asdict() for name, slider in SLIDERS.items()},
        "kernel_sliders": list(KERNEL_SLIDERS),
        "models": {name: model._asdict() for name, model in MODELS.items()},
    }
