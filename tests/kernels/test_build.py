"""Kernels are made once, by whoever comes first; without a compiler everything works by torch."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lrsa
from lrsa.kernels import build
from lrsa.kernels.stages import why_torch

TRY = """
import torch, lrsa
from lrsa.kernels.stages import why_torch
from lrsa.streaming.stream import apply_whole
torch.manual_seed(0)
model = lrsa.LRSA(2, 1, 1, width=32, depth=1, heads=2, rank=8)
x, f = torch.rand(1, 90, 2), torch.rand(1, 90, 1)
u = apply_whole(model, x, f)
u.sum().backward()
print(why_torch(model), bool(torch.allclose(u, model(x, f), atol=1e-5)), bool(torch.equal(u, model(x, f))))
"""


def environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "LRSA_HOME": str(home), "LRSA_KERNELS": "1", **more}


def started(home: Path, **more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", TRY], env=environment(home, **more), stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def quick(tmp_path: Path) -> str:
    """A compiler that is slow enough to meet another process, and quick enough for a test."""
    real = shutil.which("g++") or shutil.which("clang++")
    if build.why_none() or real is None:
        pytest.skip("no kernels here")
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "g++"
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nexec {real} "$@" -O1\n')
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_two_processes_at_once_compile_once(tmp_path: Path, quick: str) -> None:
    both = [started(tmp_path / "home", PATH=quick) for _ in range(2)]
    assert [process.communicate()[0].split()[:2] for process in both] == [["None", "True"]] * 2
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len([call for call in calls if "-shared" in call]) == 1
    assert [path.suffix for path in (tmp_path / "home" / "kernels").iterdir()] == [".so"]


def test_without_a_compiler_torch_computes_the_same(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    process = started(tmp_path / "home", PATH=str(tmp_path / "empty"))
    said = process.communicate()[0]
    assert said == "there is no C++ compiler on the PATH (g++ or clang++) True True\n"
    assert not (tmp_path / "home" / "kernels").exists()


def test_a_compiler_that_fails_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "g++").write_text(
        '#!/bin/sh\ncase "$1" in --version) echo 1;; *) echo broken >&2; exit 1;; esac\n'
    )
    (tmp_path / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LRSA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LRSA_KERNELS", "1")
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("no kernels here")
    build._found.cache_clear()
    try:
        why = why_torch(lrsa.LRSA(2, 1, 1, width=16, depth=1, heads=2, rank=4))
    finally:
        build._found.cache_clear()
    assert why == f"{tmp_path / 'g++'} did not make them: broken"
    assert list((tmp_path / "home" / "kernels").iterdir()) == []


@pytest.mark.parametrize(
    ("model", "device", "precision", "why"),
    [
        ("transolver", "cpu", "fp32", "the kernels are for LRSA, not Transolver"),
        ("lrsa", "cpu", "bf16", "the kernels are for fp32 on a CPU, not bf16 on cpu"),
        ("lrsa", "cuda", "fp32", "the kernels are for fp32 on a CPU, not fp32 on cuda"),
        ("lrsa", "cpu", "fp32", "LRSA_KERNELS is 0"),
    ],
)
def test_it_is_said_why_there_are_none(model: str, device: str, precision: str, why: str) -> None:
    made = lrsa.create_model(
        model, coord_dim=2, in_features=1, out_features=1, width=16, depth=1, heads=2, rank=4
    )
    assert why_torch(made, device, precision) == why


@pytest.mark.slow
def test_the_sanitizers_find_nothing(tmp_path: Path) -> None:
    """The tests of exactness again, on a build that checks every access and every operation."""
    compiler = shutil.which("g++")
    if compiler is None or build.why_none():
        pytest.skip("no g++ here")
    flags = (*build.FLAGS, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    wrapped = tmp_path / "g++"
    words = " ".join(flags[len(build.FLAGS) :])
    wrapped.write_text(
        f'#!/bin/sh\ncase "$1" in --version) exec {compiler} "$@";; esac\nexec {compiler} "$@" {words}\n'
    )
    wrapped.chmod(0o755)
    named = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout
        for name in ("libasan.so", "libubsan.so")
    ]
    more = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "LD_PRELOAD": " ".join(name.strip() for name in named),
        "ASAN_OPTIONS": "detect_leaks=0",
        "OMP_NUM_THREADS": "1",
    }
    tests = Path(__file__).with_name("test_exactness.py")
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(tests),
        "-n0",
        "-xs",  # what a sanitizer says before it ends the process is not held back
        f"--basetemp={tmp_path / 'base'}",
    ]
    done = subprocess.run(command, env=environment(tmp_path / "home", **more), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "skipped" not in done.stdout


def test_the_interface_of_the_library_is_plain_c(kernels: None) -> None:
    made = build.library()
    assert isinstance(made, ctypes.CDLL)
    assert all(hasattr(made, name) for name in ("compress", "compress_gradient", "update", "update_gradient"))
