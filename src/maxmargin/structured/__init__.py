"""Models of structured outputs: how inputs and outputs are scored, searched and compared.

``mm.StructuredSVC`` and ``mm.StructuredPerceptron`` learn the weights w of a score ⟨w, ψ(x, y)⟩,
whose highest y is the prediction. What x and y are is up to a model: ``Multiclass`` and ``Chain``
are ready, with compiled decoders. A model of your own is a class with three methods; this one marks
where in a row of numbers an interval begins and ends:

>>> import numpy as np
>>> import maxmargin as mm
>>> class Interval(mm.structured.Model):
...     exact = True  # decode tries all intervals, so that the fit can be certified
...
...     def features(self, x, y):
...         begin, end = y
...         return np.array([x[begin:end].sum(), end - begin])
...
...     def decode(self, x, w, truth=None):
...         def score(y):
...             return w @ self.features(x, y) + (0 if truth is None else self.loss(truth, y))
...         n = len(x)
...         return max(((b, e) for b in range(n) for e in range(b + 1, n + 1)), key=score)
...
...     def loss(self, y, other):
...         return float(abs(y[0] - other[0]) + abs(y[1] - other[1]))
>>> rng = np.random.default_rng(0)
>>> Y = [(int(b), int(b) + 3) for b in rng.integers(0, 5, 20)]
>>> X = [2.0 * ((b <= np.arange(8)) & (np.arange(8) < e)) - 1 for b, e in Y]
>>> X = [x + 0.5 * rng.standard_normal(8) for x in X]
>>> machine = mm.StructuredSVC(Interval()).fit(X, Y)
>>> machine.certificate_.holds(1e-3)
True
>>> sum(found == y for found, y in zip(machine.predict(X), Y)) >= 18
True
"""

from typing import TYPE_CHECKING, NoReturn

from maxmargin.errors import no_attribute
from maxmargin.structured.chain import Chain, Multiclass
from maxmargin.structured.model import Cuts, Examples, Model
from maxmargin.structured.perceptron import StructuredPerceptron
from maxmargin.structured.svc import StructuredSVC

__all__ = [
    "Chain",
    "Cuts",
    "Examples",
    "Model",
    "Multiclass",
    "StructuredPerceptron",
    "StructuredSVC",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise no_attribute(__name__, name)
