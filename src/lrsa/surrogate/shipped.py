"""Surrogates that come with the package: small trained runs, each in a folder with its card."""

import os
from pathlib import Path

from lrsa.errors import LrsaError, nearest

HOME = Path(__file__).parent.parent / "surrogates"
CARD = "card.md"
"""On what it was trained, how, and how far it errs beside the null baselines."""


def shipped() -> list[str]:
    """The names of those that are there."""
    return sorted(folder.parent.name for folder in HOME.glob(f"*/{CARD}"))


def located(run: str | Path) -> Path:
    """The folder of a run: as named, or where there is none, that of a surrogate which comes with lrsa."""
    path, name = Path(run), str(run)
    if path.exists() or os.sep in name:
        return path
    if name in shipped():
        return HOME / name
    if near := nearest(name, shipped()):
        raise LrsaError(f"{name} is neither a run nor a surrogate that comes with lrsa.{near}")
    return path
