"""The published files of the problems, recognised and imported into the schema of the generated sets."""

from pathlib import Path

from lrsa.data.store import Schema
from lrsa.data.writing import check_replaceable, write_dataset
from lrsa.errors import LrsaError
from lrsa.problems.catalogue import CATALOGUE
from lrsa.problems.problem import Problem


def recognise(source: Path) -> str | None:
    """The problem one of whose files `source` is, or holds; None if there is none.

    One file is enough: the reader then says which one is missing.
    """
    if source.is_dir():
        found = [
            name
            for name, files in _files().items()
            if any(p.is_file() for f in files for p in source.glob(f))
        ]
    else:
        found = [name for name, files in _files().items() if source.name in {Path(f).name for f in files}]
    if len(found) > 1:
        raise LrsaError(
            f"{source} holds the files of {' and '.join(found)}. Give one benchmark a folder of its own"
        )
    return found[0] if found else None


def import_official(
    source: Path, problem: Problem, out: Path | None = None, stride: int | None = None
) -> tuple[Path, dict[str, int]]:
    """Write the official files in (or at) `source` to a data set: its path, and its cases by split.

    Without `out` it is registered: where `lrsa train NAME --source official` finds it.
    """
    if not source.exists():
        raise LrsaError(f"{source} does not exist")
    if problem.official is None:
        raise LrsaError(f"no official files of {problem.name} are known here")
    path = out or problem.official_path
    check_replaceable(path)
    stride = stride or problem.official.stride
    splits = problem.official.read(source, stride)
    first = next(iter(splits.values()))[0]
    published = stride == problem.official.stride
    provenance = {"files": problem.official.files, "stride": "published" if published else stride}
    write_dataset(path, splits, Schema(problem.name, "official", problem.protocol, first.names, provenance))
    return path, {split: len(cases) for split, cases in splits.items()}


def _files() -> dict[str, tuple[str, ...]]:
    return {name: problem.official.files for name, problem in CATALOGUE.items() if problem.official}
