"""The usage of a session."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from .wire import Fields


@dataclass(frozen=True)
class Usage:
    """What a session has used, and what remains. Pending transactions hold value_held; it is not part of what remains."""

    action_count: int
    max_actions: int
    remaining_actions: int
    value_used: Decimal
    max_value: Decimal
    value_held: Decimal
    remaining_value: Decimal
    expires_at: datetime
    would_refuse: str  # the limit that would have refused a charge to a session that only observes its limits; empty: none

    @classmethod
    def _read(cls, said: Fields) -> Usage:
        return cls(
            action_count=said.integer("action_count"),
            max_actions=said.integer("max_actions"),
            remaining_actions=said.integer("remaining_actions"),
            value_used=said.usd("value_used_usd"),
            max_value=said.usd("max_value_usd"),
            value_held=said.usd("value_held_usd"),
            remaining_value=said.usd("remaining_value_usd"),
            expires_at=said.moment("expires_at"),
            would_refuse=said.text("would_refuse", ""),
        )
