"""Small checks of what was typed, shared by the commands."""

from lrsa.errors import LrsaError


def words(text: str) -> list[str]:
    """`a,b` -> a and b."""
    return [word for word in text.split(",") if word]


def at_least(least: int, **given: int | None) -> None:
    """Refuse options that are given and too small."""
    for name, value in given.items():
        if value is not None and value < least:
            raise LrsaError(f"--{name} must be at least {least}, not {value}")
