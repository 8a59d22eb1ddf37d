"""The precision of a forward pass."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Literal

import torch
from torch.nn.functional import linear

Precision = Literal["fp32", "bf16", "fp16"]
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(device: str, precision: Precision) -> AbstractContextManager[object]:
    """Matrix products in this precision on this device."""
    if precision == "fp32":
        return nullcontext()
    kind, dtype = torch.device(device).type, TYPES[precision]
    if kind == "cpu":
        settle_products(dtype)
    return torch.autocast(kind, dtype)


@cache
def settle_products(dtype: torch.dtype) -> None:
    """Leave products of half precision to torch itself where its library for them, oneDNN, fails.

    It does on some virtual machines whose processor has AMX: "could not create a primitive".
    """
    one = torch.ones(1, 1, dtype=dtype)
    try:
        linear(one, one)
    except RuntimeError:
        torch.backends.mkldnn.set_flags(False)
