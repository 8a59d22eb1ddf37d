"""What people see while they wait: a bar with the time left, or plain lines where there is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

# Without markup: [m/s] is a unit, not a style.
console = Console(highlight=False, soft_wrap=True, markup=False)
LINES = 10
"""Lines that a long piece of work prints where there is no terminal."""

Advance = Callable[[int, int, str], None]
"""Called with (done, total, a few words on the state)."""


@contextmanager
def bar(title: str) -> Iterator[Advance]:
    """A progress bar; call what it yields with (done, total, words)."""
    if console.is_terminal:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
            console=console,
        ) as progress:
            task = progress.add_task(title, total=None, words="")
            yield lambda done, total, words: progress.update(task, completed=done, total=total, words=words)
    else:
        yield _lines(title)


def _lines(title: str) -> Advance:
    last = -1

    def advance(done: int, total: int, words: str) -> None:
        nonlocal last
        tenth = done * LINES // max(total, 1)
        if tenth > last:
            last = tenth
            console.print(f"{title} {done}/{total} {words}".rstrip())

    return advance
