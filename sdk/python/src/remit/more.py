"""Requests for more than a session's limits allow, and their decisions."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Callable, Coroutine, List, Mapping, Optional, TypeVar

from .calls import Call, Caller
from .errors import OutcomeUnknown, RateLimited, RemitError, Unavailable
from .money import Amount
from .retry import Semantics
from .url import path, with_query
from .wire import Fields, each, present, usd_or_none

# All times are in seconds.
_WAIT = 30  # how long the service holds a read of a pending request back; it may take up to 60
POLL_PAUSE = 1.0  # between two reads without a result at least: the service may return one at once when too many wait
_SHORTEST_PATIENCE = 1.0  # between attempts while the service is unavailable, doubled up to the longest
_LONGEST_PATIENCE = 30.0

T = TypeVar("T")


@dataclass(frozen=True)
class MoreRequest:
    """An agent's request for more than its session's limits allow."""

    id: str
    session_id: str
    agent_id: str
    status: str  # pending, approved, denied or ended: its session ended first
    add_actions: int
    add_value: Decimal
    reason: str
    created_at: datetime
    granted_actions: int  # by an approval
    granted_value: Decimal
    comment: str  # of who decided; empty: none
    decided_at: Optional[datetime]

    @classmethod
    def _read(cls, said: Fields) -> MoreRequest:
        return cls(
            id=said.text("id"),
            session_id=said.text("session_id"),
            agent_id=said.text("agent_id"),
            status=said.text("status"),
            add_actions=said.integer("add_actions", 0),
            add_value=said.usd("add_value_usd", Decimal(0)),
            reason=said.text("reason"),
            created_at=said.moment("created_at"),
            granted_actions=said.integer("granted_actions", 0),
            granted_value=said.usd("granted_value_usd", Decimal(0)),
            comment=said.text("comment", ""),
            decided_at=said.moment_or_none("decided_at"),
        )


async def ask(
    caller: Caller, session_id: str, key: Optional[str], timeout: Optional[float], body: Mapping[str, Any]
) -> MoreRequest:
    call = caller.service.keyed(path("sessions", session_id, "requests"), key, body)
    return await caller.asked(call, lambda said: MoreRequest._read(Fields(said)), timeout)


def body(reason: str, add_actions: Optional[int], add_value: Optional[Amount]) -> Mapping[str, Any]:
    return present(add_actions=add_actions, add_value_usd=usd_or_none(add_value), reason=reason)


def every(caller: Caller, session_id: str, status: Optional[str], timeout: Optional[float]) -> List[MoreRequest]:
    call = Call("GET", with_query(path("sessions", session_id, "requests"), status=status))
    return caller.ask(call, lambda said: each(said, MoreRequest._read), timeout)


def get(caller: Caller, session_id: str, id: str, timeout: Optional[float]) -> MoreRequest:
    call = Call("GET", path("sessions", session_id, "requests", id))
    return caller.ask(call, lambda said: MoreRequest._read(Fields(said)), timeout)


def decide(
    caller: Caller, session_id: str, id: str, decision: str, timeout: Optional[float], granted: Mapping[str, Any]
) -> MoreRequest:
    call = Call("POST", path("sessions", session_id, "requests", id, decision), granted, Semantics.IDEMPOTENT)
    return caller.ask(call, lambda said: MoreRequest._read(Fields(said)), timeout)


async def await_decision(caller: Caller, session_id: str, id: str, end: float) -> MoreRequest:
    """Waits until the request is decided or its session has ended, also while the service is unavailable."""
    of = with_query(path("sessions", session_id, "requests", id), wait=str(_WAIT))

    async def read(left: Optional[float]) -> MoreRequest:
        return await caller.asked(Call("GET", of, wait=_WAIT), lambda said: MoreRequest._read(Fields(said)), left)

    while True:
        begun = time.monotonic()
        request = await patiently(caller, end, read)
        if request.status != "pending":
            return request
        await _sleep(caller, begun + POLL_PAUSE - time.monotonic(), end)


async def patiently(caller: Caller, end: float, operation: Callable[[Optional[float]], Coroutine[Any, Any, T]]) -> T:
    """Repeats an idempotent operation until it succeeds, the service refuses it, or the end."""
    patience = _SHORTEST_PATIENCE
    while True:
        try:
            return await operation(_left(end))
        except (Unavailable, OutcomeUnknown, RateLimited):
            _left(end)
        await _sleep(caller, random.uniform(patience / 2, patience), end)  # jitter, so that many clients spread out
        patience = min(2 * patience, _LONGEST_PATIENCE)


def _left(end: float) -> Optional[float]:
    left = end - time.monotonic()
    if left <= 0:
        raise Unavailable("the time given is over, and there is no decision")
    return None if math.isinf(left) else left


async def _sleep(caller: Caller, length: float, end: float) -> None:
    await caller.service.runtime.sleep(max(min(length, end - time.monotonic()), 0.0))
    _left(end)
