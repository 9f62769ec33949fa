"""The slope of a sum of losses as a function of the intercept."""

from typing import Any

from maxmargin.loops.compiled import compiled


@compiled
def slopes(up: Any, down: Any, low: Any, high: Any, shift: Any, b: float) -> Any:
    """Return the left and the right derivative in b of Σ ℓ.

    A row pulls b up while b < upᵢ and down while b > downᵢ. Kinks are compared with b as they are:
    computed again they would be off by rounding.
    """
    smooth = left = right = 0.0
    for i in range(up.shape[0]):
        below = up[i] - b
        above = b - down[i]
        if shift[i] > 0.0:
            if below > 0.0:
                smooth -= min(below / shift[i], high[i])
            if above > 0.0:
                smooth += min(above / shift[i], -low[i])
            continue
        if below >= 0.0 and high[i] > 0.0:
            left -= high[i]
            if below > 0.0:
                right -= high[i]
        if above >= 0.0 and low[i] < 0.0:
            right -= low[i]
            if above > 0.0:
                left -= low[i]
    return smooth + left, smooth + right
