"""Several models and settings on a budget: successive halving on the validation cases, then the winner.

All candidates that there is time for share a part of the minutes, the best third of them another part, and so
on down to one. A trial is a whole short training with a schedule of that length: one cut short would say
little of one that is not. The winner is trained anew for what is left. The test cases are never looked at.

    OUT/tune.json        what was asked for, the candidates, and what every trial took and reached
    OUT/trials/...       a run for each trial; one that was interrupted goes on
    OUT/                 the run of the winner
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lrsa.console import console
from lrsa.data.store import Dataset, is_path
from lrsa.errors import Failure, LrsaError
from lrsa.files import alone, atomic
from lrsa.machine import check_device, check_threads
from lrsa.models.registry import get, model_options
from lrsa.pointset import corresponding, scattered
from lrsa.problems import catalogue
from lrsa.surrogate.record import TUNING
from lrsa.training.budget import duration
from lrsa.training.checkpoint import Standing
from lrsa.training.choose import LONG, elongation, model_for, on_a_grid
from lrsa.training.config import check_new
from lrsa.training.fit import prepare, train_run

TRIALS = "trials"
SEARCH = 0.6
"""Share of the minutes that the trials take; the winner gets the rest."""
KEPT = 3
"""Of so many candidates one goes on."""
SHORTEST = 0.05
"""Minutes of a trial, at the least."""


@dataclass(frozen=True)
class Candidate:
    """A model with settings that differ from the automatic choice."""

    name: str
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    """Of sizes of the model: the automatic choice of them depends on the minutes of a trial."""


@dataclass
class Trial:
    """What a candidate reached in a round."""

    name: str
    round: int
    minutes: float
    seconds: float = 0.0
    """What it took, with its preparation."""
    error: float = math.inf
    """On the validation cases, relative L2."""
    reason: str = ""
    """Why there is none."""
    done: bool = False


@dataclass
class Tuning:
    """All of it, as it is kept."""

    data: str
    minutes: float
    seed: int
    device: str
    threads: int | None
    candidates: list[Candidate]
    trials: list[Trial] = field(default_factory=list)

    def save(self, out: Path) -> None:
        values = asdict(self)
        for trial in values["trials"]:
            trial["error"] = trial["error"] if math.isfinite(trial["error"]) else None
        with atomic(out / TUNING) as temporary:
            temporary.write_text(json.dumps(values, indent=1, allow_nan=False))

    @staticmethod
    def load(out: Path) -> "Tuning":
        try:
            values = json.loads((out / TUNING).read_text())
            candidates = [Candidate(**row) for row in values.pop("candidates")]
            trials = [
                Trial(**{**row, "error": math.inf if row["error"] is None else row["error"]})
                for row in values.pop("trials")
            ]
            return Tuning(**values, candidates=candidates, trials=trials)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise LrsaError(f"{out / TUNING} is damaged: remove it, and name another --out") from error

    @property
    def spent(self) -> float:
        """Seconds."""
        return sum(trial.seconds for trial in self.trials)

    def ranked(self, round: int) -> list[Trial]:
        """The trials of a round that reached something, best first."""
        there = [t for t in self.trials if t.round == round and t.done and math.isfinite(t.error)]
        return sorted(there, key=lambda trial: trial.error)


def tune(
    data: str,
    minutes: float,
    out: Path,
    seed: int = 0,
    device: str = "cpu",
    threads: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Tuning, Standing]:
    """Find a model for the data within so many minutes and train it into `out`, or go on with that."""
    check_device(device)
    check_threads(threads)
    tuning = _begun(data, minutes, out, seed, device, threads)
    with alone((out / TUNING).resolve()):
        tuning.save(out)
        rounds = rounds_of(len(tuning.candidates), minutes)
        names = [candidate.name for candidate in tuning.candidates]
        for round, (count, share) in enumerate(rounds, start=1):
            names = [trial.name for trial in tuning.ranked(round - 1)][:count] if round > 1 else names
            for i, name in enumerate(names):
                left = duration(max(0.0, 60 * minutes - tuning.spent))
                console.print(f"Round {round} of {len(rounds)}, {i + 1} of {len(names)}: {name}; {left} left")
                _try(tuning, out, name, round, share, clock)
            if not tuning.ranked(round):
                if not (out / TRIALS).exists():  # with the data corrected, the same command begins anew
                    (out / TUNING).unlink()
                reasons = "; ".join(dict.fromkeys(t.reason for t in tuning.trials if t.reason))
                raise Failure(f"no candidate could be trained on {data}: {reasons}")
        return tuning, _train_winner(tuning, out, tuning.ranked(len(rounds))[0])


def rounds_of(candidates: int, minutes: float) -> list[tuple[int, float]]:
    """(candidates, minutes of each) of every round: all have the same part of the search."""
    counts = [candidates]
    while counts[-1] > 1:
        counts.append(math.ceil(counts[-1] / KEPT))
    counts = counts[:-1] or counts
    each = SEARCH * minutes / len(counts)
    return [(count, max(SHORTEST, each / count)) for count in counts]


def affordable(candidates: Sequence[Candidate], minutes: float) -> Sequence[Candidate]:
    """The first of the candidates, as many as can be tried in the time: at least one."""
    count, search = len(candidates), SEARCH * minutes * (1 + 1e-9)
    while count > 1 and sum(n * each for n, each in rounds_of(count, minutes)) > search:
        count -= 1
    return candidates[:count]


def candidates_for(data: Dataset) -> list[Candidate]:
    """The automatic choice, and what differs from it in one thing that may matter for this data."""
    ours, grid = model_for(data), on_a_grid(data)
    made = [Candidate("automatic", ours)]
    if data.schema.protocol != "autoregressive" and corresponding(data) and not scattered(data):
        made.append(Candidate("pod-rbf", "pod-rbf"))  # early, as it takes no time
    if grid:
        made.append(Candidate("dilated filters", "lrsa-dilated"))
        made.append(Candidate("without Fourier filters", "lrsa"))
        made.append(Candidate("without local mixing", "lrsa", {"local": "pointwise"}))
    long = elongation(data) > LONG
    other = "box" if long else "axis"
    made += [
        Candidate(f"coordinates {other}", ours, train={"coordinates": other}),
        Candidate("smaller", ours, factors={"width": 0.5, "depth": 0.5, "rank": 0.5}),
        Candidate("twice the rank", ours, factors={"rank": 2}),
        Candidate("half the learning rate", ours, train={"muon_lr": 0.005, "max_lr": 1e-3}),
        Candidate("one case a step", ours, train={"batch_size": 1}),
        Candidate("transolver in our backbone", "backbone-transolver"),
    ]
    if grid:
        made.append(Candidate("fno in our backbone", "backbone-fno"))
    else:
        made.append(Candidate("sinusoids of the coordinates", ours, {"frequencies": 4}))
        made.append(Candidate("linear-no in our backbone", "backbone-linear-no"))
    return made


def table(tuning: Tuning) -> list[list[str]]:
    """A row for each candidate: its name, model, and validation error in each round."""
    last = max((trial.round for trial in tuning.trials), default=1)
    rows = []
    for candidate in tuning.candidates:
        found = {t.round: t for t in tuning.trials if t.name == candidate.name}
        cells = [_cell(found.get(round)) for round in range(1, last + 1)]
        rows.append([candidate.name, candidate.model, *cells])
    best = {t.name: (-t.round, t.error) for t in sorted(tuning.trials, key=lambda t: t.round)}
    return sorted(rows, key=lambda row: best.get(row[0], (0, math.inf)))


def trial_folder(out: Path, name: str, round: int) -> Path:
    """The run of a candidate in a round."""
    return out / TRIALS / f"{round}-{name.replace(' ', '-')}"


def _cell(trial: Trial | None) -> str:
    if trial is None:
        return ""
    return f"{trial.error:.4f} ({duration(trial.seconds)})" if math.isfinite(trial.error) else trial.reason


def _begun(data: str, minutes: float, out: Path, seed: int, device: str, threads: int | None) -> Tuning:
    """The tuning that is there already, if it is the same one, or a new one."""
    if not 0 < minutes < math.inf:
        raise LrsaError(f"--minutes must be a positive number, not {minutes}")
    if not is_path(data):
        name = catalogue.get(data).name
        raise LrsaError(f"{name} is no data set of your own (.h5). `lrsa train {name}` trains a benchmark")
    path = str(Path(data).resolve())
    if (out / TUNING).exists():
        kept = Tuning.load(out)
        if (kept.data, kept.minutes, kept.seed) != (path, minutes, seed):
            raise LrsaError(
                f"{out} tunes {kept.data} for {kept.minutes:g} minutes, seed {kept.seed}. Name another --out"
            )
        return kept
    check_new(out)
    cases = Dataset(Path(path), "train")
    if "u" not in cases:
        raise LrsaError(f"{data} has no targets to learn")
    if len(cases) < 2:
        raise LrsaError(f"{data} has {len(cases)} training case, and one is needed for validation. Add more")
    every = candidates_for(cases)
    some = list(affordable(every, minutes))
    if len(some) < len(every):
        console.print(
            f"In {minutes:g} minutes there is time for the first {len(some)} of {len(every)} candidates"
        )
    return Tuning(path, minutes, seed, device, threads, some)


def _try(
    tuning: Tuning, out: Path, name: str, round: int, minutes: float, clock: Callable[[], float]
) -> None:
    """One trial, unless it is done; its time counts also where it was interrupted."""
    trial = next((t for t in tuning.trials if (t.name, t.round) == (name, round)), None)
    if trial is None:
        trial = Trial(name, round, minutes)
        tuning.trials.append(trial)
    if trial.done:
        return
    candidate = next(c for c in tuning.candidates if c.name == name)
    run = trial_folder(out, name, round)
    started = clock()
    try:
        if not (run / "config.json").exists():
            _prepare(tuning, candidate, run, minutes, validation=0.1)
        trial.error = train_run(run).best
        trial.reason = "" if math.isfinite(trial.error) else "no finite error"
        trial.done = True
    except LrsaError as error:  # one that does not suit the data is no reason to stop
        trial.reason, trial.done = str(error), True
    finally:
        trial.seconds += clock() - started
        tuning.save(out)


def _train_winner(tuning: Tuning, out: Path, best: Trial) -> Standing:
    """The best candidate again, for the minutes that are left."""
    candidate = next(c for c in tuning.candidates if c.name == best.name)
    left = max((1 - SEARCH) * tuning.minutes / 2, tuning.minutes - tuning.spent / 60)
    if not (out / "config.json").exists():
        reached = f"{best.error:.4f} on the validation cases"
        console.print(f"The winner is {candidate.name} ({candidate.model}): {reached}")
        fitted = get(candidate.model).family == "fitted"
        _prepare(tuning, candidate, out, left, validation=0.0 if fitted else 0.1)
    return train_run(out)


def _prepare(tuning: Tuning, candidate: Candidate, run: Path, minutes: float, validation: float) -> None:
    known = model_options(candidate.model)
    train = {"validation": validation, "seed": tuning.seed, **candidate.train}
    if get(candidate.model).family != "fitted":
        train["minutes"] = minutes
    prepare(
        tuning.data,
        candidate.model,
        out=run,
        device=tuning.device,
        threads=tuning.threads,
        options={k: v for k, v in candidate.options.items() if k in known},
        train=train,
        factors=candidate.factors,
    )
