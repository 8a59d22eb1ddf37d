"""How far a case lies from the training cases, as the model itself sees it.

z = the processed latents of the last block, for the whole case          (M d,)
novelty = min_i ‖z - z_i‖ / max_j min_{i≠j} ‖z_j - z_i‖                   over the training cases i, j

Up to 1 a case is as near to a training case as training cases are to each other; 2 is twice as far as the
loneliest of them. Beside the ranges, which look at one channel at a time, this sees new combinations and
shapes. Kept are the principal components of the training latents; what of a new case lies outside of them
counts in full.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from lrsa.errors import LrsaError
from lrsa.files import atomic
from lrsa.models.operator import NeuralOperator
from lrsa.models.template import LowRankMix
from lrsa.pointset import PointSet
from lrsa.streaming.stream import encode_streamed
from lrsa.surrogate.surrogate import WHOLE, Surrogate

FILE = "novelty.safetensors"
MOST = 256
"""Training cases that are kept, evenly chosen."""


@dataclass(frozen=True)
class Novelty:
    """The latents of the training cases."""

    mean: np.ndarray
    """(n,)."""
    basis: np.ndarray
    """(k, n) orthonormal."""
    codes: np.ndarray
    """(S, k)."""
    farthest: float
    """The largest distance of a training case to its nearest."""

    @staticmethod
    def of(surrogate: Surrogate, cases: Sequence[PointSet]) -> "Novelty | None":
        """None where the model keeps no latents, or there are fewer than three cases."""
        chosen = np.unique(np.linspace(0, len(cases) - 1, MOST).astype(int))
        if len(chosen) < 3 or not has_latents(surrogate):
            return None
        table = np.stack([latents(surrogate, cases[int(i)]) for i in chosen])
        mean = table.mean(0)
        left, sizes, basis = np.linalg.svd(table - mean, full_matrices=False)
        kept = sizes > 1e-6 * max(float(sizes[0]), 1e-30)
        codes = (left * sizes)[:, kept]
        apart = np.linalg.norm(codes[:, None] - codes[None], axis=-1)
        np.fill_diagonal(apart, np.inf)
        farthest = float(apart.min(1).max())
        return Novelty(mean, basis[kept], codes, farthest) if farthest > 0 else None

    def score(self, surrogate: Surrogate, case: PointSet) -> float:
        """Of a case in physical units."""
        z = latents(surrogate, case) - self.mean
        code = self.basis @ z
        outside = max(float(z @ z - code @ code), 0.0)
        return float(np.sqrt(((self.codes - code) ** 2).sum(1).min() + outside) / self.farthest)

    def save(self, run: Path) -> None:
        arrays = {"mean": self.mean, "basis": self.basis, "codes": self.codes}
        arrays["farthest"] = np.array([self.farthest])
        with atomic(run / FILE) as temporary:
            temporary.write_bytes(save({k: np.ascontiguousarray(v, np.float32) for k, v in arrays.items()}))

    @staticmethod
    def load(run: Path) -> "Novelty | None":
        """That of a run; None where it keeps none."""
        path = run / FILE
        if not path.exists():
            return None
        try:
            arrays = load_file(path)
            mean, basis, codes = (arrays[k].astype(float) for k in ("mean", "basis", "codes"))
            if not (basis.shape[1:] == mean.shape and codes.shape[1] == len(basis) and len(codes)):
                raise ValueError("arrays of other sizes")
            return Novelty(mean, basis, codes, float(arrays["farthest"][0]))
        except (SafetensorError, OSError, KeyError, ValueError, IndexError) as error:
            raise LrsaError(f"{path} is damaged: delete it to predict without novelty scores") from error


def has_latents(surrogate: Surrogate) -> bool:
    """Whether the model is made of low-rank mixing layers, and cases are single maps."""
    model = surrogate.model
    return (
        isinstance(model, NeuralOperator)
        and not surrogate.protocol.history
        and bool(model.each_block())
        and all(isinstance(block.mix, LowRankMix) for block in model.each_block())
    )


@torch.inference_mode()
def latents(surrogate: Surrogate, case: PointSet) -> np.ndarray:
    """(M d,) the processed latents of the last block; of several times at the first."""
    model, device = surrogate.model, surrogate.normaliser.x_shift.device
    assert isinstance(model, NeuralOperator)
    batch = surrogate.collate([case]).to(device)
    context = batch.context
    if batch.times is not None:
        context = replace(context, time=batch.times[:, 0])
    x, f, context = surrogate.normalise(batch.x, batch.f, context)
    if x.shape[1] > WHOLE or surrogate.sharing is not None:
        found = encode_streamed(model, x, f, context, others=surrogate.sharing).latents[-1]
    else:
        context = context.normalised()
        h = model.lift(x, f, context)
        *first, last = model.each_block()
        for block in first:
            h = block(h, x, context)
        found = last.latents(h, x, context)
    return found.flatten().double().cpu().numpy()
