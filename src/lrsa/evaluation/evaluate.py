"""How good a trained surrogate is: per case, per field, at other samplings, beside the null baselines."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from lrsa.data.store import Dataset, Selection
from lrsa.errors import LrsaError
from lrsa.evaluation.null import NullBaselines
from lrsa.evaluation.outcome import CaseErrors, Evaluation, Sampling, point_range
from lrsa.evaluation.quantities import Meter, QuantityErrors
from lrsa.evaluation.uncertainty import coverages, fields_hold
from lrsa.objectives.metrics import DEFINITIONS, field_metrics, mean_of, relative_l2
from lrsa.objectives.named import Answer, Metric, metrics_of
from lrsa.objectives.protocols import Protocol, protocol
from lrsa.objectives.words import labels
from lrsa.pointset import PointSet, Stride, corresponding, stride_name
from lrsa.problems.catalogue import open_dataset
from lrsa.surrogate.ensemble import mean_of as mean_over_members
from lrsa.surrogate.novelty import Novelty
from lrsa.surrogate.quantities import all_quantities
from lrsa.surrogate.subsets import answers_of, subset_size
from lrsa.surrogate.surrogate import Epoch, Surrogate, load
from lrsa.training.config import RunConfig


def evaluate(
    run: Path,
    data: str | None = None,
    stride: int | Sequence[Stride] | None = None,
    epoch: Epoch = "best",
    metrics: str | None = None,
    quantities: str | None = None,
) -> Evaluation:
    """Evaluate a run on the test cases of its data, or of other data of the same kind.

    With several strides the numbers are those of the first, and `samplings` has the others. `metrics` are
    spelled as in `objectives.words`, `quantities` as in `objectives.quantities`; by default those that the
    run names.
    """
    config, surrogate = RunConfig.load(run), load(run, epoch)
    strides = _strides(config, stride)
    if data is None and (run / "folds.md").exists():
        raise LrsaError(
            f"{run} learned from all cases: its errors are those of the folds, in {run / 'folds.md'}."
            " --data tests it on others"
        )
    tests = open_dataset(data, "test") if data else config.dataset("test")
    count = len(tests) if data or config.data.test is None else min(config.data.test, len(tests))
    cases = Selection(tests, range(count))
    _check(run, config, tests)
    how = protocol(config.schema.protocol)
    nulls = None if "u" not in tests else _nulls(config, how, cases, strides[0])
    text = config.train.metrics if metrics is None else metrics
    asked = config.train.quantities if quantities is None else quantities
    first = cases[0].strided(strides[0])
    named = _named(config, surrogate, text, asked, first) if "u" in tests else []
    meter = Meter.of(run, config, surrogate, asked if "u" in tests else "", named, first)
    size = subset_size(surrogate, config.train.points)
    judge = _Judge(
        config, surrogate, how, nulls, strides, stride is not None, named, size, meter, Novelty.load(run)
    )
    table = [judge.errors(cases[i], name, cases.label(i)) for i, name in enumerate(case_names(tests, count))]
    found = {str(metric.word): metric.overall([row.metrics for row in table]) for metric in named}
    return replace(
        _summary(config, data, epoch, tests, strides, table),
        metrics=found,
        subsets=size if size is not None and size < max(row.points for row in table) else None,
        quantities={
            name: QuantityErrors.of(words, [row.quantities[name] for row in table])
            for name, words in meter.definitions.items()
        },
        coverage=coverages(meter.calibration, [_held(row) for row in table]),
        members=1 + len(surrogate.others),
    )


def case_names(cases: Dataset, count: int) -> list[str]:
    """The files that the cases came from, where the data set knows them, else their numbers."""
    named = cases.schema.provenance.get("cases", {})
    files = list(named.get(cases.split, [])) if isinstance(named, Mapping) else []
    return [str(files[i]) if i < len(files) else f"case {i}" for i in range(count)]


def training_cases(config: RunConfig, stride: Stride) -> Selection:
    """All training cases of a run, validation included."""
    data = config.dataset("train")
    return Selection(data, range(min(config.data.samples or len(data), len(data))), stride)


def truth(how: Protocol, case: PointSet) -> np.ndarray:
    """The part of a case's target that is predicted."""
    return how.target(case)


@dataclass(frozen=True)
class _Judge:
    """Takes one case at a time, so that only one case's predictions are in memory."""

    config: RunConfig
    surrogate: Surrogate
    how: Protocol
    nulls: NullBaselines | None
    strides: tuple[Stride, ...]
    samplings: bool
    named: Sequence[Metric]
    subsets: int | None
    meter: Meter
    novelty: Novelty | None

    def errors(self, whole: PointSet, name: str, label: str) -> CaseErrors:
        whole.check_finite(label)
        case, surrogate = whole.strided(self.strides[0]), self._at(whole, self.strides[0])
        every = answers_of(surrogate, case, self.subsets)
        prediction = mean_over_members(every)
        strides = dict(self._samplings(whole, case, prediction)) if self.samplings else {}
        if case.u is None:
            return CaseErrors(name, len(case), strides=strides, novelty=self._novelty(surrogate, case))
        u = truth(self.how, case)
        answers = self.nulls.predictions(case) if self.nulls else {}
        names = target_names(self.config, u.shape[-1])
        metrics = field_metrics(prediction, u, case.u_mask)
        answer = Answer(case, prediction, u, names, surrogate.normaliser.u_scale.numpy())
        return CaseErrors(
            name,
            len(case),
            relative_l2(prediction, u, case.u_mask),
            {n: {k: float(v[i]) for k, v in metrics.items()} for i, n in enumerate(names)},
            {k: _by_field(names, v, u, case.u_mask) for k, v in answers.items()},
            strides,
            {key: value for metric in self.named for key, value in metric.of_case(answer).items()},
            self.meter.measure(case, every, u, answers),
            fields_hold(self.meter.calibration, case, every, prediction, u, names),
            self._novelty(surrogate, case),
        )

    def _novelty(self, surrogate: Surrogate, case: PointSet) -> float:
        return math.nan if self.novelty is None else self.novelty.score(surrogate, case)

    def _samplings(
        self, whole: PointSet, case: PointSet, prediction: np.ndarray
    ) -> Iterator[tuple[Stride, tuple[int, float, float]]]:
        """The errors at every stride, and the distance to the prediction at the sampling of the training."""
        own, first = self.config.data.stride, self.strides[0]
        full = prediction if own == first else self._predict(whole, own)
        for stride in self.strides:
            part = case if stride == first else whole.strided(stride)
            again = prediction if stride == first else self._predict(whole, stride)
            error = math.nan if part.u is None else relative_l2(again, truth(self.how, part), part.u_mask)
            steps, base = whole.steps(stride), whole.steps(own)
            shared = [math.lcm(*pair) for pair in zip(steps, base, strict=True)]
            ours = again[..., _every(part, shared, steps), :]
            theirs = full[..., _every(whole.strided(own), shared, base), :]
            yield stride, (len(part), error, relative_l2(ours, theirs))

    def _predict(self, whole: PointSet, stride: Stride) -> np.ndarray:
        return mean_over_members(answers_of(self._at(whole, stride), whole.strided(stride), self.subsets))

    def _at(self, whole: PointSet, stride: Stride) -> Surrogate:
        """The surrogate; where it has statistics of each node, those of the nodes that the stride keeps."""
        own = self.config.data.stride
        steps, base = whole.steps(stride), whole.steps(own)
        kept = not any(a % b for a, b in zip(steps, base, strict=True))
        trained = whole.strided(own)
        if steps == base or not kept or self.surrogate.normaliser.points != len(trained):
            return self.surrogate
        return self.surrogate.at_nodes(_every(trained, steps, base))


def parse_strides(text: str | None) -> tuple[Stride, ...] | None:
    """`1,2,4x2` as typed on the command line."""
    if not text:
        return None
    try:
        each = [tuple(int(step) for step in word.split("x")) for word in text.split(",")]
    except ValueError:
        raise LrsaError(
            "--stride takes whole numbers separated by commas, such as 1,2,4, or one for each axis, such as"
            f' 2x1, not "{text}"'
        ) from None
    return tuple(steps[0] if len(steps) == 1 else steps for steps in each)


def target_names(config: RunConfig, channels: int) -> list[str]:
    """What the predicted fields are called."""
    return labels(config.schema.names.targets, channels)


def _held(row: CaseErrors) -> dict[str, bool | None]:
    return {**row.holds, **{name: found.covered for name, found in row.quantities.items()}}


def _named(
    config: RunConfig, surrogate: Surrogate, text: str, quantities: str, case: PointSet
) -> list[Metric]:
    targets = target_names(config, surrogate.normaliser.u_scale.shape[-1])
    return metrics_of(text, targets, case, all_quantities(config.schema.name, quantities))


def _summary(
    config: RunConfig,
    data: str | None,
    epoch: Epoch,
    tests: Dataset,
    strides: tuple[Stride, ...],
    table: list[CaseErrors],
) -> Evaluation:
    known = table[0].fields
    nulls = {k: [row.nulls[k] for row in table] for k in table[0].nulls}
    return Evaluation(
        data=str(data or config.schema.name),
        source=tests.schema.source,
        path=str(tests.path),
        stride=strides[0],
        cases=len(table),
        points=point_range([row.points for row in table]),
        epoch=epoch,
        relative_l2=mean_of(row.relative_l2 for row in table),
        nulls={k: mean_of(row[""] for row in rows) for k, rows in nulls.items()},
        per_case=[row.relative_l2 for row in table],
        fields={f: {m: mean_of(row.fields[f][m] for row in table) for m in DEFINITIONS} for f in known},
        null_fields={f: {k: mean_of(row[f] for row in rows) for k, rows in nulls.items()} for f in known},
        table=table,
        samplings=[_sampling(s, table) for s in table[0].strides],
    )


def _sampling(stride: Stride, table: Sequence[CaseErrors]) -> Sampling:
    points, errors, distances = zip(*(row.strides[stride] for row in table), strict=True)
    return Sampling(stride, point_range(points), mean_of(errors), mean_of(distances))


def _strides(config: RunConfig, stride: int | Sequence[Stride] | None) -> tuple[Stride, ...]:
    given = config.data.stride if stride is None else stride
    chosen = (given,) if isinstance(given, int) else tuple(given)
    for value in chosen:
        if min(value if isinstance(value, tuple) else (value,)) < 1:
            raise LrsaError(
                f"a stride is 1 or more (every point, every second point, ...), not {stride_name(value)}"
            )
    return tuple(dict.fromkeys(chosen))


def _check(run: Path, config: RunConfig, tests: Dataset) -> None:
    if not len(tests):
        raise LrsaError(f"{tests.path} has no test cases")
    if "u" not in tests:
        if config.schema.protocol == "autoregressive":
            raise LrsaError(f"{run} goes on from the first frames, and {tests.path} has none")
        return
    if tests.schema.names.targets != config.schema.names.targets:
        ours, theirs = (", ".join(n.targets) or "none" for n in (config.schema.names, tests.schema.names))
        raise LrsaError(f"{run} predicts {ours}, but {tests.path} has the targets {theirs}")


def _nulls(config: RunConfig, how: Protocol, tests: Selection, stride: Stride) -> NullBaselines:
    """Fitted to the training cases at this stride."""
    # By all points too: the few that a stride leaves may be the same in meshes that differ.
    fixed = all(
        corresponding(chain(training_cases(config, s), Selection(tests, range(len(tests)), s)))
        for s in {stride, 1}
    )
    return NullBaselines(training_cases(config, stride), how, fixed)


def _by_field(
    names: Sequence[str], prediction: np.ndarray, u: np.ndarray, known: np.ndarray | None
) -> dict[str, float]:
    each = field_metrics(prediction, u, known)["relative_l2"]
    return {"": relative_l2(prediction, u, known), **{n: float(each[i]) for i, n in enumerate(names)}}


def _every(case: PointSet, shared: Sequence[int], steps: Sequence[int]) -> np.ndarray:
    """Of a case at the stride `steps`, the positions of the points of the stride `shared` in its own list."""
    some = tuple(slice(None, None, a // b) for a, b in zip(shared, steps, strict=True))
    return np.arange(len(case)).reshape(case.grid or (len(case),))[some].ravel()
