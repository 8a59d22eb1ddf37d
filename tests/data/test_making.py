"""Making data: the same arrays whatever the workers, the extensions and the interruptions."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from cases import NAMES, assert_equal, make_case
from threadpoolctl import threadpool_info, threadpool_limits

from lrsa.data.making import CaseBlock, case_rng
from lrsa.data.store import Dataset, Schema
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.pointset import Names, PointSet
from lrsa.problems.catalogue import CATALOGUE, get
from lrsa.problems.making import make_dataset
from lrsa.problems.problem import Problem

DARCY = get("darcy")
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 training and 3 test cases, made in one go by one worker."""
    return make_dataset(DARCY, 12, 3, "fast", 0, 1, tmp_path_factory.mktemp("whole") / "darcy.h5")


def assert_same_file(actual: Path, expected: Path) -> None:
    assert actual.read_bytes() == expected.read_bytes()


def test_a_case_is_the_solver_at_its_own_seed(whole: Path) -> None:
    solver = DARCY.solver_at("fast")
    for split, index in (("train", 0), ("train", 11), ("test", 2)):
        case = solver.sample(case_rng("darcy", DARCY.version, 0, split, index))
        assert_equal(Dataset(whole, split)[index], case)
    schema = Dataset(whole, "train").schema
    assert schema == DARCY.schema("fast", 0)
    assert schema.provenance["parameters"]["resolution"] == 85


def test_two_workers_or_an_extension_make_the_same_file_bit_for_bit(whole: Path, tmp_path: Path) -> None:
    """First 5 cases by two workers, then 12; the test cases are there from the beginning, and stay."""
    out = tmp_path / "darcy.h5"
    assert make_dataset(DARCY, 5, 3, "fast", 0, 2, out) == out
    assert [len(Dataset(out, split)) for split in ("train", "test")] == [5, 3]
    for i in range(3):
        assert_equal(Dataset(out, "test")[i], Dataset(whole, "test")[i])
    make_dataset(DARCY, 12, 3, "fast", 0, 2, out)
    assert_same_file(out, whole)
    assert os.listdir(tmp_path) == ["darcy.h5"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "darcy"])
def test_every_benchmark_is_the_same_by_one_worker_or_two(name: str, tmp_path: Path) -> None:
    """Nothing that a solver keeps from one case to the next changes the next."""
    samples = 9 if get(name).seconds.get("fast", 0) < 10 else 2
    one, two = (make_dataset(get(name), samples, 1, "fast", 0, w, tmp_path / f"{w}.h5") for w in (1, 2))
    assert_same_file(two, one)
    last = samples - 1
    case = get(name).solver_at("fast").sample(case_rng(name, get(name).version, 0, "train", last))
    assert_equal(Dataset(one, "train")[last], case)


@pytest.mark.parametrize(
    ("seconds", "steps"), [({}, [0, 8, 9, 10]), ({"fast": 30.0}, [0, 2, 4, 6, 8, 9, 10])]
)
def test_cases_that_take_long_are_kept_in_smaller_blocks(
    seconds: dict[str, float], steps: list[int], whole: Path, tmp_path: Path
) -> None:
    seen: list[int] = []
    slow = replace(DARCY, seconds=seconds)
    path = make_dataset(
        slow, 9, 1, "fast", 0, 1, tmp_path / "d.h5", progress=lambda done, total, words: seen.append(done)
    )
    assert seen == steps
    assert_equal(Dataset(path, "train")[8], Dataset(whole, "train")[8])


def test_a_set_that_is_there_is_not_made_again(whole: Path) -> None:
    before = whole.stat()

    def nothing(done: int, total: int, words: str) -> None:
        pytest.fail(f"{done} of {total}")

    for samples, test in ((12, 3), (4, 1), (12, 1)):
        assert make_dataset(DARCY, samples, test, "fast", 0, 1, whole, nothing) == whole
    assert whole.stat() == before


def test_a_set_that_names_another_place_of_its_generator_is_taken_and_extended(
    whole: Path, tmp_path: Path
) -> None:
    """Code moves; what decides the cases is the problem, its version, its parameters and the seed."""
    out, schema = tmp_path / "darcy.h5", DARCY.schema("fast", 0)
    moved = replace(schema, provenance={**schema.provenance, "generator": "lrsa.problems.darcy.solver:Darcy"})
    splits = {split: Dataset(whole, split) for split in ("train", "test")}
    write_dataset(out, {"train": [splits["train"][i] for i in range(5)], "test": splits["test"]}, moved)
    make_dataset(DARCY, 12, 3, "fast", 0, 1, out)
    assert_same_file(out, whole)


def test_progress_only_grows_and_reaches_the_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    make_dataset(DARCY, 9, 2, "fast", 0, 1, tmp_path / "a.h5", lambda *now: seen.append(now[:2]))
    done, totals = zip(*seen, strict=True)
    assert set(totals) == {11}
    assert done[0] == 0
    assert done[-1] == 11
    assert list(done) == sorted(set(done))


PROGRAM = """
import sys
from pathlib import Path
from lrsa.problems.catalogue import get
from lrsa.problems.making import make_dataset
if __name__ == "__main__":
    make_dataset(get("darcy"), 80, 3, "fast", 0, 2, Path(sys.argv[1]))
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def blocks(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npz"))


def killed_run(out: Path, program: Path, whole_group: bool) -> None:
    """Begin to make the set, and kill it some blocks later."""
    parts = out.with_name(out.name + ".parts")
    had = len(blocks(parts))
    process = subprocess.Popen(
        [sys.executable, str(program), str(out)], start_new_session=True, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: len(blocks(parts)) > had or process.poll() is not None)
    assert process.poll() is None, "it was done before it could be killed"
    workers = children(process.pid)
    assert workers
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(alive(pid) for pid in workers))
    assert not out.exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_killed_three_times_it_ends_with_the_same_file(tmp_path: Path) -> None:
    """Once only the parent is killed: its workers end by themselves. Blocks that are there stay."""
    program, out = tmp_path / "program.py", tmp_path / "killed" / "a.h5"
    program.write_text(PROGRAM)
    kept: dict[Path, int] = {}
    for whole_group in (True, False, True):
        killed_run(out, program, whole_group)
        now = {path: path.stat().st_mtime_ns for path in blocks(out.with_name("a.h5.parts"))}
        assert kept.items() <= now.items()
        kept = now
    seen: list[tuple[int, int]] = []
    make_dataset(DARCY, 80, 3, "fast", 0, 1, out, lambda done, total, words: seen.append((done, total)))
    assert seen[0][0] >= 3 * 8 - 5  # a block of the test split holds 3
    assert os.listdir(out.parent) == ["a.h5"]
    assert_same_file(out, make_dataset(DARCY, 80, 3, "fast", 0, 2, tmp_path / "one go" / "a.h5"))


def test_blocks_left_by_a_run_with_other_settings_are_not_taken(tmp_path: Path) -> None:
    """A run with seed 1 was interrupted; the next one to the same file has seed 0."""
    out = tmp_path / "a.h5"

    def stop(done: int, total: int, words: str) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_dataset(DARCY, 2, 1, "fast", 1, 1, out, stop)
    assert blocks(tmp_path / "a.h5.parts")
    make_dataset(DARCY, 2, 1, "fast", 0, 1, out)
    case = DARCY.solver_at("fast").sample(case_rng("darcy", DARCY.version, 0, "train", 0))
    assert_equal(Dataset(out, "train")[0], case)
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize(
    ("benchmark", "fidelity", "seed"),
    [(DARCY, "fast", 1), (DARCY, "default", 0), (replace(DARCY, version=DARCY.version + 1), "fast", 0)],
    ids=["seed", "fidelity", "version"],
)
def test_a_file_made_with_other_settings_is_refused(
    whole: Path, benchmark: Problem, fidelity: str, seed: int
) -> None:
    before = whole.read_bytes()
    with pytest.raises(LrsaError, match=f"{whole.name} was made with other settings"):
        make_dataset(benchmark, 20, 3, fidelity, seed, 1, whole)
    assert whole.read_bytes() == before


@dataclass(frozen=True)
class Annulus:
    """A solver with a parameter that JSON does not give back as it was."""

    names: ClassVar[Names] = NAMES
    radii: tuple[float, float] = (0.5, 1.0)

    def sample(self, rng: np.random.Generator) -> PointSet:
        return make_case(int(rng.integers(99)), 4)


def test_a_solver_with_tuples_for_parameters_finds_its_file_again(tmp_path: Path) -> None:
    benchmark = replace(DARCY, solver=Annulus, fidelities={"fast": {}})
    cases = [make_case(i, 4) for i in range(4)]
    write_dataset(tmp_path / "a.h5", {"train": cases, "test": cases}, benchmark.schema("fast", 0))
    assert make_dataset(benchmark, 4, 4, "fast", 0, 1, tmp_path / "a.h5").exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"samples": 0}, "at least one of each"),
        ({"test": 0}, "at least one of each"),
        ({"samples": 1, "seed": -1}, "seed -1"),
        ({"samples": 1, "workers": 0}, "0 workers"),
        ({"fidelity": "fats"}, "Did you mean fast"),
    ],
)
def test_senseless_settings_are_refused(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(LrsaError, match=words):
        make_dataset(DARCY, out=tmp_path / "a.h5", **settings)
    assert not list(tmp_path.iterdir())


def draws() -> Iterator[float]:
    for benchmark in ("darcy", "pipe"):
        for version in (1, 2):
            for seed in (0, 1, 2**40):
                for split in ("train", "test"):
                    for index in (0, 1, 8):
                        yield case_rng(benchmark, version, seed, split, index).random()


def test_a_case_depends_on_all_that_names_it_and_on_nothing_else() -> None:
    once, again = list(draws()), list(draws())
    assert once == again
    assert len(set(once)) == len(once) == 72


def test_a_block_gives_back_the_cases_that_the_solver_made(tmp_path: Path) -> None:
    """Cases 1 and 11 have names of which one begins with the other."""
    solver = DARCY.solver_at("fast")
    job = CaseBlock(solver.sample, ("darcy", 1, 5), "test", 1, 12, tmp_path, "tag")
    job.make()
    for index in (1, 11):
        expected = solver.sample(case_rng("darcy", DARCY.version, 5, "test", index))
        assert_equal(job.read(index, solver.names), expected)
    assert Schema() != DARCY.schema("fast", 5)


@dataclass(frozen=True)
class Threads:
    """A solver whose solution is the number of threads of each library that has some."""

    names: Names = NAMES

    def sample(self, rng: np.random.Generator) -> PointSet:
        counts = np.array([[library["num_threads"]] for library in threadpool_info()], np.float32)
        return PointSet(x=np.zeros((len(counts), 2), np.float32), u=counts)


def test_a_case_is_solved_by_one_thread(tmp_path: Path) -> None:
    job = CaseBlock(Threads().sample, ("threads", 1, 0), "train", 0, 2, tmp_path, "tag")
    with threadpool_limits(2):
        job.make()
        outside = Threads().sample(np.random.default_rng(0)).u
    assert outside is not None
    assert outside.size >= 2
    assert outside.max() == 2
    for i in range(2):
        np.testing.assert_array_equal(job.read(i, NAMES).u, np.ones_like(outside))  # pyright: ignore[reportArgumentType]


def test_a_second_process_that_makes_the_same_set_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    program, out = tmp_path / "program.py", tmp_path / "made" / "a.h5"
    program.write_text(PROGRAM)
    first = subprocess.Popen([sys.executable, str(program), str(out)], start_new_session=True)
    try:
        wait_for(lambda: bool(blocks(out.with_name("a.h5.parts"))))
        with pytest.raises(LrsaError, match=r"^another process is making .*a\.h5\. Wait for it.*$"):
            make_dataset(DARCY, 2, 1, "fast", 0, 1, out)
        assert first.poll() is None
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert out.with_name(".a.h5.lock").exists()
    make_dataset(DARCY, 2, 1, "fast", 0, 1, out)
    assert os.listdir(out.parent) == ["a.h5"], "the lock ended with its process"
