"""The structured perceptron: its bound and the proof of it, its mean, its margin, its surface."""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import clarabel  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.problems.problem import Status


class Listed(mm.structured.Model):
    """A user's model in plain Python: x has a row of features for each output, y is its number.

    The loss of an answer is its distance from the truth, so that answers differ in what they cost.
    """

    exact = True

    def __init__(self, sparse: bool = False) -> None:
        self.sparse = sparse

    def features(self, x: Any, y: Any) -> Any:
        return sp.csr_array(x[y][np.newaxis]) if self.sparse else x[y]

    def decode(self, x: Any, w: Floats, truth: Any = None) -> Any:
        scores = x @ w
        if truth is not None:
            scores = scores + [self.loss(truth, other) for other in range(len(x))]
        return int(np.argmax(scores))

    def loss(self, y: Any, other: Any) -> float:
        return float(abs(y - other))


class Careless(Listed):
    """Never looks at the first half of the outputs, and claims that it does."""

    def decode(self, x: Any, w: Floats, truth: Any = None) -> Any:
        skipped = len(x) // 2
        return skipped + super().decode(x[skipped:], w, None if truth is None else truth - skipped)


class Set(NamedTuple):
    """Examples of a model, and all outputs that each could have."""

    model: Any
    X: list[Any]
    y: list[Any]
    outputs: list[list[Any]]

    def differences(self) -> list[Floats]:
        """Return ψ(x, y) − ψ(x, y′) for all y′ that cost something, a row for each."""
        ready = self.model.prepare(self.X, self.y)
        return [
            np.array([dense(ready.difference(x, y, o)) for o in outputs if ready.loss(y, o) > 0])
            for x, y, outputs in zip(self.X, self.y, self.outputs, strict=True)
        ]

    def losses(self) -> list[Floats]:
        """Return what the same outputs cost."""
        ready = self.model.prepare(self.X, self.y)
        return [
            np.array([ready.loss(y, o) for o in outputs if ready.loss(y, o) > 0])
            for y, outputs in zip(self.y, self.outputs, strict=True)
        ]


def separable_lists(seed: int, n: int = 25, d: int = 4, k: int = 5, gap: float = 0.3) -> Set:
    """Examples of ``Listed`` that some w gets right, by a gap in units of the features."""
    rng = np.random.default_rng(seed)
    scale, w = rng.choice([0.1, 1.0, 10.0]), rng.standard_normal(d)
    X: list[Floats] = []
    y: list[int] = []
    while len(X) < n:
        x = rng.standard_normal((k, d))
        scores = np.sort(x @ w)
        if scores[-1] - scores[-2] > gap * np.linalg.norm(w):
            X.append(scale * x)
            y.append(int(np.argmax(x @ w)))
    return Set(Listed(sparse=bool(seed % 2)), X, y, [list(range(k))] * n)


def separable_chains(seed: int, n: int = 12, states: int = 3, d: int = 3) -> Set:
    """Short sequences whose states are the best of some chain, by a margin."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, 40 * n)
    X = [rng.standard_normal((length, d)) for length in lengths]
    first = [rng.integers(0, states, length) for length in lengths]
    first[0] = np.arange(lengths[0]) % states
    model = mm.structured.Chain(n_states=states).prepare(X, first)
    w = rng.standard_normal(model.size_)
    kept: list[Any] = []
    for x in X:
        if len(kept) == n:
            break
        outputs = [np.array(o) for o in product(range(states), repeat=len(x))]
        scores = np.array([w @ model.features(x, o) for o in outputs])
        best = np.sort(scores)[::-1]
        if best[0] - best[1] > 0.5:
            kept.append((x, outputs[int(scores.argmax())], outputs))
    return Set(mm.structured.Chain(n_states=states), *map(list, zip(*kept, strict=True)))


KINDS = [separable_lists, separable_chains]


def best_separator(differences: Floats) -> tuple[Floats, float]:
    """Return the unit vector u with the largest least ⟨u, d⟩, and that number, by Clarabel."""
    d = differences.shape[1]
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    scale = np.abs(differences).max()
    found = clarabel.DefaultSolver(
        sp.csc_matrix(sp.eye_array(d)),
        np.zeros(d),
        sp.csc_matrix(-differences / scale),
        -np.ones(len(differences)),
        [clarabel.NonnegativeConeT(len(differences))],
        options,
    ).solve()
    assert "Solved" in str(found.status)
    u = np.array(found.x) / np.linalg.norm(found.x)
    return u, float((differences @ u).min())


def plain(
    data: Set, *, margin: float = 0.0, epochs: int, weight: Any = None
) -> tuple[list[Floats], list[float]]:
    """Return w after each visit in the order given, and how much each visit counts: the textbook.

    Until the first update, w = 0, all outputs are level, and the worst of them counts as found.
    An example of weight c is visited c times in a row, the last time for what is left of c.
    """
    ready = data.model.prepare(data.X, data.y)
    w, vectors, shares, begun = None, [], [], False
    weight = np.ones(len(data.X)) if weight is None else weight
    for _ in range(epochs):
        for x, y, left in zip(data.X, data.y, weight, strict=True):
            while left > 0:
                share = min(left, 1.0)
                w = 0.0 * dense(ready.features(x, y)) if w is None else w
                if margin or not begun:
                    found = ready.decode(x, w / (margin or 1.0), y)
                else:
                    found = ready.decode(x, w)
                if not np.array_equal(found, y):
                    begun = True
                    w = (
                        w
                        + share * dense(ready.features(x, y))
                        - share * dense(ready.features(x, found))
                    )
                vectors.append(w)
                shares.append(share)
                left -= share
    return vectors, shares


def dense(vector: Any) -> Floats:
    return np.ravel(vector.toarray() if sp.issparse(vector) else vector)


def integer_lists(seed: int, n: int = 30, d: int = 4, k: int = 4) -> Set:
    """Examples that no w gets right; all sums are exact, so all ways to compute them agree."""
    rng = np.random.default_rng(seed)
    X = [rng.integers(-4, 5, (k, d)).astype(float) for _ in range(n)]
    return Set(Listed(), X, rng.integers(0, k, n).tolist(), [list(range(k))] * n)


def integer_chains(seed: int, n: int = 20, states: int = 3, d: int = 2) -> Set:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, n)
    X = [rng.integers(-3, 4, (length, d)).astype(float) for length in lengths]
    y = [rng.integers(0, states, length) for length in lengths]
    return Set(mm.structured.Chain(n_states=states), X, y, [])


# -- the bound -----------------------------------------------------------------------------------


def check_the_bound(data: Set, margin: float, **parameters: Any) -> None:
    """Take the margin in units of the largest ‖d‖² that there is."""
    differences, losses = np.vstack(data.differences()), np.concatenate(data.losses())
    _, delta = best_separator(differences)
    assert delta > 0
    R, largest = np.linalg.norm(differences, axis=1).max(), losses.max()
    margin *= R**2
    model = mm.StructuredPerceptron(data.model, margin=margin, max_epochs=100_000, **parameters)
    model.fit(data.X, data.y)
    bound = (R**2 + 2 * margin * largest) / delta**2
    assert model.status_ is Status.ALL_CORRECT
    assert model.mistakes_ <= model.updates_ <= bound * (1 + 1e-6)
    assert_allclose(model.mistake_bound(delta, radius=R, largest_loss=largest), bound, rtol=1e-9)
    # With R and the largest loss of the updates made it is tighter, and holds as well.
    assert model.updates_ <= model.mistake_bound(delta) * (1 + 1e-6) <= bound * (1 + 1e-5)
    assert model.search_errors_ == 0


RUNS = st.fixed_dictionaries(
    {
        "margin": st.sampled_from([0.0, 0.0, 1e-6, 0.01, 0.1, 1.0]),
        "shuffle": st.booleans(),
        "averaged": st.booleans(),
    }
)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), run=RUNS)
@settings(max_examples=8)
def test_updates_never_exceed_the_bound(kind: Any, seed: int, run: dict[str, Any]) -> None:
    check_the_bound(kind(seed), **run)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), run=RUNS)
@settings(max_examples=200)
def test_updates_never_exceed_the_bound_on_hundreds_of_sets(
    kind: Any, seed: int, run: dict[str, Any]
) -> None:
    check_the_bound(kind(seed), **run)


@pytest.mark.parametrize("n", [1, 7, 40])
def test_the_bound_is_attained(n: int) -> None:
    """Differences along n axes, at all of which w = 0 is wrong: R = 1, δ = 1/√n, n updates."""
    axes = np.eye(n)
    X = [np.vstack([np.zeros(n), axis]) for axis in axes]
    model = mm.StructuredPerceptron(Listed()).fit(X, [1] * n)
    assert model.updates_ == n
    assert_allclose(model.mistake_bound(1 / np.sqrt(n)), n, rtol=1e-9)
    assert model.mistake_bound(1 / np.sqrt(n)) >= n


@pytest.mark.parametrize("margin", [0.0, 0.2, 5.0])
@pytest.mark.parametrize("kind", KINDS)
def test_both_inequalities_of_the_proof_hold_after_each_update(margin: float, kind: Any) -> None:
    data = kind(4)
    u, delta = best_separator(np.vstack(data.differences()))
    model = mm.StructuredPerceptron(data.model, margin=margin, trace=True, max_epochs=10_000)
    trace = model.fit(data.X, data.y).trace_
    path, steps = trace.coef, trace.difference.toarray()
    k = np.arange(len(path))
    assert model.updates_ == k[-1] == sum(trace.updates)
    assert (path @ u >= k * delta * (1 - 1e-6)).all()
    # ⟨w, d⟩ ≤ margin · loss before each update, so that ‖w‖² grows by at most ‖d‖² + 2 margin loss.
    lead = np.einsum("ij,ij->i", path[:-1], steps)
    size = np.linalg.norm(path[:-1], axis=1) * np.linalg.norm(steps, axis=1)
    assert (lead <= margin * trace.loss + 1e-12 * size).all()
    growth = np.cumsum((steps**2).sum(axis=1) + 2 * margin * trace.loss)
    assert ((path[1:] ** 2).sum(axis=1) <= growth * (1 + 1e-12)).all()
    # What was updated is what the outputs say.
    ready = model.model_
    for example, output, loss, step in zip(
        trace.example, trace.output, trace.loss, steps, strict=True
    ):
        x, y = data.X[example], data.y[example]
        assert loss == ready.loss(y, output) > 0
        assert_allclose(step, dense(ready.difference(x, y, output)), atol=1e-12)
    assert_allclose(trace.after(3), path[3], atol=1e-9)
    assert_allclose(model.radius_, np.sqrt((steps**2).sum(axis=1)).max(), rtol=1e-12)
    assert model.largest_loss_ == trace.loss.max()


def test_the_bound_holds_from_another_start_and_with_fractional_weights() -> None:
    for seed in range(10):
        first, data = separable_lists(seed, gap=0.1), separable_lists(seed + 100)
        rng = np.random.default_rng(seed)
        weight = rng.choice([0.25, 1.0, 2.5], len(data.X))
        model = mm.StructuredPerceptron(Listed(), warm_start=True, max_epochs=10_000)
        model.fit(first.X, first.y)
        _, delta = best_separator(np.vstack(data.differences()))
        model.fit(data.X, data.y, weight)
        assert model.status_ is Status.ALL_CORRECT
        assert model.updates_ <= model.mistake_bound(delta) * (1 + 1e-6)


# -- the margin ----------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("kind", KINDS)
def test_at_the_end_every_output_is_beaten_by_margin_times_its_loss(
    margin: float, kind: Any
) -> None:
    for seed in range(2):
        data = kind(seed)
        model = mm.StructuredPerceptron(
            data.model, averaged=False, margin=margin, max_epochs=100_000
        ).fit(data.X, data.y)
        for differences, losses in zip(data.differences(), data.losses(), strict=True):
            assert (differences @ model.coef_ >= margin * losses - 1e-9).all()


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_margin_that_only_breaks_ties_gives_the_perceptron_of_classes(
    n_classes: int, averaged: bool, shuffle: bool
) -> None:
    """Whose mistakes are y f ≤ 0: ties included. On whole numbers the two agree to the last bit."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, 60)
    y[:n_classes] = np.arange(n_classes)
    X = (rng.integers(-5, 6, (60, 4)) + 2 * y[:, np.newaxis]).astype(float)
    run: dict[str, Any] = {"stop": "epochs", "max_epochs": 7, "shuffle": shuffle, "random_state": 3}
    structured = mm.StructuredPerceptron(
        mm.structured.Multiclass(), margin=2.0**-20, averaged=averaged, **run
    ).fit(X, y)
    kind = mm.AveragedPerceptron if averaged else mm.Perceptron
    known = kind(fit_intercept=False, **run).fit(X, y)
    W = structured.model_.named_weights(structured.coef_)["classes"]
    assert structured.updates_ == structured.mistakes_ == known.updates_ > 0
    if n_classes == 2:
        W = W[1:]
        assert_array_equal(W, -structured.model_.named_weights(structured.coef_)["classes"][:1])
    assert_allclose(W, known.coef_, rtol=1e-12, atol=1e-12)
    assert_array_equal(structured.predict(X), known.predict(X))


def test_the_smallest_margins_do_not_overflow_and_smaller_ones_are_refused() -> None:
    data = separable_lists(2)
    plainly = mm.StructuredPerceptron(Listed(), max_epochs=10_000).fit(data.X, data.y)
    model = mm.StructuredPerceptron(Listed(), margin=1e-100, max_epochs=10_000).fit(data.X, data.y)
    assert model.status_ is plainly.status_ is Status.ALL_CORRECT
    with pytest.raises(ValueError, match="margin=1e-101 is not valid"):
        mm.StructuredPerceptron(Listed(), margin=1e-101).fit(data.X, data.y)
    with pytest.raises(ValueError, match="margin=-1 is not valid"):
        mm.StructuredPerceptron(Listed(), margin=-1).fit(data.X, data.y)
    message = "Example .*: sums of products of its features overflow: scale them"
    with np.errstate(all="ignore"):
        with pytest.raises(ValueError, match=f"{message}, or choose a margin above 1e-100"):
            mm.StructuredPerceptron(Listed(), margin=1e-100).fit(
                [1e120 * x for x in data.X], data.y
            )
        with pytest.raises(ValueError, match=rf"{message}\."):
            mm.StructuredPerceptron(Listed()).fit([1e180 * x for x in data.X], data.y)


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_the_first_output_is_the_one_that_costs_most(margin: float) -> None:
    """Also where ties are broken in favour of the truth, as here: else it would learn nothing."""
    x = np.eye(5)
    for truth, worst in ((0, 4), (1, 4), (3, 0)):
        model = mm.StructuredPerceptron(Listed(), margin=margin, stop="one_pass", trace=True)
        assert model.fit([x], [truth]).trace_.output == [worst]
        assert model.largest_loss_ == abs(truth - worst)


# -- the mean, and weights -----------------------------------------------------------------------


@pytest.mark.parametrize("margin", [0.0, 0.5])
@pytest.mark.parametrize("kind", [integer_lists, integer_chains])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_is_the_mean_of_w_after_each_visit(
    margin: float, kind: Any, weighted: bool
) -> None:
    for seed in range(3):
        data = kind(seed)
        rng = np.random.default_rng(seed)
        weight = rng.choice([0.0, 0.25, 1.0, 2.0, 3.5], len(data.X)) if weighted else None
        vectors, shares = plain(data, margin=margin, epochs=4, weight=weight)
        run: dict[str, Any] = {
            "margin": margin,
            "max_epochs": 4,
            "shuffle": False,
            "stop": "epochs",
        }
        mean = mm.StructuredPerceptron(data.model, **run).fit(data.X, data.y, weight)
        last = mm.StructuredPerceptron(data.model, averaged=False, **run).fit(
            data.X, data.y, weight
        )
        assert_array_equal(last.coef_, vectors[-1])
        assert_allclose(mean.coef_, np.average(vectors, axis=0, weights=shares), atol=1e-9)
        assert mean.updates_ == last.updates_
        changed = [
            share
            for share, w, before in zip(shares, vectors, [0 * vectors[0], *vectors], strict=False)
            if (w != before).any()
        ]
        assert mean.updates_ == sum(changed) > 0


@pytest.mark.parametrize("kind", ["list", "array", "sparse", "frame", "polars", "arrow"])
def test_examples_of_weight_0_are_absent_whatever_holds_them(kind: str) -> None:
    """Their labels and columns, too: a class that only they have does not exist."""
    X, y = np.arange(24.0).reshape(8, 3) % 5, np.array(list("abcabcab"))
    weight, rows = np.array([1, 1, 0, 2, 1, 0, 0, 3]), np.array([0, 1, 3, 4, 7])
    holders: dict[str, Callable[[], Any]] = {
        "list": lambda: X.tolist(),
        "array": lambda: X,
        "sparse": lambda: sp.csc_array(X),
        "frame": lambda: pytest.importorskip("pandas").DataFrame(X, columns=list("uvw")),
        "polars": lambda: pytest.importorskip("polars").DataFrame(X, schema=list("uvw")),
        "arrow": lambda: pytest.importorskip("pyarrow").table(dict(zip("uvw", X.T, strict=True))),
    }
    held = holders[kind]()
    run: dict[str, Any] = {"max_epochs": 3, "shuffle": False, "trace": True}
    model = mm.StructuredPerceptron(mm.structured.Multiclass(), **run).fit(held, y, weight)
    known = mm.StructuredPerceptron(mm.structured.Multiclass(), **run).fit(
        X[rows], y[rows], weight[rows]
    )
    assert model.classes_.tolist() == ["a", "b"]
    assert_array_equal(model.coef_, known.coef_)
    assert_array_equal(model.trace_.example, rows[known.trace_.example])
    assert_array_equal(model.predict(held), known.predict(X))
    named = kind in ("frame", "polars", "arrow")
    assert list(getattr(model, "feature_names_in_", "")) == (list("uvw") if named else [])


@pytest.mark.parametrize("kind", [list, np.float32, np.int64, sp.csr_matrix, sp.csc_array])
def test_sequences_may_come_in_any_form(kind: Any) -> None:
    data = integer_chains(9)
    run: dict[str, Any] = {"max_epochs": 3, "margin": 1.0}
    known = mm.StructuredPerceptron(data.model, **run).fit(data.X, data.y)
    if kind is list:
        X, y = [x.tolist() for x in data.X], [each.tolist() for each in data.y]
    else:
        sparse = kind in (sp.csr_matrix, sp.csc_array)
        X, y = [kind(x) if sparse else x.astype(kind) for x in data.X], data.y
    model = mm.StructuredPerceptron(data.model, **run).fit(X, y)
    assert_array_equal(model.coef_, known.coef_)
    for one, other in zip(model.predict(X), known.predict(data.X), strict=True):
        assert_array_equal(one, other)
    assert model.score(X, y) == known.score(data.X, data.y)


def test_repeating_the_examples_or_adding_a_column_of_zeros_changes_no_update() -> None:
    data = separable_chains(6)
    run: dict[str, Any] = {"shuffle": False, "averaged": False, "max_epochs": 1000}
    once = mm.StructuredPerceptron(data.model, **run).fit(data.X, data.y)
    twice = mm.StructuredPerceptron(data.model, **run).fit(2 * data.X, 2 * data.y)
    assert once.updates_ == twice.updates_
    assert_array_equal(once.coef_, twice.coef_)
    wide = [np.hstack([x, np.zeros((len(x), 1))]) for x in data.X]
    padded = mm.StructuredPerceptron(data.model, **run).fit(wide, data.y)
    assert once.updates_ == padded.updates_
    named = padded.model_.named_weights(padded.coef_)["emissions"]
    assert_array_equal(named[:, :-1], once.model_.named_weights(once.coef_)["emissions"])
    assert not named[:, -1].any()


def test_weights_are_checked() -> None:
    data = integer_lists(0)
    model = mm.StructuredPerceptron(Listed())
    for weight, message in [
        (np.zeros(30), "sample_weight is above 0 for no"),
        (-np.ones(30), "zero or negative weights"),
        (np.ones(29), "one weight per row"),
        (np.full(30, np.nan), "NaN"),
        (np.where(np.arange(30) == 7, 1e12, 0.5), r"contains 1e\+12 \(example 7\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(data.X, data.y, weight)


def test_outputs_with_equal_features_are_no_reason_to_go_on() -> None:
    """Nothing that is learnt could tell them apart: they are passed, however heavy they are."""
    x = np.ones((3, 2))
    model = mm.StructuredPerceptron(Listed(), averaged=False).fit([x, x], [2, 1], [1e9, 1.0])
    assert model.status_ is Status.ALL_CORRECT
    assert model.updates_ == 0
    assert not model.coef_.any()


# -- decoders that do not maximise ---------------------------------------------------------------


def test_a_decoder_that_misses_the_truth_is_reported() -> None:
    data = separable_lists(1)
    ahead = [x for x, y in zip(data.X, data.y, strict=True) if y < 2]
    y = [y for y in data.y if y < 2]
    model = mm.StructuredPerceptron(Careless(), max_epochs=20)
    with pytest.warns(UserWarning, match="Careless claims to be exact, but at .* updates"):
        model.fit(ahead, y)
    assert model.search_errors_ > 0
    assert model.mistake_bound(1.0) == np.inf
    modest = Careless()
    modest.exact = False
    model = mm.StructuredPerceptron(modest, max_epochs=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(ahead, y)
    assert model.search_errors_ > 0


# -- why it stops, and what it says --------------------------------------------------------------


def test_it_says_why_it_stopped() -> None:
    data, hopeless = separable_lists(0), integer_lists(0)
    model = mm.StructuredPerceptron(Listed(), averaged=False).fit(data.X, data.y)
    assert model.stop_reason_.endswith("every training row was passed without an update.")
    model = mm.StructuredPerceptron(Listed(), stop="one_pass").fit(data.X, data.y)
    assert model.status_ is Status.ONE_PASS
    assert model.epochs_ == model.n_iter_ == 1
    last = mm.StructuredPerceptron(Listed(), averaged=False, max_epochs=3)
    with pytest.warns(ConvergenceWarning, match="use averaged=True, or raise max_epochs"):
        last.fit(hopeless.X, hopeless.y)
    assert last.status_ is Status.MAX_EPOCHS
    model = mm.StructuredPerceptron(Listed(), max_epochs=3).fit(hopeless.X, hopeless.y)
    assert model.stop_reason_ == "After 3 epochs: all the epochs allowed were made."
    model = mm.StructuredPerceptron(Listed(), max_epochs=10**9, max_time=1e-9)
    assert model.fit(hopeless.X, hopeless.y).status_ is Status.MAX_TIME
    model = mm.StructuredPerceptron(Listed(), callback=lambda progress: progress.iteration == 4)
    assert model.fit(hopeless.X, hopeless.y).status_ is Status.CALLBACK
    assert model.epochs_ == 4


def test_interrupt_keeps_what_was_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it comes: the mean is that of the visits completed."""
    data = integer_lists(1)
    calls: list[int] = []
    decode = Listed.decode

    def interrupt(self: Listed, x: Any, w: Floats, truth: Any = None) -> Any:
        calls.append(1)
        if len(calls) == 47:
            raise KeyboardInterrupt
        return decode(self, x, w, truth)

    monkeypatch.setattr(Listed, "decode", interrupt)
    model = mm.StructuredPerceptron(Listed(), shuffle=False)
    with pytest.raises(KeyboardInterrupt, match="the weights reached so far are kept"):
        model.fit(data.X, data.y)
    monkeypatch.undo()
    assert model.status_ is Status.INTERRUPTED
    vectors, _ = plain(data, epochs=2)
    assert_allclose(model.coef_, np.mean(vectors[:46], axis=0), atol=1e-12)
    assert len(model.predict(data.X)) == len(data.X)


def test_a_failed_refit_is_not_a_fit() -> None:
    data = integer_lists(2)
    model = mm.StructuredPerceptron(Listed(), max_epochs=2).fit(data.X, data.y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(data.X, data.y[1:])
    with pytest.raises(NotFittedError):
        model.predict(data.X)


def test_a_warm_start_goes_on_from_the_last_vector() -> None:
    data = integer_chains(7)
    run: dict[str, Any] = {"shuffle": False, "stop": "epochs"}
    model = mm.StructuredPerceptron(data.model, max_epochs=3, warm_start=True, **run)
    model.fit(data.X, data.y).fit(data.X, data.y)
    vectors, _ = plain(data, epochs=6)
    assert_allclose(model.coef_, np.mean(vectors[len(vectors) // 2 :], axis=0), atol=1e-9)
    with pytest.raises(ValueError, match=r"the last fit has .* weights and these data need"):
        model.fit([x[:, :1] for x in data.X], data.y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"model": "chain"}, TypeError, "model='chain' is not valid.*mm.structured.Chain"),
        (
            {"model": mm.structured.Chain},
            TypeError,
            "it must be an instance of mm.structured.Model",
        ),
        ({"averaged": 1}, TypeError, "averaged=1 is not valid"),
        ({"stop": "held_out"}, ValueError, "choose one of 'all_correct', 'epochs', 'one_pass'"),
        ({"max_epochs": 0}, ValueError, "max_epochs=0 is not valid"),
        ({"max_time": 0}, ValueError, "max_time=0 is not valid"),
        ({"callback": 3}, TypeError, "callback=3 is not valid"),
        ({"random_state": -1}, ValueError, "random_state=-1 is not valid"),
    ],
)
def test_parameters_are_checked(
    parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    data = integer_lists(0)
    with pytest.raises(error, match=message):
        mm.StructuredPerceptron(**{"model": Listed(), **parameters}).fit(data.X, data.y)


def test_what_it_does_not_have_is_refused_with_advice() -> None:
    with pytest.raises(TypeError, match="change margin instead"):
        mm.StructuredPerceptron(Listed(), eta=0.5)  # type: ignore[call-arg]
    model = mm.StructuredPerceptron(Listed())
    with pytest.raises(NotFittedError):
        model.mistake_bound(1.0)
    data = separable_lists(0)
    with pytest.raises(ValueError, match="delta=0 is not valid"):
        model.fit(data.X, data.y).mistake_bound(0)
    with pytest.raises(ValueError, match="radius=-1 is not valid"):
        model.mistake_bound(1.0, radius=-1)
