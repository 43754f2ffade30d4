"""A session is an agent's budget. This module has the calls of agents and organizations on sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Tuple

from . import connect, environment, transactions
from .batch import Charge, Result, charge_many
from .calls import PER_PAGE, Call, Caller
from .lease import Lease, open_lease
from .money import Amount
from .retry import Semantics
from .transactions import Transaction
from .url import path
from .usage import Usage
from .wire import Fields, Seconds, names, present, seconds, usd, usd_or_none


@dataclass(frozen=True)
class SessionInfo:
    """A session as the service shows it."""

    id: str
    agent_id: str
    status: str  # active, completed, expired or revoked
    max_actions: int
    action_count: int
    max_value: Decimal
    value_used: Decimal
    value_held: Decimal  # held by pending transactions and open leases
    value_overage: Decimal  # spent by transactions beyond the limit
    value_committed: Decimal  # sum of all charges and commits; rollbacks do not lower it
    max_committed: Optional[Decimal]  # the limit of value_committed
    max_lease_seconds: int  # 0: no leases
    scopes: Tuple[str, ...]
    metadata: Dict[str, Any]
    expires_at: datetime
    created_at: datetime
    ended_at: Optional[datetime]

    @classmethod
    def _read(cls, said: Fields) -> SessionInfo:
        return cls(
            id=said.text("id"),
            agent_id=said.text("agent_id"),
            status=said.text("status"),
            max_actions=said.integer("max_actions"),
            action_count=said.integer("action_count"),
            max_value=said.usd("max_value_usd"),
            value_used=said.usd("value_used_usd"),
            value_held=said.usd("value_held_usd"),
            value_overage=said.usd("value_overage_usd", Decimal(0)),
            value_committed=said.usd("value_committed_usd", Decimal(0)),
            max_committed=said.usd_or_none("max_committed_usd"),
            max_lease_seconds=said.integer("max_lease_seconds", 0),
            scopes=said.texts("scopes"),
            metadata=said.mapping("metadata") or {},
            expires_at=said.moment("expires_at"),
            created_at=said.moment("created_at"),
            ended_at=said.moment_or_none("ended_at"),
        )


@dataclass(frozen=True)
class SessionSummary:
    """A session as lists show it."""

    id: str
    agent_id: str
    status: str  # active, completed, expired or revoked
    action_count: int
    max_actions: int
    value_used: Decimal
    max_value: Decimal
    expires_at: datetime

    @classmethod
    def _read(cls, said: Fields) -> SessionSummary:
        return cls(
            id=said.text("id"),
            agent_id=said.text("agent_id"),
            status=said.text("status"),
            action_count=said.integer("action_count"),
            max_actions=said.integer("max_actions"),
            value_used=said.usd("value_used_usd", Decimal(0)),
            max_value=said.usd("max_value_usd", Decimal(0)),
            expires_at=said.moment("expires_at"),
        )


class Session:
    """An agent's session. Agent.session makes one."""

    def __init__(self, caller: Caller, id: str) -> None:
        self._caller = caller
        self._path = path("sessions", id)
        self.id = id

    @classmethod
    def from_env(cls) -> Session:
        """Returns the session whose id is in REMIT_SESSION, of the agent of Agent.from_env."""
        environment.require(environment.AGENT, environment.SECRET, environment.SESSION)
        agent, secret = environment.identifier(environment.AGENT), environment.credential(environment.SECRET)
        caller, _ = connect.agent(connect.from_env(), agent, secret)
        return cls(caller, environment.identifier(environment.SESSION))

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def charge(
        self,
        action_type: Optional[str] = None,
        value: Amount = 0,
        *,
        count: int = 1,
        scope: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Usage:
        """Charges an action before the agent takes it, and returns the new usage and what remains.

        A charge succeeds in full or not at all: LimitReached, SessionNotActive and InsufficientScope mean that nothing was
        charged. value is for all count (1 to 1000) actions together. The token and the session must have the scope.
        """
        body = Charge(action_type, value, count, scope)._body()
        call = self._caller.service.keyed(self._path + "/actions", idempotency_key, body)
        return self._caller.ask(call, lambda said: Usage._read(Fields(said)), timeout)

    def charge_many(
        self, charges: Iterable[Charge], *, idempotency_key: Optional[str] = None, timeout: Optional[float] = None
    ) -> Tuple[Result, ...]:
        """Sends up to 500 charges to this session in one request; see Agent.charge_many."""
        own = [replace(charge, session_id=self.id) for charge in charges]
        return charge_many(self._caller, own, idempotency_key, timeout)

    def lease(self, *, expires_in: Seconds = 60, timeout: Optional[float] = None) -> Lease:
        """Leases a part of the budget, to charge without a request for each charge; see Lease. Use it with `with`.

        expires_in is how long one grant of the service may be spent at most, from 1 second to 1 hour; the session's max_lease
        may shorten it. After a crash, what was granted and not settled counts as spent. Raises the same errors as charge, such
        as LimitReached with the limit max_lease_seconds if the session allows no leases.
        """
        return open_lease(self._caller, self, seconds(expires_in) or 0, timeout)

    def begin(
        self,
        action_type: str,
        *,
        pre_state: Optional[Mapping[str, Any]] = None,
        value: Amount = 0,
        expires_in: Optional[Seconds] = None,
        reversible: bool = True,
        metadata: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Transaction:
        """Begins a transaction. It counts one action and holds the value until it is committed, is rolled back or expires, by
        default after five minutes. Use it with `with`; see Transaction.

        Raises the same errors as charge. After OutcomeUnknown there is nothing to do: if the transaction exists, its hold is
        released when it expires.
        """
        return transactions.begin(
            self._caller,
            idempotency_key,
            timeout,
            action_type=action_type,
            pre_state={} if pre_state is None else pre_state,
            session_id=self.id,
            value_usd=usd(value),
            expires_in_seconds=seconds(expires_in),
            reversible=reversible,
            metadata=metadata,
        )

    def get(self, *, timeout: Optional[float] = None) -> SessionInfo:
        """Gets the session."""
        return get(self._caller, self.id, timeout)

    def end(self, *, timeout: Optional[float] = None) -> None:
        """Ends the session and rolls back its pending transactions. Idempotent. Raises SessionNotActive if the session has
        expired or was revoked."""
        end(self._caller, self.id, timeout)


def get(caller: Caller, id: str, timeout: Optional[float]) -> SessionInfo:
    return caller.ask(Call("GET", path("sessions", id)), lambda said: SessionInfo._read(Fields(said)), timeout)


def end(caller: Caller, id: str, timeout: Optional[float]) -> None:
    caller.ask(Call("POST", path("sessions", id) + "/end", semantics=Semantics.IDEMPOTENT), Fields, timeout)


def create(
    caller: Caller,
    agent_id: str,
    idempotency_key: Optional[str],
    timeout: Optional[float],
    scopes: Optional[Iterable[str]],
    metadata: Optional[Mapping[str, Any]],
    limits: Mapping[str, Any],
) -> SessionInfo:
    named = None if scopes is None else names(scopes)
    body = {"agent_id": agent_id, **limits, **present(scopes=named, metadata=metadata)}
    call = caller.service.keyed(path("sessions"), idempotency_key, body)
    return caller.ask(call, lambda said: SessionInfo._read(Fields(said)), timeout)


def update(
    caller: Caller,
    id: str,
    idempotency_key: Optional[str],
    timeout: Optional[float],
    limits: Mapping[str, Any],
    added: Mapping[str, Any],
) -> SessionInfo:
    call = Call("PATCH", path("sessions", id), limits, Semantics.IDEMPOTENT, idempotency_key or "")
    if added or idempotency_key is not None:  # repeated additions would count twice
        call = caller.service.keyed(call.path, idempotency_key, {**limits, **added}, "PATCH")
    return caller.ask(call, lambda said: SessionInfo._read(Fields(said)), timeout)


def limits(
    max_actions: Optional[int], max_value: Optional[Amount], expires_in: Optional[Seconds], max_lease: Optional[Seconds]
) -> Mapping[str, Any]:
    """Returns the limits that a new session and a changed session have in common."""
    return present(
        max_actions=max_actions,
        max_value_usd=usd_or_none(max_value),
        expires_in_seconds=seconds(expires_in),
        max_lease_seconds=seconds(max_lease),
    )


def every(
    caller: Caller, status: Optional[str], agent_id: Optional[str], timeout: Optional[float]
) -> Iterator[SessionSummary]:
    return caller.pages(path("sessions"), PER_PAGE, SessionSummary._read, timeout, status=status, agent_id=agent_id)
