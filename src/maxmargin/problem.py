"""What a run of a learner is made of: its iterates, and the word it ends on."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Status(Enum):
    """Why a run stopped, as a sentence."""

    ALL_CORRECT = "every training row was passed without an update"
    EPOCHS = "all the epochs allowed were made"
    ONE_PASS = "one pass over the rows was made, as asked"
    SMALL_CHANGE = "the weights changed by less than change_tol over an epoch"
    HELD_OUT = "the held-out score stopped improving"
    MAX_EPOCHS = (
        "stopped at max_epochs while still making mistakes; the classes may overlap, in which case "
        "no number of epochs is enough"
    )
    NEAREST = "the nearest points were found"
    MEETING = "the convex hulls meet"
    MAX_ITER = "stopped at max_iter before it was done"
    MAX_TIME = "stopped at max_time; raise it, or continue with warm_start=True"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard; the weights reached so far are kept"
    STREAM = "the rows of each chunk were visited once, in order"


class Iterate(Protocol):
    """One step of a solver, short enough that a clock can be read and Ctrl-C felt in between."""

    @property
    def finished(self) -> bool:
        """Whether a whole iteration (an epoch, a round) is complete: only then are rules asked."""
        ...


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each iteration."""

    iteration: int
    seconds: float
    iterate: Iterate


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    status: Status
    iterations: int
    seconds: float
