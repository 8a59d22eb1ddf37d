"""GraphSAGE, Graph U-Net and GNO against their references."""

from collections.abc import Mapping
from pathlib import Path

from references import Where, check_parity, files, load
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.geometry.neighbours import Level
from lrsa.models.baselines.gno import GNO
from lrsa.models.baselines.graph_sage import GraphSAGE
from lrsa.models.baselines.graph_unet import GraphUNet


@files("graphsage_airfrans")
def test_parity_graphsage(path: Path) -> None:
    golden = load(path)
    c = golden.config
    model = GraphSAGE(
        2,
        c["encoder"][0] - 2,
        c["decoder"][-1],
        width=c["size_hidden_layers"],
        depth=c["nb_hidden_layers"],
        code=c["encoder"][-1],
        encoder_hidden=tuple(c["encoder"][1:-1]),
        decoder_hidden=tuple(c["decoder"][1:-1]),
        norm=c["bn_bool"],
    )
    names = {
        **_mlp("encoder", len(c["encoder"]) - 1),
        **_mlp("decoder", len(c["decoder"]) - 1),
        **_conv("in_layer", "convs.0"),
        **_conv("out_layer", "last"),
    }
    for k in range(c["nb_hidden_layers"] - 1):
        names |= _conv(f"hidden_layers.{k}", f"convs.{k + 1}")
    for k in range(c["nb_hidden_layers"] if c["bn_bool"] else 0):
        names |= {f"bn.{k}.{part}": Where(f"norms.{k}.{part}") for part in ("weight", "bias")}

    def run(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        x = inputs["x"][None]
        return model(x[..., :2], x[..., 2:], Context(edges=inputs["edge_index"]))[0]

    check_parity(golden, model, names, run)


@files("graphunet_airfrans")
def test_parity_graph_unet(path: Path) -> None:
    golden = load(path)
    c = golden.config
    scales = c["nb_scale"]
    assert (c["layer"], c["pool"]) == ("SAGE", "random")
    model = GraphUNet(
        2,
        c["encoder"][0] - 2,
        c["decoder"][-1],
        width=c["size_hidden_layers"],
        code=c["encoder"][-1],
        radii=tuple(c["list_r"][: scales - 1]),
        neighbours=c["max_neighbors"],
        encoder_hidden=tuple(c["encoder"][1:-1]),
        decoder_hidden=tuple(c["decoder"][1:-1]),
        norm=c["batchnorm"],
        residual=c["res"],
    )
    names = {**_mlp("encoder", len(c["encoder"]) - 1), **_mlp("decoder", len(c["decoder"]) - 1)}
    for k in range(scales):
        names |= _conv(f"down_layers.{k}", f"down.{k}")
        names |= {f"bn.{k}.module.{part}": Where(f"down_norms.{k}.{part}") for part in ("weight", "bias")}
    for k in range(scales - 1):
        names |= _conv(f"up_layers.{k}", f"up.{k}")
        names |= {
            f"bn.{scales + k}.module.{part}": Where(f"up_norms.{k}.{part}") for part in ("weight", "bias")
        }

    def run(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        assert isinstance(model, GraphUNet)
        x = inputs["x"][None]
        levels = [
            Level(inputs[f"sample_ids_{k}"], inputs[f"nearest_{k}"], inputs[f"edge_index_{k + 1}"])
            for k in range(scales - 1)
        ]
        return model.forward_levels(x[..., :2], x[..., 2:], inputs["edge_index"], levels)[0]

    check_parity(golden, model, names if c["batchnorm"] else _without(names, "bn."), run)


@files("gno_geofno_elasticity")
def test_parity_gno(path: Path) -> None:
    golden = load(path)
    c = golden.config
    assert c["ker_in"] == 2 * c["in_width"]
    head, out = golden.parameters["fc2.bias"], golden.parameters["fc3.bias"]
    model = GNO(
        c["in_width"],
        0,
        len(out),
        width=c["width_node"],
        kernel_width=c["width_kernel"],
        head_hidden=len(head),
    )
    names = {}
    for part in ("weight", "bias"):
        names |= {f"fc1.{part}": Where(f"lift.{part}")}
        names |= {f"fc2.{part}": Where(f"project.0.{part}"), f"fc3.{part}": Where(f"project.2.{part}")}
        for k in range(len(model.convs)):
            names |= {
                f"conv{k + 1}.nn.layers.{n}.{part}": Where(f"convs.{k}.kernel.{n}.{part}") for n in (0, 2, 4)
            }
    for k in range(len(model.convs)):
        names |= {f"conv{k + 1}.{part}": Where(f"convs.{k}.{part}") for part in ("root", "bias")}

    def run(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        return model(inputs["x"][None], None, Context(edges=inputs["edge_index"]))[0]

    check_parity(golden, model, names, run)


def _mlp(name: str, layers: int) -> dict[str, Where]:
    return {
        f"{name}.lins.{k}.{part}": Where(f"{name}.{2 * k}.{part}")
        for k in range(layers)
        for part in ("weight", "bias")
    }


def _conv(official: str, ours: str) -> dict[str, Where]:
    return {
        f"{official}.lin_l.weight": Where(f"{ours}.neighbours.weight"),
        f"{official}.lin_l.bias": Where(f"{ours}.neighbours.bias"),
        f"{official}.lin_r.weight": Where(f"{ours}.self.weight"),
    }


def _without(names: Mapping[str, Where], prefix: str) -> dict[str, Where]:
    return {name: where for name, where in names.items() if not name.startswith(prefix)}
