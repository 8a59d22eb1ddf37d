"""Which cases of an import are for training and which for the test.

    (nothing)                         a fixed random fifth for the test
    train=train/*,test=test/*         by the path of the file; with one of the two, all others are the other
    column=split                      by a column of the table of cases that says train or test
    group=family                      whole groups by a column of that table, about a fifth of the cases for
    the test group=folder                      the same by the folder of the file

Cases of one group are alike (one car in several winds, say): dividing them would ask for what was seen.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from lrsa.data.writing import TEST_SHARE
from lrsa.errors import LrsaError, nearest
from lrsa.mesh.finding import labels_of
from lrsa.mesh.tables import label_of, read_table

SPLITS = ("train", "test")
LEARNED = ("train", "training", "val", "valid", "validation")
"""What a column may say of cases that are for training; validation cases are drawn from them anew."""


def check_split(text: str) -> dict[str, str]:
    """The parts of what was typed; refused where it is nothing of the above."""
    parts: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not value or key in parts or key not in (*SPLITS, "column", "group"):
            raise LrsaError(
                f'--split "{text}": "{part}" is not understood. Write train=train/*,test=test/*,'
                " column=NAME or group=NAME"
            )
        parts[key] = value
    if len(parts) > 1 and parts.keys() != set(SPLITS):
        raise LrsaError(f'--split "{text}": {" and ".join(parts)} do not go together')
    return parts


def split_columns(text: str) -> list[str]:
    """Columns of the table of cases that say how to split, and are no parameters."""
    parts = check_split(text)
    return [value for key, value in parts.items() if key in ("column", "group") and value != "folder"]


def split_cases(
    text: str, source: str | Path, paths: Sequence[Path], names: Sequence[str], table: Path | None
) -> dict[str, list[int]] | None:
    """The numbers of the cases of each split; None where a random fifth is to be the test."""
    parts = check_split(text)
    if not parts:
        return None
    if "group" in parts:
        return _by_group(_words(parts["group"], paths, names, table))
    says = (
        _by_column(parts["column"], _words(parts["column"], paths, names, table), names)
        if "column" in parts
        else [_by_pattern(text, parts, source, path, name) for path, name in zip(paths, names, strict=True)]
    )
    made = {split: [i for i, said in enumerate(says) if said == split] for split in SPLITS}
    if not made["train"]:
        raise LrsaError(f'--split "{text}" leaves no case for training')
    return made


def _by_pattern(text: str, parts: Mapping[str, str], source: str | Path, path: Path, name: str) -> str:
    base = Path(source)
    inside = path.relative_to(base).as_posix() if base in path.parents else path.as_posix()
    found = [
        split
        for split, pattern in parts.items()
        if any(fnmatch(word, pattern) for word in (inside, path.as_posix(), name, path.name))
    ]
    if len(found) == 1:
        return found[0]
    if not found and len(parts) == 1:
        return next(split for split in SPLITS if split not in parts)
    what = "matches both patterns" if found else "matches neither pattern"
    raise LrsaError(f'--split "{text}": {inside} {what}. Change the patterns, or leave the file out')


def _by_column(column: str, words: Sequence[str], names: Sequence[str]) -> list[str]:
    for word, name in zip(words, names, strict=True):
        if word.lower() not in (*LEARNED, "test"):
            raise LrsaError(f'column "{column}" says "{word}" of "{name}": it should say train or test')
    return ["test" if word.lower() == "test" else "train" for word in words]


def _by_group(words: Sequence[str]) -> dict[str, list[int]]:
    """A fixed random choice of groups until a fifth of the cases is reached; two groups at least."""
    groups = list(dict.fromkeys(words))
    if len(groups) < 2:
        raise LrsaError(f'all cases are of the one group "{groups[0]}": nothing would be left to train on')
    chosen: set[str] = set()
    for i in np.random.default_rng(0).permutation(len(groups))[:-1]:
        chosen.add(groups[int(i)])
        if sum(word in chosen for word in words) >= TEST_SHARE * len(words):
            break
    return {
        "train": [i for i, word in enumerate(words) if word not in chosen],
        "test": [i for i, word in enumerate(words) if word in chosen],
    }


def _words(column: str, paths: Sequence[Path], names: Sequence[str], table: Path | None) -> list[str]:
    """What a column says of every case; the folders of the files where it is called so."""
    if column == "folder":
        return [path.parent.name for path in paths]
    if table is None:
        raise LrsaError(f'column "{column}" needs the table of cases. Name it with --globals')
    columns = read_table(table)
    if column not in columns:
        there = list(columns)[1:]
        raise LrsaError(
            f'{table} has no column "{column}".{nearest(column, there)} It has: {", ".join(there)}'
        )
    key = next(iter(columns))
    said = {label_of(case): label_of(word) for case, word in zip(columns[key], columns[column], strict=True)}
    found = []
    for path, name in zip(paths, names, strict=True):
        word = next((said[label] for label in labels_of(path, name) if label in said), None)
        if word is None:
            raise LrsaError(f'{table} has no row for "{name}" ({path}). Add it, or leave the file out')
        found.append(word.strip())
    return found
