"""Kernel machines with the Gaussian kernel: ours and others', each with its own tolerance.

Whether that is tight or loose is not believed: what comes out is certified by ``mm.certify``.
"""

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.machine import package_version


@dataclass(frozen=True)
class Machine:
    """What is minimised: ½‖w‖² + C Σ loss in the feature space of exp(−γ‖x − x′‖²).

    The loss is max(0, 1 − y f), or with an ``epsilon`` max(0, |y − f| − ε).
    """

    C: float
    gamma: float
    epsilon: float | None = None
    tol: float = 1e-4  # of ours

    def __str__(self) -> str:
        return f"C={self.C:g}, γ={self.gamma:.3g}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The same as scikit-learn calls it."""
        said: dict[str, Any] = {"C": self.C, "kernel": "rbf", "gamma": self.gamma}
        return said if self.epsilon is None else {**said, "epsilon": self.epsilon}


class Tool(Protocol):
    """Someone who fits kernel machines."""

    @property
    def name(self) -> str:
        """The library at work."""
        ...

    @property
    def package(self) -> str:
        """What it is distributed as."""
        ...

    @property
    def threaded(self) -> bool:
        """Whether it can use several threads."""
        ...

    def refusal(self) -> str | None:
        """Say why it cannot take part, if so."""
        ...

    def limit(self, threads: int) -> None:
        """Allow this process so many threads, beyond what its environment says."""
        ...

    def model(self, machine: Machine, threads: int, settings: dict[str, Any]) -> Any:
        """Return an estimator that is not fitted yet; settings come before its defaults."""
        ...


@dataclass(frozen=True)
class Ours:
    """``maxmargin.SVC`` and ``SVR``: tol is a relative duality gap, and as small as others get."""

    name: str = "maxmargin"
    package: str = "maxmargin"
    threaded: bool = True

    def refusal(self) -> str | None:
        """Take part as soon as there is an SVC."""
        maxmargin = importlib.import_module("maxmargin")
        return None if hasattr(maxmargin, "SVC") else "maxmargin has no SVC yet"

    def limit(self, threads: int) -> None:
        """Leave it to ``n_jobs``."""

    def model(self, machine: Machine, threads: int, settings: dict[str, Any]) -> Any:
        """Return an SVC or SVR."""
        return _estimator("maxmargin", machine, {"n_jobs": threads, "tol": machine.tol, **settings})


@dataclass(frozen=True)
class Libsvm:
    """scikit-learn's ``SVC`` and ``SVR`` as they come: tol=1e-3, 200 MB of cache, one thread."""

    name: str = "LIBSVM"
    package: str = "scikit-learn"
    threaded: bool = False

    def refusal(self) -> str | None:
        """Take part always."""
        return None

    def limit(self, threads: int) -> None:
        """Do nothing: it has one thread whatever is allowed."""

    def model(self, machine: Machine, threads: int, settings: dict[str, Any]) -> Any:
        """Return an SVC or SVR."""
        return _estimator("sklearn.svm", machine, settings)


@dataclass(frozen=True)
class OneDal:
    """sklearn-intelex's ``SVC`` and ``SVR`` as they come, where it is installed."""

    name: str = "oneDAL"
    package: str = "scikit-learn-intelex"
    threaded: bool = True

    def refusal(self) -> str | None:
        """Take part where it is installed."""
        missing = importlib.util.find_spec("sklearnex") is None
        return "scikit-learn-intelex is not installed" if missing else None

    def limit(self, threads: int) -> None:
        """Tell oneDAL, which looks at no environment variable."""
        importlib.import_module("daal4py").daalinit(threads)

    def model(self, machine: Machine, threads: int, settings: dict[str, Any]) -> Any:
        """Return an SVC or SVR."""
        return _estimator("sklearnex.svm", machine, settings)


TOOLS: dict[str, Tool] = {tool.name: tool for tool in (Ours(), OneDal(), Libsvm())}
PEERS = [name for name in TOOLS if name != Ours.name]


def described(name: str) -> str:
    """Return a tool's name with its package and version, as the installer knows it."""
    tool = TOOLS[name]
    version = package_version(tool.package)
    if version is None and tool.refusal() is None:  # used from a folder, not installed
        version = getattr(importlib.import_module(tool.package), "__version__", None)
    return f"{tool.name} ({tool.package} {version or 'not installed'})"


def _estimator(module: str, machine: Machine, settings: dict[str, Any]) -> Any:
    kind = "SVC" if machine.epsilon is None else "SVR"
    estimator = getattr(importlib.import_module(module), kind)
    return estimator(**{**machine.parameters, **settings})
