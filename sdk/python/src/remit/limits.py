"""Limits that can be removed, and the limits of an agent."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Dict, Optional, Union

from .money import Amount
from .wire import Fields, usd


class NoLimit(enum.Enum):
    """The type of NO_LIMIT."""

    NO_LIMIT = "no limit"


#: Removes a limit. None leaves it as it is.
NO_LIMIT = NoLimit.NO_LIMIT


class Remove(enum.Enum):
    """The type of REMOVE."""

    REMOVE = "remove"


#: Removes a field of an agent. None leaves it as it is.
REMOVE = Remove.REMOVE


@dataclass(frozen=True)
class AgentLimits:
    """Limits of an agent over all of its sessions. As an argument, None leaves a limit as it is and NO_LIMIT removes it. In
    AgentInfo, None means that there is no such limit."""

    max_value_per_day: Union[Amount, NoLimit, None] = None  # of a UTC day; 0 is a limit
    max_actions_per_minute: Union[int, NoLimit, None] = None  # 1 to 1,000,000
    max_open_sessions: Union[int, NoLimit, None] = None  # 0 to 1,000,000

    @classmethod
    def _read(cls, said: Fields) -> AgentLimits:
        return cls(
            said.usd_or_none("max_value_usd_per_day"),
            said.integer_or_none("max_actions_per_minute"),
            said.integer_or_none("max_open_sessions"),
        )

    def _body(self) -> Dict[str, Any]:
        return {
            **usd_or_null("max_value_usd_per_day", self.max_value_per_day),
            **or_null("max_actions_per_minute", self.max_actions_per_minute),
            **or_null("max_open_sessions", self.max_open_sessions),
        }


@dataclass(frozen=True)
class AgentUsage:
    """What is used of an agent's limits. Nothing is counted for a limit that the agent does not have."""

    value_used_today: Optional[Decimal]  # of the UTC day
    resets_at: Optional[datetime]  # the end of the day
    open_sessions: Optional[int]

    @classmethod
    def _read(cls, said: Fields) -> AgentUsage:
        return cls(
            said.usd_or_none("value_used_usd_today"), said.moment_or_none("resets_at"), said.integer_or_none("open_sessions")
        )


def or_null(name: str, limit: Union[int, NoLimit, None]) -> Dict[str, Any]:
    """Returns the member of a body: none for a limit that stays, null for one that is removed."""
    return {} if limit is None else {name: None if limit is NO_LIMIT else limit}


def usd_or_null(name: str, limit: Union[Amount, NoLimit, None]) -> Dict[str, Any]:
    """Like or_null, for an amount."""
    if limit is None:
        return {}
    return {name: None if isinstance(limit, NoLimit) else usd(limit)}
