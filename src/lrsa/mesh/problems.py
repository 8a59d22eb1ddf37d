"""Many problems in few lines: what is wrong with two hundred files alike is told once, with a count."""

import re
from collections.abc import Sequence
from pathlib import Path

FEW = 3
"""Up to so many alike, each is told by itself."""


def counted(lines: Sequence[str], paths: Sequence[Path], names: Sequence[str]) -> list[str]:
    """The lines, those that differ only in the case and in numbers as one that says how many there are."""
    alike: dict[str, list[str]] = {}
    for line in lines:
        alike.setdefault(_pattern(line, paths, names), []).append(line)
    told = []
    for group in alike.values():
        if len(group) <= FEW:
            told += group
        else:
            told.append(f"{group[0]} (the same in {len(group) - 1} other cases)")
    return told


def _pattern(line: str, paths: Sequence[Path], names: Sequence[str]) -> str:
    for path, name in zip(paths, names, strict=True):
        if str(path) in line:
            line = line.replace(str(path), "*").replace(f'"{name}"', "*")
            break
    return re.sub(r"\d+(\.\d+)?", "#", line)
