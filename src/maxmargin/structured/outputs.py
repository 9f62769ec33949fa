"""What learners of structured outputs share: examples and their weights, predictions, the score."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.structured.chain import Multiclass
from maxmargin.structured.model import Examples, Model, as_list
from maxmargin.validation.data import regression_weights
from maxmargin.validation.sklearn_private import take_rows


@dataclass(frozen=True)
class StructuredTraining:
    """Checked examples, the prepared model, and the weight of each example."""

    model: Any
    examples: Examples
    weight: Floats
    kept: Ints  # examples with a weight above 0, among those given
    n_rows: int


def _has_scores(machine: Any) -> bool:
    if machine.model.has_scores:
        return True
    raise AttributeError(
        f"{type(machine.model).__name__} has no decision_function: its outputs are too many to "
        "score one by one. model_.named_weights(coef_) has the weights."
    )


class StructuredOutputs:
    """Base of the learners whose outputs are those of a model, by weights ``coef_``."""

    model: Any
    model_: Any
    coef_: Floats
    _fit: Any  # by each learner: check, learn, report

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from inputs X with true outputs y.

        Parameters
        ----------
        X : sequence
            An input for each example, of the kind that the model takes.
        y : sequence
            The true output of each.
        sample_weight : array-like of shape (n_examples,), optional
            How many times each example counts, 0 being its absence. A perceptron visits it so often
            at its turn; a fraction is a shorter last step.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """Return the output with the highest score for each input: an array, or a list of them."""
        check_is_fitted(self)
        return self.model_.examples(X).predict(self.coef_)

    @available_if(_has_scores)
    def decision_function(self, X: Any) -> Any:
        """Return what the decoder compares, of models that compare one number for each choice.

        ``Multiclass``: the scores of all classes, (n, K), and for two classes the score of the
        second less that of the first, (n,). ``Chain`` does not have it.
        """
        check_is_fitted(self)
        return self.model_.examples(X).scores(self.coef_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return 1 − Σ loss / Σ worst possible loss.

        That is the accuracy for ``Multiclass`` (with a cost matrix: weighted), the share of
        positions that are right for ``Chain``, and 1 − the mean loss for models without
        ``worst_loss``.
        """
        check_is_fitted(self)
        examples = self.model_.examples(X, y)
        weight = regression_weights(sample_weight, len(examples))
        worst = np.array([self.model_.worst_loss(each) for each in as_list(y, "y")])
        most = float(weight @ worst)
        return 1.0 - float(weight @ examples.losses(self.coef_)) / most if most > 0 else 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = tags.target_tags.required = True
        if isinstance(self.model, Multiclass):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags

    def _check_model(self) -> None:
        if not isinstance(self.model, Model):
            raise TypeError(
                f"model={self.model!r} is not valid for {type(self).__name__}: it must be an "
                "instance of mm.structured.Model, for instance mm.structured.Chain(n_states=3)."
            )

    def _examples(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> StructuredTraining:
        """Check examples, and leave out those without weight; prepare the model with ``reset``."""
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None.")
        model = self.model.prepare(X, y) if reset else self.model_
        examples = model.examples(X, y)
        weight = regression_weights(sample_weight, len(examples))
        kept = np.flatnonzero(weight > 0)
        if len(kept) < len(weight):
            X, y = take_rows(X, kept), take_rows(y, kept)
            model = self.model.prepare(X, y) if reset else model
            examples = model.examples(X, y)
        return StructuredTraining(model, examples, weight[kept], kept, len(weight))

    def _adopt_model(self, model: Any) -> None:
        """Set ``model_``, and what it knows of columns and labels."""
        self.model_ = model
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
            elif hasattr(self, name):
                delattr(self, name)
