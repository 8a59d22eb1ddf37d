"""The time budget: how many steps fit into the minutes, settled once before the first of them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from lrsa.training.loop import Trainer, case_errors

WARM, TIMED, PATIENCE = 2, 5, 20.0
"""Steps before the clock is looked at, steps that are timed, and seconds after which no more are."""
RARELY = 0.25
"""Of the time of the steps, what validation may take."""
ENOUGH = 1500
"""Steps that a model is to have: of those for which there is time, the largest is chosen."""


@dataclass(frozen=True)
class Pace:
    """How fast a training goes on this machine."""

    step: float
    """Seconds of one training step."""
    validation: float = 0.0
    """Seconds of one pass over the validation cases."""

    @staticmethod
    def of(trainer: Trainer, clock: Callable[[], float] = time.perf_counter) -> "Pace":
        """Measured on a trainer that is thrown away: its weights change."""
        keys, started = trainer.batches(0), clock()
        times: list[float] = []
        while len(times) < WARM + TIMED and (not times or clock() - started < PATIENCE):
            batch = trainer.batch(keys[len(times) % len(keys)]).to(trainer.device)
            begun = clock()
            trainer.step(batch)
            times.append(clock() - begun)
        return Pace(median(times[WARM:] or times), _validation(trainer, clock))

    def every(self, steps: int) -> int:
        """From one validation to the next, so many epochs of so many steps: it takes a fifth of the time."""
        return max(1, round(self.validation / (RARELY * steps * self.step)))

    def seconds(self, epochs: int, steps: int, every: int = 1) -> float:
        """Of so many epochs of so many steps, validated every so many."""
        return epochs * (steps * self.step + self.validation / every)

    def within(self, minutes: float, steps: int, every: int = 1) -> tuple[int, int]:
        """(epochs, steps of each) that fit into the minutes; `steps` are those of all training cases.

        Where not even one epoch does, it is cut: it then sees some of the cases only.
        """
        whole = int(60 * minutes / self.seconds(1, steps, every))
        if whole:
            return whole, steps
        return 1, max(1, int((60 * minutes - self.validation) / self.step))


def _validation(trainer: Trainer, clock: Callable[[], float]) -> float:
    """Of all validation cases, by the time of a batch of them."""
    if not trainer.validation:
        return 0.0
    few = [trainer.validation[i] for i in range(min(trainer.config.batch_size, len(trainer.validation)))]
    begun = clock()
    case_errors(trainer.surrogate, trainer.protocol, few, trainer.collate, trainer.config, trainer.device)
    return (clock() - begun) * len(trainer.validation) / len(few)


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`, `4 days`."""
    for unit, size, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < most * size:
            value = seconds / size
            return f"{value:.1f} {unit}" if unit == "h" and value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
