"""Blocks that begin a transaction when they are entered."""

from __future__ import annotations

import functools
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Optional, Type, TypeVar, cast

if TYPE_CHECKING:
    from .aio.transactions import AsyncTransaction
    from .parameters import Concatenate, P
    from .transactions import Transaction

_ABOUT = "Returns a block that begins a transaction when it is entered, and ends it. The arguments are those of begin."


class Block:
    """Begins a transaction when it is entered, and ends it; see Transaction."""

    def __init__(self, begin: Callable[[], Transaction]) -> None:
        self._begin = begin
        self._begun: Optional[Transaction] = None

    def __enter__(self) -> Transaction:
        self._begun = self._begin()
        return self._begun.__enter__()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        assert self._begun is not None
        self._begun.__exit__(kind, error, traceback)


class AsyncBlock:
    """The same for asyncio."""

    def __init__(self, begin: Callable[[], Coroutine[Any, Any, AsyncTransaction]]) -> None:
        self._begin = begin
        self._begun: Optional[AsyncTransaction] = None

    async def __aenter__(self) -> AsyncTransaction:
        self._begun = await self._begin()
        return await self._begun.__aenter__()

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        assert self._begun is not None
        await self._begun.__aexit__(kind, error, traceback)


def block(begin: Callable[Concatenate[Any, P], Transaction]) -> Callable[Concatenate[Any, P], Block]:
    return cast("Callable[Concatenate[Any, P], Block]", _entered(begin, Block))


def async_block(
    begin: Callable[Concatenate[Any, P], Coroutine[Any, Any, AsyncTransaction]]
) -> Callable[Concatenate[Any, P], AsyncBlock]:
    return cast("Callable[Concatenate[Any, P], AsyncBlock]", _entered(begin, AsyncBlock))


def _entered(begin: Callable[..., Any], kind: Callable[[Callable[[], Any]], Any]) -> Any:
    def transaction(*args: Any, **kwargs: Any) -> Any:
        return kind(functools.partial(begin, *args, **kwargs))

    functools.update_wrapper(transaction, begin)
    transaction.__name__ = "transaction"
    transaction.__doc__ = _ABOUT
    return transaction
