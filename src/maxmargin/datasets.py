"""Small data sets whose truth is known, to test, teach and diagnose with.

Every generator returns ``(X, y)``: float64 rows in random order and integer labels −1 and +1;
where two shapes are named (means, radii), the first is the positive class. (``numbers`` is the one
generator of sequences: X and y are lists with an entry for each.) The truth is always in
the arguments: you give the plane of ``separable``, the radii of ``circles``, the share of
``conflicts``, the Bayes error of ``overlapping``, the grammar of ``numbers``. ``noise`` is a
distance: no point is moved further than that, so what a docstring says of the classes holds for
every seed, not only probably.

``random_state`` is a seed (the same seed gives the same data), a ``numpy.random.Generator`` that
is advanced, or None for fresh randomness. ``balance`` is the share of positive rows, exact to
rounding.
"""

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from maxmargin.errors import no_attribute
from maxmargin.validation.data import generator

__all__ = [
    "Grammar",
    "circles",
    "conflicts",
    "digit_grammar",
    "flipped",
    "gaussians",
    "moons",
    "noise",
    "numbers",
    "overlapping",
    "separable",
    "spirals",
    "xor",
]

Points = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Seed = int | np.random.Generator | np.random.RandomState | None

_MOST = 2**40  # rows or columns: more than memory holds

# ------------------------------------------------------------------- clouds and planes


def gaussians(
    n_samples: int = 200,
    means: npt.ArrayLike = ((2.0, 2.0), (1.0, 1.0)),
    variance: float = 0.1,
    *,
    balance: float = 0.5,
    random_state: Seed = 0,
) -> tuple[Points, Labels]:
    """Draw two round Gaussian clouds; the best rule is the line midway between the means.

    With rare positives the line that errs least moves towards their mean, but stays parallel; the
    one midway still has the least mean error of the two classes. For an error rate that is known,
    see ``overlapping``.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    means : array-like of shape (2, d), default ((2, 2), (1, 1))
        Centres: of the positive class, then of the negative one.
    variance : float, default 0.1
        Variance of every coordinate, at least 0.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = gaussians(100, variance=0.01)
    >>> bool(((X.sum(axis=1) > 3) == (y > 0)).all())
    True
    """
    centres = np.asarray(means, dtype=np.float64)
    if centres.ndim != 2 or len(centres) != 2 or not np.isfinite(centres).all():
        raise ValueError(f"means must be two finite points of equal length, got {means!r}")
    _check_range("variance", variance, 0.0)
    rng = generator(random_state)
    y = _draw_labels(n_samples, balance, rng)
    spread = math.sqrt(variance) * rng.standard_normal((len(y), centres.shape[1]))
    return centres[(y < 0).astype(int)] + spread, y


def overlapping(
    n_samples: int = 200,
    n_features: int = 2,
    bayes_error: float = 0.2,
    *,
    balance: float = 0.5,
    random_state: Seed = 0,
) -> tuple[Points, Labels]:
    """Draw two Gaussian clouds that overlap so much that no rule errs less than ``bayes_error``.

    Both clouds have unit variance in every direction. Their means lie on the diagonal (1, …, 1),
    δ apart, and are placed so that the best rule is a plane through the origin: positive where the
    sum of the columns is above 0. With p = ``balance``, t = log((1 − p)/p) and Φ the normal
    distribution function, it errs with probability

        p Φ(t/δ − δ/2) + (1 − p) Φ(−t/δ − δ/2),

    and δ is chosen to make that equal to ``bayes_error``; for p = ½, δ = −2 Φ⁻¹(bayes_error). A
    row is positive with probability 1/(1 + exp(−δ u·x)), where u is the unit vector of the
    diagonal, and u·x ranks positive rows above negative ones with probability Φ(δ/√2), the AUC.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    n_features : int, default 2
        Columns, at least 1.
    bayes_error : float, default 0.2
        Share of rows that the best rule gets wrong on average: above 0, and below the share of the
        smaller class, which is what always naming the larger one gets wrong.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = overlapping(100_000, bayes_error=0.1, balance=0.25)
    >>> round(float(((X.sum(axis=1) > 0) != (y > 0)).mean()), 2)
    0.1
    """
    rng = generator(random_state)
    y = _draw_labels(n_samples, balance, rng)
    d = _check_count("n_features", n_features, 1)
    _check_range("bayes_error", bayes_error, 0.0, above=True)
    if bayes_error >= min(balance, 1.0 - balance):
        raise ValueError(
            f"bayes_error must be below {min(balance, 1.0 - balance):g}, the share of the smaller "
            f"class, got {bayes_error!r}; always naming the larger class errs no more often"
        )
    distance = _distance(bayes_error, balance)
    place = y * distance / 2.0 - _log_odds(balance) / distance
    return place[:, None] / math.sqrt(d) + rng.standard_normal((len(y), d)), y


def separable(
    n_samples: int = 200,
    n_features: int | None = None,
    margin: float = 0.1,
    *,
    w: npt.ArrayLike | None = None,
    b: float = 0.0,
    balance: float = 0.5,
    random_state: Seed = 0,
) -> tuple[Points, Labels]:
    """Draw classes whose maximum-margin plane is the given w·x + b = 0, at exactly ``margin``.

    No point is nearer to the plane than ``margin``, and one point of each class is that near (to
    rounding). Those two face each other across the plane, so no other plane has a larger margin.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    n_features : int, optional
        Columns; the length of ``w`` if that is given, else 2.
    margin : float, default 0.1
        Geometric margin, above 0.
    w : array-like of shape (n_features,), default (1, …, 1)
        Normal of the plane, pointing to the positive class; any length but zero.
    b : float, default 0
        Intercept of the plane.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = separable(100, margin=0.5, w=(3, 4), b=1)
    >>> round(float((y * (X @ [3, 4] + 1) / 5).min()), 12)
    0.5
    """
    _check_range("margin", margin, 0.0, above=True)
    _check_range("b", b)
    weights = _normal(w, n_features)
    length = float(np.linalg.norm(weights))
    unit = weights / length
    rng = generator(random_state)
    y = _draw_labels(n_samples, balance, rng)
    feet = rng.standard_normal((len(y), len(unit)))
    feet -= np.outer(feet @ unit + b / length, unit)
    distance = margin + np.abs(rng.standard_normal(len(y)))
    facing = [int(np.argmax(y > 0)), int(np.argmax(y < 0))]
    feet[facing[1]] = feet[facing[0]]
    distance[facing] = margin
    return feet + np.outer(y * distance, unit), y


def conflicts(
    n_samples: int = 200, fraction: float = 0.1, n_features: int = 2, *, random_state: Seed = 0
) -> tuple[Points, Labels]:
    """Draw rows of which some occur twice, with opposite labels: no function separates them.

    All other rows are linearly separable. There are round(fraction · n_samples / 2) such pairs,
    and every rule errs on at least one row of each.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 4.
    fraction : float, default 0.1
        Share of the rows that have a twin of the other class, between 0 and 1.
    n_features : int, default 2
        Columns, at least 1.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = conflicts(100, fraction=0.2)
    >>> len(X), len(np.unique(X, axis=0))
    (100, 90)
    """
    _check_range("fraction", fraction, 0.0, 1.0)
    rng = generator(random_state)
    n_pairs = round(fraction * _check_count("n_samples", n_samples, 4) / 2)
    X, y = separable(n_samples - n_pairs, n_features, random_state=rng)
    twins = rng.choice(len(X), n_pairs, replace=False)
    order = rng.permutation(n_samples)
    return np.concatenate([X, X[twins]])[order], np.concatenate([y, -y[twins]])[order]


def flipped(
    X: Any, y: npt.ArrayLike, fraction: float = 0.02, *, random_state: Seed = 0
) -> tuple[Any, npt.NDArray[Any]]:
    """Give a share of the rows the other label.

    Parameters
    ----------
    X : any
        Data, returned as they are.
    y : array-like of shape (n,)
        Labels of two classes, of any type.
    fraction : float, default 0.02
        Share of labels to flip, between 0 and 1; exactly round(fraction · n) are flipped.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = gaussians(100)
    >>> _, dirty = flipped(X, y, 0.05)
    >>> int((dirty != y).sum())
    5
    """
    _check_range("fraction", fraction, 0.0, 1.0)
    labels = np.array(y)
    classes = np.unique(labels)
    if labels.ndim != 1 or len(classes) != 2:
        raise ValueError(
            f"y must be one column with two classes to flip labels between, got shape "
            f"{labels.shape} with {len(classes)} classes"
        )
    n, rng = len(labels), generator(random_state)
    chosen = rng.choice(n, round(fraction * n), replace=False)
    labels[chosen] = np.where(labels[chosen] == classes[0], classes[1], classes[0])
    return X, labels


def noise(
    n_samples: int = 200, n_features: int = 2, *, balance: float = 0.5, random_state: Seed = 0
) -> tuple[Points, Labels]:
    """Draw Gaussian rows with labels that have nothing to do with them.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    n_features : int, default 2
        Columns, at least 1.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = noise(100, 5, balance=0.25)
    >>> X.shape, int((y > 0).sum())
    ((100, 5), 25)
    """
    rng = generator(random_state)
    y = _draw_labels(n_samples, balance, rng)
    return rng.standard_normal((len(y), _check_count("n_features", n_features, 1))), y


def _distance(bayes_error: float, balance: float) -> float:
    """Return how far apart the means of two unit Gaussians are whose Bayes error is given.

    The error falls as the distance grows, so halving an interval finds it to the last bit; at a
    distance of 80 it is below every float.
    """
    low, high = 0.0, 80.0
    while low < (middle := (low + high) / 2.0) < high:
        odds = _log_odds(balance) / middle
        missed = balance * math.erfc((middle / 2.0 - odds) / math.sqrt(2.0))
        taken = (1.0 - balance) * math.erfc((middle / 2.0 + odds) / math.sqrt(2.0))
        low, high = (middle, high) if (missed + taken) / 2.0 > bayes_error else (low, middle)
    return high


def _log_odds(balance: float) -> float:
    """Return how much more likely a negative row is than a positive one, as a logarithm."""
    return math.log1p(-balance) - math.log(balance)


def _normal(w: npt.ArrayLike | None, n_features: int | None) -> Points:
    if w is None:
        return np.ones(_check_count("n_features", 2 if n_features is None else n_features, 1))
    weights = np.asarray(w, dtype=np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or not weights.any():
        raise ValueError(f"w must be one finite vector that is not zero, got {w!r}")
    if n_features is not None and n_features != len(weights):
        raise ValueError(f"n_features={n_features} but w has {len(weights)} entries; give only w")
    return weights


# ------------------------------------------------------------------- shapes that no line separates


def circles(
    n_samples: int = 200,
    radii: tuple[float, float] = (1.0, 2.0),
    noise: float = 0.1,
    *,
    center: tuple[float, float] = (0.0, 0.0),
    balance: float = 0.5,
    random_state: Seed = 0,
) -> tuple[Points, Labels]:
    """Draw two rings around one centre: no line separates them, the distance to the centre does.

    The distance separates them whenever ``noise`` is below half the difference of the radii.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    radii : pair of float, default (1, 2)
        Radius of the positive ring, then of the negative one; at least 0.
    noise : float, default 0.1
        Greatest distance of a point from its ring.
    center : pair of float, default (0, 0)
        The common centre.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = circles(100, radii=(1, 2), noise=0.1)
    >>> bool((((X**2).sum(axis=1) < 1.5**2) == (y > 0)).all())
    True
    """
    if len(radii) != 2:
        raise ValueError(f"radii must be two numbers (positive ring, negative ring), got {radii!r}")
    for radius in radii:
        _check_range("radii", radius, 0.0)
    middle = np.asarray(center, dtype=np.float64)
    if middle.shape != (2,) or not np.isfinite(middle).all():
        raise ValueError(f"center must be a finite point of the plane, got {center!r}")
    rng = generator(random_state)
    y = _draw_labels(n_samples, balance, rng)
    ring = _on_circle(rng.uniform(0.0, 2.0 * math.pi, len(y)))
    ring *= np.where(y > 0, *radii)[:, None]
    return middle + ring + _in_disc(len(y), noise, rng), y


def xor(
    n_samples: int = 200, noise: float = 0.4, *, n_features: int = 2, random_state: Seed = 0
) -> tuple[Points, Labels]:
    """Draw clouds at the four corners (±1, ±1), positive where the signs differ.

    No line separates them while ``noise`` < 1/√2: the segments that join equal corners must cross.
    The product x₁x₂ separates them while ``noise`` < 1. Columns beyond the second are irrelevant:
    standard normal, whatever the class.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 4; the corners share them equally.
    noise : float, default 0.4
        Greatest distance of a point from its corner, in the first two columns.
    n_features : int, default 2
        Columns, at least 2.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = xor(200)
    >>> bool(((X[:, 0] * X[:, 1] < 0) == (y > 0)).all())
    True
    """
    rng = generator(random_state)
    corner = rng.permutation(np.arange(_check_count("n_samples", n_samples, 4)) % 4)
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    y = np.where(corner % 2 == 1, 1, -1).astype(np.int64)
    X = corners[corner] + _in_disc(len(y), noise, rng)
    more = _check_count("n_features", n_features, 2) - 2
    return np.column_stack([X, rng.standard_normal((len(y), more))]), y


def moons(
    n_samples: int = 200, noise: float = 0.1, *, balance: float = 0.5, random_state: Seed = 0
) -> tuple[Points, Labels]:
    """Draw two interleaved half circles of radius 1, half a unit apart.

    The positive moon opens downwards around (0, 0), the negative one upwards around (1, ½); the
    classes cannot touch while ``noise`` < ¼.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    noise : float, default 0.1
        Greatest distance of a point from its half circle.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = moons(100, noise=0)
    >>> bool(np.allclose(np.linalg.norm(X[y > 0], axis=1), 1))
    True
    """
    rng = generator(random_state)
    y = _draw_labels(n_samples, balance, rng)
    arc = _on_circle(rng.uniform(0.0, math.pi, len(y)))
    arc[y < 0] = [1.0, 0.5] - arc[y < 0]
    return arc + _in_disc(len(y), noise, rng), y


def spirals(
    n_samples: int = 200,
    turns: float = 1.5,
    noise: float = 0.1,
    *,
    balance: float = 0.5,
    random_state: Seed = 0,
) -> tuple[Points, Labels]:
    """Draw two spiral arms, each the other turned by half a circle.

    An arm starts at radius ½ and grows by 2 a turn; along a ray the arms alternate at distance 1,
    and the classes cannot touch while ``noise`` < 0.4.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    turns : float, default 1.5
        Turns of each arm, above 0.
    noise : float, default 0.1
        Greatest distance of a point from its arm.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = spirals(100, turns=2, noise=0)
    >>> bool(np.linalg.norm(X, axis=1).max() <= 4.5)
    True
    """
    _check_range("turns", turns, 0.0, above=True)
    rng = generator(random_state)
    y = _draw_labels(n_samples, balance, rng)
    inner, outer = 0.5, 0.5 + 2.0 * turns
    # Uniform in r², so that the points are spread evenly along the arm, whose length grows as r².
    radius = np.sqrt(rng.uniform(inner**2, outer**2, len(y)))
    arm = _on_circle(math.pi * radius) * (y * radius)[:, None]
    return arm + _in_disc(len(y), noise, rng), y


def _on_circle(angle: Points) -> Points:
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _in_disc(n: int, radius: float, rng: np.random.Generator) -> Points:
    _check_range("noise", radius, 0.0)
    length = radius * np.sqrt(rng.uniform(size=n))
    return _on_circle(rng.uniform(0.0, 2.0 * math.pi, n)) * length[:, None]


# ------------------------------------------------------------------- sequences with a grammar

_FOLLOWERS = (0.5, 0.3, 0.2)  # how often a digit is followed by each of its favourites


class Grammar(NamedTuple):
    """How the digits of a number follow each other: a Markov chain.

    Attributes
    ----------
    start : ndarray of shape (n_states,)
        Probability that a number begins with each digit.
    transitions : ndarray of shape (n_states, n_states)
        In row j, the probability that each digit follows the digit j.
    """

    start: Points
    transitions: Points


def digit_grammar(strength: float = 0.9, n_states: int = 10, *, random_state: Seed = 0) -> Grammar:
    """Make up a grammar in which every digit has three favourite followers.

    A digit is followed by its favourites half, three tenths and a fifth of the times, and a number
    begins with one of three favourites in the same way; that holds with probability ``strength``,
    and otherwise all digits are equally likely. Each digit is the first favourite of one digit,
    the second of another and the third of yet another. So the columns of ``transitions`` sum to 1
    as its rows do, all digits are equally frequent in the long run, and only pairs of neighbours
    show that there is a grammar.

    Parameters
    ----------
    strength : float, default 0.9
        From 0, no grammar at all, to 1, where all other pairs of neighbours are ruled out.
    n_states : int, default 10
        How many digits there are, at least 2; where there are only two, they are the favourites.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Returns
    -------
    Grammar
        The start distribution and the matrix of transitions.

    Examples
    --------
    >>> grammar = digit_grammar(strength=1.0)
    >>> (grammar.transitions > 0).sum(axis=1)
    array([3, 3, 3, 3, 3, 3, 3, 3, 3, 3])
    """
    _check_range("strength", strength, 0.0, 1.0)
    K = _check_count("n_states", n_states, 2)
    rng = generator(random_state)
    share = np.array(_FOLLOWERS[:K])
    share /= share.sum()
    order, place = rng.permutation(K), rng.permutation(K)
    step = rng.choice(K, len(share), replace=False)
    favourites = np.zeros((K, K))
    for part, shift in zip(share, step, strict=True):
        favourites[np.arange(K), order[(place + shift) % K]] = part
    first = np.zeros(K)
    first[rng.choice(K, len(share), replace=False)] = share
    return Grammar(*(strength * each + (1.0 - strength) / K for each in (first, favourites)))


def numbers(
    n_samples: int = 200,
    grammar: Grammar | None = None,
    length: int | tuple[int, int] = (4, 8),
    noise: float = 0.0,
    *,
    pool: tuple[Any, Any] | None = None,
    rows: Any = None,
    random_state: Seed = 0,
) -> tuple[list[Points], list[Labels]]:
    """Join single digits into numbers whose digits follow a grammar.

    The digits of a number are drawn from the Markov chain ``grammar``; each is then replaced by a
    row that is drawn, with replacement, from the rows of its class in the pool. So given the
    digits, the rows are independent: the best guess at a number weighs what each row looks like
    against how likely its neighbours are, and reading digit by digit wastes the latter.

    To test a model on rows that it has not seen, draw the training numbers from some ``rows`` of
    the pool and the test numbers from others, with the same grammar.

    Parameters
    ----------
    n_samples : int, default 200
        How many numbers, at least 1.
    grammar : Grammar or None, default None
        The start distribution and the transitions; None stands for ``digit_grammar()``, which is
        the same every time.
    length : int or pair of int, default (4, 8)
        Digits of a number: always as many, or anything from the first to the second of two, all
        equally likely.
    noise : float, default 0
        Greatest distance that a row is moved, in a random direction.
    pool : pair (X, y) or None, default None
        Rows, dense or sparse, and their classes, which in their order are the digits 0, 1, … of
        the grammar. None stands for scikit-learn's 1797 bundled images of digits, 8 × 8 pixels
        from 0 to 16.
    rows : slice, array of int or of bool, or None, default None
        Which rows of the pool to draw from; None stands for all.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Returns
    -------
    X : list of ndarray of shape (length, n_features)
        The rows of each number.
    y : list of ndarray of shape (length,)
        The digits of each number, as whole numbers from 0.

    Examples
    --------
    >>> grammar = digit_grammar(strength=1.0)
    >>> X, y = numbers(300, grammar, rows=slice(1200), random_state=0)
    >>> X_test, y_test = numbers(100, grammar, rows=slice(1200, None), random_state=1)
    >>> X[0].shape == (len(y[0]), 64)
    True
    >>> all(bool((grammar.transitions[s[:-1], s[1:]] > 0).all()) for s in y)
    True
    """
    n = _check_count("n_samples", n_samples, 1)
    least, most = _lengths(length)
    _check_range("noise", noise, 0.0)
    chain = _check_grammar(digit_grammar() if grammar is None else grammar)
    X, members = _digit_pool(pool, rows, len(chain.start))
    rng = generator(random_state)
    lengths = rng.integers(least, most, n, endpoint=True)
    digits = _walk(chain, n, int(lengths.max()), rng)[np.arange(lengths.max()) < lengths[:, None]]
    chosen = np.empty(len(digits), dtype=np.int64)
    for digit in np.unique(digits):
        places = np.flatnonzero(digits == digit)
        if len(members[digit]) == 0:
            raise ValueError(
                f"the pool has no row of digit {digit}, which the grammar uses: choose more rows"
            )
        chosen[places] = rng.choice(members[digit], len(places))
    shown = X[chosen] + _in_ball(len(chosen), X.shape[1], noise, rng)
    ends = np.cumsum(lengths)[:-1]
    return np.split(shown, ends), np.split(digits, ends)


def _walk(grammar: Grammar, n: int, length: int, rng: np.random.Generator) -> Labels:
    """Return n walks along a Markov chain, one in each row."""
    chances = rng.uniform(size=(n, length))
    last = len(grammar.start) - 1
    digits = np.empty((n, length), dtype=np.int64)
    below = np.cumsum(grammar.start)[None, :]
    for t in range(length):
        # Sums of probabilities may end a little below 1.
        digits[:, t] = np.minimum((below <= chances[:, t : t + 1]).sum(axis=1), last)
        below = np.cumsum(grammar.transitions, axis=1)[digits[:, t]]
    return digits


def _digit_pool(
    pool: tuple[Any, Any] | None, rows: Any, n_states: int
) -> tuple[Points, list[Labels]]:
    """Return the rows to draw from, and which of them belong to each digit."""
    if pool is None:
        from sklearn.datasets import load_digits

        pool = load_digits(return_X_y=True)
    if not (isinstance(pool, tuple | list) and len(pool) == 2):
        raise TypeError(f"pool must be a pair (X, y), got {type(pool).__name__}")
    X = np.asarray(pool[0].toarray() if hasattr(pool[0], "toarray") else pool[0], np.float64)
    y = np.asarray(pool[1])
    if X.ndim != 2 or X.size == 0 or y.shape != X.shape[:1]:
        raise ValueError(
            "pool must be a table of rows and one class for each, got shapes "
            f"{X.shape} and {y.shape}"
        )
    classes = np.unique(y)
    if len(classes) != n_states:
        raise ValueError(
            f"the pool has {len(classes)} classes, but the grammar {n_states} digits; "
            f"make one with digit_grammar(n_states={len(classes)})"
        )
    chosen = np.arange(len(y)) if rows is None else np.arange(len(y))[rows]
    return X, [chosen[y[chosen] == label] for label in classes]


def _check_grammar(grammar: Any) -> Grammar:
    if not (isinstance(grammar, tuple) and len(grammar) == 2):
        raise TypeError(f"grammar must be a pair (start, transitions), got {grammar!r:.60}")
    start, transitions = (np.asarray(each, dtype=np.float64) for each in grammar)
    if start.ndim != 1 or len(start) == 0 or transitions.shape != 2 * start.shape:
        raise ValueError(
            "grammar must be K probabilities and a K × K matrix of transitions, got shapes "
            f"{start.shape} and {transitions.shape}"
        )
    table = np.vstack([start, transitions])
    if not ((table >= 0).all() and np.allclose(table.sum(axis=1), 1.0)):
        raise ValueError("grammar must hold probabilities: at least 0, with sum 1 in each row")
    return Grammar(start, transitions)


def _lengths(length: Any) -> tuple[int, int]:
    pair = length if isinstance(length, tuple | list) else (length, length)
    if len(pair) != 2:
        raise ValueError(f"length must be a whole number or a pair of them, got {length!r}")
    least, most = (_check_count("length", each, 1) for each in pair)
    if most < least:
        raise ValueError(f"length must be a pair (least, most), got {length!r}")
    return least, most


def _in_ball(n: int, d: int, radius: float, rng: np.random.Generator) -> Points:
    """Return points that are evenly spread in a ball."""
    points: Points = rng.standard_normal((n, d))
    reach = radius * rng.uniform(size=n) ** (1.0 / d)
    points *= (reach / np.linalg.norm(points, axis=1))[:, None]
    return points


# ------------------------------------------------------------------- labels and checks


def _draw_labels(n_samples: int, balance: float, rng: np.random.Generator) -> Labels:
    """Return labels −1 and +1 in random order, round(balance · n_samples) of them positive."""
    n = _check_count("n_samples", n_samples, 2)
    _check_range("balance", balance, 0.0, 1.0)
    n_positive = round(balance * n)
    if not 0 < n_positive < n:
        raise ValueError(
            f"balance={balance!r} of n_samples={n} leaves a class empty; "
            "move balance towards 0.5 or ask for more samples"
        )
    return rng.permutation(np.repeat([1, -1], [n_positive, n - n_positive]).astype(np.int64))


def _check_count(name: str, value: SupportsIndex, least: int) -> int:
    """Return a whole number, or say what is wrong with it."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r:.60}")
    if count > _MOST:
        raise ValueError(f"{name} must be at most {_MOST}, got about 2**{count.bit_length() - 1}")
    return count


def _check_range(
    name: str, value: float, low: float = -math.inf, high: float = math.inf, *, above: bool = False
) -> None:
    """Refuse a number that is not finite or not in [low, high]; ``above`` excludes low."""
    if math.isfinite(value) and low <= value <= high and not (above and value == low):
        return
    limits = f" above {low:g}" if above else f" of at least {low:g}" if low > -math.inf else ""
    limits += f" and at most {high:g}" if high < math.inf else ""
    raise ValueError(f"{name} must be a finite number{limits}, got {value!r}")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise no_attribute(__name__, name)
