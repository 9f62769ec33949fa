"""What learners of structured outputs share, and the structured support vector machine."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import certify_with_duals
from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.machine import Formulated, Machine, Solved
from maxmargin.problems.problem import Point
from maxmargin.solve import SOLVERS, Callback, Plan, Result, Settings, plan, polishing
from maxmargin.structured.chain import Multiclass
from maxmargin.structured.frank_wolfe import FrankWolfe
from maxmargin.structured.model import Examples, Model, as_list
from maxmargin.structured.problem import OutputDuals, StructuredProblem, certify_structured
from maxmargin.validation.data import regression_weights
from maxmargin.validation.parameters import check_cost, check_number
from maxmargin.validation.sklearn_private import take_rows

_AIM = 0.97  # of tol, which leaves a margin for rounding
_ATTEMPTS = 3

# What this room adds to the tables by which problems are solved and certified.
SOLVERS[FrankWolfe] = "frank_wolfe"
certify_with_duals.register(StructuredProblem, certify_structured)


@plan.register
def _(problem: StructuredProblem, settings: Settings) -> Plan:
    numbers = len(problem) * problem.size
    return Plan([FrankWolfe(settings.seed)] * _ATTEMPTS, _AIM, polishing(numbers))


# ------------------------------------------------------------------- all learners


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


# ------------------------------------------------------------------- the machine


@dataclass(frozen=True)
class StructuredForm:
    """min ½‖w‖² + C Σ weightᵢ maxᵧ Hᵢ(y): one problem of all examples."""

    C: float

    def problems(self, data: Any, features: Any = None) -> list[Any]:
        """Return the problem."""
        return [StructuredProblem(data.examples, self.C * data.weight)]

    def rows(self, data: Any) -> list[Ints]:
        """Return which examples take part."""
        return [np.arange(len(data.weight))]


class StructuredSVC(StructuredOutputs, Machine):
    """Support vector machine for outputs with structure: classes, sequences, or your own.

    Minimises ½‖w‖² + C Σ ξ with ξᵢ = max over outputs y of loss(yᵢ, y) − ⟨w, ψ(xᵢ, yᵢ) − ψ(xᵢ, y)⟩:
    the true output is to score higher than any other, by as much as that one would cost. The
    prediction is the output with the highest score ⟨w, ψ(x, y)⟩.

    Parameters
    ----------
    model : mm.structured.Model
        What inputs and outputs are, and how they are scored: ``Multiclass`` or ``Chain`` of
        ``mm.structured``, or a class of your own derived from ``mm.structured.Model``.
    C : float, default=1.0
        Cost of slack, > 0. It is that of one example: with a mean over n examples in place of the
        sum, and λ/2‖w‖² in place of ½‖w‖², C is 1/(nλ).
    tol : float, default=1e-3
        Relative duality gap at which the answer is good enough.
    max_iter : int, default=1000
        Passes of the decoder over all examples.
    max_time : float or None, default=None
        Seconds allowed for the fit; the best answer so far is kept, with its gap.
    warm_start : bool, default=False
        Start from the last solution if it is of as many examples.
    callback : callable or None, default=None
        Called with a Progress (``iteration``, ``seconds``, ``iterate.relative_gap``) after each
        pass; returning True ends the fit. scikit-learn's callbacks: ``set_callbacks``.
    verbose : int, default=0
        Write a line per pass.
    trace : bool, default=False
        Keep seconds and gap of each pass in ``trace_``.
    random_state : int, Generator, RandomState or None, default=0
        For the order in which examples are visited.

    Attributes
    ----------
    coef_ : ndarray of shape (n_weights,)
        The weights w; ``model_.named_weights(coef_)`` says what each part is about.
    model_ : mm.structured.Model
        The model with what it learnt from the training data: sizes and labels. The parameter
        ``model`` is left as it is.
    certificate_ : StructuredCertificate
        Bounds on the optimum: every example decoded anew, the dual's weights made anew from the
        support outputs. If the model's decoder is not exact (``model.exact``), the gap is
        unknown, and says so.
    status_, stop_reason_, solver_, n_iter_ :
        Why the fit stopped (an enum and a sentence), what solved it, in how many passes.
    support_, support_outputs_, dual_coef_ : ndarray, list, ndarray
        The outputs that hold the weights up: the number of the example, the output, and its dual
        α > 0. Up to the drift in ``certificate_``, w = Σ α (ψ(x, truth) − ψ(x, output)).
    n_features_in_, feature_names_in_, classes_ :
        As far as the model has them.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> rng = np.random.default_rng(0)
    >>> Y = [np.cumsum(rng.random(6) < 0.3) % 3 for _ in range(40)]  # states that stay or go on
    >>> X = [np.eye(3)[y] + 0.6 * rng.standard_normal((6, 3)) for y in Y]
    >>> machine = mm.StructuredSVC(mm.structured.Chain(3)).fit(X, Y)
    >>> machine.certificate_.holds(1e-3)
    True
    >>> machine.score(X, Y) > 0.9  # positions that are right
    True
    """

    _forgotten = ("status_", "trace_", "n_features_in_", "feature_names_in_", "classes_")
    n_jobs = None

    def __init__(
        self,
        model: Any,
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: int = 0,
        trace: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.trace = trace
        self.random_state = random_state

    def slack(self, X: Any, y: Any) -> Floats:
        """Return ξ of each example: the most by which any output violates its margin."""
        check_is_fitted(self)
        examples = self.model_.examples(X, y)
        found = examples.decode(np.arange(len(examples)), self.coef_)
        return np.asarray(np.maximum(found.violations(self.coef_), 0.0))

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        self._check_model()
        check_cost(self)
        check_number(self, "max_iter", at_least=1, integer=True)
        super().check_parameters()

    def _state(self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> Formulated:
        data = self._examples(X, y, sample_weight, reset=reset)
        form = StructuredForm(float(self.C))
        return Formulated(data, form, form.problems(data))  # type: ignore[arg-type]

    def adopt(self, formulated: Formulated, results: list[Result]) -> Self:
        """Become the model that the solution of the problem stands for."""
        data: Any = formulated.data
        point = results[0].point
        self._adopt_model(data.model)
        self.coef_ = point.w
        duals = point.beta.positive()
        self.support_, self.support_outputs_ = data.kept[duals.rows], duals.outputs
        self.dual_coef_ = duals.alpha
        self._trained = data.n_rows, formulated.problems[0].cost
        return self._report(data, results)

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> list[Solved]:
        """Return the problem of these examples, and the model as its solution."""
        check_is_fitted(self)
        stated = self._state(X, y, sample_weight, reset=False)
        duals = _placed(stated, self._last()) or OutputDuals.none()
        return [Solved(stated.problems[0], Point(self.coef_, 0.0, duals), stated.rows[0])]

    def _last(self) -> Any:
        return self.model_, self._trained, self.support_, self.support_outputs_, self.dual_coef_

    def _starts(self, formulated: Formulated, last: Any) -> list[Point] | None:
        duals, cost, new = _placed(formulated, last), last[1][1], formulated.problems[0].cost
        if duals is None or len(cost) != len(new):
            return None
        alpha = duals.alpha * (new / cost)[duals.rows]
        return [Point(None, 0.0, replace(duals, alpha=alpha))]

    def _ill_scaled(self, data: Any) -> str:
        return ""


def _placed(stated: Formulated, last: Any) -> OutputDuals | None:
    """Return the duals of a fit among these examples; None if they belong to others."""
    data: Any = stated.data
    model, (n_rows, _), support, outputs, alpha = last
    same = type(model) is type(data.model) and n_rows == data.n_rows
    if not same or not np.isin(support, data.kept).all():
        return None
    rows = np.searchsorted(data.kept, support)
    try:
        stated.problems[0].examples.cuts(rows, outputs)
    except ValueError:  # of other lengths, or with labels that are unknown
        return None
    return OutputDuals(rows, outputs, alpha)
