"""A session for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Coroutine, Optional, TypeVar

from ..action import Action
from ..block import async_block
from ..meteredcall import AsyncMeteredCall
from ..sessions import OneSession, Session
from .described import awaited, awaited_as, made_as
from .transactions import AsyncTransaction

if TYPE_CHECKING:
    from ..money import Amount
    from ..parameters import P
    from ..wire import Seconds

R = TypeVar("R")


class AsyncSession(OneSession):
    """An agent's session, for asyncio. AsyncAgent.session makes one. Its methods take the arguments of Session's, and raise what
    those raise. There are no leases: a lease of Session serves asyncio as well, because it seldom waits.

    A charge that is cancelled may have happened. Where the totals must be exact, charge with a transaction.
    """

    _concurrent = True
    _transaction = AsyncTransaction
    _metered_call = AsyncMeteredCall

    charge = awaited(Session.charge)
    dry_run_charge = awaited(Session.dry_run_charge)
    charge_many = awaited(Session.charge_many)
    begin = awaited_as(Session.begin, AsyncTransaction)
    transaction = async_block(begin)

    def action(
        self, action_type: str, value: Amount = 0, *, scope: Optional[str] = None, expires_in: Optional[Seconds] = None
    ) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Callable[P, Coroutine[Any, Any, R]]]:
        """Returns a decorator for a coroutine function, as Session.action does for a function. If the call is cancelled, it is rolled
        back."""
        action = Action(action_type, value, scope, expires_in)
        return lambda function: action.around_async(self, function)

    model_call = made_as(Session.model_call, AsyncMeteredCall)
    dry_run_begin = awaited(Session.dry_run_begin)
    create_child = awaited(Session.create_child)
    tree = awaited(Session.tree)
    request_more = awaited(Session.request_more)
    requests = awaited(Session.requests)
    get_request = awaited(Session.get_request)
    await_request = awaited(Session.await_request)
    usage = awaited(Session.usage)
    get = awaited(Session.get)
    end = awaited(Session.end)
