"""A session is a budget that an agent acts within. Here is what agents and organizations do with one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Tuple

from . import environment, transactions
from .batch import Charge, Result, charge_many
from .calls import PER_PAGE, Call, Caller
from .money import Amount
from .retry import Effect
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
    value_held: Decimal  # by pending transactions
    value_overage: Decimal  # spent by transactions, and beyond the limit
    value_committed: Decimal  # ever charged or committed; rollbacks do not lower it
    max_committed: Optional[Decimal]  # its limit
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
    """An agent's session. Agent.session makes one, and sends nothing."""

    def __init__(self, caller: Caller, id: str) -> None:
        self._caller = caller
        self._path = path("sessions", id)
        self.id = id

    @classmethod
    def from_env(cls) -> Session:
        """The session whose id is in REMIT_SESSION, of the agent of Agent.from_env."""
        from .agent import Agent  # which imports this module

        environment.require(environment.AGENT, environment.SECRET, environment.SESSION)
        return Agent.from_env().session(environment.identifier(environment.SESSION))

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
        """Charges an action, before it is taken, and returns what is used and remains then.

        It is all or nothing: a LimitReached charged nothing, and so did a SessionNotActive and an InsufficientScope.
        value is that of all count (1 to 1000) actions together. The token and the session must have the scope.
        """
        body = Charge(action_type, value, count, scope)._body()
        call = self._caller.service.keyed(self._path + "/actions", idempotency_key, body)
        return self._caller.ask(call, lambda said: Usage._read(Fields(said)), timeout)

    def charge_many(
        self, charges: Iterable[Charge], *, idempotency_key: Optional[str] = None, timeout: Optional[float] = None
    ) -> Tuple[Result, ...]:
        """Makes up to 500 charges to this session in one request, each all or nothing; see Agent.charge_many."""
        own = [replace(charge, session_id=self.id) for charge in charges]
        return charge_many(self._caller, own, idempotency_key, timeout)

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
        """Begins a transaction: it counts one action and holds the value until it is committed, rolled back or expires,
        by default after five minutes. Use it with `with`; see Transaction.

        Errors are those of charge. After an OutcomeUnknown there is nothing to settle: what it may hold is released when
        it expires.
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
        """Reads the session."""
        return get(self._caller, self.id, timeout)

    def end(self, *, timeout: Optional[float] = None) -> None:
        """Ends the session and rolls its pending transactions back. To end it again changes nothing; of one that has
        expired or was revoked, SessionNotActive tells."""
        end(self._caller, self.id, timeout)


def get(caller: Caller, id: str, timeout: Optional[float]) -> SessionInfo:
    return caller.ask(Call("GET", path("sessions", id)), lambda said: SessionInfo._read(Fields(said)), timeout)


def end(caller: Caller, id: str, timeout: Optional[float]) -> None:
    caller.ask(Call("POST", path("sessions", id) + "/end", effect=Effect.REPEATS), Fields, timeout)


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
    call = Call("PATCH", path("sessions", id), limits, Effect.REPEATS, idempotency_key or "")
    if added or idempotency_key is not None:  # what is added twice would count twice
        call = caller.service.keyed(call.path, idempotency_key, {**limits, **added}, "PATCH")
    return caller.ask(call, lambda said: SessionInfo._read(Fields(said)), timeout)


def limits(max_actions: Optional[int], max_value: Optional[Amount], expires_in: Optional[Seconds]) -> Mapping[str, Any]:
    """What creating a session and changing its limits have in common."""
    return present(max_actions=max_actions, max_value_usd=usd_or_none(max_value), expires_in_seconds=seconds(expires_in))


def every(
    caller: Caller, status: Optional[str], agent_id: Optional[str], timeout: Optional[float]
) -> Iterator[SessionSummary]:
    return caller.pages(path("sessions"), PER_PAGE, SessionSummary._read, timeout, status=status, agent_id=agent_id)
