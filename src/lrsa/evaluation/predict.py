"""Predictions into files: what came in, with the predicted fields beside it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lrsa.data.store import Dataset, Schema, Selection, write_dataset
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import predict_case
from lrsa.mesh.arrays import case_of, read_npz, write_npz
from lrsa.training.config import RunConfig
from lrsa.training.protocols import protocol
from lrsa.training.surrogate import Surrogate, load


def predict_file(run: Path, source: Path, out: Path, inputs: Sequence[str] = ()) -> int:
    """Predict every case of `source` (NPZ: one case; HDF5: a data set) into `out`; the number of cases."""
    config, surrogate = RunConfig.load(run), load(run)
    if source.suffix == ".npz" and out.suffix == ".npz":
        _predict_npz(config, surrogate, source, out, inputs, str(run))
        return 1
    if source.suffix in (".h5", ".hdf5") and out.suffix in (".h5", ".hdf5"):
        return _predict_hdf5(config, surrogate, source, out, str(run))
    raise LrsaError(f"cannot predict {source} into {out}: both must be .npz, or both .h5")


def _predict_npz(
    config: RunConfig, surrogate: Surrogate, source: Path, out: Path, inputs: Sequence[str], who: str
) -> None:
    arrays, names = read_npz(source), config.schema.names
    if config.schema.protocol == "autoregressive":
        raise LrsaError(f"{who} predicts frame after frame: give it a data set (.h5) with the first frames")
    case = case_of(source, arrays, names, len(surrogate.normaliser.f_shift), inputs, who)
    weights = case.weights if config.train.weights else None
    prediction = surrogate.predict(
        case.x, case.f, weights=weights, globals=case.globals, time=case.time, grid=case.grid
    )
    for channel, name in enumerate(names.targets or ("u",)):
        arrays[f"{name}_predicted"] = prediction[:, channel]
        if name in arrays and np.size(arrays[name]) == len(prediction):
            arrays[f"{name}_error"] = prediction[:, channel] - arrays[name].reshape(-1)
    write_npz(out, arrays)


def _predict_hdf5(config: RunConfig, surrogate: Surrogate, source: Path, out: Path, who: str) -> int:
    how = protocol(config.schema.protocol)
    parts, total = {}, 0
    for split in ("train", "test"):
        data = Dataset(source, split)
        features = 0 if data[0].f is None else data[0].f.shape[-1]
        expected = len(surrogate.normaliser.f_shift) - how.history * len(surrogate.normaliser.u_shift)
        if features != expected:
            listed = ", ".join(data.schema.names.inputs)
            raise LrsaError(
                f"{who} was trained with {expected} input {'feature' if expected == 1 else 'features'},"
                f" but {source.name} has {features}{f' ({listed})' if listed else ''}"
            )
        cases = Selection(data, range(len(data)))
        parts[split] = []
        for i, case in enumerate(cases):
            case.check_finite(cases.label(i))
            u = predict_case(surrogate, how, case, config.train.weights)
            times = None if case.times is None else case.times[how.history :]
            parts[split].append(replace(case, u=u, u_mask=None, times=times))
        total += len(data)
    names = replace(config.schema.names, targets=tuple(f"{n}_predicted" for n in config.schema.names.targets))
    schema = Schema(
        config.schema.name, "predicted", config.schema.protocol, names, {"run": who, "input": str(source)}
    )
    write_dataset(out, parts, schema)
    return total
