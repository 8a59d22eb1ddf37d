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
from lrsa.evaluation.subsets import predict_by_subsets, subset_size
from lrsa.objectives.metrics import DEFINITIONS, field_metrics, mean_of, relative_l2
from lrsa.objectives.named import Answer, Metric, metrics_of
from lrsa.objectives.protocols import Protocol, protocol
from lrsa.objectives.words import labels
from lrsa.pointset import PointSet, corresponding
from lrsa.problems.catalogue import open_dataset, quantities_of
from lrsa.surrogate.surrogate import Epoch, Surrogate, load
from lrsa.training.config import RunConfig


def evaluate(
    run: Path,
    data: str | None = None,
    stride: int | Sequence[int] | None = None,
    epoch: Epoch = "best",
    metrics: str | None = None,
) -> Evaluation:
    """Evaluate a run on the test cases of its data, or of other data of the same kind.

    With several strides the numbers are those of the first, and `samplings` has the others. `metrics` are
    spelled as in `objectives.words`; by default those that the run names.
    """
    config, surrogate = RunConfig.load(run), load(run, epoch)
    strides = _strides(config, stride)
    tests = open_dataset(data if data else Path(config.data.path), "test")
    count = len(tests) if data or config.data.test is None else min(config.data.test, len(tests))
    cases = Selection(tests, range(count))
    _check(run, config, tests)
    how = protocol(config.schema.protocol)
    nulls = None if "u" not in tests else _nulls(config, how, Selection(tests, range(count), strides[0]))
    text = config.train.metrics if metrics is None else metrics
    named = _named(config, surrogate, text, cases[0].strided(strides[0])) if "u" in tests else []
    size = subset_size(surrogate, config.train.points)
    judge = _Judge(config, surrogate, how, nulls, strides, stride is not None, named, size)
    table = [judge.errors(cases[i], name, cases.label(i)) for i, name in enumerate(case_names(tests, count))]
    found = {str(metric.word): metric.overall([row.metrics for row in table]) for metric in named}
    subsets = size if size is not None and size < max(row.points for row in table) else None
    return replace(_summary(config, data, epoch, tests, strides, table), metrics=found, subsets=subsets)


def case_names(cases: Dataset, count: int) -> list[str]:
    """The files that the cases came from, where the data set knows them, else their numbers."""
    named = cases.schema.provenance.get("cases", {})
    files = list(named.get(cases.split, [])) if isinstance(named, Mapping) else []
    return [str(files[i]) if i < len(files) else f"case {i}" for i in range(count)]


def training_cases(config: RunConfig, stride: int) -> Selection:
    """All training cases of a run, validation included."""
    data = Dataset(Path(config.data.path), "train")
    return Selection(data, range(min(config.data.samples or len(data), len(data))), stride)


def truth(how: Protocol, case: PointSet) -> np.ndarray:
    """The part of a case's target that is predicted."""
    assert case.u is not None
    return case.u[how.history :] if case.times is not None else case.u


@dataclass(frozen=True)
class _Judge:
    """Takes one case at a time, so that only one case's predictions are in memory."""

    config: RunConfig
    surrogate: Surrogate
    how: Protocol
    nulls: NullBaselines | None
    strides: tuple[int, ...]
    samplings: bool
    named: Sequence[Metric]
    subsets: int | None

    def errors(self, whole: PointSet, name: str, label: str) -> CaseErrors:
        whole.check_finite(label)
        case = whole.strided(self.strides[0])
        prediction = self._predict(case)
        strides = dict(self._samplings(whole, case, prediction)) if self.samplings else {}
        if case.u is None:
            return CaseErrors(name, len(case), strides=strides)
        u = truth(self.how, case)
        answers = self.nulls.predictions(case) if self.nulls else {}
        names = target_names(self.config, u.shape[-1])
        metrics = field_metrics(prediction, u, case.u_mask)
        answer = Answer(case, prediction, u, names, self.surrogate.normaliser.u_scale.numpy())
        return CaseErrors(
            name,
            len(case),
            relative_l2(prediction, u, case.u_mask),
            {n: {k: float(v[i]) for k, v in metrics.items()} for i, n in enumerate(names)},
            {k: _by_field(names, v, u, case.u_mask) for k, v in answers.items()},
            strides,
            {key: value for metric in self.named for key, value in metric.of_case(answer).items()},
        )

    def _samplings(
        self, whole: PointSet, case: PointSet, prediction: np.ndarray
    ) -> Iterator[tuple[int, tuple[int, float, float]]]:
        """The errors at every stride, and the distance to the prediction at the sampling of the training."""
        own, first = self.config.data.stride, self.strides[0]
        full = prediction if own == first else self._predict(whole.strided(own))
        for stride in self.strides:
            part = case if stride == first else whole.strided(stride)
            again = prediction if stride == first else self._predict(part)
            error = math.nan if part.u is None else relative_l2(again, truth(self.how, part), part.u_mask)
            shared = math.lcm(stride, own)
            ours = again[..., _every(part, shared // stride), :]
            theirs = full[..., _every(whole.strided(own), shared // own), :]
            yield stride, (len(part), error, relative_l2(ours, theirs))

    def _predict(self, case: PointSet) -> np.ndarray:
        if self.subsets is None or self.subsets >= len(case):
            return self.surrogate.predict(case)
        return predict_by_subsets(self.surrogate, case, self.subsets)


def parse_strides(text: str | None) -> tuple[int, ...] | None:
    """`1,2,4` as typed on the command line."""
    if not text:
        return None
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise LrsaError(
            f'--stride takes whole numbers separated by commas, such as 1,2,4, not "{text}"'
        ) from None


def target_names(config: RunConfig, channels: int) -> list[str]:
    """What the predicted fields are called."""
    return labels(config.schema.names.targets, channels)


def _named(config: RunConfig, surrogate: Surrogate, text: str, case: PointSet) -> list[Metric]:
    targets = target_names(config, surrogate.normaliser.u_scale.shape[-1])
    return metrics_of(text, targets, case, quantities_of(config.schema.name))


def _summary(
    config: RunConfig,
    data: str | None,
    epoch: Epoch,
    tests: Dataset,
    strides: tuple[int, ...],
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


def _sampling(stride: int, table: Sequence[CaseErrors]) -> Sampling:
    points, errors, distances = zip(*(row.strides[stride] for row in table), strict=True)
    return Sampling(stride, point_range(points), mean_of(errors), mean_of(distances))


def _strides(config: RunConfig, stride: int | Sequence[int] | None) -> tuple[int, ...]:
    chosen = (
        (config.data.stride,) if stride is None else (stride,) if isinstance(stride, int) else tuple(stride)
    )
    for value in chosen:
        if value < 1:
            raise LrsaError(f"a stride is 1 or more (every point, every second point, ...), not {value}")
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


def _nulls(config: RunConfig, how: Protocol, tests: Selection) -> NullBaselines:
    train = training_cases(config, tests.stride)
    return NullBaselines(train, how, fixed=corresponding(chain(train, tests)))


def _by_field(
    names: Sequence[str], prediction: np.ndarray, u: np.ndarray, known: np.ndarray | None
) -> dict[str, float]:
    each = field_metrics(prediction, u, known)["relative_l2"]
    return {"": relative_l2(prediction, u, known), **{n: float(each[i]) for i, n in enumerate(names)}}


def _every(case: PointSet, stride: int) -> np.ndarray:
    """The positions of every `stride`-th point of a case in its own list."""
    shape = case.grid or (len(case),)
    return np.arange(len(case)).reshape(shape)[(slice(None, None, stride),) * len(shape)].ravel()
