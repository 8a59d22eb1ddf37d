"""One HTML file that opens offline: how good a surrogate is, in numbers and pictures."""

import html
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lrsa.data.store import Dataset
from lrsa.evaluation.evaluate import Evaluation, evaluate
from lrsa.evaluation.null import DEFINITIONS as NULLS
from lrsa.files import atomic
from lrsa.objectives.metrics import DEFINITIONS, LABELS, SELF_CONSISTENCY
from lrsa.report import page
from lrsa.report.cases import Cases
from lrsa.report.datacard import HEAD, about, card_rows, provenance_rows
from lrsa.report.figures import draw_errors, draw_samplings, draw_training, sample_pictures
from lrsa.report.pictures import draw_pictures, png
from lrsa.report.printing import PAPER, number, paper_error, summary_rows
from lrsa.surrogate.surrogate import load
from lrsa.training.config import RunConfig

__all__ = ["summary_rows", "write_report"]
WORST = 8
"""Cases that are listed by name."""


def write_report(run: Path, evaluation: Evaluation | None = None) -> Path:
    """Draw the figures of a run and write its `report.html`."""
    config = RunConfig.load(run)
    evaluation = evaluation or evaluate(run)
    whole = page.document(f"{config.model} on {config.schema.name}", _sections(run, config, evaluation))
    path = run / "report.html"
    with atomic(path) as temporary:
        temporary.write_text(whole)
    return path


def _sections(run: Path, config: RunConfig, evaluation: Evaluation) -> Iterator[str]:
    yield _headline(run, config, evaluation)
    if evaluation.fields:
        cases = Cases.of(run, config, evaluation)
        yield page.section("Best, median and worst case", cases.pictures())
        yield page.section("Every case", _every_case(run, evaluation, cases.scatter()))
        yield page.section("Every field", _every_field(evaluation))
    if evaluation.samplings:
        yield page.section("At other samplings", _samplings(run, evaluation))
    yield page.section("Training", _training(run, evaluation))
    yield page.section("The data", _data(config))
    yield page.section("What the numbers mean", page.pairs(_definitions(evaluation)))
    yield page.section("How it was made", _provenance(config))


def _headline(run: Path, config: RunConfig, evaluation: Evaluation) -> str:
    schema = config.schema
    scale = f" · {config.scale} scale" if config.scale else ""
    title = html.escape(f"{config.model} on {schema.name}")
    head = (
        f"<header><p class=kicker>{html.escape(evaluation.source)} data{scale}</p><h1>{title}</h1>"
        f"<p class=lead>{evaluation.cases} test cases of {evaluation.points} points, none seen in training:"
        f" {html.escape(', '.join(evaluation.fields)) or 'no truth to compare with'}.</p></header>"
    )
    if not evaluation.fields:
        return head
    rows = [("this surrogate", evaluation.relative_l2, number(evaluation.relative_l2), "ours")]
    rows += [(name, value, number(value), "") for name, value in evaluation.nulls.items()]
    if (printed := paper_error(config)) is not None:
        rows.append((PAPER, printed, number(printed), "paper"))
    value = f"<p class=label>test relative L2</p><p class=number>{number(evaluation.relative_l2)}</p>"
    verdict, kind = _verdict(evaluation)
    hero = f"<div class=hero><div>{value}{page.text(verdict, kind)}</div>{page.bars(rows)}</div>"
    known = [e for e in evaluation.per_case if not math.isnan(e)]
    parameters = sum(p.numel() for p in load(run, evaluation.epoch).model.parameters())
    facts = [
        ("best case", number(min(known, default=math.nan))),
        ("median case", number(float(np.median(known)) if known else math.nan)),
        ("worst case", number(max(known, default=math.nan))),
        ("parameters", _short(parameters)),
        ("epochs", str(config.train.epochs)),
    ]
    return head + hero + page.tiles(facts)


def _verdict(evaluation: Evaluation) -> tuple[str, str]:
    """How the surrogate stands to the best of the null baselines, in a sentence."""
    name, best = min(evaluation.nulls.items(), key=lambda item: item[1])
    ratio = best / evaluation.relative_l2 if evaluation.relative_l2 else math.inf
    if ratio >= 1.05:
        return f"{ratio:.2g} times smaller than the best null baseline ({name}).", "verdict"
    return f"Not clearly better than a null baseline ({name}): little was learned.", "verdict bad"


def _every_case(run: Path, evaluation: Evaluation, scatter: list[str]) -> str:
    path = run / "figures" / "errors.png"
    nulls = {name: [row.nulls[name][""] for row in evaluation.table] for name in evaluation.nulls}
    draw_errors(path, evaluation.per_case, nulls)
    sorted_errors = page.chart(
        path, "relative L2 of every test case, sorted", "The error of every test case, sorted."
    )
    worst = evaluation.worst(WORST)
    head = ["worst cases", "points", "relative L2", *(f"max error {name}" for name in evaluation.fields)]
    rows = [
        [r.name, str(r.points), number(r.relative_l2), *(f"{m['max_error']:.3g}" for m in r.fields.values())]
        for r in worst
    ]
    charts = [sorted_errors, *scatter]
    return f"<div class=charts>{''.join(charts)}</div>" + page.grid(head, rows)


def _every_field(evaluation: Evaluation) -> str:
    rows = [[n, *(f"{m[k]:.4g}" for k in DEFINITIONS)] for n, m in evaluation.fields.items()]
    metrics = page.grid(["field", *LABELS.values()], rows)
    beside = [
        [n, number(evaluation.fields[n]["relative_l2"]), *(number(v) for v in values.values())]
        for n, values in evaluation.null_fields.items()
    ]
    head = ["relative L2", "this surrogate", *evaluation.nulls]
    return metrics + (page.grid(head, beside) if len(evaluation.fields) > 1 else "")


def _samplings(run: Path, evaluation: Evaluation) -> str:
    path = run / "figures" / "samplings.png"
    rows = evaluation.samplings
    points = [float(np.mean([case.strides[s.stride][0] for case in evaluation.table])) for s in rows]
    series = {
        "relative L2": [s.relative_l2 for s in rows],
        "self-consistency": [s.self_consistency for s in rows],
    }
    draw_samplings(path, points, series)
    table = page.grid(
        ["stride", "points", "relative L2", "self-consistency"],
        [[str(s.stride), s.points, number(s.relative_l2), number(s.self_consistency)] for s in rows],
    )
    return f"<div class=charts>{page.chart(path, 'errors over the number of points')}{table}</div>"


def _training(run: Path, evaluation: Evaluation) -> str:
    log = run / "metrics.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    path = run / "figures" / "training.png"
    draw_training(path, rows, evaluation.nulls)
    last = rows[-1]
    facts = [("epochs trained", str(last["epoch"])), ("last training loss", number(last["loss"]))]
    if "validation" in last:
        best = min(rows, key=lambda row: row["validation"])
        facts += [
            ("best validation relative L2", number(best["validation"])),
            ("best epoch", str(best["epoch"])),
        ]
    weights = {"best": "the best epoch by validation", "last": "the last epoch"}
    facts.append(("weights of this report", weights.get(evaluation.epoch, evaluation.epoch)))
    curves = page.chart(path, "loss and validation error over epochs")
    return f"<div class=charts>{curves}{page.pairs(facts)}</div>"


def _data(config: RunConfig) -> str:
    data = Dataset(Path(config.data.path), "train")
    cases = [data[i].strided(config.data.stride) for i in range(min(4, len(data)))]
    named = [(name, p) for case in cases for name, p in sample_pictures(case).items()]
    images = draw_pictures([p for _, p in named])
    figures = "".join(
        page.picture(
            png(image), f"{name} of a training case", f"{name}: {' to '.join(page.ends(p.low, p.high))}"
        )
        for (name, p), image in zip(named, images, strict=True)
    )
    shown = page.text(f"{about(data)}. The first training cases:")
    return f"{shown}<div class=samples>{figures}</div>" + page.grid(HEAD, card_rows(data), words=2)


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
            "the mean over the epoch of what the training made small: relative L2 per case, with the gradient"
            " term where one is set",
        ),
        ("validation relative L2", "relative L2 on training cases that were kept back; it chose the epoch"),
    ]
    rows += [(f"null baseline: {name}", NULLS[name]) for name in evaluation.nulls]
    if evaluation.samplings:
        rows.append(("stride s", "every s-th point along each axis of the grid, or of the list of points"))
        rows.append(("self-consistency", SELF_CONSISTENCY))
    return rows


def _provenance(config: RunConfig) -> str:
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
    cards = (
        page.pairs(provenance_rows(config.options), f"Model: {config.model}"),
        page.pairs([*provenance_rows(vars(config.train)), *run], "Training"),
        page.pairs(seen, "Data"),
        page.pairs(provenance_rows(config.versions), "Versions"),
    )
    return f"<pre>{html.escape(config.command)}</pre><div class=cards>{''.join(cards)}</div>"


def _short(count: int) -> str:
    return f"{count / 1e6:.2f} M" if count >= 1e6 else f"{count / 1e3:.0f} k" if count >= 1e4 else str(count)
