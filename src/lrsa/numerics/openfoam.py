"""OpenFOAM, run as a user would: a case written from templates, one process a program, its fields read back.

It is found on the PATH, or where openfoam.com and openfoam.org install it. A program that fails leaves its
log in $LRSA_HOME/logs. It ends with the process that started it, however that ends.
"""

import gzip
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lrsa.errors import Failure, LrsaError
from lrsa.files import data_home

PLACES = ("/usr/lib/openfoam/openfoam*", "/opt/openfoam*", "/opt/OpenFOAM/OpenFOAM-*")
"""Where distributions live that are not on the PATH before their etc/bashrc is read."""
DEBIAN = Path("/usr/share/openfoam")
"""The settings of Debian's package, whose programs do not look there by themselves."""
HEADER = "FoamFile {{ version 2.0; format ascii; class {kind}; object {name}; }}\n"
LIST = re.compile(r"nonuniform\s+List<(scalar|vector)>\s*(\d+)\s*\((.*?)\)\s*;", re.DOTALL)
UNIFORM = re.compile(r"uniform\s+\(?([^();]+)\)?\s*;")


class FoamFailed(Failure):
    """A program of OpenFOAM that ended with an error; where its log is."""


def write_case(folder: Path, templates: Path, values: Mapping[str, Any]) -> None:
    """The dictionaries of a case from the Jinja2 templates of a folder, which have no headers.

    In `0` are fields: U is a vector, the others are scalars.
    """
    environment = Environment(
        loader=FileSystemLoader(templates), undefined=StrictUndefined, keep_trailing_newline=True
    )
    for name in environment.list_templates():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        field = "volVectorField" if place.name == "U" else "volScalarField"
        kind = field if place.parent.name == "0" else "dictionary"
        body = environment.get_template(name).render(**values)
        place.write_text(HEADER.format(kind=kind, name=place.name) + body)


def run(folder: Path, program: str, *options: str) -> str:
    """Run a program in a case folder; what it printed."""
    log = folder / f"log.{program}"
    with open(log, "w") as file:
        ended = subprocess.run(
            [*_with_parent(), *_command(program), *options],
            cwd=folder,
            env={**_environment(), "PWD": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    said = log.read_text(errors="replace")
    if ended.returncode:
        raise FoamFailed(f"{program} failed ({_reason(said)}). Its log is {keep(log)}")
    return said


def keep(log: Path) -> Path:
    """Copy the log of a run that failed to where it stays."""
    now = datetime.now()
    name = f"{log.name.removeprefix('log.')}-{log.parent.name}-{now:%Y%m%d-%H%M%S-%f}.log"
    place = data_home().parent / "logs" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(log, place)
    return place


def read_field(path: Path, patch: str | None = None) -> np.ndarray:
    """(C,) or (C, 3): the values of a field in the cells, or on a patch; one row where it is uniform.

    Where there is no such file, the compressed one is read.
    """
    packed = path.with_name(f"{path.name}.gz")
    content = path.read_text() if path.exists() else gzip.decompress(packed.read_bytes()).decode()
    inside, _, boundary = content.partition("boundaryField")
    text = inside.partition("internalField")[2]
    if patch is not None:
        found = re.search(rf"\s{re.escape(patch)}\s*\{{", boundary)
        text = boundary[found.end() :].partition("}")[0] if found else ""
    if found := LIST.search(text):
        values = np.array(found[3].translate({40: " ", 41: " "}).split(), float)
        return values.reshape(-1, 3) if found[1] == "vector" else values
    if found := UNIFORM.search(text):
        values = np.array(found[1].split(), float)
        return values[None] if len(values) == 3 else values
    raise Failure(f"{path} has no values {'in cells' if patch is None else f'on {patch}'}")


def last_time(folder: Path) -> Path:
    """The folder of the last time that a run has written."""
    times = [p for p in folder.iterdir() if p.is_dir() and re.fullmatch(r"\d+(\.\d+)?(e-?\d+)?", p.name)]
    return max(times, key=lambda place: float(place.name))


def _command(program: str) -> list[str]:
    """How a program is started: by its name, or after the settings of a distribution have been read."""
    if shutil.which(program):
        return [program]
    found = sorted(p for pattern in PLACES for p in Path("/").glob(f"{pattern[1:]}/etc/bashrc"))
    if not found:
        raise LrsaError(
            f"OpenFOAM is not installed: there is no {program} on the PATH. Install it with"
            " `apt-get install openfoam`, or from openfoam.com, and source its etc/bashrc"
        )
    return ["bash", "-c", 'source "$0" && exec "$@"', str(found[-1]), program]


def _with_parent() -> list[str]:
    """A prefix by which a program is killed when this process ends."""
    return ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


def _environment() -> dict[str, str]:
    settings = {"WM_PROJECT_DIR": str(DEBIAN)} if DEBIAN.is_dir() else {}
    return {**settings, **os.environ}


def _reason(said: str) -> str:
    """What a log says of an error: the line after the banner, or the last one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    fatal = [i for i, line in enumerate(lines[:-1]) if "FATAL" in line]
    return (lines[fatal[0] + 1] if fatal else lines[-1])[:100] if lines else "it said nothing"
