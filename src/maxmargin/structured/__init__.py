"""Models of structured outputs: how inputs and outputs are scored, searched and compared.

``mm.StructuredSVC`` and ``mm.StructuredPerceptron`` learn the weights w of a score ⟨w, ψ(x, y)⟩,
whose highest y is the prediction. What x and y are is up to a model: ``Multiclass``,
``Multilabel``, ``Chain`` and ``Ranking`` are ready, with compiled decoders. A model of your own is
a class with three methods; this one marks where in a row of numbers an interval begins and ends:

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
>>> Interval().decode(np.array([-1.0, 2.0, 1.5, -3.0]), np.array([1.0, 0.0]))
(1, 3)
"""

from maxmargin.structured.chain import Chain
from maxmargin.structured.model import Cuts, Examples, Model
from maxmargin.structured.multiclass import Multiclass
from maxmargin.structured.multilabel import Multilabel
from maxmargin.structured.ranking import Ranking

__all__ = ["Chain", "Cuts", "Examples", "Model", "Multiclass", "Multilabel", "Ranking"]
