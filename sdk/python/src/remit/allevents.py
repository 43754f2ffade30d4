"""The events of an organization: one ordered, numbered list over all of its agents."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from .calls import PER_PAGE, Call, Caller, next_page
from .events import WAIT, Event
from .more import POLL_PAUSE, patiently
from .transport import Answer
from .url import path, with_query
from .wire import Fields, decode, each


@dataclass(frozen=True)
class OrganizationEvent(Event):
    """An event of one of the organization's agents, with its place among all of them."""

    sequence: int  # from 1, without gaps
    previous_hash: str  # SHA-256 of the JSON of the event before, in hex

    @classmethod
    def _members(cls, said: Fields) -> Dict[str, Any]:
        return {**super()._members(said), "sequence": said.integer("seq"), "previous_hash": said.text("previous_hash")}


def follow(caller: Caller, after: int, types: Sequence[str], wait: bool) -> Iterator[OrganizationEvent]:
    if isinstance(types, (str, bytes)):
        raise TypeError('types are a list, such as ["session.ended"]')

    async def more() -> Optional[List[OrganizationEvent]]:
        nonlocal after
        call = _page_after(after, types, WAIT if wait else 0)

        async def once(left: Optional[float]) -> Tuple[List[OrganizationEvent], int]:
            return await caller.asked_raw(call, _page, left)

        begun = time.monotonic()
        events, following = await (patiently(caller, math.inf, once) if wait else once(None))
        if not events and following <= after:
            if not wait:
                return None
            await caller.service.runtime.sleep(max(begun + POLL_PAUSE - time.monotonic(), 0))
        after = max(after, following, *(event.sequence for event in events))
        return events

    return caller.service.runtime.each(more)


def _page_after(after: int, types: Sequence[str], patience: int) -> Call:
    query = with_query(path("events"), after=str(after), limit=PER_PAGE, types=",".join(types), wait=str(patience))
    return Call("GET", query, wait=patience)


def _page(answer: Answer) -> Tuple[List[OrganizationEvent], int]:
    """Returns the events. With types it also returns the number of the last event that the service looked at, if there may be
    more; then there may be none."""
    following = next_page(answer.headers, "after")
    number = int(following) if following.isascii() and following.isdigit() and len(following) < 17 else 0
    return each(decode(answer.body), OrganizationEvent._read), number


def checkpoint(caller: Caller, timeout: Optional[float]) -> str:
    return caller.ask_raw(Call("GET", path("events", "checkpoint")), lambda answer: answer.text(), timeout)
