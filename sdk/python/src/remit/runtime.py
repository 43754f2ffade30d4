"""How the steps of a call are run. Each call is described once, as a coroutine: a synchronous client runs it to its end on the
caller's thread, and an asyncio client (remit.aio) awaits it."""

from __future__ import annotations

import time
from email.message import Message
from types import CoroutineType
from typing import Any, Callable, Coroutine, Iterator, List, Mapping, Optional, Protocol, TypeVar, Union, cast

from . import retry
from .credential import Credential, Sealed
from .errors import RemitError
from .transport import Answer, Failure

T = TypeVar("T")

# What a synchronous client has at once, and an asyncio client awaits.
Now = Union[T, Coroutine[Any, Any, T]]

# Returns the next elements of a list, which may be none yet, or None at its end.
Feed = Callable[[], Coroutine[Any, Any, Optional[List[T]]]]


class Wire(Protocol):
    """Sends requests to one service: Transport, or AsyncTransport."""

    def url(self, path: str) -> str:
        ...

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, Union[str, Credential]],
        body: Optional[Sealed],
        end: float,
        most: int,
        refusal: Callable[[int, Message, Sealed], RemitError],
    ) -> Now[Union[Answer, Failure]]:
        ...

    def close(self) -> Now[None]:
        ...


class Source(Protocol):
    """Has an access token: Tokens, AsyncTokens or OneToken."""

    def get(self, end: float, refused: Optional[Credential] = None) -> Now[Credential]:
        ...

    def renew(self, end: float) -> Now[Credential]:
        ...


async def now(given: Now[T]) -> T:
    """Returns a result, and waits for it if it is not there yet."""
    if isinstance(given, CoroutineType):
        return cast(T, await given)
    return cast(T, given)


class Runtime:
    """Runs the steps of calls on the caller's thread. No step suspends, because each waits by blocking."""

    def run(self, steps: Coroutine[Any, Any, T]) -> T:
        """Returns the result of the steps."""
        try:
            steps.send(None)
        except StopIteration as done:
            return cast(T, done.value)
        steps.close()
        raise RuntimeError("a step of a synchronous call suspends")

    def each(self, feed: Feed[T]) -> Iterator[T]:
        """Yields the elements of a list."""
        elements = self.run(feed())
        while elements is not None:
            yield from elements
            elements = self.run(feed())

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def pause(self, attempt: int, failure: Failure, end: float) -> bool:
        """Waits before the next attempt, if there is one."""
        return retry.pause(attempt, failure, end)

    async def to_end(
        self, work: Callable[[], Coroutine[Any, Any, T]], undo: Optional[Callable[[T], Coroutine[Any, Any, Any]]] = None
    ) -> T:
        """Does work that must not stay half done when the caller is cancelled, which happens in asyncio alone. undo undoes it then."""
        return await work()
