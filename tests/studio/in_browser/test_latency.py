"""Every drag is answered; how long that takes is printed (with ``-s``), as clocks prove nothing."""

import numpy as np
import pytest

from benchmarks.studio_latency import HEADING, MODELS, measure_drag
from maxmargin.errors import recorded_warnings
from tests.studio.in_browser.conftest import StudioPage
from tests.studio.in_browser.test_page import fitted


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("count", [200, 2000])
def test_every_drag_is_answered(desk: StudioPage, model: str, count: int) -> None:
    waits = measure_drag(desk.page, model, count, 30)
    print(f"\n{HEADING}\n{waits.describe()}")  # noqa: T201
    assert 1 <= len(waits.milliseconds) <= 31
    assert all(0 < wait < 60_000 for wait in waits.milliseconds)
    picture, points = desk.picture(), desk.state["points"]
    assert len(picture["rows"]["kind"]) == count
    with recorded_warnings():  # perceptrons never cease to make mistakes here
        known = fitted(model, points)  # the last picture is that of the last place
    if model == "SVC":
        assert picture["certificate"]["primal"] == pytest.approx(
            known.certificate_.primal, rel=1e-3
        )
        return
    w, b = np.ravel(known.coef_), float(np.ravel(known.intercept_)[0])
    assert [*picture["weights"], picture["intercept"]] == pytest.approx([*w, b], rel=1e-6)
