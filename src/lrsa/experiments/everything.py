"""All experiments, and one page of them all that opens offline."""

from collections.abc import Sequence
from pathlib import Path

from lrsa.experiments.ablation import ABLATION, FigureAblation
from lrsa.experiments.beyond import Beyond
from lrsa.experiments.claims import Claims
from lrsa.experiments.efficiency import Efficiency
from lrsa.experiments.experiment import Experiment
from lrsa.experiments.figure_efficiency import FigureEfficiency
from lrsa.experiments.figure_lowrank import FigureLowRank
from lrsa.experiments.figure_qualitative import FigureQualitative
from lrsa.experiments.learning_rates import LEARNING_RATES
from lrsa.experiments.limited_data import LIMITED_DATA
from lrsa.experiments.page import Page, write_html
from lrsa.experiments.precision import TABLE_PRECISION
from lrsa.experiments.recipe import RECIPE
from lrsa.experiments.resolution import RESOLUTION
from lrsa.experiments.seeds import TABLE_STATISTICS
from lrsa.experiments.study import Work
from lrsa.experiments.table_industrial import TABLE_INDUSTRIAL
from lrsa.experiments.table_irregular import TABLE_IRREGULAR
from lrsa.experiments.table_standard import TABLE_STANDARD

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for one in (
        TABLE_STANDARD,
        TABLE_IRREGULAR,
        TABLE_INDUSTRIAL,
        ABLATION,
        RESOLUTION,
        LIMITED_DATA,
        TABLE_PRECISION,
        Efficiency(),
        TABLE_STATISTICS,
        Beyond(),
        FigureLowRank(),
        FigureQualitative(),
        FigureEfficiency(),
        FigureAblation(),
        Claims(),
        RECIPE,
        LEARNING_RATES,
    )
}
"""By name, in the order of worth."""
ALL = [
    name
    for name in EXPERIMENTS
    if name not in ("recipe", "learning-rates", "figure-efficiency", "figure-ablation")
]
"""Of the page of them all: the others show the same again, or are not the paper's."""


def write_all(work: Work, pages: Sequence[Page]) -> Path:
    """One HTML page of them all, the claims first; its path."""
    study = work.study
    return write_html(
        work.out / f"{study.named('all')}.html",
        "Does it hold? The paper, measured again",
        sorted(pages, key=lambda page: page.name != "claims"),
        "Every table, figure and claim of the paper, made anew by one command: our number, below it the"
        " printed one.",
        f"Scale: {study.scale}. Data: {study.source}. Recipe: {study.settled}. A number is of the test"
        " cases, none seen in training; a place that was not run says so, and one that the paper leaves"
        " empty stays empty."
        + (
            " The data is made by our own solvers after the published recipes, smaller than the official"
            " files, and the trainings are short: compare rows with each other, not ours with the printed."
            if study.source == "generated"
            else ""
        ),
    )
