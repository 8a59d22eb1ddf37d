"""DeepONet with fixed sensors against its reference."""

from collections.abc import Mapping
from pathlib import Path

from references import Where, check_parity, files, load
from torch import Tensor, nn

from lrsa.models.baselines.deeponet import DeepONet


@files("deeponet_geofno_elasticity")
def test_parity_deeponet(path: Path) -> None:
    golden = load(path)
    c = golden.config
    sensors, dim = c["branch_dim"] // c["trunk_dim"], c["trunk_dim"]
    trunk = c["trunk_depth"] - 1  # the reference counts the dot product
    model = DeepONet(
        dim,
        0,
        1,
        width=c["width"],
        branch_depth=c["branch_depth"],
        trunk_depth=trunk,
        sensors=sensors,
    )
    names = {"params.bias": Where("bias")}
    for part in ("weight", "bias"):
        names |= {
            f"modus.BrLinM{k + 1}.{part}": Where(f"branch.{2 * k}.{part}") for k in range(c["branch_depth"])
        }
        names |= {f"modus.TrLinM{k + 1}.{part}": Where(f"trunk.{2 * k}.{part}") for k in range(trunk)}

    def run(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        rows = inputs["x"]  # a row for every query point of every case: all its nodes, then the query
        query = rows[:, -dim:].view(-1, sensors, dim)
        assert (rows[:, :-dim].view(len(query), sensors, sensors, dim) == query[:, None]).all()
        return model(query).flatten(0, 1)

    check_parity(golden, model, names, run)
