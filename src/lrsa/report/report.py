"""One HTML file that opens offline: how good a surrogate is, in numbers and pictures."""

import base64
import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from lrsa.data.catalogue import CATALOGUE
from lrsa.data.store import Dataset, Selection, atomic
from lrsa.evaluation.evaluate import Evaluation, evaluate, predict_case, truth
from lrsa.evaluation.metrics import DEFINITIONS
from lrsa.report.figures import draw_comparison, draw_training
from lrsa.training.config import RunConfig
from lrsa.training.protocols import protocol
from lrsa.training.surrogate import load

STYLE = (Path(__file__).parent / "report.css").read_text()


def write_report(run: Path, evaluation: Evaluation | None = None) -> Path:
    """Draw the figures of a run and write its `report.html`."""
    config = RunConfig.load(run)
    evaluation = evaluation or evaluate(run)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    draw_training(run / "figures" / "training.png", rows, evaluation.nulls)
    comparisons = _draw_cases(run, config, evaluation)
    page = "\n".join(_page(run, config, evaluation, comparisons))
    path = run / "report.html"
    with atomic(path) as temporary:
        temporary.write_text(page)
    return path


def summary_rows(config: RunConfig, evaluation: Evaluation) -> list[tuple[str, str]]:
    """The headline: test error beside what knows nothing."""
    rows = [("test relative L2", f"{evaluation.relative_l2:.4f}")]
    rows += [(f"null baseline: {name}", f"{value:.4f}") for name, value in evaluation.nulls.items()]
    benchmark = CATALOGUE.get(config.schema.name)
    if benchmark is not None and config.scale is not None:
        rows.append(("the paper's LRSA, official data, paper scale", f"{benchmark.paper_error:.4f}"))
    return rows


def _draw_cases(run: Path, config: RunConfig, evaluation: Evaluation) -> list[Path]:
    """Best, median and worst test case, one picture for each target."""
    surrogate, how = load(run), protocol(config.schema.protocol)
    tests = Selection(Dataset(Path(config.data.path), "test"), range(evaluation.cases), config.data.stride)
    order = np.argsort(evaluation.per_case)
    chosen = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
    drawn = []
    for label, index in chosen.items():
        case = tests[int(index)]
        prediction, u = predict_case(surrogate, how, case, config.train.weights), truth(how, case)
        if u.ndim == 3:
            prediction, u = prediction[-1], u[-1]
        drawn.append((f"{label}: {evaluation.per_case[int(index)]:.3g}", case, u, prediction))
    paths = []
    for channel, name in enumerate(config.schema.names.targets or ("u",)):
        path = run / "figures" / f"cases-{channel}.png"
        draw_comparison(path, [(a, c, u[:, channel], p[:, channel]) for a, c, u, p in drawn], name)
        paths.append(path)
    return paths


def _page(run: Path, config: RunConfig, evaluation: Evaluation, comparisons: Sequence[Path]) -> Iterable[str]:
    schema, data = config.schema, config.data
    title = f"{config.model} on {schema.name}"
    yield f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>"
    yield f"<style>{STYLE}</style><main><h1>{html.escape(title)}</h1>"
    scale = f", {config.scale} scale" if config.scale else ""
    about = f"{evaluation.cases} test cases of {evaluation.points} points"
    yield f"<p class=lead><em>{schema.source}</em> data{scale}; {about}.</p>"
    yield _table(summary_rows(config, evaluation), "headline")
    yield "<h2>Best, median and worst test case</h2>"
    yield from (_image(path, "truth, prediction and error") for path in comparisons)
    yield "<h2>Training</h2>" + _image(run / "figures" / "training.png", "loss over epochs")
    yield "<h2>Per field</h2>"
    yield _grid(
        ["field", *DEFINITIONS],
        [[n, *(f"{m[k]:.4g}" for k in DEFINITIONS)] for n, m in evaluation.fields.items()],
    )
    yield "<h2>What the numbers mean</h2>"
    yield _table([(name, text) for name, text in DEFINITIONS.items()])
    yield "<h2>How it was made</h2>"
    facts = [
        ("command", config.command),
        (
            "data",
            f"{schema.name} ({schema.source}), stride {data.stride}, {data.samples or 'all'} training cases",
        ),
        ("provenance", json.dumps(dict(schema.provenance))),
        ("model", f"{config.model} {json.dumps(dict(config.options))}"),
        ("training", json.dumps(vars(config.train))),
        ("versions", json.dumps(dict(config.versions))),
    ]
    yield _table(facts)
    yield "</main></html>"


def _table(rows: Iterable[tuple[str, str]], kind: str = "") -> str:
    body = "".join(f"<tr><th>{html.escape(a)}<td>{html.escape(b)}" for a, b in rows)
    return f"<div class=wide><table class='{kind}'>{body}</table></div>"


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{html.escape(cell)}" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}" for cell in row) for row in rows)
    return f"<div class=wide><table><tr>{top}{body}</table></div>"


def _image(path: Path, text: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f"<img alt='{html.escape(text)}' src='data:image/png;base64,{data}'>"
