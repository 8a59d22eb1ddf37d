"""The study behind our recipe: one change at a time, judged by held-out training cases."""

from lrsa.experiments.sweep import Sweep, Variant

RECIPE = Sweep(
    name="recipe",
    title="Our recipe, one change at a time",
    about="The first row is the recipe itself at the scale's sizes; all rows make the same number of steps.",
    problems=("elasticity", "darcy", "navier-stokes"),
    held_out=0.1,
    variants={
        "ours": Variant(),
        "AdamW for all weights": Variant(train={"optimiser": "adamw"}),
        "Muon 0.005": Variant(train={"muon_lr": 0.005}),
        "Muon 0.02": Variant(train={"muon_lr": 0.02}),
        "AdamW 1e-3 on the rest": Variant(train={"max_lr": 1e-3}),
        "AdamW 4e-3 on the rest": Variant(train={"max_lr": 4e-3}),
        "warm-up 0.3": Variant(train={"warmup": 0.3}),
        "clipping 0.1": Variant(train={"clip": 0.1}),
        "raw coordinates": Variant(options={"frequencies": 0}),
        "4 frequencies": Variant(options={"frequencies": 4}),
        "8 frequencies": Variant(options={"frequencies": 8}),
        "2 heads": Variant(options={"heads": 2}),
        "8 heads": Variant(options={"heads": 8}),
        "rank 16": Variant(options={"rank": 16}),
        "rank 64": Variant(options={"rank": 64}),
        "depth 6, width 48": Variant(options={"depth": 6, "width": 48, "ffn_hidden": 96}),
        "depth 3, width 80": Variant(options={"depth": 3, "width": 80, "ffn_hidden": 160}),
        "no symmetries": Variant(train={"symmetry": ""}),
    },
)
