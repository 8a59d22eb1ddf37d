"""What a benchmark measured, and the bars that it is held against."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from lrsa.bench.memory import Probe
from lrsa.bench.settings import BY_KERNELS
from lrsa.bench.timing import Times


@dataclass(frozen=True)
class Row:
    """One model in one setting, at one precision and number of threads."""

    setting: str
    label: str
    size: str
    """own preset (and what differs from it), same size, or default options."""
    width: int
    """Channels of the layers, and of the matrix product beside them."""
    precision: str
    threads: int
    probe: Probe
    """What was found out in a process of its own."""
    times: Times
    compile_seconds: float | None = None

    @property
    def step(self) -> float:
        return min(self.times.step)

    @property
    def spread(self) -> float:
        """How far the median round is above the best."""
        return median(self.times.step) / self.step - 1

    @property
    def matmul(self) -> float:
        """Operations per second of the model's matrix product, the best of its turns."""
        return max(self.times.matmul)

    @property
    def share(self) -> float:
        """Of the matrix product's rate, in the training step."""
        return 3 * self.probe.flops / self.step / self.matmul


@dataclass
class Results:
    """A run, or several of different settings."""

    commands: dict[str, str]
    """The command that measured a setting."""
    versions: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)
    """(setting, and precision where there are several; model; reason)."""

    @staticmethod
    def load(path: Path) -> "Results":
        """What was written as JSON."""
        kept = json.loads(path.read_text())
        rows = [
            Row(**{**row, "probe": Probe(**row["probe"]), "times": Times(**row["times"])})
            for row in kept["rows"]
        ]
        return Results(kept["commands"], kept["versions"], rows, [(a, b, c) for a, b, c in kept["left_out"]])

    def beside(self, earlier: "Results") -> "Results":
        """This run, and of an earlier one with the same versions the settings that this one did not have."""
        others = set(earlier.commands) - set(self.commands) if earlier.versions == self.versions else set()
        return Results(
            {name: earlier.commands[name] for name in earlier.commands if name in others} | self.commands,
            self.versions,
            [row for row in earlier.rows if row.setting in others] + self.rows,
            [one for one in earlier.left_out if one[0].partition(",")[0] in others] + self.left_out,
        )

    def find(self, setting: str, label: str, precision: str, threads: int) -> Row | None:
        wanted = (setting, label, precision, threads)
        return next((r for r in self.rows if (r.setting, r.label, r.precision, r.threads) == wanted), None)


@dataclass(frozen=True)
class Bar:
    """A number that LRSA should reach, beside Transolver or by itself."""

    what: str
    setting: str
    suffix: str
    bound: float
    value: Callable[[Row, Row], float | None]
    at_least: bool = False

    def line(self, results: Results, precision: str, threads: int) -> str | None:
        """A row of the table of bars, or None where it was not measured."""
        plain = results.find(self.setting, f"lrsa{self.suffix}", precision, threads)
        kernels = results.find(self.setting, f"lrsa{self.suffix}{BY_KERNELS}", precision, threads)
        theirs = results.find(self.setting, f"transolver{self.suffix}", precision, threads)
        ours = kernels or plain
        if ours is None or theirs is None:
            return None
        value = self.value(ours, theirs)
        if value is None:
            return None
        met = value >= self.bound if self.at_least else value <= self.bound
        reason = (
            f"{ours.probe.flops / theirs.probe.flops:.2f} of Transolver's operations, at {ours.share:.2f}"
            f" of the matmul rate, Transolver at {theirs.share:.2f}"
        )
        sign = "≥" if self.at_least else "≤"
        what = self.what + (BY_KERNELS if kernels else "")
        return (
            f"| {what} | {threads} | {value:.2f} | {sign} {self.bound:.2f} |"
            f" {'met' if met else 'missed'} | {reason} |"
        )


def _step(ours: Row, theirs: Row) -> float:
    return ours.step / theirs.step


def _memory(ours: Row, theirs: Row) -> float | None:
    measured = ours.probe.peak and theirs.probe.peak
    return ours.probe.peak / theirs.probe.peak if measured else None


def _share(ours: Row, theirs: Row) -> float:
    return ours.share


SAME = " (same size)"
BARS: Sequence[Bar] = (
    Bar("step, airfoil presets (Transolver structured)", "airfoil", "", 0.45, _step),
    Bar("step, N = 11271, both width 128", "airfoil", SAME, 0.70, _step),
    Bar("step, N = 32186, both width 256", "shapenet-car", SAME, 0.70, _step),
    Bar("peak memory, airfoil presets", "airfoil", "", 0.65, _memory),
    Bar("peak memory, N = 11271, both width 128", "airfoil", SAME, 0.65, _memory),
    Bar("peak memory, N = 32186, both width 256", "shapenet-car", SAME, 0.65, _memory),
    Bar("share of the matmul rate, N = 11271, width 128", "airfoil", SAME, 0.55, _share, at_least=True),
    Bar("share of the matmul rate, N = 32186, width 256", "shapenet-car", SAME, 0.65, _share, at_least=True),
)
