"""The catalogue: every folder of this room that holds a `problem.py`."""

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path

import lrsa.problems
from lrsa.data.store import Dataset, is_path
from lrsa.errors import LrsaError, nearest
from lrsa.objectives.named import Quantity
from lrsa.problems.problem import Problem


def _found() -> dict[str, Problem]:
    folders = [module.name for module in pkgutil.iter_modules(lrsa.problems.__path__) if module.ispkg]
    problems = [importlib.import_module(f"lrsa.problems.{folder}.problem").PROBLEM for folder in folders]
    return {problem.name: problem for problem in problems}


CATALOGUE = _found()


def get(name: str) -> Problem:
    """The problem of that name, or a line that names the nearest one."""
    if name not in CATALOGUE:
        raise LrsaError(
            f'no benchmark "{name}".{nearest(name, CATALOGUE)} `lrsa data list` shows all of them'
        )
    return CATALOGUE[name]


def quantities_of(name: str) -> Mapping[str, Quantity]:
    """What metrics on the data of that name know, where it is that of a problem."""
    return CATALOGUE[name].quantities if name in CATALOGUE else {}


def open_dataset(data: str | Path, split: str = "train") -> Dataset:
    """The cases of a split, from a file or, by name, from a problem's generated data, else the official."""
    if isinstance(data, Path) or is_path(data):
        return Dataset(Path(data), split)
    problem = get(data)
    made = next((path for path in (problem.path(), problem.official_path) if path.exists()), None)
    if made is None:
        raise LrsaError(f"the data of {data} is not made yet. Make it with `lrsa data make {data}`")
    return Dataset(made, split)
