"""Every claim of the abstract and the text: the printed figure, ours, the verdict, the table behind it."""

from collections import Counter
from collections.abc import Sequence

from matplotlib.figure import Figure

from lrsa.experiments.claims_accuracy import ACCURACY
from lrsa.experiments.claims_design import DESIGN
from lrsa.experiments.claims_robustness import ROBUSTNESS
from lrsa.experiments.experiment import Experiment
from lrsa.experiments.judging import Claim, Finding
from lrsa.experiments.page import Grid, Page, Plot, Section, Value
from lrsa.experiments.plots import panels
from lrsa.experiments.study import Work

CLAIMS: Sequence[Claim] = (*ACCURACY, *ROBUSTNESS, *DESIGN)
KINDS = {"holds": "good", "does not hold": "bad", "not decided": "open"}
COLOURS = {"holds": "#2b7a4b", "does not hold": "#b3541e", "not decided": "#b9c4ce"}


class Claims(Experiment):
    """Trains nothing: it reads what the other experiments have recorded."""

    name = "claims"
    about = "every claim with its verdict, from what is recorded"

    def page(self, work: Work) -> Page:
        study, found = work.study, judged(work)
        counts = Counter(finding.verdict for _, finding in found)
        rows = [
            (f"{i}. {claim.words}", _places(claim, finding)) for i, (claim, finding) in enumerate(found, 1)
        ]
        reasons = _reasons(found)
        return Page(
            self.name,
            "The claims, one by one",
            f"{counts['holds']} of {len(found)} claims hold here, {counts['does not hold']} do not,"
            f" {counts['not decided']} are not decided by what is measured.",
            study.command(self.name),
            study.named(self.name),
            f"{study.scale} scale · {study.source} data · recipe: {study.settled}",
            [
                Section(
                    plots=[Plot("", "verdicts", "", _draw(counts))],
                    grids=[Grid(["claim", "printed", "ours", "verdict", "decided by"], rows, words=True)],
                    notes=[
                        "Ours are errors of short trainings on generated data unless the scale is that of"
                        " the paper and the source the official files: a verdict is about the claim at this"
                        " size, not about the printed number.",
                        "On grids LRSA is judged with local mixing, as its rivals there have convolutions or"
                        " Fourier modes; what the pointwise block would have is named beside it.",
                        "Two errors of one seed that differ by less than 3 % are taken as equal. What rests"
                        " on a place that was not run is not decided.",
                    ],
                ),
                *([Section("Why, we think, claims do not hold", notes=reasons)] if reasons else []),
            ],
            {
                "claims": [
                    {
                        "where": c.where,
                        "claim": c.words,
                        "printed": c.printed,
                        "ours": f.ours,
                        "verdict": f.verdict,
                        "why": f.why,
                        "table": c.table,
                    }
                    for c, f in found
                ]
            },
        )

    def summary(self, work: Work) -> list[str]:
        found = enumerate(judged(work), 1)
        return [f"{i:>2} {finding.verdict:>14}: {claim.words}" for i, (claim, finding) in found]


def judged(work: Work) -> list[tuple[Claim, Finding]]:
    return [(claim, claim.judge(work)) for claim in CLAIMS]


def _reasons(found: Sequence[tuple[Claim, Finding]]) -> list[str]:
    """Why we think that claims do not hold, each reason once, behind the numbers of its claims."""
    about: dict[str, list[int]] = {}
    for i, (claim, finding) in enumerate(found, 1):
        if finding.verdict == "does not hold" and claim.reason:
            about.setdefault(claim.reason, []).append(i)
    return [f"{', '.join(map(str, numbers))}: {reason}" for reason, numbers in about.items()]


def _places(claim: Claim, finding: Finding) -> list[Value]:
    return [
        Value(claim.printed),
        Value(finding.ours or finding.why, finding.why if finding.ours else ""),
        Value(finding.verdict, kind=KINDS[finding.verdict]),
        Value(claim.table.replace(", ", " + "), claim.where),
    ]


def _draw(counts: Counter[str]) -> Figure:
    figure, (ax,) = panels(1, 7.0, 0.9)
    left = 0
    for verdict, colour in COLOURS.items():
        if counts[verdict]:
            words = f"{counts[verdict]} {verdict}"
            ax.barh(0, counts[verdict], left=left, color=colour, height=0.7, label=words)
            left += counts[verdict]
    ax.axis("off")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.05), ncols=len(COLOURS), frameon=False)
    return figure
