"""How asyncio runs the steps of calls: it awaits them, and finishes what a cancelled caller must not leave half done."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, AsyncIterator, Callable, Coroutine, Iterator, Optional, Set, Tuple, TypeVar, cast

from .. import retry
from ..runtime import Feed, Runtime
from ..transport import Failure

# Seconds that a cancelled caller waits until what it has begun or was settling is settled.
_SETTLE_LIMIT = 10.0

T = TypeVar("T")

_running: Set[asyncio.Task[Any]] = set()  # an event loop alone does not keep its tasks


class AsyncRuntime(Runtime):
    """Hands the steps of calls to remit.aio.described, which awaits them. The types are those of the synchronous client, because
    both share the description of each call."""

    def run(self, steps: Coroutine[Any, Any, T]) -> T:
        return cast(T, steps)

    def each(self, feed: Feed[T]) -> Iterator[T]:
        return cast(Iterator[T], _each(feed))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def pause(self, attempt: int, failure: Failure, end: float) -> bool:
        seconds = retry.wait(attempt, failure, end)
        if seconds is None:
            return False
        await asyncio.sleep(seconds)
        return True

    async def to_end(
        self, work: Callable[[], Coroutine[Any, Any, T]], undo: Optional[Callable[[T], Coroutine[Any, Any, Any]]] = None
    ) -> T:
        """Does work in a task of its own. If the caller is cancelled, it waits for the end of the work, and of its undoing, for at
        most _SETTLE_LIMIT seconds each, and is cancelled then."""
        task, cancelled = await _ended(work)
        if cancelled is None:
            return task.result()
        if undo is not None and task.done() and not task.cancelled() and task.exception() is None:
            await _ended(partial(undo, task.result()))
        raise cancelled


async def _ended(work: Callable[[], Coroutine[Any, Any, T]]) -> Tuple[asyncio.Task[T], Optional[asyncio.CancelledError]]:
    """Waits for the end of the work, and returns whether the caller was cancelled meanwhile. If the task of the work itself is
    cancelled, as asyncio.run cancels all tasks at its end, the work is done again: it is idempotent."""
    loop = asyncio.get_running_loop()
    task = _started(work)
    cancelled: Optional[asyncio.CancelledError] = None
    end: Optional[float] = None
    while not task.done():
        left = None if end is None else end - loop.time()
        if left is not None and left <= 0:
            task.cancel()
            break
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError as e:
            cancelled = cancelled or e
        if task.cancelled():
            cancelled = cancelled or asyncio.CancelledError()
            task = _started(work)
        if cancelled is not None and end is None:
            end = loop.time() + _SETTLE_LIMIT
    return task, cancelled


def _started(work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
    task = asyncio.get_running_loop().create_task(work())
    _running.add(task)
    task.add_done_callback(_forget)
    return task


def _forget(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled():
        task.exception()  # marks it as read: its reader may be gone


async def _each(feed: Feed[T]) -> AsyncIterator[T]:
    elements = await feed()
    while elements is not None:
        for element in elements:
            yield element
        elements = await feed()
