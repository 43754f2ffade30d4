"""A session is an agent's budget. This module has the calls of agents and organizations on sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import (
    TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Type, TypeVar, Union,
)

from . import connect, environment, more, sessionkeys, transactions, usagereport
from .action import Action
from .ask import Asking, asks
from .batch import Charge, Result, charge_many
from .block import block
from .calls import PER_PAGE, Call, Caller, end_of, nothing
from .credential import valid
from .lease import Lease, open_lease
from .limits import NoLimit, usd_or_null
from .meteredcall import MeteredCall
from .money import Amount
from .more import MoreRequest
from .prices import Prices
from .retry import Semantics
from .transactions import DryRun, Transaction
from .url import path
from .usage import Usage
from .usagereport import UsageLine
from .wire import Fields, Seconds, each, names, present, seconds, usd, usd_or_none

if TYPE_CHECKING:
    from .parameters import P

_LONGEST_TREE = 16 << 20  # bytes

R = TypeVar("R")
S = TypeVar("S", bound="OneSession")


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
    value_overage: Decimal  # spent beyond limits, by transactions and leases
    value_committed: Decimal  # sum of all charges and commits; rollbacks do not lower it
    max_committed: Optional[Decimal]  # the limit of value_committed
    max_lease_seconds: int  # 0: no leases
    max_value_per_action: Optional[Decimal]  # of one charge or hold
    enforcement: str  # enforce or observe
    thresholds: Optional[Tuple[int, ...]]  # percents that the event budget.threshold tells; None: 80 and 100
    observed_refusals: int  # what limits would have refused
    suspended_at: Optional[datetime]
    suspension_reason: str  # empty: none
    parent_session_id: str  # empty: none
    # What the session's open children hold of it. action_count, value_used and value_held do not contain it.
    actions_delegated: int
    value_delegated: Decimal
    scopes: Tuple[str, ...]
    metadata: Dict[str, Any]
    expires_at: datetime
    created_at: datetime
    ended_at: Optional[datetime]

    @classmethod
    def _read(cls, said: Fields) -> SessionInfo:
        return cls(**cls._members(said))

    @staticmethod
    def _members(said: Fields) -> Dict[str, Any]:
        return dict(
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
            max_value_per_action=said.usd_or_none("max_value_usd_per_action"),
            enforcement=said.text("enforcement", "enforce"),
            thresholds=said.integers_or_none("thresholds"),
            observed_refusals=said.integer("observed_refusals", 0),
            suspended_at=said.moment_or_none("suspended_at"),
            suspension_reason=said.text("suspension_reason", ""),
            parent_session_id=said.text("parent_session_id", ""),
            actions_delegated=said.integer("actions_delegated", 0),
            value_delegated=said.usd("value_delegated_usd", Decimal(0)),
            scopes=said.texts("scopes"),
            metadata=said.mapping("metadata") or {},
            expires_at=said.moment("expires_at"),
            created_at=said.moment("created_at"),
            ended_at=said.moment_or_none("ended_at"),
        )


@dataclass(frozen=True)
class SessionTree(SessionInfo):
    """A session with its descendants."""

    children: Tuple[SessionTree, ...]
    # Some children are missing, because a tree is read with at most 1,000 sessions. To see them, read the tree of this session.
    children_truncated: bool

    @classmethod
    def _read(cls, said: Fields) -> SessionTree:
        children = tuple(each(said.members("children"), cls._read))
        return cls(children=children, children_truncated=said.flag("children_truncated", False), **cls._members(said))


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


class OneSession:
    """What Session and AsyncSession have in common."""

    _concurrent = False  # for asyncio

    def __init__(self, caller: Caller, agent_id: str, id: str) -> None:
        self._caller = caller
        self._agent_id = agent_id
        self._path = path("sessions", id)
        self.id = id

    @classmethod
    def from_env(cls: Type[S]) -> S:
        """Returns the session whose key is in REMIT_SESSION_KEY; or whose id is in REMIT_SESSION, of the agent of Agent.from_env."""
        if environment.identifier(environment.SESSION_KEY):
            environment.require(environment.SESSION_KEY)
            key = valid(environment.credential(environment.SESSION_KEY))
            return cls(Caller(connect.from_env(cls._concurrent), bearer=key), *sessionkeys.named_by(key))
        environment.require_agent(environment.SESSION)
        caller, _, agent = connect.agent_from_env(cls._concurrent)
        return cls(caller, agent, environment.identifier(environment.SESSION))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class Session(OneSession):
    """An agent's session. Agent.session makes one."""

    _transaction = Transaction
    _metered_call = MeteredCall

    def charge(
        self,
        action_type: Optional[str] = None,
        value: Amount = 0,
        *,
        count: int = 1,
        scope: Optional[str] = None,
        on_limit: Optional[str] = None,
        reason: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Usage:
        """Charges an action before the agent takes it, and returns the new usage and what remains.

        A charge succeeds in full or not at all: LimitReached, SessionNotActive and InsufficientScope mean that nothing was
        charged. value is for all count (1 to 1000) actions together. The token and the session must have the scope.

        With on_limit="ask" and a reason, a charge beyond the session's limit asks the organization for what is missing, waits
        for the decision and goes on. Give it a timeout. Without an approval it raises RequestNotApproved.
        """
        body = Charge(action_type, value, count, scope)._body()

        async def once(key: Optional[str], left: Optional[float]) -> Usage:
            call = self._caller.service.keyed(self._path + "/actions", key, body)
            return await self._caller.asked(call, lambda said: Usage._read(Fields(said)), left)

        if not asks(on_limit):
            return self._caller.run(once(idempotency_key, timeout))
        asking = Asking(self._caller, self.id, reason, count, value)
        return self._caller.run(asking.charge(idempotency_key, end_of(timeout), once))

    def dry_run_charge(
        self,
        action_type: Optional[str] = None,
        value: Amount = 0,
        *,
        count: int = 1,
        scope: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Usage:
        """Returns what charge would return now, the usage after it included, and charges nothing. Raises the same errors."""
        body = {**Charge(action_type, value, count, scope)._body(), "dry_run": True}
        return self._caller.ask(Call("POST", self._path + "/actions", body), lambda said: Usage._read(Fields(said)), timeout)

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
        on_expiry: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        on_limit: Optional[str] = None,
        reason: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Transaction:
        """Begins a transaction. It counts one action and holds the value until it is committed, is rolled back or expires, by
        default after five minutes. Use it with `with`; see Transaction. With on_expiry="commit" the hold is spent when it expires,
        also after the session has ended, and else released.

        Raises the same errors as charge. After OutcomeUnknown there is nothing to do: if the transaction exists, its hold is
        released when it expires.
        """
        amount, lasts = usd(value), seconds(expires_in)

        async def once(key: Optional[str], left: Optional[float]) -> Transaction:
            return await transactions.begin(
                self._caller, self._transaction, key, left, action_type=action_type, pre_state={} if pre_state is None else pre_state,
                session_id=self.id, value_usd=amount, expires_in_seconds=lasts, reversible=reversible,
                on_expiry=on_expiry, metadata=metadata,
            )

        if not asks(on_limit):
            return self._caller.run(once(idempotency_key, timeout))
        asking = Asking(self._caller, self.id, reason, 1, value)
        return self._caller.run(asking.charge(idempotency_key, end_of(timeout), once))

    transaction = block(begin)

    def action(
        self, action_type: str, value: Amount = 0, *, scope: Optional[str] = None, expires_in: Optional[Seconds] = None
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Returns a decorator for a function: each call of it is charged as one action.

            @session.action("search", value="0.01", scope="search")
            def search(query: str) -> List[str]: ...

        It holds the value before the call and raises, without a call, what begin raises, and InsufficientScope. Then it commits the
        value, or rolls back if the function raises. A function that costs less or more declares the parameter transaction, by
        default None: it gets the Transaction, and commits what it cost. With a scope, each call asks the service once more.
        Raises TypeError for generators.
        """
        action = Action(action_type, value, scope, expires_in)
        return lambda function: action.around(self, function)

    def model_call(
        self,
        prices: Prices,
        request: Mapping[str, Any],
        *,
        models: Optional[Mapping[str, str]] = None,
        on_limit: Optional[str] = None,
        reason: Optional[str] = None,
        action_type: str = "llm.call",
        expires_in: float = 600,
    ) -> MeteredCall:
        """Returns a block for one call of a model, which you make in it by the client of OpenAI or Anthropic; see MeteredCall.

            with session.model_call(prices, request) as call:
                answer = call.read(client.chat.completions.create(**request))

        request has all arguments of chat.completions.create, responses.create or messages.create that the call costs by. Before the
        block, the most that it can cost is held. A hold that does not fit raises LimitReached, and the block is not entered. Nor is it
        with UnknownModel, and with UnboundedCall for a request that nothing bounds or prices.

        models maps the names in requests to those in the price table. on_limit and reason are those of begin. expires_in is after how
        many seconds a hold expires, and is spent, if this process ends; a call may last longer."""
        return self._metered_call(self, prices, request, models, on_limit, reason, action_type, expires_in)

    def dry_run_begin(self, action_type: str, *, value: Amount = 0, timeout: Optional[float] = None) -> DryRun:
        """Returns whether begin would succeed now, and begins nothing. Raises the same errors."""
        return transactions.dry_run(
            self._caller, timeout, action_type=action_type, pre_state={}, session_id=self.id, value_usd=usd(value)
        )

    def create_child(
        self,
        *,
        agent_id: Optional[str] = None,
        max_actions: Optional[int] = None,
        max_value: Optional[Amount] = None,
        expires_in: Optional[Seconds] = None,
        scopes: Optional[Iterable[str]] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        max_committed: Optional[Amount] = None,
        max_lease: Optional[Seconds] = None,
        max_value_per_action: Optional[Amount] = None,
        enforcement: Optional[str] = None,
        thresholds: Optional[Iterable[int]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> SessionInfo:
        """Creates a child session: a part of this session's budget, by default for the same agent. Its limits, scopes and
        lifetime lie within those of this session, which set them aside. max_actions and max_value left out are the service's
        defaults, or what this session has left if that is less. What the child does not use comes back when it is over.
        The agent needs the scope sessions:delegate. Raises LimitReached for a child beyond this session, and InsufficientScope
        for scopes beyond it."""
        own = {
            **limits(max_actions, max_value, expires_in, max_lease, max_value_per_action, enforcement, thresholds),
            **present(max_committed_usd=usd_or_none(max_committed), parent_session_id=self.id),
        }
        of = self._agent_id if agent_id is None else agent_id
        return create(self._caller, of, idempotency_key, timeout, scopes, metadata, own)

    def tree(self, *, timeout: Optional[float] = None) -> SessionTree:
        """Gets the session with its descendants."""
        return tree(self._caller, self.id, timeout)

    def request_more(
        self,
        reason: str,
        *,
        add_actions: Optional[int] = None,
        add_value: Optional[Amount] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> MoreRequest:
        """Asks for more than the session's limits allow. await_request waits for the decision. A session has at most 8 pending
        requests; beyond that it raises LimitReached with the limit max_pending_requests."""
        body = more.body(reason, add_actions, add_value)
        return self._caller.run(more.ask(self._caller, self.id, idempotency_key, timeout, body))

    def requests(self, *, status: Optional[str] = None, timeout: Optional[float] = None) -> List[MoreRequest]:
        """Lists the session's requests for more, newest first: the pending ones and those decided last."""
        return more.every(self._caller, self.id, status, timeout)

    def get_request(self, id: str, *, timeout: Optional[float] = None) -> MoreRequest:
        """Gets a request for more."""
        return more.get(self._caller, self.id, id, timeout)

    def await_request(self, id: str, *, timeout: Optional[float] = None) -> MoreRequest:
        """Waits until a request for more is decided or its session has ended, also while the service is unavailable. Raises
        Unavailable when the timeout ends first."""
        return self._caller.run(more.await_decision(self._caller, self.id, id, end_of(timeout)))

    def usage(self, *, timeout: Optional[float] = None) -> List[UsageLine]:
        """Reports what the session was used for, by action type, without what its children used. The first 64 types are listed
        apart; the others are together in other. The lines add up to what the session shows."""
        return usagereport.of_session(self._caller, self.id, timeout)

    def get(self, *, timeout: Optional[float] = None) -> SessionInfo:
        """Gets the session."""
        return get(self._caller, self.id, timeout)

    def end(self, *, timeout: Optional[float] = None) -> None:
        """Ends the session and rolls back its pending transactions. Idempotent. Raises SessionNotActive if the session has
        expired or was revoked."""
        return end(self._caller, self.id, timeout)


def get(caller: Caller, id: str, timeout: Optional[float]) -> SessionInfo:
    return caller.ask(Call("GET", path("sessions", id)), lambda said: SessionInfo._read(Fields(said)), timeout)


def tree(caller: Caller, id: str, timeout: Optional[float]) -> SessionTree:
    call = Call("GET", path("sessions", id, "tree"), most=_LONGEST_TREE)
    return caller.ask(call, lambda said: SessionTree._read(Fields(said)), timeout)


def change(caller: Caller, id: str, how: str, reason: Optional[str], timeout: Optional[float]) -> SessionInfo:
    """Suspends or resumes a session."""
    call = Call("POST", path("sessions", id, how), present(reason=reason), Semantics.IDEMPOTENT)
    return caller.ask(call, lambda said: SessionInfo._read(Fields(said)), timeout)


def end(caller: Caller, id: str, timeout: Optional[float]) -> None:
    return caller.ask(Call("POST", path("sessions", id) + "/end", semantics=Semantics.IDEMPOTENT), nothing, timeout)


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
    max_actions: Optional[int],
    max_value: Optional[Amount],
    expires_in: Optional[Seconds],
    max_lease: Optional[Seconds],
    max_value_per_action: Union[Amount, NoLimit, None],
    enforcement: Optional[str],
    thresholds: Optional[Iterable[int]],
) -> Mapping[str, Any]:
    """Returns the limits that a new session and a changed session have in common."""
    given = present(
        max_actions=max_actions,
        max_value_usd=usd_or_none(max_value),
        expires_in_seconds=seconds(expires_in),
        max_lease_seconds=seconds(max_lease),
        enforcement=enforcement,
        thresholds=None if thresholds is None else list(thresholds),
    )
    return {**given, **usd_or_null("max_value_usd_per_action", max_value_per_action)}


def every(
    caller: Caller, status: Optional[str], agent_id: Optional[str], timeout: Optional[float]
) -> Iterator[SessionSummary]:
    return caller.pages(path("sessions"), PER_PAGE, SessionSummary._read, timeout, status=status, agent_id=agent_id)
