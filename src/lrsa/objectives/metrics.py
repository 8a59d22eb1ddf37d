"""Metrics per case and field. Each has one definition, written here and printed with the numbers.

`relative_l2` is here too, and not only a loss: in double precision, with no value where the truth is zero (a
loss must have one), and deaf to whatever stands where nothing is known.
"""

from collections.abc import Iterable

import numpy as np

DEFINITIONS = {
    "relative_l2": "‖û - u‖₂ / ‖u‖₂ over points (and frames), per case; the table gives the mean over cases",
    "mse": "mean of (û - u)² over points, in squared physical units",
    "max_error": "largest |û - u| over points, in physical units",
    "r2": "1 - Σ(û - u)² / Σ(u - ū)² over points",
}
"""û is predicted, u true, ū the mean of u over the points of the case."""

LABELS = {"relative_l2": "relative L2", "mse": "MSE", "max_error": "max error", "r2": "R²"}
"""What the metrics are called in tables."""

SELF_CONSISTENCY = (
    "‖û_s - û‖₂ / ‖û‖₂ at shared points, per case: the prediction from every s-th point against the"
    " prediction from the sampling of the training; it needs no truth"
)


def field_metrics(
    prediction: np.ndarray, truth: np.ndarray, known: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """The metrics of one case for each of its fields: (..., N, o) -> {name: (o,)}."""
    channels = truth.shape[-1]
    known = np.ones(truth.shape, bool) if known is None else np.broadcast_to(known, truth.shape)
    rows = [[v.reshape(-1, channels)[:, c] for v in (prediction, truth, known)] for c in range(channels)]
    columns = [_metrics(p[k].astype(float), t[k].astype(float)) for p, t, k in rows]
    return {name: np.array([column[name] for column in columns]) for name in DEFINITIONS}


def relative_l2(prediction: np.ndarray, truth: np.ndarray, known: np.ndarray | None = None) -> float:
    """The relative L2 error of one case over all its fields together: the paper's metric."""
    known = np.ones(truth.shape, bool) if known is None else np.broadcast_to(known, truth.shape)
    return _metrics(prediction[known].astype(float), truth[known].astype(float))["relative_l2"]


def mean_of(values: Iterable[float]) -> float:
    """The mean of what is defined: a case whose truth is zero everywhere has no relative error."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _metrics(p: np.ndarray, t: np.ndarray) -> dict[str, float]:
    error = p - t
    spread = float(np.square(t - t.mean()).sum()) if len(t) else 0.0
    size = float(np.sqrt(np.square(t).sum()))
    total = float(np.square(error).sum())
    return {
        "relative_l2": total**0.5 / size if size else float("nan"),
        "mse": total / max(len(t), 1),
        "max_error": float(np.abs(error).max(initial=0.0)),
        "r2": 1 - total / spread if spread > (1e-12 * size) ** 2 else float("nan"),
    }
