"""A model of one's own: rank the items of queries, so that relevant ones stand above others.

    python examples/ranking_model.py

An input is a query, an array with a row for each item; a true output says of each item whether it
is relevant, and an output is an order, as a score for each item. The loss is the share of pairs
that are swapped, which is 1 − AUC. A model needs to say what differs between the truth and another
order, what that costs, and which order is worst: here one comparison of all pairs is enough.
"""

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import maxmargin as mm


class Ranking(mm.structured.Model):
    """Items by w·x; a pair of a relevant and another item counts 1/(number of pairs)."""

    exact = True  # each pair is swapped by itself, if that pays

    def swapped(self, relevant: Any, order: Any) -> Any:
        """Return the share of each pair (relevant item, other item) that is swapped."""
        lead = order[relevant][:, np.newaxis] - order[~relevant]
        return ((lead < 0) + 0.5 * (lead == 0)) / max(1, lead.size)

    def difference(self, x: Any, y: Any, other: Any) -> Any:
        """Return Σ over swapped pairs of (relevant item − other item), by share."""
        if other is y:
            return np.zeros(x.shape[1])
        swapped = self.swapped(y, other)
        return swapped.sum(axis=1) @ x[y] - swapped.sum(axis=0) @ x[~y]

    def loss(self, y: Any, other: Any) -> float:
        """Return the share of swapped pairs: 1 − AUC."""
        return 0.0 if other is y else float(self.swapped(y, other).sum())

    def decode(self, x: Any, w: Any, truth: Any = None) -> Any:
        """Return the best order, or with a truth the one that violates its margin most."""
        scores = x @ w
        # A swap pays where a relevant item leads by less than 1: s − ½ < s′ + ½.
        return scores if truth is None else scores + np.where(truth, -0.5, 0.5)


def main() -> None:
    rng = np.random.default_rng(0)
    queries = [rng.normal(size=(20, 3)) for _ in range(30)]
    relevant = [q @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=20) > 1 for q in queries]
    ranker = mm.StructuredSVC(Ranking(), C=20).fit(queries[:20], relevant[:20])
    scores = ranker.predict(queries[20:])
    areas = [roc_auc_score(y, s) for y, s in zip(relevant[20:], scores, strict=True)]
    print(f"proved to a relative gap of 1e-3: {ranker.certificate_.holds(1e-3)}")
    direction = ranker.coef_ / np.linalg.norm(ranker.coef_)
    print(f"direction found: {np.round(direction, 2)}; of the truth: [0.44 -0.87 0.22]")
    print(f"mean AUC on new queries: {np.mean(areas):.2f}")


if __name__ == "__main__":
    main()
