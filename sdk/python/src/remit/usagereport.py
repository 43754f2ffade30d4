"""Reports of what an organization and a session used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Iterable, List, Optional

from .calls import Call, Caller
from .url import path, with_query
from .wire import Fields, Malformed, each

_LONGEST_REPORT = 16 << 20  # bytes of 10,000 lines


@dataclass(frozen=True)
class UsageLine:
    """What a group used. It has the members of the groups that the report tells apart."""

    day: Optional[date]  # in UTC
    agent_id: str  # empty: not told apart
    session_id: Optional[str]  # in a report by session, None: those that are no longer kept, together
    action_type: Optional[str]  # in a report by action type, None: charges without one
    action_count: int
    value: Decimal  # below 0 when more was given back than used

    @classmethod
    def _read(cls, said: Fields) -> UsageLine:
        day = said.text("day", "")
        try:
            read = date.fromisoformat(day) if day else None
        except ValueError:
            raise Malformed("day is not a date") from None
        return cls(
            day=read,
            agent_id=said.text("agent_id", ""),
            session_id=said.text_or_none("session_id"),
            action_type=said.text_or_none("action_type"),
            action_count=said.integer("action_count"),
            value=said.usd("value_usd"),
        )


def address(
    first_day: Optional[date], last_day: Optional[date], group_by: Iterable[str], agent_id: Optional[str], form: str
) -> str:
    """Returns the path of a report."""
    if isinstance(group_by, (str, bytes)):
        raise TypeError('group_by is a list of groups, such as ["day"]')
    parameters = {"from": _day(first_day), "to": _day(last_day), "group_by": ",".join(group_by), "agent_id": agent_id}
    return with_query(path("usage"), **parameters, format=form)


def _day(day: Optional[date]) -> Optional[str]:
    if day is None:
        return None
    if isinstance(day, datetime) or not isinstance(day, date):
        raise TypeError("a day is a datetime.date")
    return day.isoformat()


def report(caller: Caller, of: str, timeout: Optional[float]) -> List[UsageLine]:
    call = Call("GET", of, most=_LONGEST_REPORT)
    return caller.ask(call, lambda said: each(said, UsageLine._read), timeout)


def table(caller: Caller, of: str, timeout: Optional[float]) -> str:
    return caller.ask_raw(Call("GET", of, most=_LONGEST_REPORT), lambda answer: answer.text(), timeout)


def of_session(caller: Caller, id: str, timeout: Optional[float]) -> List[UsageLine]:
    return report(caller, path("sessions", id, "usage"), timeout)
