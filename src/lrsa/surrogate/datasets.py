"""Predictions for a data set of ours: another one, whose targets are the predictions."""

from dataclasses import replace
from pathlib import Path

from lrsa.data.hdf5 import HDF5
from lrsa.data.store import Dataset, Schema, Selection, splits_of
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.surrogate.doubts import Doubts
from lrsa.surrogate.surrogate import Surrogate


def predict_dataset(
    surrogate: Surrogate, source: Path, out: Path, who: str, doubts: Doubts
) -> tuple[int, list[str]]:
    """Predict all cases of all splits of `source` into `out`: their number, and the range warnings."""
    if out.suffix.lower() not in HDF5:
        raise LrsaError(f"cannot predict {source} into {out}: both must be .h5 files")
    if out.exists() and out.samefile(source):
        raise LrsaError(f"{out} is the input itself: name another --out")
    how, schema = surrogate.protocol, surrogate.schema
    parts: dict[str, list[PointSet]] = {}
    warnings: list[str] = []
    for split in splits_of(source):
        data = Dataset(source, split)
        _check(surrogate, data, how.history, who)
        cases = Selection(data, range(len(data)))
        parts[split] = []
        for i, case in enumerate(cases):
            case.check_finite(cases.label(i))
            if surrogate.ranges is not None:
                warnings += [f"{cases.label(i)}: {line}" for line in surrogate.ranges.warnings(case)]
            warnings += doubts.warnings(cases.label(i), case)
            u = surrogate.predict(case)
            times = None if case.times is None else case.times[how.history :]
            parts[split].append(replace(case, u=u, u_mask=None, times=times))
    names = replace(schema.names, targets=tuple(f"{n}_predicted" for n in schema.names.targets))
    provenance = {"run": who, "input": str(source)}
    write_dataset(out, parts, Schema(schema.name, "predicted", schema.protocol, names, provenance))
    return sum(len(cases) for cases in parts.values()), warnings


def _check(surrogate: Surrogate, data: Dataset, history: int, who: str) -> None:
    features = 0 if data[0].f is None else data[0].f.shape[-1]
    expected = surrogate.normaliser.f_shift.shape[-1] - history * surrogate.normaliser.u_shift.shape[-1]
    if features != expected:
        listed = ", ".join(data.schema.names.inputs)
        raise LrsaError(
            f"{who} was trained with {expected} input {'feature' if expected == 1 else 'features'},"
            f" but {data.path.name} has {features}{f' ({listed})' if listed else ''}"
        )
