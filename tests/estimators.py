"""Every public estimator, and the common checks that cannot hold, each with its proof.

A new estimator joins all shared suites by being listed in ESTIMATORS.
"""

from typing import Any

from sklearn.base import BaseEstimator

import maxmargin as mm

ESTIMATORS: list[BaseEstimator] = [
    mm.Perceptron(),
    mm.AveragedPerceptron(),
    mm.VotedPerceptron(),
    mm.KernelPerceptron(),
]

# tests/test_contract.py::test_weight_equivalence_cannot_hold_for_order_dependent_learners is the
# proof: two orders of the same rows give two different perceptrons, so a fit cannot equal the fit
# on a reshuffled repetition of its rows. What does hold (repetition in place) is tested in
# tests/test_perceptron.py.
ORDER_DEPENDENT = "visits rows in order: reshuffled repetitions are another sequence of visits"


def expected_failures(estimator: Any) -> dict[str, str]:
    """Return the common checks that this estimator cannot pass, with the reason."""
    if type(estimator).__name__.endswith("Perceptron"):
        return {
            "check_sample_weight_equivalence_on_dense_data": ORDER_DEPENDENT,
            "check_sample_weight_equivalence_on_sparse_data": ORDER_DEPENDENT,
        }
    return {}
