"""A data set at a glance."""

import json
from pathlib import Path

import numpy as np
from rich.table import Table

from lrsa.data.store import Dataset
from lrsa.report.figures import draw_samples

SAMPLED = 50
"""Cases from which ranges are taken."""


def card(data: Dataset) -> Table:
    """Name, source, splits, shapes, ranges, provenance."""
    schema = data.schema
    table = Table("field", "shape", "least", "mean", "largest", title=f"{schema.name} ({schema.source})")
    few = [data[i] for i in np.unique(np.linspace(0, len(data) - 1, SAMPLED).astype(int))]
    labels = {
        "x": schema.names.coords,
        "f": schema.names.inputs,
        "u": schema.names.targets,
        "globals": schema.names.globals,
    }
    for name, value in few[0].arrays().items():
        everything = [case.arrays()[name] for case in few]
        shape = " x ".join(map(str, value.shape))
        if name not in labels or not len(labels[name]):
            table.add_row(name, shape, *_range(np.concatenate([v.ravel() for v in everything])))
            continue
        for channel, label in enumerate(labels[name]):
            unit = schema.names.units.get(label, "")
            values = np.concatenate([v[..., channel].ravel() for v in everything])
            table.add_row(f"{name}: {label}{f' [{unit}]' if unit else ''}", shape, *_range(values))
    splits = [f"{len(Dataset(data.path, split))} {split}" for split in ("train", "test")]
    grid = f", grid {' x '.join(map(str, data.grid))}" if data.grid else ""
    table.caption = (
        f"{' + '.join(splits)} cases{grid}, protocol {schema.protocol}; ranges over {len(few)} cases\n"
        f"{data.path}\n{json.dumps(dict(schema.provenance))}"
    )
    return table


def draw(data: Dataset, picture: Path | None = None) -> Path:
    """A picture of four cases, beside the file unless named."""
    path = picture or data.path.with_suffix(".png")
    draw_samples(path, [data[i] for i in range(min(4, len(data)))])
    return path


def _range(values: np.ndarray) -> tuple[str, str, str]:
    return tuple(f"{v:.4g}" for v in (values.min(), values.mean(), values.max()))  # pyright: ignore[reportReturnType]
