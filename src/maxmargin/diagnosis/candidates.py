"""A learner with its settings, as a value: what is cross-validated is what is recommended."""

from dataclasses import dataclass, field
from typing import Any

from maxmargin.estimators import SVC, HardMarginSVC, LinearSVC


@dataclass(frozen=True)
class Candidate:
    """A kind of learner, its settings, and whether columns are scaled before it."""

    kind: str
    settings: tuple[tuple[str, Any], ...] = ()
    scaled: bool = False
    sparse: bool = field(default=False, compare=False)

    def get(self, name: str) -> Any:
        """Return a setting, or None."""
        return dict(self.settings).get(name)

    def learner(self) -> Any:
        """Return the learner itself, unfitted."""
        return _KINDS[self.kind](**dict(self.settings))

    def estimator(self, wide: bool) -> Any:
        """Return the learner, or a pipeline that prepares the rows first as it needs them."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        steps: list[Any] = []
        if self.sparse and not wide and self.centred:
            steps.append(FunctionTransformer(written_out, accept_sparse=True))
        if self.scaled:
            steps.append(scaler(self.sparse and not self.centred, wide))
        return make_pipeline(*steps, self.learner()) if steps else self.learner()

    @property
    def centred(self) -> bool:
        """Whether the learner needs dense rows (with the mean taken off, if scaled)."""
        return self.kind in ("network", "Gaussian naive Bayes")

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        return {"kind": self.kind, "settings": dict(self.settings), "scaled": self.scaled}


def scaler(sparse: bool, wide: bool) -> Any:
    """Return what evens columns out: zeros of sparse rows stay zeros.

    Neither kernels of distances nor planes with a free intercept notice that the mean stays.
    """
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    if wide:
        return MaxAbsScaler()
    return StandardScaler(with_mean=not sparse)


def written_out(X: Any) -> Any:
    """Return sparse rows as an array."""
    return X.toarray() if hasattr(X, "toarray") else X


def _neighbours(**settings: Any) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(**settings)


def _gaussian(**settings: Any) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB(**settings)


def _multinomial(**settings: Any) -> Any:
    from sklearn.naive_bayes import MultinomialNB

    return MultinomialNB(**settings)


def _network(**settings: Any) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(**settings)


def _majority(**settings: Any) -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(**settings)


_KINDS: dict[str, Any] = {
    "hard margin": HardMarginSVC,
    "linear": LinearSVC,
    "kernel": SVC,
    "k-NN": _neighbours,
    "Gaussian naive Bayes": _gaussian,
    "multinomial naive Bayes": _multinomial,
    "network": _network,
    "majority": _majority,
}
