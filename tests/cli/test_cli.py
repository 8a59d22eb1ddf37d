"""The program `lrsa`: every command works, explains itself, and says so by its exit code."""

import html
import inspect
import json
import os
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from small import WORDS, copy_run, files, grid_cases, quick, refusal, say, write

import lrsa
from lrsa.cli.parsing import argument_helps
from lrsa.cli.program import COMMANDS, Command, main
from lrsa.cli.train import model_name
from lrsa.models.registry import model_options
from lrsa.problems.catalogue import open_dataset
from lrsa.report.printing import number
from lrsa.training.config import RunConfig, TrainConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def words_of(text: str) -> str:
    """Help without its frames and line breaks."""
    return " ".join(re.sub(r"[│╭╮╰╯─]|\x1b\[[0-9;]*m", " ", text).split())


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    said = say(capsys, *words)
    for name in COMMANDS:
        assert f"  lrsa {name} " in said, name
    assert len(re.findall(r"^  lrsa ", said, re.MULTILINE)) == len(COMMANDS)
    assert say(capsys, "--version") == f"{lrsa.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_each_of_its_options(capsys: pytest.CaptureFixture[str], name: str) -> None:
    said = words_of(say(capsys, *name.split(), "--help"))
    command = COMMANDS[name].run
    assert (inspect.getdoc(command) or "").splitlines()[0].split(":")[0] in said
    helps = argument_helps(command)
    for key, parameter in inspect.signature(command).parameters.items():
        if parameter.annotation is dict or key in ("model", "train", "chosen"):
            continue
        placed = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        place = key.upper() if parameter.default is inspect.Parameter.empty else f"[{key.upper()}]"
        assert (f" {place} " if placed else f"--{key.replace('_', '-')} ") in said.replace(",", " "), key
        assert helps[key], key
        assert helps[key] in said, key


@pytest.mark.parametrize("model", ["lrsa", "transolver"])
def test_training_explains_the_options_of_the_model(capsys: pytest.CaptureFixture[str], model: str) -> None:
    said = words_of(say(capsys, "train", "--model", model, "--help"))
    for name, parameter in model_options(model).items():
        option = name.replace("_", "-")
        assert re.search(rf"--model\.{option}[ ,]", said), option
        if parameter.default is not None:
            assert f"(default: {parameter.default})" in said
    for name in inspect.signature(TrainConfig).parameters:
        elsewhere = name in ("weights", "minutes", "quantities")
        assert elsewhere or re.search(rf"--train\.{name.replace('_', '-')}[ ,]", said), name
    assert f'the model "{model}"' in said
    assert "{None}" not in said
    assert "unset by default" not in said


def test_help_of_the_data_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["data"], ["data", "--help"], ["data", "-h"]):
        assert {f"lrsa {name}" for name in COMMANDS if name.startswith("data ")} == set(
            re.findall(r"lrsa data \w+", say(capsys, *words))
        )


def test_data_is_made_listed_and_shown(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert "darcy" in say(capsys, "data", "list")
    words = ["--fidelity", "fast", "--samples", "2", "--test", "1", "--workers", "1"]
    said = say(capsys, "data", "make", "darcy", *words)
    path = Path(next(line for line in said.splitlines() if line.endswith(".h5")))
    assert path.parent == home.parent / "home" / "data"
    assert (len(open_dataset(path)), len(open_dataset(path, "test"))) == (2, 1)
    assert "fast" in say(capsys, "data", "list")
    before = path.read_bytes()
    say(capsys, "data", "make", "darcy", *words)
    assert path.read_bytes() == before
    said = say(capsys, "data", "show", path, "--picture", "cases.png")
    assert "darcy (generated)" in said
    assert "2 train + 1 test" in said
    assert Path("cases.png").read_bytes().startswith(b"\x89PNG")


def test_units_are_shown(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = say(capsys, "data", "show", data, "--picture", "cases.png")
    assert "x [m]" in said
    assert "p [Pa]" in said


def test_official_files_are_imported_and_trained_on(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    solutions = rng.random((2, 4, 11, 11))
    for k, sol in enumerate(solutions, start=1):
        arrays = {"coeff": rng.choice([3.0, 12.0], (4, 11, 11)), "sol": sol}
        scipy.io.savemat(f"piececonst_r421_N1024_smooth{k}.mat", arrays)
    assert "darcy (official), 4 training and 4 test" in say(capsys, "data", "import", ".", "--out", "d.h5")
    say(capsys, "data", "import", ".", "--out", "fine.h5", "--stride", 2)
    assert open_dataset("d.h5").grid == (3, 3)
    assert open_dataset("fine.h5").grid == (6, 6)
    assert "darcy (official)" in say(capsys, "data", "show", "d.h5", "--picture", "d.png")
    surrogate, fields = quick(Path("d.h5"), "run"), solutions[:, :, ::5, ::5].reshape(2, 4, 9, 1)
    assert "4 test cases of 9 points" in say(capsys, "evaluate", "run")
    assert surrogate.schema.source == "official"
    for split, ours in zip(("train", "test"), fields, strict=True):
        for case, u in zip(open_dataset("d.h5", split), ours, strict=True):
            np.testing.assert_allclose(case.u, u, rtol=1e-6)  # pyright: ignore[reportArgumentType, reportCallIssue]
            assert surrogate.predict(case.x, case.f).shape == u.shape


def test_a_run_folder_holds_what_is_promised(trained: Path) -> None:
    names = {str(path.relative_to(trained)) for path in trained.rglob("*") if path.is_file()}
    promised = {"config.json", "model.safetensors", "last.safetensors", "metrics.jsonl", "evaluation.json"}
    assert promised | {"report.html", "checkpoint/state.safetensors"} <= names
    assert not [name for name in names if name.endswith(".tmp")]
    for path in trained.rglob("*.safetensors"):
        assert path.stat().st_mode & 0o444 == 0o444 & ~_umask(), "others may read what they may read"


def _umask() -> int:
    probe = Path("probe")
    probe.touch()
    return 0o666 & ~probe.stat().st_mode


def test_resuming_a_finished_run_reports_it_again(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = copy_run(trained, Path("run"))
    before = json.loads((run / "evaluation.json").read_text())
    (run / "evaluation.json").unlink()
    assert "Trained 3 epochs" in say(capsys, "resume", run)
    assert json.loads((run / "evaluation.json").read_text()) == before
    assert (run / "report.html").exists()


def test_evaluation_prints_the_error_beside_the_null_baselines(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = json.loads((trained / "evaluation.json").read_text())
    said = say(capsys, "evaluate", trained)
    assert f"{kept['relative_l2']:.4f}" in said
    for name, value in kept["nulls"].items():
        assert name in said
        assert number(value) in said


def test_a_run_that_cannot_be_written_is_evaluated_and_not_reported(
    trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a colleague's; the user of the tests may be one who can write anything."""
    run, known = copy_run(trained, Path("run")), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != run and known(path, mode))
    before = files(run)
    said = say(capsys, "evaluate", run)
    assert said.startswith(say(capsys, "evaluate", trained).replace(str(trained), "run"))
    assert said.endswith("run cannot be written: these numbers are not kept in evaluation.json\n")
    line = refusal(capsys, "report", run)
    assert line == "lrsa: run cannot be written, and its report belongs there. Copy the run, and report that"
    assert files(run) == before


def test_evaluation_of_other_weights_data_and_samplings(
    trained: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = copy_run(trained, Path("run"))
    quick(data, "another", seed=1)
    shutil.copy("another/last.safetensors", trained)
    before = files(trained)
    said = {
        "best": say(capsys, "evaluate", trained),
        "last": say(capsys, "evaluate", trained, "--epoch", "last"),
        "stride": say(capsys, "evaluate", trained, "--stride", 2),
        "same": say(capsys, "evaluate", trained, "--data", data),
        "other": say(
            capsys, "evaluate", trained, "--data", write(Path("o.h5"), grid_cases(1), grid_cases(3, 5))
        ),
    }
    assert "2 test cases of 64 points" in said["best"]
    assert "2 test cases of 16 points" in said["stride"]
    assert "3 test cases of 64 points" in said["other"]
    tables = {key: value.partition("\n")[2] for key, value in said.items()}
    assert tables["same"] == tables["best"]
    assert len(set(tables.values())) == 4
    after = files(trained)
    assert {name: after[name] for name in before} == before
    kinds = ("last", "2", "o", data.stem)
    assert {name for name in after if name not in before} == {
        f"evaluation-{kind}.{suffix}" for kind in kinds for suffix in ("json", "csv")
    }


def test_predictions_into_npz(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = grid_cases(1, seed=4)[0]
    assert case.f is not None
    assert case.u is not None
    np.savez("in.npz", x=case.x, a=case.f[:, 0], p=case.u[:, 0], note=np.arange(3))
    assert "1 case predicted" in say(capsys, "predict", trained, "in.npz", "--out", "out.npz")
    with np.load("in.npz") as before, np.load("out.npz") as after:
        expected = lrsa.load(trained).predict(case.x, case.f)[:, 0]
        np.testing.assert_allclose(after["p_predicted"], expected, atol=1e-6)
        np.testing.assert_allclose(after["p_error"], expected - case.u[:, 0], atol=1e-6)
        for name in before.files:
            np.testing.assert_array_equal(before[name], after[name])


def test_inputs_are_found_by_name_as_f_or_as_told(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = grid_cases(1, seed=4)[0]
    assert case.f is not None
    made = []
    for arrays, words in (
        ({"a": case.f, "b": 0 * case.f}, []),
        ({"f": case.f}, []),
        ({"c": case.f}, []),
        ({"c": case.f, "b": 0 * case.f}, ["--inputs", "c"]),
    ):
        np.savez("in.npz", x=case.x, **arrays)  # pyright: ignore[reportArgumentType]
        say(capsys, "predict", trained, "in.npz", "--out", "out.npz", *words)
        with np.load("out.npz") as after:
            made.append(after["p_predicted"])
    for other in made[1:]:
        np.testing.assert_array_equal(other, made[0])


def test_predictions_into_a_data_set(trained: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "12 cases predicted" in say(capsys, "predict", trained, data, "--out", "out.h5")
    made = open_dataset("out.h5", "test")
    assert made.schema.source == "predicted"
    assert made.schema.names.targets == ("p_predicted",)
    surrogate = lrsa.load(trained)
    for ours, theirs in zip(made, open_dataset(data, "test"), strict=True):
        assert ours.u is not None
        np.testing.assert_allclose(ours.u, surrogate.predict(theirs.x, theirs.f), atol=1e-6)


def test_cases_without_targets_and_of_one_split_are_predicted(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lrsa.write_dataset("in.h5", {"test": [replace(case, u=None) for case in grid_cases(3)]})
    assert "3 cases predicted" in say(capsys, "predict", trained, "in.h5", "--out", "out.h5")
    assert len(open_dataset("out.h5", "test")) == 3


def test_a_report_can_be_written_again(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = copy_run(trained, Path("run"))
    assert "report: run/report.html" in say(capsys, "report", run)
    page, kept = (run / "report.html").read_text(), json.loads((run / "evaluation.json").read_text())
    assert "data:image/png;base64," in page
    for value in (kept["relative_l2"], *kept["nulls"].values()):
        assert number(value) in page


def test_the_model_may_be_named_anywhere(data: Path) -> None:
    small = ["--model.width", "8", "--model.heads", "2", "--model.depth", "1", "--train.epochs", "1"]
    for i, words in enumerate(
        (["--model", "flare", str(data), *small], [str(data), *small, "--model=flare"])
    ):
        model, rest = model_name(words)
        assert model == "flare", i
        assert rest == [str(data), *small]


def test_debug_shows_where(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(lrsa.LrsaError):
        main(["evaluate", "nowhere", "--debug"])
    assert main(["evaluate", "nowhere"]) == 2


def test_a_failure_of_ours_is_one_line_and_exit_code_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        """Break."""
        raise ValueError("two\nlines")

    monkeypatch.setitem(COMMANDS, "broken", Command("", "breaks", broken))
    assert main(["broken"]) == 1
    assert capsys.readouterr().err == "lrsa: ValueError: two lines. This is a bug; --debug shows where\n"


def test_the_command_is_kept_as_typed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["train", str(data), "--out", "my run", "--train.epochs", "1", *WORDS]
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/lrsa", *words])
    assert main() == 0
    command = RunConfig.load(Path("my run")).command
    assert "--out 'my run'" in command
    assert shlex.split(command) == ["lrsa", *words]
    assert command in html.unescape(Path("my run/report.html").read_text())


def test_of_a_run_from_python_no_command_is_made_up(data: Path) -> None:
    quick(data, "run", epochs=1)
    assert RunConfig.load(Path("run")).command == "lrsa.fit"
