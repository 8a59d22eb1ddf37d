"""Small checks of what was typed, shared by the commands."""

from lrsa.errors import LrsaError

MOST = {"workers": 1024, "threads": 1024, "nproc": 1024, "shard_points": 1024}
"""Beyond, the machine is busy with starting them; of any other number the largest is LARGEST."""
LARGEST = 2**32 - 1


def words(text: str) -> list[str]:
    """`a,b` -> a and b."""
    return [word for word in text.split(",") if word]


def at_least(least: int, **given: int | None) -> None:
    """Refuse options that are given and too small, or larger than anybody means."""
    for name, value in given.items():
        most = MOST.get(name, LARGEST)
        if value is not None and not least <= value <= most:
            limit = f"at least {least}" if value < least else f"at most {most}"
            raise LrsaError(f"--{name.replace('_', '-')} must be {limit}, not {value}")
