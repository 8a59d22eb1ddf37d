"""The paper's ablations: what the latent attention and the two-sided factors are worth, and the rank."""

from lrsa.experiments.sweep import Sweep, Variant

RANKS = (8, 16, 32, 64, 128)

ABLATION = Sweep(
    name="ablation",
    title="Ablations: latent attention, symmetry of the factors, rank",
    about="The first row is LRSA as the scale has it; Transolver's rank is its number of slices.",
    problems=("elasticity", "darcy", "navier-stokes"),
    variants={
        "LRSA": Variant(),
        "without latent attention": Variant(options={"latent_attention": False}),
        "symmetric factors": Variant(options={"symmetric": True}),
        **{f"LRSA, rank {rank}": Variant(options={"rank": rank}) for rank in RANKS},
        **{
            f"Transolver, rank {rank}": Variant("backbone-transolver", options={"rank": rank})
            for rank in RANKS
        },
    },
)
