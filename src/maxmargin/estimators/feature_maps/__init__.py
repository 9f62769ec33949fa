"""Feature maps x ↦ φ(x): linear machines on φ(x) are kernel machines on x, exactly or nearly."""

from maxmargin.estimators.feature_maps.circle import CircleMap
from maxmargin.estimators.feature_maps.fourier import RandomFourier
from maxmargin.estimators.feature_maps.nystroem import Nystroem
from maxmargin.estimators.feature_maps.polynomial import PolynomialMap

__all__ = ["CircleMap", "Nystroem", "PolynomialMap", "RandomFourier"]
