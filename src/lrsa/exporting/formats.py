"""The two formats: how a traced program is written, and how a written one is run."""

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.export import ExportedProgram

from lrsa.errors import LrsaError
from lrsa.exporting.program import Signature

Run = Callable[[Mapping[str, Tensor]], Tensor]
"""Named inputs -> u."""


class Format(ABC):
    """A way to keep a program in a file."""

    suffix: ClassVar[str]

    def check_installed(self) -> None:
        """Refuse before any work where packages are missing."""
        return

    @abstractmethod
    def write(self, program: ExportedProgram, signature: Signature, about: Any, path: Path) -> None:
        """Write the program, with `about` in it."""

    @abstractmethod
    def read(self, path: Path) -> Run:
        """The program of a file, as others will run it."""


class Torch(Format):
    """torch.export's archive."""

    suffix = ".pt2"

    def write(self, program: ExportedProgram, signature: Signature, about: Any, path: Path) -> None:
        archive = io.BytesIO()  # on a disk that is full, torch's writer would end the process
        torch.export.save(program, archive, extra_files={"about.json": json.dumps(about)})
        path.write_bytes(archive.getbuffer())

    def read(self, path: Path) -> Run:
        with open(path, "rb") as file:
            module = torch.export.load(file).module()
        return lambda inputs: module(**inputs)


class Onnx(Format):
    """An ONNX model, for ONNX Runtime and other engines."""

    suffix = ".onnx"

    def check_installed(self) -> None:
        try:
            import onnx  # noqa: F401
            import onnxruntime  # noqa: F401
            import onnxscript  # noqa: F401
        except ImportError as error:
            raise LrsaError(
                f"ONNX needs {error.name}. Install it with `pip install lrsa[export]`, or take --format torch"
            ) from error

    def write(self, program: ExportedProgram, signature: Signature, about: Any, path: Path) -> None:
        _, example = program.example_inputs or ((), {})
        made = torch.onnx.export(
            program,
            (),
            kwargs=dict(example),
            output_names=["u"],
            dynamic_shapes=signature.free({"B": "B", "N": "N"}),
            dynamo=True,
            verbose=False,
        )
        assert made is not None
        made.model.metadata_props["about"] = json.dumps(about)
        made.save(str(path))

    def read(self, path: Path) -> Run:
        import onnxruntime

        session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])

        def run(inputs: Mapping[str, Tensor]) -> Tensor:
            (u,) = session.run(["u"], {name: value.numpy() for name, value in inputs.items()})
            return torch.from_numpy(u)

        return run


FORMATS: dict[str, Format] = {"torch": Torch(), "onnx": Onnx()}
