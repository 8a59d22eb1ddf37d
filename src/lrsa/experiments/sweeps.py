"""The sweeps there are."""

from lrsa.experiments.ablation import ABLATION
from lrsa.experiments.recipe import RECIPE
from lrsa.experiments.seeds import STATISTICS

SWEEPS = {sweep.name: sweep for sweep in (RECIPE, ABLATION, STATISTICS)}
