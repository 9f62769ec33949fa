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
    mm.LinearSVC(),
    mm.LinearSVR(),
    mm.HardMarginSVC(),
    mm.BayesPointClassifier(),
    mm.SVC(),
    mm.NuSVC(nu=0.35),  # the default 0.5 is infeasible with the weights of some common checks
    mm.SVR(),
    mm.NuSVR(),
    mm.QuantileSVR(),
    mm.OneClassSVM(),
    mm.PartitionedSVC(),
    mm.StructuredPerceptron(mm.structured.Multiclass(), max_epochs=5),
    mm.StructuredSVC(mm.structured.Multiclass()),
]

SEARCHES: list[BaseEstimator] = [mm.SVCSearchCV(mm.SVC(), {"C": [0.1, 1]})]
TRANSFORMERS: list[BaseEstimator] = [
    mm.KernelPCA(),
    mm.Nystroem(),
]

# test_contract.py::test_weight_equivalence_cannot_hold_for_order_dependent_learners is the
# proof: two orders of the same rows give two different perceptrons, so a fit cannot equal the fit
# on a reshuffled repetition of its rows. What does hold (repetition in place) is tested in
# tests/estimators/test_perceptron.py.
ORDER_DEPENDENT = "visits rows in order: reshuffled repetitions are another sequence of visits"

# Rows on which a hard margin does not exist: raising NotSeparableError is its contract. That the
# errors of these checks are of this class, with witnesses that hold, and that what they look at is
# right on separable rows, is tested in tests/estimators/test_hard_margin.py.
INSEPARABLE = "feeds rows that no plane separates, on which it must raise NotSeparableError"
FED_INSEPARABLE = [
    "check_classifier_data_not_an_array",
    "check_classifiers_train",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimators_dtypes",
    "check_estimators_nan_inf",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_non_transformer_estimators_n_iter",
    "check_positive_only_tag_during_fit",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_pandas_series",
    "check_supervised_y_2d",
]

# It has no max_iter, which one of these checks is about, and has probabilities, which another is.
FED_INSEPARABLE_WITH_PROBABILITIES = sorted(
    {*FED_INSEPARABLE, "check_decision_proba_consistency"}
    - {"check_non_transformer_estimators_n_iter"}
)

# test_kernel_machine.py::test_no_nu_is_feasible_with_extreme_class_weights is the proof. (The
# same check is an expected failure of scikit-learn's NuSVC, which ignores class_weight.)
INFEASIBLE = "its class weights of 1000 and 0.0001 allow no nu above 2e-7: NuSVC must refuse"


def expected_failures(estimator: Any) -> dict[str, str]:
    """Return the common checks that this estimator cannot pass, with the reason."""
    if type(estimator).__name__.endswith("Perceptron"):
        return {
            "check_sample_weight_equivalence_on_dense_data": ORDER_DEPENDENT,
            "check_sample_weight_equivalence_on_sparse_data": ORDER_DEPENDENT,
        }
    if isinstance(estimator, mm.HardMarginSVC):
        return dict.fromkeys(FED_INSEPARABLE, INSEPARABLE)
    if isinstance(estimator, mm.BayesPointClassifier):
        return dict.fromkeys(FED_INSEPARABLE_WITH_PROBABILITIES, INSEPARABLE)
    if isinstance(estimator, mm.NuSVC):
        return {"check_class_weight_classifiers": INFEASIBLE}
    return {}
