"""Pictures of perceptrons: what is drawn is what the geometry says."""

import re
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import maxmargin as mm
from maxmargin.geometry import Hyperplane, segment, window

mpl.use("Agg")
import matplotlib.pyplot as plt

PathOf = mm.plots.PerceptronPathDisplay


@pytest.fixture(scope="module")
def clouds() -> Any:
    return mm.datasets.gaussians(120, variance=0.05, random_state=3)


@pytest.fixture(scope="module")
def model(clouds: Any) -> Any:
    return mm.Perceptron(trace=True, random_state=1).fit(*clouds)


def same_line(artist: Any, w: Any, b: float) -> bool:
    """Whether both ends of a drawn line, which must differ, satisfy w·x + b = 0."""
    ends = np.asarray(artist if isinstance(artist, np.ndarray) else artist.get_xydata())
    residual = ends @ w + b
    long = np.linalg.norm(ends[1] - ends[0]) > 0
    return bool(long and np.abs(residual).max() <= 1e-9 * (np.abs(w).max() + abs(b)))


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

    def test_options(self, model: Any, clouds: Any) -> None:
        with pytest.raises(ValueError, match="every must be 'update' or 'epoch', got 'day'"):
            PathOf.from_estimator(model, *clouds, every="day")
        with pytest.raises(ValueError, match="panels must be 1 or more"):
            PathOf.from_estimator(model, *clouds, panels=0)
        with pytest.raises(ValueError, match="leave one of them out"):
            PathOf.from_estimator(model, *clouds, panels=2, ax=plt.figure().add_subplot())
