"""The time that a fit has: shares for its problems, and what certificates will need of it."""

from collections.abc import Callable

import numpy as np

from maxmargin._typing import Floats
from maxmargin.certificates import certify
from maxmargin.problems.problem import AnyProblem, Iterate, Status
from maxmargin.runtime import clock

_GRACE_PART, _GRACE = 0.2, 0.5  # the share of max_time, and seconds, that certificates may add
_RESERVED = 0.5  # the largest share of max_time that is reserved for certificates
_PROBE, _PROBE_PART = 512, 0.05  # a certificate is timed on so many rows, or this share of all


class Budget:
    """The time and patience left for a fit that solves several problems one after the other.

    Problems have equal shares of what is left: what one does not use is for those after it.
    Certificates may take a fifth of ``max_time`` and half a second longer: what they would take
    beyond that is kept free for them, up to half of ``max_time``.
    """

    def __init__(self, max_time: float | None, began: float | None = None) -> None:
        began = clock.now() if began is None else began
        self._end = None if max_time is None else began + max_time
        self._grace = 0.0 if max_time is None else _GRACE_PART * max_time + _GRACE
        self._last = None if self._end is None else self._end + self._grace  # for certificates
        self._unit: float | None = None  # seconds that a unit of a certificate's work takes
        self._share = self._end, self._last  # of the problem that is being solved
        self.ended: Status | None = None

    def interrupt(self) -> None:
        """End the fit for Ctrl-C: certificates have a moment left."""
        if self.ended is not Status.INTERRUPTED:
            self.ended, self._last = Status.INTERRUPTED, clock.now() + _GRACE
            self._share = self._end, self._last

    def begin(self, problem: AnyProblem, problems: int) -> None:
        """Give a problem its share; ``problems`` are still to be solved, this one included."""
        if self._last is None:
            return
        now = clock.now()
        rest, end = max(0.0, self._last - now), self._end
        if end is not None:
            left = max(0.0, end - now)
            proofs = problems * self.foresee(problem)
            end = now + max((1 - _RESERVED) * left, min(left, rest - proofs)) / problems
        self._share = end, now + rest / problems

    @property
    def left(self) -> float | None:
        """Seconds left, 0 once anything has ended the fit; None: no limit."""
        if self.ended is not None:
            return 0.0
        end = self._share[0]
        return None if end is None else max(0.0, end - clock.now())

    @property
    def for_certificate(self) -> float | None:
        """Seconds left for a certificate; None: no limit."""
        last = self._share[1]
        return None if last is None else max(0.0, last - clock.now())

    def foresee(self, problem: AnyProblem, beta: Floats | None = None) -> float:
        """Return the seconds that the certificate of duals will take; of any, at least."""
        work = problem.certificate_work(beta)
        if not work:
            return 0.0
        if self._unit is None:  # the problems of a fit share their features
            self._unit = _seconds_per_unit(problem)
        return self._unit * float(work)

    def certified(self, problem: AnyProblem, beta: Floats, seconds: float) -> None:
        """Note how long a certificate took."""
        self._unit = seconds / max(problem.certificate_work(beta), 1)

    def reserve(self, problem: AnyProblem) -> Callable[[Iterate], float] | None:
        """Return how the time that the certificate of an iterate will take is foreseen.

        What any certificate takes was reserved before.
        """
        left, after = self.left, self.for_certificate
        if not left or after is None:
            return None
        grace, most = after - left, _RESERVED * left

        def reserved(iterate: Iterate) -> float:
            seconds = self.foresee(problem, iterate.beta) - self.foresee(problem)
            return float(np.clip(seconds - grace, 0.0, most))

        return reserved


def _seconds_per_unit(problem: AnyProblem) -> float:
    """Return what a unit of a certificate's work takes, as timed on some of the rows."""
    count = min(len(problem), max(_PROBE, int(_PROBE_PART * len(problem))))
    few = problem.take(np.arange(count))
    point, taken = few.full_point(), []
    for _ in range(2):  # the first run is a warm-up
        started = clock.now()
        certify(few, point)
        taken.append(clock.now() - started)
    return min(taken) / float(max(few.certificate_work(point.beta), 1))
