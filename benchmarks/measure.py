"""Interleaved timing: rounds of A, B, C, A, B, C, …, so that a busy machine is busy for all.

A ratio is taken within each round and only then summarised: what disturbs a whole round cancels.
"""

import gc
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]  # one number a round
Key = TypeVar("Key", bound=Hashable)
Clock = Literal["wall", "cpu"]


class Clocks(NamedTuple):
    """Two functions that return seconds."""

    wall: Callable[[], float]
    cpu: Callable[[], float]


THIS_PROCESS = Clocks(time.perf_counter, time.process_time)


class Sample(NamedTuple):
    """What one call took, in seconds."""

    wall: float
    cpu: float


Sampler = Callable[[], Sample]


def timed(call: Callable[[], object], clocks: Clocks = THIS_PROCESS) -> Sampler:
    """Return a function that makes the call and says how long it took."""

    def sample() -> Sample:
        wall, cpu = clocks.wall(), clocks.cpu()
        call()
        return Sample(clocks.wall() - wall, clocks.cpu() - cpu)

    return sample


class Timings(Generic[Key]):
    """The samples of each candidate, a round after the other."""

    def __init__(self, samples: Mapping[Key, list[Sample]]) -> None:
        self.samples = dict(samples)

    def wall(self, name: Key) -> Series:
        """Return wall-clock seconds, one number a round."""
        return np.array([sample.wall for sample in self.samples[name]])

    def cpu(self, name: Key) -> Series:
        """Return CPU seconds of all threads, one number a round."""
        return np.array([sample.cpu for sample in self.samples[name]])

    def seconds(self, name: Key, clock: Clock = "wall") -> "Spread":
        """Return the seconds of a candidate over the rounds."""
        return spread(self.wall(name) if clock == "wall" else self.cpu(name))

    def times(self, name: Key, base: Key, clock: Clock = "wall") -> "Spread":
        """Return how many times as long as ``base`` a candidate takes, taken within rounds."""
        of = self.wall if clock == "wall" else self.cpu
        return spread(ratio(of(name), of(base)))


def interleave(samplers: Mapping[Key, Sampler], repeats: int, warm_ups: int = 1) -> Timings[Key]:
    """Sample every candidate once per round; the first ``warm_ups`` rounds are thrown away."""
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    samples: dict[Key, list[Sample]] = {name: [] for name in samplers}
    for turn in range(warm_ups + repeats):
        with _garbage_collected_before():
            names = list(samplers)
            for name in names if turn % 2 == 0 else reversed(names):  # nobody always comes first
                sample = samplers[name]()
                if turn >= warm_ups:
                    samples[name].append(sample)
    return Timings(samples)


@contextmanager
def _garbage_collected_before() -> Iterator[None]:
    """Collect garbage between rounds only: nobody pays for what another left behind."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Spread(NamedTuple):
    """Median and quartiles over the rounds that gave a number."""

    median: float
    low: float
    high: float
    rounds: int
    of: int  # rounds made


def spread(values: npt.ArrayLike) -> Spread:
    """Summarise one number a round; NaN marks a round that gave none."""
    every = np.asarray(values, dtype=np.float64)
    known = every[~np.isnan(every)]
    if not known.size:
        return Spread(np.nan, np.nan, np.nan, 0, every.size)
    low, median, high = np.percentile(known, [25, 50, 75])
    return Spread(float(median), float(low), float(high), known.size, every.size)


def ratio(numerator: Series, denominator: Series) -> Series:
    """Return the ratio of each round; NaN where noise left a time of zero or less."""
    usable = (numerator > 0) & (denominator > 0)
    return np.where(usable, numerator / np.where(usable, denominator, 1.0), np.nan)


def geometric_mean(values: Iterable[float]) -> float:
    """Return exp of the mean logarithm of what is above zero; NaN of nothing."""
    logs = np.log([value for value in values if value > 0])
    return float(np.exp(logs.mean())) if logs.size else float("nan")
