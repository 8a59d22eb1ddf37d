"""Half precision on a CPU: products work, whatever the library behind them can do."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from lrsa.surrogate import precision

PROGRAM = """
import torch
from lrsa.surrogate.precision import autocast
layer = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))
for kind in ("bf16", "fp16"):
    with autocast("cpu", kind):
        layer(torch.rand(5, 3)).sum().backward()
"""


def test_half_precision_works_on_this_processor_as_it_is() -> None:
    """As users have it, without what the tests set for theirs."""
    environment = {k: v for k, v in os.environ.items() if k != "ONEDNN_MAX_CPU_ISA"}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)


@pytest.fixture
def _untried() -> Iterator[None]:
    """As before the first product, and as it was afterwards."""
    before = torch.backends.mkldnn.set_flags()[0]
    torch.backends.mkldnn.set_flags(True)
    precision.settle_products.cache_clear()
    yield
    torch.backends.mkldnn.set_flags(before)
    precision.settle_products.cache_clear()


@pytest.mark.usefixtures("_untried")
@pytest.mark.parametrize("works", [True, False])
def test_the_library_is_left_out_only_where_it_fails(works: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def product(*_: object) -> None:
        if not works:
            raise RuntimeError("could not create a primitive")

    monkeypatch.setattr(precision, "linear", product)
    with precision.autocast("cpu", "bf16"):
        assert torch.backends.mkldnn.set_flags()[0] == works
