"""One HTML file that opens offline: how good a surrogate is, in numbers and pictures."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.evaluation.evaluate import evaluate
from lrsa.evaluation.null import DEFINITIONS as NULLS
from lrsa.evaluation.outcome import Evaluation
from lrsa.evaluation.verdict import verdict
from lrsa.files import atomic
from lrsa.models.pod import FittedModel
from lrsa.objectives.metrics import DEFINITIONS, LABELS, SELF_CONSISTENCY
from lrsa.objectives.named import NAMED
from lrsa.pointset import stride_name
from lrsa.report import page, quantities
from lrsa.report.cases import Cases
from lrsa.report.datacard import HEAD, about, card_rows, provenance_rows
from lrsa.report.figures import draw_errors, draw_samplings, draw_training, sample_pictures
from lrsa.report.pictures import draw_pictures, png
from lrsa.report.printing import PAPER, number, paper_error, summary_rows
from lrsa.surrogate.surrogate import load
from lrsa.training.config import RunConfig
from lrsa.training.curve import read_curve

__all__ = ["summary_rows", "write_report"]
WORST = 8
"""Cases that are listed by name."""


def write_report(run: Path, evaluation: Evaluation | None = None) -> Path:
    """Draw the figures of a run and write its `report.html`."""
    config = RunConfig.load(run)
    evaluation = evaluation or evaluate(run)
    whole = page.render(
        "report.html",
        title=f"{config.model} on {config.schema.name}",
        config=config,
        evaluation=evaluation,
        interest=quantities.section(run, evaluation),
        samplings=_samplings(run, evaluation) if evaluation.samplings else None,
        training=_training(run, evaluation),
        data=_data(config),
        definitions=_definitions(evaluation),
        provenance=_provenance(config),
        **(_errors(run, config, evaluation) if evaluation.fields else {}),
    )
    path = run / "report.html"
    with atomic(path) as temporary:
        temporary.write_text(whole)
    return path


def _errors(run: Path, config: RunConfig, evaluation: Evaluation) -> dict[str, Any]:
    """What is said of cases whose truth is known."""
    cases = Cases.of(run, config, evaluation)
    return {
        "verdict": verdict(config, evaluation),
        "bars": _bars(config, evaluation),
        "facts": _facts(run, config, evaluation),
        "cases": {"fields": cases.pictures(), "count": len(evaluation.fields)},
        "charts": [*cases.curves(), _sorted_errors(run, evaluation), *cases.scatter()],
        "worst": _worst(evaluation),
        "fields": _fields(evaluation),
    }


def _bars(config: RunConfig, evaluation: Evaluation) -> list[page.Bar]:
    rows = [("this surrogate", evaluation.relative_l2, "ours")]
    rows += [(name, value, "") for name, value in evaluation.nulls.items()]
    if (printed := paper_error(config)) is not None:
        rows.append((PAPER, printed, "paper"))
    return page.bars(rows)


def _facts(run: Path, config: RunConfig, evaluation: Evaluation) -> list[tuple[str, str]]:
    known = [e for e in evaluation.per_case if not math.isnan(e)]
    model = load(run, evaluation.epoch).model
    numbers = model.buffers() if isinstance(model, FittedModel) else model.parameters()
    parameters = sum(p.numel() for p in numbers)
    return [
        ("best case", number(min(known, default=math.nan))),
        ("median case", number(float(np.median(known)) if known else math.nan)),
        ("worst case", number(max(known, default=math.nan))),
        ("parameters", _short(parameters)),
        ("epochs", str(config.train.epochs)),
    ]


def _sorted_errors(run: Path, evaluation: Evaluation) -> page.Image:
    path = run / "figures" / "errors.png"
    nulls = {name: [row.nulls[name][""] for row in evaluation.table] for name in evaluation.nulls}
    draw_errors(path, evaluation.per_case, nulls)
    return page.chart(path, "relative L2 of every test case, sorted", "The error of every test case, sorted.")


def _worst(evaluation: Evaluation) -> page.Table:
    head = ["worst cases", "points", "relative L2", *(f"max error {name}" for name in evaluation.fields)]
    rows = [
        [r.name, str(r.points), number(r.relative_l2), *(f"{m['max_error']:.3g}" for m in r.fields.values())]
        for r in evaluation.worst(WORST)
    ]
    return page.Table(head, rows)


def _fields(evaluation: Evaluation) -> list[page.Table]:
    rows = [[n, *(f"{m[k]:.4g}" for k in DEFINITIONS)] for n, m in evaluation.fields.items()]
    metrics = page.Table(["field", *LABELS.values()], rows)
    beside = [
        [n, number(evaluation.fields[n]["relative_l2"]), *(number(v) for v in values.values())]
        for n, values in evaluation.null_fields.items()
    ]
    nulls = page.Table(["relative L2", "this surrogate", *evaluation.nulls], beside)
    named = page.Table(["metric", "over all cases"], [[n, number(v)] for n, v in evaluation.metrics.items()])
    several = len(evaluation.fields) > 1
    return [metrics, *([nulls] if several else []), *([named] if evaluation.metrics else [])]


def _samplings(run: Path, evaluation: Evaluation) -> dict[str, Any]:
    path = run / "figures" / "samplings.png"
    rows = evaluation.samplings
    points = [float(np.mean([case.strides[s.stride][0] for case in evaluation.table])) for s in rows]
    series = {
        "relative L2": [s.relative_l2 for s in rows],
        "self-consistency": [s.self_consistency for s in rows],
    }
    draw_samplings(path, points, series)
    table = page.Table(
        ["stride", "points", "relative L2", "self-consistency"],
        [[stride_name(s.stride), s.points, number(s.relative_l2), number(s.self_consistency)] for s in rows],
    )
    return {"chart": page.chart(path, "errors over the number of points"), "table": table}


def _training(run: Path, evaluation: Evaluation) -> dict[str, Any] | None:
    rows = read_curve(run)
    if not rows:
        return None
    path = run / "figures" / "training.png"
    draw_training(path, rows, evaluation.nulls)
    last, validated = rows[-1], [row for row in rows if "validation" in row]
    facts = [("epochs trained", f"{last['epoch']:.0f}"), ("last training loss", number(last["loss"]))]
    if validated:
        best = min(validated, key=lambda row: row["validation"])
        facts += [
            ("best validation relative L2", number(best["validation"])),
            ("best epoch", f"{best['epoch']:.0f}"),
        ]
    weights = {"best": "the best epoch by validation", "last": "the last epoch"}
    facts.append(("weights of this report", weights.get(evaluation.epoch, evaluation.epoch)))
    return {"chart": page.chart(path, "loss and validation error over epochs"), "facts": facts}


def _data(config: RunConfig) -> dict[str, Any]:
    data = config.dataset("train")
    cases = [data[i].strided(config.data.stride) for i in range(min(4, len(data)))]
    named = [(name, p) for case in cases for name, p in sample_pictures(case).items()]
    images = draw_pictures([p for _, p in named])
    samples = [
        page.picture(
            png(image), f"{name} of a training case", f"{name}: {' to '.join(page.ends(p.low, p.high))}"
        )
        for (name, p), image in zip(named, images, strict=True)
    ]
    return {"about": about(data), "samples": samples, "table": page.Table(HEAD, card_rows(data), words=2)}


def _definitions(evaluation: Evaluation) -> list[tuple[str, str]]:
    rows = [(LABELS[name], words) for name, words in DEFINITIONS.items()]
    rows.insert(0, ("symbols", "û is predicted, u is true, ū is the mean of u over the points of a case"))
    rows += [
        (
            "test relative L2",
            "relative L2 of all fields of a case together, in physical units; the mean over the test cases",
        ),
        ("best, median, worst", "cases in the order of that error; |error| is |û - u|, point by point"),
        (
            "training loss",
            "the mean over the epoch of what the training made small: relative L2 per case, or the loss"
            " named in the settings of the training, with the gradient term where one is set",
        ),
        ("validation relative L2", "relative L2 on training cases that were kept back; it chose the epoch"),
    ]
    rows += [(name, NAMED[name.partition(":")[0].partition("@")[0]]) for name in evaluation.metrics]
    rows += [(f"null baseline: {name}", NULLS[name]) for name in evaluation.nulls]
    rows += quantities.definitions(evaluation)
    if evaluation.samplings:
        rows.append(
            (
                "stride s",
                "every s-th point along each axis of the grid (sxt: along one and the other), or of the list",
            )
        )
        rows.append(("self-consistency", SELF_CONSISTENCY))
    return rows


def _provenance(config: RunConfig) -> dict[str, list[tuple[str, str]]]:
    schema, data = config.schema, config.data
    seen = [
        ("name", f"{schema.name} ({schema.source})"),
        ("file", data.path),
        ("training cases", str(data.samples or "all")),
        ("stride", str(data.stride)),
        *((name, value) for name, value in provenance_rows(schema.provenance)),
    ]
    run = [("device", config.device), ("threads", str(config.threads or "torch's choice"))]
    run += [("started from", config.init)] if config.init else []
    return {
        f"Model: {config.model}": [*provenance_rows(config.options)],
        "Training": [*provenance_rows(vars(config.train)), *run],
        "Data": seen,
        "Versions": [*provenance_rows(config.versions)],
    }


def _short(count: int) -> str:
    return f"{count / 1e6:.2f} M" if count >= 1e6 else f"{count / 1e3:.0f} k" if count >= 1e4 else str(count)
