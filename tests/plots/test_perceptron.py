"""Pictures of perceptrons: what is drawn is what the geometry says."""

import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image, ImageSequence

import maxmargin as mm
from maxmargin.geometry import Hyperplane, Window, segment, window

mpl.use("Agg")
import matplotlib.pyplot as plt

PathOf = mm.plots.PerceptronPathDisplay
Update = mm.plots.UpdateDisplay
Separators = mm.plots.SeparatorsDisplay

HOSTILE = ["<script>alert(1)</script>", r"$\frac{", "'\"`", "x" * 10_000, "_hidden", "a\nb", "שלום"]
UNIT = Window(np.zeros(2), np.ones(2), equal=True)


@pytest.fixture(scope="module")
def clouds() -> Any:
    return mm.datasets.gaussians(120, variance=0.05, random_state=3)


@pytest.fixture(scope="module")
def model(clouds: Any) -> Any:
    return mm.Perceptron(trace=True, random_state=1).fit(*clouds)


@pytest.fixture(scope="module")
def gap() -> Any:
    return mm.datasets.separable(40, margin=0.3, w=(1, 2), b=0.5, random_state=0)


@pytest.fixture(scope="module")
def short() -> Any:
    X, y = np.array([[1, 3], [2, 2.5], [2, 1]]), np.array([0, 0, 1])
    fitted = mm.Perceptron(trace=True, shuffle=False).fit(X, y)
    return PathOf.from_estimator(fitted, X, y)


def same_line(artist: Any, w: Any, b: float) -> bool:
    """Whether both ends of a drawn line, which must differ, satisfy w·x + b = 0."""
    ends = np.asarray(artist if isinstance(artist, np.ndarray) else artist.get_xydata())
    residual = ends @ w + b
    long = np.linalg.norm(ends[1] - ends[0]) > 0
    return bool(long and np.abs(residual).max() <= 1e-9 * (np.abs(w).max() + abs(b)))


class TestSegment:
    @pytest.mark.parametrize(
        ("w", "b", "ends"),
        [
            ((1, 0), -0.25, [[0.25, 0], [0.25, 1]]),
            ((0, -3), 1.5, [[0, 0.5], [1, 0.5]]),
            ((1, 1), -1.5, [[0.5, 1], [1, 0.5]]),
            ((1e200, -1e200), 0, [[0, 0], [1, 1]]),
        ],
    )
    def test_ends_on_the_border(self, w: Any, b: float, ends: Any) -> None:
        found = segment(Hyperplane(w, b), UNIT)
        assert found is not None
        assert_allclose(found[np.lexsort(found.T[::-1])], ends, atol=1e-12)

    @pytest.mark.parametrize(("w", "b"), [((0, 0), 1), ((1, 0), -2), ((0, 1), 0.5), ((1, 1), -3)])
    def test_nothing_of_no_line_or_one_outside(self, w: Any, b: float) -> None:
        assert segment(Hyperplane(w, b), UNIT) is None

    def test_random_lines_stay_inside_and_satisfy_their_equation(self) -> None:
        rng = np.random.default_rng(0)
        for _ in range(200):
            w, b = rng.standard_normal(2), 0.7 * rng.standard_normal()
            ends = segment(Hyperplane(w, b), UNIT)
            corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) @ w + b
            assert (ends is None) == bool((corners > 0).all() or (corners < 0).all())
            if ends is not None:
                assert same_line(ends, w, b)
                assert ends.min() >= -1e-12
                assert ends.max() <= 1 + 1e-12

    def test_a_window_of_one_point_is_not_empty(self) -> None:
        seen = window(np.ones((3, 2)))
        assert (seen.high > seen.low).all()


class TestPath:
    def test_draws_the_lines_of_the_trace(self, model: Any, clouds: Any) -> None:
        display = PathOf.from_estimator(model, *clouds)
        coef, intercept = model.trace_.coef[:, 0], model.trace_.intercept[:, 0]
        assert same_line(display.last_, model.coef_[0], model.intercept_[0])
        assert display.model_ is None
        segments = display.lines_.get_segments()
        seen = window(clouds[0], share=0.15)
        visible = [
            k
            for k in range(len(coef) - 1)
            if segment(Hyperplane(coef[k], intercept[k]), seen) is not None
        ]
        assert 3 < len(segments) == len(visible) < len(coef)
        for part, k in zip(segments, visible, strict=True):
            assert same_line(part, coef[k], intercept[k])
        fading = display.lines_.get_colors()[:, 3]
        assert (np.diff(fading) > 0).all()
        assert display.last_.get_linewidth() > 2 * display.lines_.get_linewidths()[0]
        notes = " ".join(t.get_text() for t in display.ax_.texts)
        assert "no line where w = 0" in notes
        assert f"{len(coef) - 2 - len(visible)} outside" in notes

    def test_shows_every_point_with_its_class(self, model: Any, clouds: Any) -> None:
        X, y = clouds
        display = PathOf.from_estimator(model, X, y)
        for artist, label in zip(display.points_, model.classes_, strict=True):
            assert_array_equal(artist.get_offsets(), X[y == label])
            assert artist.get_label() == str(label)

    def test_records_per_epoch(self, model: Any, clouds: Any) -> None:
        display = PathOf.from_estimator(model, *clouds, every="epoch")
        assert_array_equal(display.moments, np.arange(model.epochs_ + 1))
        for k, updates in enumerate(np.cumsum([0, *model.trace_.updates])):
            w, b = model.trace_.after(int(updates))
            assert_allclose(display.coef[k], w[0])
            assert_allclose(display.intercept[k], b[0])

    def test_epochs_of_heavy_rows_are_refused(self, clouds: Any) -> None:
        X, y = clouds
        heavy = mm.Perceptron(trace=True).fit(X, y, sample_weight=np.full(len(y), 0.5))
        with pytest.raises(ValueError, match="every='update'"):
            PathOf.from_estimator(heavy, X, y, every="epoch")
        PathOf.from_estimator(heavy, X, y)

    def test_panels_go_from_the_start_to_the_end(self, model: Any, clouds: Any) -> None:
        X, y = clouds
        display = PathOf.from_estimator(model, X, y, panels=5)
        titles = [ax.get_title() for ax in display.figure_.axes]
        assert len(titles) == 5
        assert titles[0] == "start: w = 0, E = 0"
        assert titles[-1] == f"update {model.updates_}: 0 wrong, E = 0"
        assert same_line(display.lines_[-1], model.coef_[0], model.intercept_[0])
        for title in titles[1:-1]:
            k = int(re.findall(r"update (\d+)", title)[0])
            w, b = model.trace_.after(k)
            line = Hyperplane(w[0], b[0])
            wrong = int(np.sum(line.functional_margin(X, y) <= 0))
            E = mm.geometry.perceptron_criterion(line, X, y)
            seen, absent = (f"update {k}: {what}, E = {E:.3g}" for what in
                            (f"{wrong} wrong", "line outside"))  # fmt: skip
            assert title in (seen, absent)

    def test_more_panels_than_records(self, short: Any) -> None:
        display = PathOf(
            coef=short.coef, intercept=short.intercept, moments=short.moments,
            X=short.X, y=short.y, classes=short.classes, panels=100,
        ).plot()  # fmt: skip
        assert len(display.figure_.axes) == len(short.moments)

    def test_vertical_lines(self) -> None:
        X, y = [[-1.0, 0.0], [1.0, 0.0]], [0, 1]
        display = PathOf.from_estimator(mm.Perceptron(trace=True).fit(X, y), X, y)
        assert same_line(display.last_, np.array([1.0, 0.0]), 0) or display.coef[-1, 1] == 0
        assert np.ptp(display.last_.get_xdata()) == 0

    @pytest.mark.parametrize("kind", [mm.AveragedPerceptron, mm.VotedPerceptron])
    def test_other_perceptrons(self, kind: Any) -> None:
        X, y = mm.datasets.gaussians(100, variance=0.3, random_state=0)
        fitted = kind(trace=True, max_epochs=5).fit(X, y)
        display = PathOf.from_estimator(fitted, X, y)
        last = fitted.trace_.after(len(fitted.trace_.row))
        assert same_line(display.last_, last[0][0], last[1][0])
        if kind is mm.AveragedPerceptron:
            assert same_line(display.model_, fitted.coef_[0], fitted.intercept_[0])
            assert not same_line(display.model_, last[0][0], last[1][0])

    def test_many_lines_are_sampled_openly(self) -> None:
        X, y = mm.datasets.gaussians(400, variance=0.5, random_state=0)
        fitted = mm.Perceptron(trace=True, stop="epochs", max_epochs=5).fit(X, y)
        display = PathOf.from_estimator(fitted, X, y)
        n = len(fitted.trace_.coef)
        assert n > 200
        assert f"60 of {n} lines" in display.ax_.texts[0].get_text()

    def test_many_points_are_sampled_openly(self, model: Any) -> None:
        X, y = mm.datasets.gaussians(30_000, random_state=0)
        display = PathOf.from_estimator(model, X, y)
        drawn = sum(len(artist.get_offsets()) for artist in display.points_)
        assert drawn == mm.plots.style.MOST_POINTS
        assert "20,000 of 30,000 points" in display.ax_.texts[0].get_text()

    def test_kinds_of_data_agree(self, clouds: Any) -> None:
        X, y = clouds
        words = np.where(y > 0, "yes", "no")
        frame = pd.DataFrame(X, columns=["height", "weight"])
        dense = PathOf.from_estimator(mm.Perceptron(trace=True).fit(X, y), X, y)
        for data in (frame, sp.csr_array(X), X.astype(np.float32).astype(np.float64)):
            fitted = mm.Perceptron(trace=True).fit(data, words)
            display = PathOf.from_estimator(fitted, data, words)
            assert len(display.coef) == len(fitted.trace_.row) + 1
            if data is not frame:
                continue
            assert_allclose(display.coef, dense.coef)
            assert display.ax_.get_xlabel() == "height"
            assert display.ax_.get_ylabel() == "weight"


def count_frames(path: Path) -> int:
    with Image.open(path) as film:
        return len(list(ImageSequence.Iterator(film)))


class TestAnimation:
    def test_a_gif_has_a_frame_for_each_record(self, short: Any, tmp_path: Path) -> None:
        path = short.animate(tmp_path / "run.gif", dpi=50)
        assert count_frames(path) == len(short.moments) > 3

    def test_a_page_has_all_frames_and_needs_no_network(self, short: Any, tmp_path: Path) -> None:
        page = short.animate(tmp_path / "run.html", dpi=50).read_text(encoding="utf-8")
        frames = re.search(r"const frames = (\[.*\]);", page)
        assert frames is not None
        assert len(json.loads(frames[1])) == len(short.moments)
        outside = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", page)
        assert not re.search(r"//|@import|url\(|<link|fetch", outside)

    def test_long_runs_are_shown_in_part(self, short: Any, tmp_path: Path) -> None:
        assert count_frames(short.animate(tmp_path / "run.gif", most=3, dpi=50)) == 3

    def test_bad_arguments(self, short: Any, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"\.gif or \.html, got .*run\.mp4"):
            short.animate(tmp_path / "run.mp4")
        with pytest.raises(ValueError, match="fps must be above 0"):
            short.animate(tmp_path / "run.gif", fps=0)
        with pytest.raises(ValueError, match="most must be 1 or more"):
            short.animate(tmp_path / "run.gif", most=0)


class TestUpdate:
    @pytest.mark.parametrize(("b", "more"), [(None, 0.0), (-0.3, 1.0)])
    @pytest.mark.parametrize("eta", [0.25, 1.0])
    def test_the_score_rises_by_the_theorem(self, b: float | None, more: float, eta: float) -> None:
        X, y = np.array([[-1.0, 1.0], [1.5, 0.2]]), np.array([1, -1])
        display = Update.from_examples((1.0, 0.6), X, y, b=b, eta=eta)
        old = y * (np.sum(display.w * X, axis=1) + display.b)
        new = y * (np.sum(display.w_new * X, axis=1) + display.b_new)
        assert_allclose(new - old, eta * (np.sum(X**2, axis=1) + more))

    def test_arrows_and_lines_are_those_of_the_update(self) -> None:
        display = Update.from_examples(
            (1.0, 0.6), [[-1.0, 1.0], [1.5, 0.2]], [1, -1], b=-0.3, eta=0.5
        )
        for k in range(2):
            ends = {name: np.r_[a.U, a.V] for name, a in display.arrows_[k].items()}
            assert_allclose(ends["old"] + ends["step"], ends["new"])
            assert_allclose(ends["step"], display.steps[k] * display.X[k])
            assert same_line(display.lines_[k]["old"], display.w[k], display.b[k])
            assert same_line(display.lines_[k]["new"], display.w_new[k], display.b_new[k])
            assert_array_equal(display.points_[k].get_offsets()[0], display.X[k])
            assert display.ax_.flat[k].get_aspect() == 1.0

    def test_angles_turn_towards_positive_and_away_from_negative(self) -> None:
        display = Update.from_examples()
        turns = [re.findall(r"(\d+)°", ax.get_title()) for ax in display.ax_.flat]
        assert int(turns[0][0]) > 90 >= int(turns[0][1])
        assert int(turns[1][0]) < 90 <= int(turns[1][1])

    def test_updates_of_a_model(self, model: Any) -> None:
        display = Update.from_estimator(model)
        assert_array_equal(np.sign(display.steps), [1, -1])
        chosen = Update.from_estimator(model, [0, 3])
        trace = model.trace_
        assert_allclose(chosen.w_new, trace.coef[[1, 4], 0])
        assert_allclose(chosen.b_new, trace.intercept[[1, 4], 0])
        assert "old" not in chosen.lines_[0]  # w was zero
        assert "none →" in chosen.ax_.flat[0].get_title()

    def test_one_axes_for_one_example(self) -> None:
        _, ax = plt.subplots()
        display = Update.from_examples((1, 0), [[-1, 0.5]], [1], ax=ax)
        assert display.figure_ is ax.figure


class TestSeparators:
    def test_every_line_separates_and_none_beats_the_central_one(self, gap: Any) -> None:
        X, y = gap
        display = Separators.from_data(X, y, bands=True)
        assert len(display.lines_) == 20
        for artist, w, b in zip(display.lines_, display.coef, display.intercept, strict=True):
            assert same_line(artist, w, b)
            assert (Hyperplane(w, b).functional_margin(X, y) > 0).all()
        assert_allclose(display.central_margin, 0.3, rtol=1e-6)
        assert display.margins.max() < display.central_margin
        assert len(np.unique(display.margins.round(9))) > 10

    def test_perceptrons_that_gave_up_are_not_drawn_but_counted(self) -> None:
        # Two classes along one line, 1e-5 apart: 1000 epochs are too few for most.
        X, y = (
            np.array([[-1, -1.0], [1, 1 - 1e-5], [-1, -1 + 1e-5], [1, 1.0]]),
            np.array([0, 0, 1, 1]),
        )
        display = Separators.from_data(X, y, n_lines=6)
        lost = 6 - len(display.coef)
        assert lost > 0
        assert (display.margins > 0).all()
        assert f"{lost} perceptrons gave up" in display.ax_.texts[0].get_text()

    def test_marginal_lines_touch_and_are_parallel(self, gap: Any) -> None:
        X, y = gap
        display = Separators.from_data(X, y)
        central = Hyperplane(*display.central)
        assert same_line(display.central_, *display.central)
        for artist, side in zip(display.marginal_, (-1, 1), strict=True):
            distances = central.signed_distance(artist.get_xydata())
            assert_allclose(distances, side * 0.3, rtol=1e-6)

    def test_bands_are_as_wide_as_the_margins(self, gap: Any) -> None:
        X, y = gap
        display = Separators.from_data(X, y, bands=True)
        lines = {**dict(enumerate(display._lines)), -1: Hyperplane(*display.central)}
        assert len(display.bands_) == 3
        widths = {}
        for k, polygon in display.bands_.items():
            distances = lines[k].signed_distance(polygon.get_xy())
            margin = float(lines[k].geometric_margin(X, y).min())
            assert_allclose(np.unique(distances.round(9)), [-margin, margin], atol=1e-8)
            widths[k] = margin
            assert (lines[k].absolute_distance(X) >= margin * (1 - 1e-12)).all()
        assert max(widths, key=lambda k: widths[k]) == -1

    def test_the_query_is_disputed_and_counted(self, gap: Any) -> None:
        X, y = gap
        words = np.where(y > 0, "z", "a")
        display = Separators.from_data(X, words)
        planes = [*display._lines, Hyperplane(*display.central)]
        says = np.array([plane.predict([display.query])[0] for plane in planes])
        assert display.votes == (np.sum(says < 0), np.sum(says > 0))
        assert min(display.votes) >= 7
        assert_allclose(display.query_.get_offsets()[0], display.query)
        said = f"query: {display.votes[0]} lines say a, {display.votes[1]} say z"
        assert said in display.ax_.texts[0].get_text()

    def test_a_given_query_is_shown_wherever_it_is(self, gap: Any) -> None:
        display = Separators.from_data(*gap, query=(9.0, 9.0), n_lines=3)
        assert display.votes == (0, 4)
        assert display.ax_.get_xlim()[1] > 9
        assert Separators.from_data(*gap, query=None, n_lines=1).query_ is None

    @pytest.mark.parametrize(
        ("X", "y"),
        [
            ([[0, 0], [1, 1]], [0, 1]),
            ([[0, 0], [1, 1], [2, 2], [3, 3]], list("aabb")),
            ([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 1, 1]),
            ([[5, 1e4], [6, 2e4], [5, 3e4], [6, 4e4]], [0, 0, 1, 1]),
        ],
    )
    def test_few_points_on_a_line_or_far_away(self, X: Any, y: Any) -> None:
        display = Separators.from_data(X, y, bands=True, n_lines=5)
        assert (display.margins > 0).all()
        assert display.margins.max() <= display.central_margin * (1 + 1e-9)

    def test_distances_are_to_scale_or_said_not_to_be(self, gap: Any) -> None:
        X, y = gap
        assert Separators.from_data(X, y, n_lines=2).ax_.get_aspect() == 1.0
        stretched = Separators.from_data(X * [1, 1000], y, n_lines=2)
        assert stretched.ax_.get_aspect() == "auto"
        assert "scales differ" in stretched.ax_.texts[0].get_text()

    def test_overlapping_classes_are_refused_with_the_proof(self) -> None:
        X, y = [[0, 0], [1, 1], [0, 1], [1, 0]], list("aabb")
        with pytest.raises(
            mm.NotSeparableError, match=r"a from b.*mm\.separate\(X, y\)"
        ) as refused:
            Separators.from_data(X, y)
        assert refused.value.witness is not None


class TestBadInput:
    def test_models_without_a_line(self, clouds: Any) -> None:
        X, y = clouds
        with pytest.raises(ValueError, match="trace=True"):
            PathOf.from_estimator(mm.Perceptron().fit(X, y), X, y)
        with pytest.raises(TypeError, match="no weights"):
            PathOf.from_estimator(mm.KernelPerceptron(trace=True).fit(X, y), X, y)
        three = mm.Perceptron(trace=True).fit([[0, 1], [1, 0], [1, 1]], [0, 1, 2])
        with pytest.raises(ValueError, match="3 classes"):
            PathOf.from_estimator(three, X, y)
        deep = mm.Perceptron(trace=True).fit(np.c_[X, X[:, 0]], y)
        with pytest.raises(ValueError, match="3 features"):
            PathOf.from_estimator(deep, X, y)

    def test_data_of_another_kind(self, model: Any, clouds: Any) -> None:
        X, y = clouds
        with pytest.raises(ValueError, match="X has 1 columns"):
            PathOf.from_estimator(model, X[:, :1], y)
        with pytest.raises(ValueError, match="X has 120 rows, y has 119 labels"):
            PathOf.from_estimator(model, X, y[1:])
        with pytest.raises(ValueError, match="not among"):
            PathOf.from_estimator(model, X, y + 10)
        with pytest.raises(ValueError, match="3 classes"):
            Separators.from_data(X[:3], [0, 1, 2])
        with pytest.raises(ValueError, match="1 classes"):
            Separators.from_data(X[:3], [0, 0, 0])

    def test_options(self, model: Any, clouds: Any) -> None:
        with pytest.raises(ValueError, match="every must be 'update' or 'epoch', got 'day'"):
            PathOf.from_estimator(model, *clouds, every="day")
        with pytest.raises(ValueError, match="panels must be 1 or more"):
            PathOf.from_estimator(model, *clouds, panels=0)
        with pytest.raises(ValueError, match="leave one of them out"):
            PathOf.from_estimator(model, *clouds, panels=2, ax=plt.figure().add_subplot())
        with pytest.raises(ValueError, match="n_lines must be 1 or more, got 0"):
            Separators.from_data(*clouds, n_lines=0)
        with pytest.raises(ValueError, match="query must be"):
            Separators.from_data(*clouds, query="somewhere")
        with pytest.raises(ValueError, match="query must be"):
            Separators.from_data(*clouds, query=[1, 2, 3])

    def test_updates(self, model: Any) -> None:
        with pytest.raises(ValueError, match=r"X\[1\] is no mistake: y f = 1"):
            Update.from_examples((1, 0), [[-1, 0], [1, 0]], [1, 1])
        with pytest.raises(ValueError, match="eta must be"):
            Update.from_examples(eta=0.0)
        with pytest.raises(ValueError, match="w must be two finite weights"):
            Update.from_examples(w=(1, 2, 3))
        with pytest.raises(ValueError, match=r"write one example as \[\[x1, x2\]\]"):
            Update.from_examples((1, 0), [-1, 0], [1])
        with pytest.raises(ValueError, match="y must be -1 or"):
            Update.from_examples((1, 0), [[-1, 0]], [0])
        with pytest.raises(ValueError, match="updates must be numbers from 0 to"):
            Update.from_estimator(model, [10_000])
        with pytest.raises(ValueError, match="2 panels"):
            Update.from_examples(ax=plt.figure().add_subplot())
