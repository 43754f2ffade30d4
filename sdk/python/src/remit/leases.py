"""The calls of leases, and what the service says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, NamedTuple, Optional

from .calls import Call, Caller, random_key
from .money import micro, usd
from .retry import Semantics
from .url import path
from .wire import Fields, present


class Size(NamedTuple):
    """An amount of actions and of micro-dollars."""

    actions: int
    value: int


@dataclass(frozen=True)
class Granted:
    """A lease as the service granted it."""

    id: str
    size: Size
    lifetime: float  # seconds

    @classmethod
    def _read(cls, said: Fields) -> Granted:
        lifetime = said.moment("expires_at") - said.moment("created_at")
        size = Size(said.integer("max_actions"), micro(said.usd("max_value_usd")))
        return cls(said.text("id"), size, lifetime.total_seconds())


@dataclass(frozen=True)
class Settled:
    """The result of a settlement or a grant: the lease to spend next."""

    renewed: Optional[Granted]

    @classmethod
    def _read(cls, said: Fields) -> Settled:
        renewed = said.mapping("renewed")
        return cls(None if renewed is None else Granted._read(Fields(renewed)))


def grant_call(caller: Caller, session_id: str, size: Size, seconds: int) -> Call:
    """Leases what fits of the size. A lease without a key could be lost for good, so it has one on a client without keys too."""
    return caller.service.keyed(path("sessions", session_id) + "/leases", random_key(), _grant_body(size, seconds))


def settle_call(id: str, used: Size, types: Mapping[str, Size], renewal: Optional[Size], seconds: int) -> Call:
    """Settles a lease, and asks for the next one if there is a size. It needs no key: the service answers the same numbers for
    the same lease as it did the first time, with the same renewal, for an hour."""
    by_type = {type: {"action_count": of.actions, "value_usd": usd(of.value)} for type, of in types.items()}
    body = present(
        action_count=used.actions,
        value_used_usd=usd(used.value),
        by_action_type=by_type or None,
        renew=None if renewal is None else _grant_body(renewal, seconds),
    )
    return Call("POST", path("leases", id) + "/settle", body, Semantics.IDEMPOTENT)


def _grant_body(size: Size, seconds: int) -> Dict[str, Any]:
    value = usd(size.value)
    return {"max_actions": size.actions, "max_value_usd": value, "expires_in_seconds": seconds, "partial": True}
