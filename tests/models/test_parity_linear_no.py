"""LinearNO agrees with its reference implementation (HiPRL/LinearNO), variants temp and conv_temp."""

from pathlib import Path

from references import Golden, Where, check_parity, files, load
from test_parity_transolver import blocks, run, skeleton_names, skeleton_options

from lrsa.models.baselines.linear_no import LinearNO


@files("linearno_temp", "linearno_conv_temp")
def test_parity_linear_no(path: Path) -> None:
    golden = load(path)
    structured = "H" in golden.config
    model = LinearNO(
        **skeleton_options(golden.config),
        rank=golden.config["key_ratio"],
        structured=structured,
        temperature=True,
    )
    check_parity(golden, model, names(golden, structured), run(golden.config))


def names(golden: Golden, structured: bool) -> dict[str, Where]:
    places = skeleton_names(golden)
    projection = "project.conv" if structured else "project"
    outputs = {"0": "output.0", "2": "output.2"} if structured else {"0": "output"}
    for block, k in blocks(golden):
        official, ours = f"{block}.Attn.", f"blocks.{k}.mix."
        for kind in ("weight", "bias"):
            places[f"{official}in_project_x.{kind}"] = Where(f"{ours}{projection}.{kind}")
            for number, place in outputs.items():
                places[f"{official}to_out.{number}.{kind}"] = Where(f"{ours}kernel.{place}.{kind}")
        for letter, word in (("q", "query"), ("k", "key"), ("v", "value")):
            places[f"{official}to_{letter}.weight"] = Where(f"{ours}kernel.{word}.weight")
        for letter, word in (("q", "query"), ("k", "key")):
            places[f"{official}temperature_{letter}"] = Where(f"{ours}kernel.temperature_{word}")
    return places
