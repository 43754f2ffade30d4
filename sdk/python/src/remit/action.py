"""Functions that are charged as actions: what Session.action and AsyncSession.action make of them."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Optional, TypeVar

from .money import Amount
from .wire import Seconds, seconds, usd

if TYPE_CHECKING:
    from .aio.session import AsyncSession
    from .parameters import P
    from .sessions import Session

_GENERATOR = "a generator ends when its caller likes: use session.transaction inside it"

R = TypeVar("R")


@dataclass(frozen=True)
class Action:
    """What is held for each call of a function."""

    action_type: str
    value: Amount
    scope: Optional[str]
    expires_in: Optional[Seconds]

    def __post_init__(self) -> None:
        usd(self.value), seconds(self.expires_in)  # raises where the function is decorated, not where it is called

    def around(self, session: Session, function: Callable[P, R]) -> Callable[P, R]:
        _refuse_what_is_no_call(function)
        if _is(function, inspect.iscoroutinefunction):
            raise TypeError("Session.action is for functions: AsyncSession.action is for coroutine functions")
        takes_transaction = _takes_transaction(function)

        @functools.wraps(function)
        def charged(*args: P.args, **kwargs: P.kwargs) -> R:
            if self.scope is not None:
                session.dry_run_charge(self.action_type, self.value, scope=self.scope)
            with session.transaction(self.action_type, value=self.value, expires_in=self.expires_in) as tx:
                if takes_transaction:
                    kwargs["transaction"] = tx
                result = function(*args, **kwargs)
                if inspect.isawaitable(result):  # it has not happened yet
                    if inspect.iscoroutine(result):
                        result.close()
                    raise TypeError("the function returned an awaitable: decorate a coroutine function with AsyncSession.action")
            return result

        return charged

    def around_async(
        self, session: AsyncSession, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> Callable[P, Coroutine[Any, Any, R]]:
        _refuse_what_is_no_call(function)
        if not _is(function, inspect.iscoroutinefunction):
            raise TypeError("AsyncSession.action is for coroutine functions: Session.action is for functions")
        takes_transaction = _takes_transaction(function)

        @functools.wraps(function)
        async def charged(*args: P.args, **kwargs: P.kwargs) -> R:
            if self.scope is not None:
                await session.dry_run_charge(self.action_type, self.value, scope=self.scope)
            async with session.transaction(self.action_type, value=self.value, expires_in=self.expires_in) as tx:
                if takes_transaction:
                    kwargs["transaction"] = tx
                return await function(*args, **kwargs)

        return charged


def _refuse_what_is_no_call(function: Any) -> None:
    if isinstance(function, (staticmethod, classmethod)):
        raise TypeError(f"@{type(function).__name__} goes above @session.action")
    if _is(function, inspect.isgeneratorfunction) or _is(function, inspect.isasyncgenfunction):
        raise TypeError(_GENERATOR)


def _is(function: Callable[..., Any], kind: Callable[[Any], bool]) -> bool:
    """Returns whether a function, or an object that is called like one, is of this kind."""
    return kind(function) or kind(getattr(function, "__call__", None))


def _takes_transaction(function: Callable[..., Any]) -> bool:
    parameter = inspect.signature(function).parameters.get("transaction")
    return parameter is not None and parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
