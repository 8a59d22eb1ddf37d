"""The table of runs: what each is, what is wrong with it, and how far a training has come."""

import json
import threading
from pathlib import Path

import pytest
from small import OPTIONS

import lrsa
from lrsa.files import alone, is_made_now
from lrsa.studio.curves import loss_chart
from lrsa.studio.runs import Run, Runs
from lrsa.training.config import RunConfig
from lrsa.training.curve import read_curve
from lrsa.training.fit import prepare, trainer_of

pytest_plugins = ["studio_runs"]


def named(folder: Path) -> dict[str, Run]:
    return {run.name: run for run in Runs(folder).table()}


def test_a_finished_run_stands_beside_its_null_baselines(runs: Path):
    (run,) = named(runs).values()
    told = json.loads((runs / "flow" / "evaluation.json").read_text())
    assert (run.name, run.state, run.model, run.usable) == ("flow", "done", "lrsa", True)
    assert run.error == told["relative_l2"]
    assert run.nulls == told["nulls"]
    assert set(run.nulls) >= {"mean field", "nearest case", "linear regression"}
    surrogate = lrsa.load(runs / "flow")
    assert run.parameters == sum(p.numel() for p in surrogate.model.parameters())
    assert run.seconds > 0


def test_a_broken_run_and_one_of_another_version_say_why(own: Path):
    config = own / "flow" / "config.json"
    older = own / "older"
    older.mkdir()
    (older / "config.json").write_text(json.dumps({**json.loads(config.read_text()), "format": 99}))
    (own / "lost").mkdir()
    (own / "lost" / "metrics.jsonl").write_text("")
    config.write_text(config.read_text()[:100])
    found = named(own)
    assert {name: run.state for name, run in found.items()} == dict.fromkeys(
        ("flow", "lost", "older"), "broken"
    )
    assert "damaged" in found["flow"].reason
    assert "no config.json" in found["lost"].reason
    assert "format 99" in found["older"].reason


def test_a_run_with_damaged_weights_says_so_before_it_is_opened(own: Path):
    weights = own / "flow" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    found = named(own)["flow"]
    assert (found.state, found.usable) == ("broken", False)
    assert "model.safetensors is damaged" in found.reason


def test_a_training_advances_and_says_what_is_left(runs: Path, tmp_path: Path):
    data = str(runs / "cylinder.h5")
    run = prepare(data, "lrsa", out=tmp_path / "now", options=OPTIONS, train={"epochs": 3})
    table = Runs(tmp_path)
    (before,) = table.table()
    assert (before.state, before.epoch, before.usable) == ("stopped", 0, False)
    trainer = trainer_of(run, RunConfig.load(run))
    seen: list[Run] = []

    def report(done: int, total: int, words: str) -> None:
        # Asked from another thread, as by another process: this one holds the lock.
        asking = threading.Thread(target=lambda: seen.extend(table.table()))
        asking.start()
        asking.join()

    with alone(run.resolve()):
        trainer.train(report)
    assert {row.state for row in seen} == {"training"}
    assert [row.epoch for row in seen] == sorted(row.epoch for row in seen)
    assert seen[-1].epoch == 2
    # Of the second of three epochs at the most all has passed, and the third is still to come.
    assert all(row.left > 0 for row in seen if row.epoch == 1)
    (after,) = table.table()
    assert (after.state, after.epoch, after.usable) == ("done", 3, True)
    assert len(read_curve(run)) == 3


def test_what_a_killed_process_left_is_no_training(tmp_path: Path):
    run = tmp_path / "run"
    (tmp_path / ".run.lock").touch()
    assert not is_made_now(run)
    assert not (tmp_path / ".run.lock").exists()


def test_a_single_run_may_be_named(runs: Path):
    (run,) = Runs(runs / "flow").table()
    assert run.name == "flow"


def test_a_half_written_line_does_not_count(tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1, "loss": 0.5, "validation": 0.6}\n{"epoch": 2, "lo')
    assert read_curve(tmp_path) == [{"epoch": 1.0, "loss": 0.5, "validation": 0.6}]


@pytest.mark.parametrize("name", ["flow", "a <b> & $c$", 'with "quotes"'])
def test_a_chart_takes_any_name(name: str):
    from xml.etree import ElementTree

    curve = [{"epoch": float(i), "loss": 1 / i, "validation": 2 / i} for i in range(1, 4)]
    drawn = ElementTree.fromstring(loss_chart({name: curve, "other": curve[:1]}))
    words = [text for element in drawn.iter() for text in (element.text or "",)]
    assert name in words
