"""Cross-validation for few cases: every case is a test case of one of k runs, then one run learns from all.

    RUN/folds/fold-0.h5 ...     the cases, divided anew: those of the fold are the test
    RUN/folds/0 ...             the runs
    RUN/folds.json, folds.md    their errors, the mean over folds and the spread
    RUN                         the final run, on RUN/folds/all.h5, which has no test cases of its own

The error of the final run is expected to be that of the table, or a little below: it has more cases to learn
from.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.console import console
from lrsa.data.store import Dataset, Selection, is_path, splits_of
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import evaluate
from lrsa.evaluation.outcome import Evaluation
from lrsa.evaluation.verdict import verdict
from lrsa.files import alone, atomic
from lrsa.pointset import PointSet
from lrsa.training.config import RunConfig, check_new
from lrsa.training.fit import prepare, train_run

PLAN = Path("folds") / "plan.json"


def is_folded(run: Path) -> bool:
    """Whether this is a cross-validation."""
    return (run / PLAN).exists()


def begin_folds(data: str, model: str, folds: int, out: Path | None, asked: Mapping[str, Any]) -> Path:
    """Divide the cases of a file and write down what is to be trained; the folder of the run."""
    if not is_path(data):
        raise LrsaError(
            f"--folds divides the cases of a file anew, and {data} is a benchmark with its own test"
        )
    source = Path(data)
    cases, names, schema = _cases(source)
    if not 2 <= folds <= len(cases):
        raise LrsaError(f"--folds must be from 2 to the number of cases, {len(cases)}, not {folds}")
    run = out or Path("runs") / f"{source.stem}-{model}"
    check_new(run)
    if is_folded(run):
        raise LrsaError(f"{run} is a run already. Go on with `lrsa resume {run}`, or name another --out")
    order = np.random.default_rng(0).permutation(len(cases))
    for fold in range(folds):
        tests = np.sort(order[fold::folds])
        rest = np.setdiff1d(order, tests)
        stored = {"train": [names[i] for i in rest], "test": [names[i] for i in tests]}
        known = replace(schema, provenance={**schema.provenance, "cases": stored})
        parts = {"train": Selection(cases, rest), "test": Selection(cases, tests)}
        write_dataset(run / "folds" / f"fold-{fold}.h5", parts, known)
    known = replace(schema, provenance={**schema.provenance, "cases": {"train": names}})
    write_dataset(run / "folds" / "all.h5", {"train": cases}, known)
    plain = {k: str(v) if isinstance(v, Path) else v for k, v in asked.items()}
    plan = {"data": data, "model": model, "folds": folds, "asked": plain}
    with atomic(run / PLAN) as temporary:
        temporary.write_text(json.dumps(plan, indent=1))
    return run


def run_folds(run: Path) -> str:
    """Train what is not trained yet, the folds and then the final run; the table of their errors."""
    try:
        plan = json.loads((run / PLAN).read_text())
        data, model, folds, asked = (plan[k] for k in ("data", "model", "folds", "asked"))
    except (ValueError, KeyError) as error:
        raise LrsaError(f"{run / PLAN} is damaged: train again under another name") from error
    found = []
    with alone((run / "folds").resolve()):
        for fold in range(folds):
            folder = run / "folds" / str(fold)
            console.print(f"Fold {fold + 1} of {folds}")
            _train(folder, run / "folds" / f"fold-{fold}.h5", model, asked)
            outcome = evaluate(folder)
            outcome.save(folder / "evaluation.json")
            found.append(outcome)
        table = _table(data, model, found) + _verdict(run, data, found)
        _save(run, table, found)
        console.print(table)
        console.print("The final run, on all cases")
        _train(run, run / "folds" / "all.h5", model, asked)
    count = sum(each.cases for each in found)
    return f"{run}: trained on all {count} cases; its expected error is that of {run / 'folds.md'}"


def _train(folder: Path, data: Path, model: str, asked: Mapping[str, Any]) -> None:
    if not (folder / "config.json").exists():
        prepare(str(data), model, out=folder, **asked)
    train_run(folder)


def _cases(source: Path) -> tuple[Sequence[PointSet], list[str], Any]:
    parts = [Dataset(source, split) for split in splits_of(source)]
    cases = [case for part in parts for case in part]
    stored = parts[0].schema.provenance.get("cases", {})
    names = [str(name) for part in parts for name in stored.get(part.split, [])]
    if len(names) != len(cases):
        names = [f"case {i}" for i in range(len(cases))]
    return cases, names, parts[0].schema


def _table(data: str, model: str, found: Sequence[Evaluation]) -> str:
    """Markdown: one row for each fold, then their mean and spread."""
    nulls, quantities = list(found[0].nulls), _best_nulls(found)
    head = ["fold", "test cases", "relative L2", *nulls]
    head += [word for name, null in quantities for word in (f"{name}: mean error", f"{name}: {null}")]
    rows = [[e.relative_l2, *(e.nulls[n] for n in nulls), *_misses(e, quantities)] for e in found]
    lines = [f"# {model} on {data}: cross-validation", "", "| " + " | ".join(head) + " |"]
    lines.append("|" + "---|" * len(head))
    for i, (row, e) in enumerate(zip(rows, found, strict=True)):
        lines.append(_row([str(i + 1), str(e.cases)], row))
    cases = np.array([error for e in found for error in e.per_case])
    lines.append(_row(["mean", str(len(cases))], np.mean(rows, axis=0)))
    lines.append(_row(["deviation over folds", ""], np.std(rows, axis=0, ddof=1)))
    quarter, middle, three, largest = np.nanquantile(cases, [0.25, 0.5, 0.75, 1.0])
    lines += [
        "",
        f"Over all cases the relative L2 is {np.nanmean(cases):.4f} in the mean, {middle:.4f} in the median,"
        f" {quarter:.4f} to {three:.4f} for the middle half, {largest:.4f} at worst.",
    ]
    return "\n".join(lines)


def _best_nulls(found: Sequence[Evaluation]) -> list[tuple[str, str]]:
    """Every quantity, and the null baseline that errs least in it over the folds."""
    pairs = []
    for name, first in found[0].quantities.items():
        means = {
            null: float(np.mean([e.quantities[name].nulls[null] for e in found])) for null in first.nulls
        }
        pairs.append((name, min(means, key=lambda null: means[null])))
    return pairs


def _misses(evaluation: Evaluation, quantities: Sequence[tuple[str, str]]) -> Iterator[float]:
    for name, null in quantities:
        errors = evaluation.quantities[name]
        yield from (errors.mean_absolute, errors.nulls[null])


def _verdict(run: Path, data: str, found: Sequence[Evaluation]) -> str:
    """How the mean over the folds stands to that of the null baselines."""
    config = RunConfig.load(run / "folds" / "0")
    first = found[0]
    mean = replace(
        first,
        relative_l2=float(np.mean([e.relative_l2 for e in found])),
        nulls=_mean([e.nulls for e in found]),
        fields={name: _mean([e.fields[name] for e in found]) for name in first.fields},
        null_fields={name: _mean([e.null_fields[name] for e in found]) for name in first.null_fields},
    )
    said = verdict(replace(config, data=replace(config.data, path=data)), mean)
    return "" if said is None else f"\n\n{said.text} {said.cure}".rstrip()


def _mean(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def _row(words: Sequence[str], values: Sequence[float] | np.ndarray) -> str:
    return "| " + " | ".join([*words, *(f"{v:.4g}" for v in values)]) + " |"


def _save(run: Path, table: str, found: Sequence[Evaluation]) -> None:
    with atomic(run / "folds.md") as temporary:
        temporary.write_text(table + "\n")
    rows = [
        {"relative_l2": e.relative_l2, "cases": e.cases, "per_case": e.per_case, "nulls": e.nulls}
        for e in found
    ]
    with atomic(run / "folds.json") as temporary:
        temporary.write_text(json.dumps({"folds": rows}, indent=1))
