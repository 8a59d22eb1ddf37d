"""The curve of a training: what it wrote into `metrics.jsonl` at the end of every epoch."""

import json
from pathlib import Path


def read_curve(run: Path) -> list[dict[str, float]]:
    """epoch, loss and validation of every epoch so far; a half-written last line does not count."""
    rows = []
    try:
        lines = (run / "metrics.jsonl").read_text(errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            row = json.loads(line)
            rows.append({name: float(row[name]) for name in ("epoch", "loss", "validation") if name in row})
        except (ValueError, TypeError):
            continue
    return [row for row in rows if "epoch" in row and "loss" in row]
