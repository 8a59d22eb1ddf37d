"""How much a seed decides: several trainings of LRSA, of Transolver and of the nearest rivals."""

from lrsa.experiments.sweep import Sweep, Variant

SEEDS = 5
STATISTICS = Sweep(
    name="statistics",
    title="Mean and deviation over seeds",
    about="A seed decides the initial weights, the order of the cases and the symmetries that are drawn.",
    problems=("elasticity", "darcy"),
    variants={
        "LRSA": Variant(seeds=SEEDS),
        "Transolver's mixer in our backbone": Variant("backbone-transolver", seeds=SEEDS),
        "Transolver": Variant("transolver", seeds=SEEDS),
        "Geo-FNO": Variant("geo-fno", seeds=SEEDS),
    },
)
