"""The runs of a service: what each is called, what it says of itself, and the JSON body that it takes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Union

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, create_model

from lrsa.context import Needs, needs_of
from lrsa.errors import LrsaError, nearest
from lrsa.pointset import PointSet
from lrsa.studio.service_quality import Quality
from lrsa.surrogate.doubts import Doubts
from lrsa.surrogate.record import Record
from lrsa.surrogate.roles import numbered
from lrsa.surrogate.shipped import located
from lrsa.surrogate.surrogate import Surrogate, load

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""What a run may be called: it becomes a part of addresses."""
LARGEST = float(np.finfo(np.float32).max)


class Channel(BaseModel):
    """A coordinate, input, parameter, time or target, in physical units."""

    name: str
    unit: str | None = None
    low: float | None = Field(None, description="The smallest value in training, where it is known")
    high: float | None = Field(None, description="The largest value in training, where it is known")


class Requirements(BaseModel):
    """What a case must have besides its points and inputs."""

    grid: bool = Field(
        description="The index shape of a structured mesh, whose points are in row-major order"
    )
    time: bool = Field(description="The time that is asked for")
    weights: bool = Field(description="The measure of every point, or cells to compute it from")
    cells: bool = Field(description="The mesh, without which neighbours are guessed from the points")
    points: int | None = Field(description="The number of points, where it is fixed")


class Model(BaseModel):
    """A trained surrogate: what goes in and what comes out."""

    name: str
    data: str = Field(description="The data that it was trained on")
    source: str = Field(description="Where these are from: generated, official, imported")
    model: str
    parameters: int = Field(description="The number of its weights")
    protocol: str = Field(
        description="static; time-conditioned; or autoregressive: the last inputs are the last frames,"
        " oldest first, and the answer is the next one"
    )
    coordinates: list[Channel]
    inputs: list[Channel]
    globals: list[Channel] = Field(description="Parameters of the whole case")
    time: Channel | None
    targets: list[Channel]
    needs: Requirements
    quality: Quality | None = Field(description="Its errors on test cases, where it was evaluated")


class Models(BaseModel):
    models: list[Model]


@dataclass(frozen=True)
class Served:
    """One run of the service."""

    name: str
    surrogate: Surrogate
    architecture: str
    """The registered name of the model."""
    doubts: Doubts
    quality: Quality | None

    @staticmethod
    def load(word: str, device: str = "cpu") -> "Served":
        """Of `RUN`, called as its folder, or of `NAME=RUN`."""
        name, mark, folder = word.partition("=")
        run = Path(folder if mark and not Path(word).exists() else word)
        name = name if mark and not Path(word).exists() else run.resolve().name
        run = located(run)
        surrogate = load(run)
        if not NAME.fullmatch(name):
            raise LrsaError(
                f'{run} cannot be called "{name}" in an address: take letters, digits, . _ and -.'
                f" Name it otherwise with NAME={run}"
            )
        surrogate = surrogate.to(device)
        return Served(name, surrogate, Record.load(run).model, Doubts.of(run, surrogate), Quality.of(run))

    @property
    def needs(self) -> Needs:
        return needs_of(self.surrogate.model)

    @property
    def conditioned(self) -> bool:
        return self.surrogate.schema.protocol == "time-conditioned"

    @cached_property
    def about(self) -> Model:
        """What it says of itself."""
        surrogate, schema, normaliser = self.surrogate, self.surrogate.schema, self.surrogate.normaliser
        names, axes = schema.names, normaliser.x_shift.shape[-1]
        frames = surrogate.protocol.history * normaliser.u_shift.shape[-1]
        inputs = normaliser.f_shift.shape[-1] - frames
        targets = _named(names.targets, "u", normaliser.u_shift.shape[-1])
        before = [
            f"{target} of frame -{t}" for t in range(surrogate.protocol.history, 0, -1) for target in targets
        ]
        return Model(
            name=self.name,
            data=schema.name,
            source=schema.source,
            model=self.architecture,
            parameters=sum(p.numel() for p in surrogate.model.parameters()),
            protocol=schema.protocol,
            coordinates=self._channels("coordinate", _named(names.coords, "xyz"[:axes], axes)),
            inputs=self._channels("input", [*_named(names.inputs, "f", inputs), *before]),
            globals=self._channels("parameter", _named(names.globals, "g", normaliser.g_shift.shape[-1])),
            time=self._channels("", ["time"])[0] if self.conditioned else None,
            targets=self._channels("target", targets),
            needs=Requirements(
                grid=self.needs.grid,
                time=self.conditioned,
                weights=surrogate.weighted is True,
                cells=self.needs.geometry,
                points=self.needs.sensors or normaliser.points,
            ),
            quality=self.quality,
        )

    @cached_property
    def body(self) -> type[BaseModel]:
        """The JSON body: the arrays of `Surrogate.predict`, those that this surrogate takes."""
        about, needs = self.about, self.about.needs
        number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
        fields: dict[str, Any] = {
            "x": (_rows(number, about.coordinates), _described("Coordinates", about.coordinates))
        }
        if about.inputs:
            fields["f"] = (_rows(number, about.inputs), _described("Inputs at every point", about.inputs))
        if about.globals:
            count = len(about.globals)
            one = Annotated[list[number], Field(min_length=count, max_length=count)]
            fields["globals"] = (one, _described("Parameters of the case", about.globals))
        if about.time is not None:
            several = Annotated[list[number], Field(min_length=1)]
            fields["time"] = (
                Union[number, several],  # noqa: UP007
                _described("A time, or several", [about.time]),
            )
        if needs.grid:
            sizes = Annotated[list[Annotated[int, Field(ge=1, le=2**31)]], Field(min_length=1, max_length=3)]
            fields["grid"] = (sizes, Field(description="Index shape of the structured mesh"))
        if self.surrogate.weighted is not False:
            measure = Annotated[float, Field(ge=0, le=LARGEST)]
            fields["weights"] = (list[measure], Field([], description="The measure of every point"))
        if needs.cells or needs.weights:
            index = Annotated[int, Field(ge=-1, le=2**31)]
            kind = Annotated[int, Field(ge=0, le=255)]
            fields["cells"] = (
                list[list[index]],
                Field([], description="Points of each cell, -1 behind the last"),
            )
            fields["cell_types"] = (list[kind], Field([], description="VTK's type of each cell"))
        strict = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
        return create_model(f"Case-{self.name}", __config__=strict, **fields)

    def case_of(self, body: BaseModel) -> PointSet:
        """The case in a JSON body."""
        given = {name: value for name, value in vars(body).items() if value != []}
        try:
            arrays = {name: np.asarray(value) for name, value in given.items() if name != "grid"}
        except ValueError as error:  # cells of different lengths
            raise LrsaError("all rows of cells must be of one length: fill them up with -1") from error
        arrays = {k: v if k.startswith("cell") else v.astype(np.float32) for k, v in arrays.items()}
        if "time" in arrays:
            arrays["times"] = np.atleast_1d(arrays.pop("time"))
        case = PointSet(**arrays, grid=given.get("grid"), names=self.surrogate.schema.names)
        case.check_finite("the case")
        return case

    def warnings(self, case: PointSet) -> list[str]:
        """Where the case is outside the training ranges."""
        ranges = self.surrogate.ranges
        return [] if ranges is None else ranges.warnings(case)

    def _channels(self, kind: str, names: Sequence[str]) -> list[Channel]:
        ranges = self.surrogate.ranges
        spans = {} if ranges is None else ranges.spans
        made = []
        for i, name in enumerate(names):
            keys = (f"{kind} {name}".strip(), f"{kind} {i}")
            low, high = next((spans[key] for key in keys if key in spans), (None, None))
            unit = self.surrogate.schema.names.units.get(name)
            made.append(Channel(name=name, unit=unit, low=low, high=high))
        return made


def load_all(words: Sequence[str], device: str = "cpu") -> dict[str, Served]:
    """The runs of a service by name."""
    served: dict[str, Served] = {}
    for word in words:
        one = Served.load(word, device)
        if one.name in served:
            raise LrsaError(f'two runs are called "{one.name}". Name one otherwise: NAME={word}')
        served[one.name] = one
    return served


def unknown(name: str, known: Sequence[str]) -> str:
    """What is said where no run is called so."""
    return f'no model "{name}" (there are: {", ".join(known)}).{nearest(name, known)}'


def _named(names: Sequence[str], default: str, count: int) -> list[str]:
    """One name for every channel, whether the data has names or not."""
    if len(names) == count:
        return list(names)
    return list(default) if len(default) == count else list(numbered(default[:1] or "c", count))


def _rows(number: Any, channels: Sequence[Channel]) -> Any:
    """A list of points, each a list of as many numbers as there are channels."""
    row = Annotated[list[number], Field(min_length=len(channels), max_length=len(channels))]
    return Annotated[list[row], Field(min_length=1)]


def _described(what: str, channels: Sequence[Channel]) -> Any:
    listed = ", ".join(f"{c.name} [{c.unit}]" if c.unit else c.name for c in channels)
    return Field(description=f"{what}: {listed}")
