"""The audit trail of an agent."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, Iterator, List, Optional, Type, TypeVar

from .calls import PER_PAGE, Call, Caller
from .more import POLL_PAUSE, patiently
from .url import path, with_query
from .wire import Fields, each

WAIT = 30  # seconds that the service waits for an event at most

E = TypeVar("E", bound="Event")


@dataclass(frozen=True)
class Actor:
    """Who caused an event."""

    type: str  # api_key, agent, session_key, gateway, or time: something expired, or a period ended
    id: str  # empty: time or gateway


@dataclass(frozen=True)
class Event:
    """One entry of an agent's audit trail."""

    id: str
    type: str  # as in EventType
    occurred_at: datetime
    agent_id: str  # empty: of the organization itself
    actor: Actor
    request_id: str
    session_id: str  # empty: none
    transaction_id: str  # empty: none
    family_id: str  # the refresh-token family; empty: none
    lease_id: str  # empty: none
    session_request_id: str  # the request for more; empty: none
    session_key_id: str  # that was created or deleted; empty: none
    child_session_id: str  # that became or was a part of the session; empty: none
    data: Optional[Dict[str, Any]]

    @classmethod
    def _read(cls: Type[E], said: Fields) -> E:
        return cls(**cls._members(said))

    @classmethod
    def _members(cls, said: Fields) -> Dict[str, Any]:
        actor = Fields(said.mapping("actor") or {})
        return {
            "id": said.text("id"),
            "type": said.text("type"),
            "occurred_at": said.moment("occurred_at"),
            "agent_id": said.text("agent_id", ""),
            "actor": Actor(actor.text("type", ""), actor.text("id", "")),
            "request_id": said.text("request_id", ""),
            "session_id": said.text("session_id", ""),
            "transaction_id": said.text("transaction_id", ""),
            "family_id": said.text("family_id", ""),
            "lease_id": said.text("lease_id", ""),
            "session_request_id": said.text("session_request_id", ""),
            "session_key_id": said.text("session_key_id", ""),
            "child_session_id": said.text("child_session_id", ""),
            "data": said.mapping("data"),
        }


def follow(caller: Caller, agent_id: str, after: str, wait: bool) -> Iterator[Event]:
    patience = WAIT if wait else 0

    async def more() -> Optional[List[Event]]:
        nonlocal after
        query = with_query(path("agents", agent_id, "events"), after=after, limit=PER_PAGE, wait=str(patience))
        call = Call("GET", query, wait=patience)

        async def once(left: Optional[float]) -> List[Event]:
            return await caller.asked(call, lambda said: each(said, Event._read), left)

        begun = time.monotonic()
        page = await (patiently(caller, math.inf, once) if wait else once(None))
        if page:
            after = page[-1].id
        elif wait:
            await caller.service.runtime.sleep(max(begun + POLL_PAUSE - time.monotonic(), 0))
        return page if page or wait else None

    return caller.service.runtime.each(more)
