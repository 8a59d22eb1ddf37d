"""The precision of a forward pass."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

Precision = Literal["fp32", "bf16", "fp16"]


def autocast(device: str, precision: Precision) -> AbstractContextManager[object]:
    """Matrix products in this precision on this device."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(
        torch.device(device).type, {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    )
