"""The paper's table of industrial cases: fields, coefficients, and the ranking of designs."""

from lrsa.experiments.printed import INDUSTRIAL as PRINTED
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.experiments.table_irregular import by_error
from lrsa.problems.catalogue import CATALOGUE

INDUSTRIAL = {"airfrans": ("AirfRANS", "lift", "L"), "shapenet-car": ("ShapeNet Car", "drag", "D")}
BASELINES = {
    "GraphSAGE": "graphsage",
    "GraphUNet": "graph-unet",
    "MeshGraphNet": "mesh-graph-net",
    "GNO": "gno",
    "Geo-FNO": "geo-fno",
    "LNO": "lno",
    "Transolver": "transolver",
    "LinearNO": "linear-no",
}


def rows(work: Work) -> list[Row]:
    return [*(Row(label, model) for label, model in BASELINES.items()), Row("LRSA")]


def columns(study: Study) -> list[Column]:
    """Of each set the relative L2 error of all fields, which the null baselines have, then the metrics."""
    made = []
    for name, (label, quantity, sign) in INDUSTRIAL.items():
        made += [
            Column(f"{label}: all fields", name, f"{name} fields"),
            Column("volume", name, f"{name} volume", _metric(name, "@volume")),
            Column("surface", name, f"{name} surface", _metric(name, "@surface")),
            Column(f"C_{sign}", name, f"{name} coefficient", f"relative-error:{quantity}"),
            Column(f"ρ_{sign}", name, f"{name} rank", f"spearman:{quantity}", largest=True),
        ]
    return made


def _metric(problem: str, where: str) -> str:
    """As the problem spells it: of the pressure where that is measured there, as published."""
    words = CATALOGUE[problem].metrics.split(",") if problem in CATALOGUE else []
    there = [word.strip() for word in words if word.strip().endswith(where)]
    return min(there, key=lambda word: f":p{where}" not in word, default=where)


TABLE_INDUSTRIAL = Table(
    name="table-industrial",
    title="Industrial cases",
    about="the paper's table of AirfRANS and ShapeNet Car, all metrics",
    lead="Fields in the volume and on the surface, the relative error of the lift or drag coefficient, and"
    " Spearman's rank correlation of the coefficient over the test cases.",
    rows=rows,
    columns=columns,
    printed=PRINTED,
    draw=by_error,
    caption="Filled: ours; hollow: printed; dotted: the best null baseline of all fields.",
    notes=("One seed: differences of a few percent mean nothing.",),
)
