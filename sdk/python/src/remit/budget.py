"""The budget of an organization."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Optional

from .calls import Call, Caller
from .money import Amount
from .retry import Semantics
from .url import path
from .wire import Fields, usd


@dataclass(frozen=True)
class Budget:
    """What an organization's root sessions may spend in a period. A root session reserves its max_value when it is created or
    topped up, and gives back what it did not use when it is over."""

    max_value: Decimal
    period: str  # day, month or none
    value_reserved: Decimal
    value_used: Decimal
    remaining: Decimal
    period_started_at: Optional[datetime]  # None: the period is none
    resets_at: Optional[datetime]

    @classmethod
    def _read(cls, said: Fields) -> Budget:
        return cls(
            max_value=said.usd("max_value_usd"),
            period=said.text("period"),
            value_reserved=said.usd("value_reserved_usd"),
            value_used=said.usd("value_used_usd"),
            remaining=said.usd("remaining_usd"),
            period_started_at=said.moment_or_none("period_started_at"),
            resets_at=said.moment_or_none("resets_at"),
        )


def put(caller: Caller, max_value: Amount, period: str, timeout: Optional[float]) -> Budget:
    call = Call("PUT", path("budget"), {"max_value_usd": usd(max_value), "period": period}, Semantics.IDEMPOTENT)
    return caller.ask(call, lambda said: Budget._read(Fields(said)), timeout)


def get(caller: Caller, timeout: Optional[float]) -> Budget:
    return caller.ask(Call("GET", path("budget")), lambda said: Budget._read(Fields(said)), timeout)


def delete(caller: Caller, timeout: Optional[float]) -> None:
    return caller.ask_raw(Call("DELETE", path("budget"), semantics=Semantics.IDEMPOTENT, gone=True), lambda _: None, timeout)
