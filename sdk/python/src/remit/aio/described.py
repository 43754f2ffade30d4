"""Makes the methods of the asyncio classes from those of the synchronous ones, which describe each call once: its arguments,
what it sends and how its response is read."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Coroutine, Iterator, Type, TypeVar, cast

from ..runtime import now

if TYPE_CHECKING:
    from ..parameters import Concatenate, P

T = TypeVar("T")
R = TypeVar("R")


def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Returns the method with the same arguments, to be awaited."""

    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await now(cast("Callable[..., Any]", method)(*args, **kwargs))

    return cast("Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]", call)


def awaited_as(
    method: Callable[Concatenate[Any, P], Any], result: Type[R]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Like awaited, for a method whose result has a counterpart for asyncio."""
    return cast("Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]", awaited(method))


def made_as(method: Callable[Concatenate[Any, P], Any], result: Type[R]) -> Callable[Concatenate[Any, P], R]:
    """Returns the method, which sends nothing and whose result has a counterpart for asyncio."""
    return cast("Callable[Concatenate[Any, P], R]", _copied(method))


def listed(method: Callable[Concatenate[Any, P], Iterator[T]]) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    """Returns the method, whose elements are for `async for`."""
    return cast("Callable[Concatenate[Any, P], AsyncIterator[T]]", _copied(method))


def _copied(method: Callable[..., Any]) -> Any:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return call
