"""Operations of a forward pass, counted as `lrsa.analysis.cost` has it.

A training step counts three times its forward pass: each product of the forward pass has two in the backward
pass. What a kernel computes twice to save memory does not count.
"""

import torch
from torch import nn

from lrsa.analysis.cost import operations
from lrsa.data.batch import Batch
from lrsa.surrogate.precision import Precision, autocast


def forward_flops(model: nn.Module, batch: Batch, precision: Precision = "fp32") -> tuple[int, list[str]]:
    """Operations of `model` on the batch, and the attention kernels that were taken."""
    counter = operations()
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.requires_grad_(False)  # the counter would follow the graph, which is not made here
    with torch.no_grad(), autocast(batch.x.device.type, precision), counter:
        model(batch.x, batch.f, batch.context)
    for parameter in learned:
        parameter.requires_grad_()
    names = {getattr(op, "__name__", str(op)) for op in counter.get_flop_counts()["Global"]}
    return counter.get_total_flops(), sorted(name for name in names if "attention" in name)
