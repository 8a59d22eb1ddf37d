"""How good a trained surrogate is: per case, per field, beside the null baselines."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from lrsa.data.batch import collate
from lrsa.data.pointset import PointSet
from lrsa.data.store import Dataset, Selection, atomic
from lrsa.errors import LrsaError
from lrsa.evaluation.metrics import field_metrics, relative_l2
from lrsa.evaluation.null import NullBaselines
from lrsa.training.config import RunConfig
from lrsa.training.protocols import Protocol, protocol
from lrsa.training.surrogate import Surrogate, load


@dataclass(frozen=True)
class Evaluation:
    """The errors of one surrogate on one set of cases."""

    data: str
    source: str
    cases: int
    points: str
    weights: str
    relative_l2: float
    """Mean over cases."""
    nulls: dict[str, float]
    """The same for each null baseline."""
    per_case: list[float]
    fields: dict[str, dict[str, float]]
    """field -> metric -> mean over cases."""

    def save(self, path: Path) -> None:
        with atomic(path) as temporary:
            temporary.write_text(json.dumps(asdict(self), indent=1))


def evaluate(
    run: Path, data: str | None = None, stride: int | None = None, weights: str = "best"
) -> Evaluation:
    """Evaluate a run on the test cases of its data, or of other data of the same kind."""
    config = RunConfig.load(run)
    surrogate = load(run, weights)
    how = protocol(config.schema.protocol)
    stride = config.data.stride if stride is None else stride
    train = training_cases(config, stride)
    path = Path(data) if data else Path(config.data.path)
    tests = Dataset(path, "test")
    if tests.schema.names.targets != config.schema.names.targets:
        ours, theirs = (", ".join(n.targets) or "none" for n in (config.schema.names, tests.schema.names))
        raise LrsaError(f"{run} predicts {ours}, but {path} has the targets {theirs}")
    count = len(tests) if data or config.data.test is None else config.data.test
    cases = Selection(tests, range(min(count, len(tests))), stride)
    for i, case in enumerate(cases):
        case.check_finite(cases.label(i))
    predictions = [predict_case(surrogate, how, case, config.train.weights) for case in cases]
    errors = [relative_l2(p, truth(how, c), c.u_mask) for p, c in zip(predictions, cases, strict=True)]
    sizes = {len(case) for part in (train, cases) for case in part}
    nulls = NullBaselines(train, how, fixed=len(sizes) == 1).errors(cases)
    sizes = sorted({len(case) for case in cases})
    return Evaluation(
        data=str(data or config.schema.name),
        source=tests.schema.source,
        cases=len(cases),
        points=str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}",
        weights=weights,
        relative_l2=float(np.mean(errors)),
        nulls={name: float(values.mean()) for name, values in nulls.items()},
        per_case=errors,
        fields=_by_field(config.schema.names.targets, predictions, cases, how),
    )


def training_cases(config: RunConfig, stride: int) -> Selection:
    """All training cases of a run, validation included."""
    data = Dataset(Path(config.data.path), "train")
    return Selection(data, range(min(config.data.samples or len(data), len(data))), stride)


def truth(how: Protocol, case: PointSet) -> np.ndarray:
    """The part of a case's target that is predicted."""
    assert case.u is not None
    return case.u[how.history :] if case.times is not None else case.u


@torch.inference_mode()
def predict_case(surrogate: Surrogate, how: Protocol, case: PointSet, weights: bool) -> np.ndarray:
    """The prediction for one case, in the shape of its target."""
    device = surrogate.normaliser.x_shift.device
    batch = collate([case], weights).to(device)
    return how.predict(surrogate.apply_streamed, batch)[0].cpu().numpy()


def _by_field(
    names: Sequence[str], predictions: Sequence[np.ndarray], cases: Sequence[PointSet], how: Protocol
) -> dict[str, dict[str, float]]:
    rows = [field_metrics(p, truth(how, c), c.u_mask) for p, c in zip(predictions, cases, strict=True)]
    labels = names or [f"u{i}" for i in range(predictions[0].shape[-1])]
    return {
        label: {metric: float(np.nanmean([row[metric][i] for row in rows])) for metric in rows[0]}
        for i, label in enumerate(labels)
    }
