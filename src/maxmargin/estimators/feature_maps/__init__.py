"""Nyström's features: linear machines on them are nearly kernel machines, and say how nearly."""

from maxmargin.estimators.feature_maps.nystroem import Nystroem

__all__ = ["Nystroem"]
