"""Which cases are the test: by path, by a column, by groups; few cases by cross-validation."""

import json
from pathlib import Path

import numpy as np
import pytest
from small import OPTIONS, WORDS, grid_cases, refusal, say, write

import lrsa
from lrsa.data.store import Dataset, splits_of
from lrsa.errors import LrsaError
from lrsa.evaluation.folds import begin_folds, run_folds
from lrsa.mesh.arrays import write_npz
from lrsa.mesh.importing import Problems, import_meshes, propose

pytest_plugins = ["small_runs"]


@pytest.fixture
def clouds(tmp_path: Path) -> Path:
    """Twelve clouds in two folders, and a table with their family, a split and a parameter."""
    folder = tmp_path / "clouds"
    rows = ["case,family,split,speed"]
    for i in range(12):
        rng = np.random.default_rng(i)
        where = folder / ("a" if i < 8 else "b")
        where.mkdir(parents=True, exist_ok=True)
        x = rng.random((9, 2))
        write_npz(
            where / f"case_{i}.npz", {"x": x, "p": x.sum(1), "still": np.ones(9), "mach": np.full(9, i / 2)}
        )
        rows.append(f"case_{i},{'suv' if i % 3 else 'van'},{'test' if i in (2, 5) else 'train'},{i}.5")
    (tmp_path / "cases.csv").write_text("\n".join(rows))
    return folder


def held_out(clouds: Path, split: str, table: bool = True) -> list[str]:
    """The test cases of an import with this --split."""
    out = clouds.parent / "out.h5"
    given = clouds.parent / "cases.csv" if table else None
    import_meshes(clouds, out, [], ["p"], given, workers=1, split=split)
    stored = Dataset(out, "train").schema.provenance["cases"]
    assert sorted([*stored["train"], *stored["test"]]) == sorted(f"case_{i}" for i in range(12))
    return sorted(stored["test"])


def test_files_are_split_by_their_paths(clouds: Path):
    (clouds.parent / "cases.csv").write_text("case,speed\n" + "\n".join(f"case_{i},{i}" for i in range(12)))
    assert held_out(clouds, "train=a/*,test=b/*") == ["case_10", "case_11", "case_8", "case_9"]
    assert held_out(clouds, "test=a/case_[01].npz", table=False) == ["case_0", "case_1"]


def test_a_column_of_the_table_splits_and_is_no_parameter(clouds: Path):
    with pytest.raises(LrsaError, match="has words in column"):
        held_out(clouds, "column=split")  # the family is still there
    table = clouds.parent / "cases.csv"
    rows = [line.split(",") for line in table.read_text().splitlines()]
    table.write_text("\n".join(f"{case},{split},{speed}" for case, _, split, speed in rows))
    assert held_out(clouds, "column=split") == ["case_2", "case_5"]
    assert Dataset(clouds.parent / "out.h5", "train").schema.names.globals == ("speed",)


def test_no_group_is_on_both_sides(clouds: Path):
    table = clouds.parent / "cases.csv"
    rows = [line.split(",") for line in table.read_text().splitlines()]
    table.write_text("\n".join(f"{case},{family}" for case, family, _, _ in rows))
    tests = held_out(clouds, "group=family")
    vans = sorted(f"case_{i}" for i in range(0, 12, 3))
    assert tests in (vans, sorted(f"case_{i}" for i in range(12) if i % 3))
    assert held_out(clouds, "group=folder", table=False) in (
        sorted(f"case_{i}" for i in range(8)),
        sorted(f"case_{i}" for i in range(8, 12)),
    )


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ("test", "not understood"),
        ("train=a/*,group=family", "do not go together"),
        ("train=a/*,test=c/*", "matches neither"),
        ("train=*,test=b/*", "matches both"),
        ("column=splits", "Did you mean split"),
        ("column=speed", "should say train or test"),
        ("test=*", "no case for training"),
    ],
)
def test_a_split_that_cannot_be_made_says_why(clouds: Path, split: str, said: str):
    table = clouds.parent / "cases.csv"
    rows = [line.split(",") for line in table.read_text().splitlines()]
    table.write_text("\n".join(f"{case},{split},{speed}" for case, _, split, speed in rows))
    with pytest.raises(LrsaError, match=said):
        held_out(clouds, split)


def test_what_is_wrong_with_all_files_alike_is_one_line_with_a_count(clouds: Path):
    with pytest.raises(Problems) as caught:
        import_meshes(clouds, clouds.parent / "out.h5", [], ["q"], workers=1)
    (line,) = caught.value.lines
    assert 'no array "q"' in line
    assert line.endswith("(the same in 11 other cases)")


def test_constant_arrays_are_named_and_inputs_are_proposed_by_how_they_vary(clouds: Path):
    made = import_meshes(clouds, clouds.parent / "out.h5", ["still"], ["p"], workers=1)
    assert any("still is 1 at all points of all cases" in note for note in made.notes)
    proposal = propose(clouds, workers=1)
    assert "still: point array, 1 component, 1 to 1, the same in all cases" in proposal
    assert "--inputs mach --targets p" in proposal


def test_one_number_in_all_cases_is_no_input_whatever_their_points(tmp_path: Path):
    for i in range(3):
        x = np.random.default_rng(i).random((9 + i, 2))
        fields = {"p": x.sum(1), "rho": np.full(9 + i, 1.2), "mach": np.full(9 + i, i / 2)}
        write_npz(tmp_path / f"case_{i}.npz", {"x": x, **fields})
    proposal = propose(tmp_path, workers=1)
    assert "rho: point array, 1 component, 1.2 to 1.2, the same in all cases" in proposal
    assert proposal.endswith("--inputs mach --targets p")


@pytest.mark.parametrize(
    ("column", "said"), [("family", " --split group=family"), ("split", " --split column=split"), ("", "")]
)
def test_a_table_with_a_row_for_every_case_is_proposed_and_so_is_what_its_words_say(
    clouds: Path, column: str, said: str
):
    rows = [line.split(",") for line in (clouds.parent / "cases.csv").read_text().splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if name in ("case", "speed", column)]
    (clouds / "cases.csv").write_text("\n".join(",".join(row[i] for i in kept) for row in rows))
    proposal = propose(clouds, workers=1)
    assert proposal.endswith(f"--globals {clouds / 'cases.csv'}{said}")


@pytest.mark.usefixtures("home")
def test_training_on_a_folder_proposes_the_import(clouds: Path, capsys: pytest.CaptureFixture[str]):
    said = refusal(capsys, "train", clouds)
    assert f"lrsa data import {clouds} --out my.h5 --inputs mach --targets p" in said


def test_every_case_is_once_a_test_case_and_the_final_run_learns_from_all(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    data = write(home / "few.h5", grid_cases(5), grid_cases(2, seed=1))
    said = say(capsys, "train", data, "--folds", 3, "--out", "run", "--train.epochs", 1, *WORDS)
    assert "| mean | 7 |" in said
    assert "null baseline" in Path("run/folds.md").read_text().splitlines()[-1]
    found = json.loads(Path("run/folds.json").read_text())["folds"]
    assert sorted(fold["cases"] for fold in found) == [2, 2, 3]
    seen = [len(Dataset(Path(f"run/folds/fold-{i}.h5"), "train")) for i in range(3)]
    assert [a + fold["cases"] for a, fold in zip(seen, found, strict=True)] == [7, 7, 7]
    assert splits_of(Path("run/folds/all.h5")) == ["train"]
    assert lrsa.load("run").predict(grid_cases(1)[0]).shape == (64, 1)
    assert "folds.md" in refusal(capsys, "evaluate", "run")


def test_a_killed_cross_validation_goes_on(home: Path, monkeypatch: pytest.MonkeyPatch):
    data = write(home / "few.h5", grid_cases(6))
    asked = {"options": OPTIONS, "train": {"epochs": 1}}
    run = begin_folds(str(data), "lrsa", 2, Path("killed"), asked)

    def stop(folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lrsa.evaluation.folds.train_run", stop)
        with pytest.raises(KeyboardInterrupt):
            run_folds(run)
    run_folds(run)
    assert (run / "folds.md").exists()
    assert (run / "last.safetensors").exists()
    for wrong in (1, 7):
        with pytest.raises(LrsaError, match="--folds must be"):
            begin_folds(str(data), "lrsa", wrong, Path("other"), asked)
