"""A data set at a glance."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from lrsa.data.store import Dataset, Selection, splits_of
from lrsa.evaluation.outcome import point_range
from lrsa.geometry.cells import type_names
from lrsa.pointset import PointSet
from lrsa.report.figures import draw_samples

SAMPLED = 50
"""Cases from which ranges are taken."""
HEAD = ("field", "shape", "least", "mean", "largest")
MASKS = ("f_mask", "u_mask")
"""Of the channels of the field that their first letter names."""
LONG = 3
"""Items of a list in the provenance that are shown."""


def card(data: Dataset) -> Table:
    """Name, source, splits, shapes, ranges, provenance."""
    schema = data.schema
    table = Table(*HEAD, title=f"{schema.name} ({schema.source})")
    for row in card_rows(data):
        table.add_row(*row)
    facts = "\n".join(f"{name}: {value}" for name, value in provenance_rows(schema.provenance))
    table.caption = f"{about(data)}\n{data.path}\n{facts}".rstrip()
    return table


def about(data: Dataset) -> str:
    """Cases, points, protocol, in one sentence, and how many draws failed on the way."""
    parts = {split: Dataset(data.path, split) for split in splits_of(data.path)}
    splits = " + ".join(f"{len(part)} {split}" for split, part in parts.items())
    sizes = point_range([len(case) for case in data])
    grid = f", grid {' x '.join(map(str, data.grid))}" if data.grid else ""
    few = len(_few(data))
    kind = f"protocol {data.schema.protocol}; ranges over {few} cases"
    return f"{splits} cases of {sizes} points{grid}, {kind}{''.join(_solving(parts))}"


def _solving(parts: Mapping[str, Dataset]) -> Iterator[str]:
    """What the solver's logs said, over all splits: its iterations, residuals and draws that failed."""
    cases = [case.arrays() for part in parts.values() for case in part]
    iterations, residuals, redraws = (
        [case[name].item() for case in cases if name in case]
        for name in ("iterations", "residual", "redraws")
    )
    if iterations:
        yield f"; {point_range(iterations)} iterations"
    if residuals:
        yield f", residuals up to {max(residuals):.1g}"
    if redraws:
        yield f"; {sum(redraws)} draws failed and were made again"


def card_rows(data: Dataset) -> list[tuple[str, ...]]:
    """One row for each channel of each field: name, shape, least, mean, largest."""
    few, names = _few(data), data.schema.names
    labels = {"x": names.coords, "f": names.inputs, "u": names.targets, "globals": names.globals}
    rows = []
    for name in few[0].arrays():
        if name == "cell_types":  # told of with the cells
            continue
        values = [case.arrays()[name] for case in few]
        shape = _shape(values)
        if name == "cells":
            types = np.concatenate([case.arrays()["cell_types"] for case in few])
            rows.append((f"cells ({', '.join(type_names(types))})", shape, "", "", ""))
        elif values[0].dtype == bool:
            rows += _shares(
                name,
                shape,
                values,
                names.parts if name == "parts" else labels[name[0]] if name in MASKS else (),
            )
        elif len(labels.get(name, ())):
            for channel, label in enumerate(labels[name]):
                unit = names.units.get(label, "")
                title = f"{name}: {label}{f' [{unit}]' if unit and unit != '1' else ''}"
                rows.append((title, shape, *_range(_known(few, name, channel))))
        else:
            rows.append((name, shape, *_range(values)))
    return rows


def provenance_rows(provenance: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested values as rows of words; long lists are cut."""
    for name, value in provenance.items():
        if isinstance(value, Mapping):
            yield from provenance_rows(value, f"{prefix}{name}, ")
        elif isinstance(value, list | tuple):
            more = f", ... ({len(value)})" if len(value) > LONG else ""
            yield f"{prefix}{name}", ", ".join(map(str, value[:LONG])) + more or "none"
        else:
            yield f"{prefix}{name}", str(value)


def draw(data: Dataset, picture: Path | None = None) -> Path:
    """A picture of four cases, beside the file unless named."""
    path = picture or data.path.with_suffix(".png")
    cases = Selection(data, range(min(4, len(data))))
    for i, case in enumerate(cases):
        case.check_finite(cases.label(i))
    draw_samples(path, list(cases))
    return path


def _few(data: Dataset) -> list[PointSet]:
    return [data[i] for i in np.unique(np.linspace(0, len(data) - 1, SAMPLED).astype(int))]


def _shape(values: Sequence[np.ndarray]) -> str:
    """`484 x 2`, or `310 to 1204 x 2`."""
    return " x ".join(point_range(sizes) for sizes in zip(*(v.shape for v in values), strict=True)) or "one"


def _shares(
    name: str, shape: str, values: Sequence[np.ndarray], labels: Sequence[str]
) -> list[tuple[str, ...]]:
    """What share of the points is True in a case: least, mean, largest over cases."""
    shares = np.array([np.atleast_1d(v.mean(0)) for v in values])
    titles = [f"{name}: {label}" for label in labels] or [name]
    numbers = [[f"{v:.0%}" for v in (c.min(), c.mean(), c.max())] for c in shares.T]
    return [(f"{title} (share)", shape, *row) for title, row in zip(titles, numbers, strict=False)]


def _known(cases: Sequence[PointSet], name: str, channel: int) -> list[np.ndarray]:
    values = [case.arrays()[name][..., channel] for case in cases]
    masks = [case.arrays().get(f"{name}_mask") for case in cases]
    return [v if m is None else v[..., m[:, channel]] for v, m in zip(values, masks, strict=True)]


def _range(values: Sequence[np.ndarray]) -> tuple[str, str, str]:
    values = [v for v in values if v.size]
    if not values:
        return "", "", ""
    mean = sum(float(v.sum(dtype=float)) for v in values) / sum(v.size for v in values)
    low, high = (float(f([f(v) for v in values])) for f in (np.min, np.max))
    least = 1e-9 * (high - low)
    return tuple(f"{0.0 if abs(v) < least else v:.4g}" for v in (low, mean, high))  # pyright: ignore[reportReturnType]
