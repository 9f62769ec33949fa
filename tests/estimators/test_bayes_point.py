"""The vote of all separators, against what geometry says about it."""

import numpy as np
import pytest

import maxmargin as mm


def test_the_angle_of_a_plane_is_uniform_on_the_arc_of_the_version_space() -> None:
    X, y = np.array([[1.0, 0.2], [0.3, 1.0], [-1.0, 0.5]]), np.array([1, 1, 0])
    model = mm.BayesPointClassifier(intercept_scaling=0, n_samples=10_000).fit(X, y)
    angles = np.arctan2(*model.samples_[0].T[::-1])
    walls = X * np.where(y == 1, 1, -1)[:, np.newaxis]
    normal = np.arctan2(walls[:, 1], walls[:, 0])
    low, high = normal.max() - np.pi / 2, normal.min() + np.pi / 2
    assert ((angles > low) & (angles < high)).all()
    within = (angles - low) / (high - low)
    assert np.histogram(within, 10, (0, 1))[0] / len(within) == pytest.approx(0.1, abs=0.02)
    middle = np.array([np.cos((low + high) / 2), np.sin((low + high) / 2)])
    mean = model.coef_[0] / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(mean, middle, atol=2e-2)
