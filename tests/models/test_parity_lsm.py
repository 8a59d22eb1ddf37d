"""LSM against its reference."""

from pathlib import Path

from references import Where, check_parity, files, load
from test_parity_fno import nsl_lift_and_head, nsl_options, nsl_run

from lrsa.models.baselines.lsm import LSM


@files("lsm_nsl_2d")
def test_parity_lsm(path: Path) -> None:
    golden = load(path)
    config = golden.config
    model = LSM(
        config["space_dim"],
        config["fun_dim"],
        config["out_dim"],
        width=config["n_hidden"],
        heads=config["n_heads"],
        tokens=config["num_token"],
        bases=config["num_basis"],
        norm="batch" if golden.buffers else "instance",
        **nsl_options(config),
    )
    names = nsl_lift_and_head(golden)
    places = {"inc": "down.0", "outc.conv": "out"}
    for k in range(1, 5):
        places |= {f"down{k}.maxpool_conv.1": f"down.{k}", f"up{k}.conv": f"up.{k - 1}"}
    for k in range(1, 6):
        places |= {
            f"process{k}.encoder_attn": f"process.{k - 1}.key_value",
            f"process{k}.decoder_attn": f"process.{k - 1}.query",
            f"process{k}": f"process.{k - 1}",
        }
    for name in {**golden.parameters, **golden.buffers}:
        for official, ours in places.items():
            if name.startswith(official + "."):
                rest = name.removeprefix(official + ".").removeprefix("double_conv.")
                names.setdefault(name, Where(f"{ours}.{rest}"))
    check_parity(golden, model, names, nsl_run(golden))
