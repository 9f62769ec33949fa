"""The perceptron and its averaged form."""

from typing import Any

from maxmargin._typing import Floats
from maxmargin.estimators.perceptron.base import LinearPerceptron
from maxmargin.solve import Callback
from maxmargin.solvers.perceptron import LinearState


class Perceptron(LinearPerceptron):
    """Rosenblatt's perceptron: visit rows, and where y f(x) ≤ margin do w += ηyx, b += ηy.

    On separable classes it makes at most ``mistake_bound_`` updates and then stops by itself. On
    overlapping classes it never converges, and warns; use ``keep="best"`` or
    :class:`AveragedPerceptron` there. More than two classes are learnt together: the row's class
    gains what the best other class loses.

    Parameters
    ----------
    eta : float > 0, default=1.0
        Step length η. From a zero start with ``margin=0`` it only rescales the weights.
    margin : float ≥ 0, default=0.0
        Update where y f(x) ≤ margin: a *functional* threshold, in units of f.
    fit_intercept : bool, default=True
        Learn b; otherwise b = 0 and the plane goes through the origin.
    init : "zeros", "random", array or (array, intercept), default="zeros"
        Where to start: zeros, uniform on (0, 1), or given weights.
    stop : {"all_correct", "epochs", "one_pass", "small_change", "held_out"}, default="all_correct"
        "all_correct": after an epoch without an update. "epochs": after ``max_epochs``.
        "one_pass": after one. "small_change": when ‖w − w′‖ < ``change_tol``·‖w‖ for the
        weights w′ of an epoch before. "held_out": when the score on held-out rows stops improving.
    max_epochs : int or "auto", default="auto"
        Epochs allowed; running out of them while making mistakes is a ConvergenceWarning. "auto"
        is ten million visits altogether, but at least 10 epochs and at most 1000.
    shuffle : bool, default=True
        Visit rows in a new random order each epoch, otherwise in the order given. Rows of a source
        are visited in their order.
    keep : {"last", "best"}, default="last"
        "best" is the pocket: of the weights at the start and after each epoch, keep those with
        the best training accuracy (held-out accuracy with ``stop="held_out"``).
    class_weight : dict, "balanced" or None, default=None
        Multiplies sample_weight, by class.
    change_tol : float, default=1e-3
        For ``stop="small_change"``.
    validation_fraction : float in (0, 1), default=0.1
        Part of each class held out for ``stop="held_out"``.
    n_iter_no_change : int, default=5
        Epochs without a better held-out score before stopping.
    max_time : float or None, default=None
        Seconds allowed.
    warm_start : bool, default=False
        Start from the weights of the previous fit.
    callback : callable or None, default=None
        Called after each epoch with ``(iteration, seconds, iterate)`` as a Progress object;
        returning True stops.
    verbose : int, default=0
        If positive, print a line per epoch.
    trace : bool, default=False
        Keep ``trace_``: every update, and the weights after each.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the shuffling, the random start and the held-out rows.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; with two, a positive score means the second.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights, in float64.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        b.
    mistakes_, updates_ : int, or float with fractional weights
        Visits with y f ≤ 0, and updates made; a row of weight c counts c.
    epochs_, n_iter_ : int
        Epochs completed.
    status_ : Status
        Why it stopped.
    stop_reason_ : str
        The same as a sentence.
    margin_ : float
        Smallest geometric margin y f/‖w‖ of the training rows; negative if some are wrong. With
        several classes, the smallest lead over the best other class, divided by ‖W‖.
    mistake_bound_ : float
        The number of updates that no order of visits can exceed: R̃²/γ̃² on the points lifted to
        (x, 1), plus terms for ``margin`` and for a start other than zero. γ̃ is the largest margin
        there is for two classes and up to 200,000 numbers in X, otherwise that of the vectors
        found. ``inf`` when no separator was found.
    trace_ : LinearTrace
        With ``trace=True``: mistakes, updates and the perceptron criterion per epoch, and row, step
        and weights per update.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(100, margin=0.3, random_state=0)
    >>> model = mm.Perceptron().fit(X, y)
    >>> model.stop_reason_
    'After 2 epochs: every training row was passed without an update.'
    >>> model.updates_ <= model.mistake_bound_
    True
    >>> model.score(X, y)
    1.0
    """

    def __init__(
        self,
        *,
        eta: float = 1.0,
        margin: float = 0.0,
        fit_intercept: bool = True,
        init: Any = "zeros",
        stop: str = "all_correct",
        max_epochs: int | str = "auto",
        shuffle: bool = True,
        keep: str = "last",
        class_weight: Any = None,
        change_tol: float = 1e-3,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: int = 0,
        trace: bool = False,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            eta=eta,
            margin=margin,
            fit_intercept=fit_intercept,
            init=init,
            stop=stop,
            max_epochs=max_epochs,
            shuffle=shuffle,
            class_weight=class_weight,
            change_tol=change_tol,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            max_time=max_time,
            warm_start=warm_start,
            callback=callback,
            verbose=verbose,
            trace=trace,
            random_state=random_state,
        )
        self.keep = keep


class AveragedPerceptron(LinearPerceptron):
    """The perceptron whose answer is the mean of (w, b) after each example.

    It makes the same updates as :class:`Perceptron`; the mean does not depend on the accidents of
    the last few, which makes it the better choice if classes overlap. The mean is updated lazily: a
    mistake costs one more pass over the row's entries, a correct row nothing.

    Parameters
    ----------
    eta : float > 0, default=1.0
        Step length η. From a zero start with ``margin=0`` it only rescales the weights.
    margin : float ≥ 0, default=0.0
        Update where y f(x) ≤ margin: a *functional* threshold, in units of f.
    fit_intercept : bool, default=True
        Learn b; otherwise b = 0 and the plane goes through the origin.
    init : "zeros", "random", array or (array, intercept), default="zeros"
        Where to start: zeros, uniform on (0, 1), or given weights.
    stop : {"all_correct", "epochs", "one_pass", "small_change", "held_out"}, default="all_correct"
        As for :class:`Perceptron`; the held-out score is that of the mean.
    max_epochs : int or "auto", default="auto"
        Epochs allowed. "auto" is a million visits altogether, but at least 10 epochs and at most
        1000.
    shuffle : bool, default=True
        Visit rows in a new random order each epoch, otherwise in the order given. Rows of a source
        are visited in their order.
    class_weight : dict, "balanced" or None, default=None
        Multiplies sample_weight, by class.
    change_tol : float, default=1e-3
        For ``stop="small_change"``, which compares the running w, not its mean.
    validation_fraction : float in (0, 1), default=0.1
        Part of each class held out for ``stop="held_out"``.
    n_iter_no_change : int, default=5
        Epochs without a better held-out score before stopping.
    max_time : float or None, default=None
        Seconds allowed.
    warm_start : bool, default=False
        Start from the last (not the mean) weights of the previous fit.
    callback : callable or None, default=None
        Called with a Progress after each epoch; returning True stops.
    verbose : int, default=0
        If positive, print a line per epoch.
    trace : bool, default=False
        Keep ``trace_``: every update, and the running weights after each.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the shuffling, the random start and the held-out rows.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        The mean weights and intercept(s).
    classes_, mistakes_, updates_, epochs_, n_iter_, status_, stop_reason_, margin_,
    mistake_bound_, trace_
        As for :class:`Perceptron`; the margin is that of the mean, the bound the better of those
        that the mean and the last vector give.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(400, variance=0.5, random_state=0)
    >>> mm.AveragedPerceptron().fit(X, y).score(X, y) > 0.8
    True
    """

    _averaged = True
    _stable = True
    _auto_visits = 1e6

    def _model(self, state: LinearState) -> tuple[Floats, Floats]:
        return state.mean()
