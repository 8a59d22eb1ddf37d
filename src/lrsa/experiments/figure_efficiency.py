"""The paper's figure of stability and efficiency: errors in three precisions, step time and memory."""

from lrsa.experiments.efficiency import CAPTION, Efficiency, measured, ratios
from lrsa.experiments.experiment import Experiment, Task
from lrsa.experiments.page import Page, Plot, Section
from lrsa.experiments.precision import TABLE_PRECISION, errors
from lrsa.experiments.study import Work


class FigureEfficiency(Experiment):
    """Of what the experiments precision and efficiency have measured."""

    name = "figure-efficiency"
    about = "the paper's figure of stability and efficiency"

    def tasks(self, work: Work) -> list[Task]:
        return TABLE_PRECISION.tasks(work)

    def measure(self, work: Work) -> None:
        Efficiency().measure(work)

    def page(self, work: Work) -> Page:
        study = work.study
        left, right = errors(TABLE_PRECISION, work), ratios(measured(work))
        plots = [Plot("errors", "error by precision", TABLE_PRECISION.caption, left)] if left else []
        plots += [Plot("ratios", "step time and memory beside Transolver", CAPTION, right)] if right else []
        missing = [name for name, made in (("precision", left), ("efficiency", right)) if made is None]
        text = [f"Nothing is recorded yet of: {', '.join(missing)}."] if missing else []
        return Page(
            self.name,
            "Figure: stability and efficiency",
            "Errors after training in three precisions, and what a training step takes beside Transolver in"
            " fp32.",
            study.command(self.name),
            study.named(self.name),
            f"{study.scale} scale · {study.source} data",
            [Section(text=text, plots=plots)],
        )
