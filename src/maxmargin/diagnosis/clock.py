"""How long a diagnosis may take."""

import time


class Clock:
    """Counts down from ``max_time`` seconds.

    How many rows and settings are tried follows from their number, not from the clock, so that the
    same data get the same diagnosis everywhere. The clock only ends what takes far too long.
    """

    def __init__(self, max_time: float) -> None:
        self.max_time = max_time
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """Seconds left, never less than a hundredth: some calls refuse 0."""
        return max(self.max_time - self.seconds, 0.01)

    @property
    def over(self) -> bool:
        """Whether the time is used up."""
        return self.seconds >= self.max_time
