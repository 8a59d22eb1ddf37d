"""Training on moved cases: reproducible, resumable, and never at validation."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import assert_bit_equal, differ, frames, grid_cases, quick, ragged_cases, refusal, weights, write

import lrsa
from lrsa.pointset import PointSet
from lrsa.training.config import RunConfig
from lrsa.training.fit import prepare, train_run, trainer_of
from lrsa.training.loop import Trainer

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
SIZES = {"width": 16, "depth": 1, "heads": 2, "rank": 8}
GRAPH = {"width": 8, "depth": 1}


def trainer(data: Path, **settings: Any) -> Trainer:
    run = prepare(
        str(data), "lrsa", out=Path("seen"), options=SIZES, train={"symmetry": "square", **settings}
    )
    return trainer_of(run, RunConfig.load(run))


def test_a_stopped_training_with_symmetries_ends_with_the_same_bits(data: Path) -> None:
    settings = {"epochs": 3, "symmetry": "square", "validation": 0.2}
    quick(data, "whole", **settings)
    quick(data, "plain", **{**settings, "symmetry": ""})
    options = {**SIZES, "local": "pointwise"}
    run = prepare(str(data), "lrsa", out=Path("stopped"), options=options, train=settings)
    stopping = trainer_of(run, RunConfig.load(run))

    def stop(step: int, *_: object) -> None:
        if step == stopping.steps + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopping.train(stop)
    train_run(run)
    assert_bit_equal(weights(run), weights(Path("whole")))
    assert differ(weights(run, "last"), weights(Path("plain"), "last"))


def test_a_draw_depends_on_the_epoch_and_the_case_and_not_on_the_order(data: Path) -> None:
    seen = trainer(data)
    keys = seen.keys
    there, back = seen.batch(keys), seen.batch(keys[::-1])
    assert there.f is not None
    assert back.f is not None
    assert torch.equal(there.f, back.f.flip(0))
    seen.progress.epoch = 1
    later = seen.batch(keys).f
    assert later is not None
    same = [torch.equal(a, b) for a, b in zip(there.f, later, strict=True)]
    assert not all(same)
    plain = seen.collate([seen.cases[i] for i, _ in keys]).f
    assert plain is not None
    assert torch.equal(plain.sort(dim=1).values, later.sort(dim=1).values)
    assert not torch.equal(plain, later)


def test_validation_cases_stay(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = trainer(data, epochs=1, validation=0.3)
    shown: list[np.ndarray] = []
    collate: Callable[..., Any] = seen.collate

    def watch(cases: list[PointSet]) -> Any:
        shown.extend(np.asarray(case.f) for case in cases)
        return collate(cases)

    monkeypatch.setattr(seen, "collate", watch)
    seen.train(lambda *_: None)
    kept = shown[len(seen.keys) :]
    assert len(kept) == len(seen.validation) == 3
    for ours, case in zip(kept, seen.validation, strict=True):
        np.testing.assert_array_equal(ours, case.f)


@pytest.mark.parametrize("protocol", ["autoregressive", "time-conditioned"])
def test_one_element_moves_all_frames_of_an_example(home: Path, protocol: str) -> None:
    """Every frame is a multiple of the first, and so after any one move."""
    data = write(home / "frames.h5", [frames(case, 12) for case in grid_cases(4)], protocol=protocol)
    seen = trainer(data, validation=0.0)
    batch = seen.batch(seen.keys)
    assert batch.u is not None
    assert batch.f is not None
    if protocol == "autoregressive":
        torch.testing.assert_close(batch.u[:, -1], batch.u[:, 0] / np.e)
    plain = seen.collate([seen.protocol.example(seen.cases[i], k) for i, k in seen.keys])
    assert plain.u is not None
    assert plain.f is not None
    for ours, theirs, f, g in zip(batch.u, plain.u, batch.f, plain.f, strict=True):
        assert torch.equal(ours, theirs) == torch.equal(f, g)
    assert not torch.equal(batch.u, plain.u)


def test_mirrored_clouds_are_trained_on(home: Path) -> None:
    data = write(home / "cloud.h5", ragged_cases(6))
    quick(data, "run", symmetry="mirror-x,mirror-y@0.5")
    assert RunConfig.load(Path("run")).train.symmetry == "mirror-x,mirror-y@0.5"


def test_a_mirrored_cloud_has_the_same_graph(home: Path) -> None:
    """Edges are found anew for the moved points, and a mirror keeps distances."""
    data = write(home / "cloud.h5", ragged_cases(6))
    run = lrsa.fit(data, "mesh-graph-net", out="run", epochs=1, symmetry="mirror-x@0", options=GRAPH)
    case = lrsa.open_dataset(str(data), "train")[0]
    mirrored = replace(case, x=case.x * np.array([-1, 1], np.float32))
    ours, theirs = (run.collate([c]).context.edges for c in (case, mirrored))
    assert ours is not None
    assert theirs is not None
    assert set(map(tuple, ours.T.tolist())) == set(map(tuple, theirs.T.tolist()))


def test_an_unknown_symmetry_is_refused_before_there_is_a_run(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = refusal(capsys, "train", data, "--out", "run", "--train.symmetry", "squar")
    assert 'no symmetry "squar". Did you mean square?' in words
    assert not Path("run").exists()
