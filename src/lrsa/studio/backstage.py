"""Work behind the page: one thing at a time in a thread of its own; what goes wrong is said on the page."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from lrsa.errors import LrsaError

Made = TypeVar("Made")


class Backstage:
    """Runs what is slow while the page goes on. `state` has `busy` and `problem`, both words."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self._worker = ThreadPoolExecutor(1)
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        self._worker.shutdown(cancel_futures=True)

    async def aside(self, call: Callable[[], Made]) -> Made:
        """Call something slow while the page goes on."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @contextmanager
    def busy(self, words: str) -> Iterator[None]:
        """Say what takes long."""
        self._say(busy=words)
        try:
            yield
        finally:
            self._say(busy="")

    @contextmanager
    def saying(self) -> Iterator[None]:
        """Say what goes wrong."""
        try:
            yield
        except LrsaError as error:
            self._say(problem=str(error))
        except Exception as error:  # the page goes on, whatever one case is like
            logging.getLogger(__name__).warning("a bug of the page", exc_info=error)
            self._say(problem=f"{type(error).__name__}: {error}. This is a bug")

    def _say(self, **words: str) -> None:
        with self.state:
            self.state.update(words)
