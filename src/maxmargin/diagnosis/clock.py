"""How long a diagnosis may take.

How many rows and settings are tried follows from their number, not from the clock, so that the same
data get the same diagnosis everywhere. The clock only ends what takes far too long.
"""

from maxmargin.clock import Clock

__all__ = ["Clock"]
