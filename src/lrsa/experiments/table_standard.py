"""The paper's table of the standard benchmarks: every model on every benchmark it accepts.

Each cell is one training, kept as a record (`cells`): a study that was stopped goes on where it was, several
processes of the same command share its trainings, and the table holds what is finished.
"""

from pathlib import Path

import torch

from lrsa.console import console
from lrsa.errors import LrsaError
from lrsa.experiments.cells import Cell, finish, recorded
from lrsa.experiments.study import CELLS, Study
from lrsa.experiments.table_page import write_table
from lrsa.models.registry import get as get_model
from lrsa.models.registry import networks
from lrsa.problems.catalogue import CATALOGUE, get
from lrsa.training.configure import data_for_scale

STANDARD = ("elasticity", "plasticity", "airfoil", "pipe", "navier-stokes", "darcy")


def table_standard(out: Path, study: Study, only: str, runs: Path, threads: int) -> Path:
    """Train what is not recorded yet, and write the table of the study into the folder `out`.

    Args:
        out: The folder for the table, and for the records of its cells.
        study: What is trained.
        only: MODEL:BENCHMARK, either of them empty for all, several separated by commas.
        runs: The folder of the runs.
        threads: CPU threads of every run.
    """
    torch.set_num_threads(threads)
    pairs = chosen(only)
    for name in dict.fromkeys(name for _, name in pairs):
        data_for_scale(get(name), get(name).scale(study.scale), study.source)
    for number, (model, name) in enumerate(pairs, 1):
        console.print(f"{number}/{len(pairs)}: {model} on {name}")
        if finish(study.job(model, name), out / CELLS, runs, threads) is None:
            console.print("another process is at it")
        write_table(out, study, cells_of(study, out))
    return write_table(out, study, cells_of(study, out))


def cells_of(study: Study, out: Path) -> list[Cell]:
    """What is recorded of the study."""
    found = (recorded(study.job(m, p), out / CELLS) for p in STANDARD if p in CATALOGUE for m in networks())
    return [cell for cell in found if cell is not None]


def chosen(only: str) -> list[tuple[str, str]]:
    """The pairs (model, benchmark) of `only`."""
    every = [(m, b) for b in STANDARD if b in CATALOGUE for m in networks()]
    if not only:
        return every
    pairs: list[tuple[str, str]] = []
    for word in only.split(","):
        model, colon, benchmark = word.partition(":")
        if not colon:
            raise LrsaError(f'--only takes MODEL:BENCHMARK, such as lrsa:darcy or :darcy, not "{word}"')
        if model:
            get_model(model)
        if benchmark:
            get(benchmark)
        pairs += [p for p in every if model in ("", p[0]) and benchmark in ("", p[1])]
    return list(dict.fromkeys(pairs))
