"""The face of the service that an agent sees."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Optional, Tuple

from . import batch, environment, events, sessions, transactions
from .batch import Charge, Result
from .calls import Caller, end_of
from .credential import Credential
from .events import Event
from .sessions import Session, SessionSummary
from .tokens import Tokens
from .transactions import Transaction, TransactionInfo
from .wire import Seconds, seconds


class Agent:
    """Calls the service as one agent, with tokens that it gets, keeps and renews by itself. Client.agent makes one. It
    should live as long as the process, and all threads may share it: each new Agent exchanges the secret anew."""

    def __init__(self, caller: Caller, tokens: Tokens, id: str) -> None:
        self._caller = caller
        self._tokens = tokens
        self.id = id

    @classmethod
    def from_env(cls) -> Agent:
        """The agent whose id and secret are in REMIT_AGENT and REMIT_SECRET, at the service of Client.from_env."""
        from .client import Client  # which imports this module

        environment.require(environment.AGENT, environment.SECRET)
        return Client.from_env().agent(
            environment.identifier(environment.AGENT), environment.credential(environment.SECRET)
        )

    def __repr__(self) -> str:
        return f"Agent({self.id!r})"

    def token(self, *, timeout: Optional[float] = None) -> Credential:
        """An access token for calls that this package does not make, such as those through a gateway. It is valid for a
        while yet; ask again before each use instead of keeping it."""
        return self._tokens.get(end_of(timeout))

    def refresh(self, *, timeout: Optional[float] = None) -> None:
        """Replaces the access token now, however long it would live. The one before stays valid until it expires."""
        self._tokens.renew(end_of(timeout))

    def session(self, id: str) -> Session:
        """The agent's session with this id. Nothing is sent."""
        return Session(self._caller, id)

    def sessions(self, *, status: Optional[str] = None, timeout: Optional[float] = None) -> Iterator[SessionSummary]:
        """Yields the agent's sessions, newest first. The timeout is that of each page."""
        return sessions.every(self._caller, status, None, timeout)

    def charge_many(
        self, charges: Iterable[Charge], *, idempotency_key: Optional[str] = None, timeout: Optional[float] = None
    ) -> Tuple[Result, ...]:
        """Makes up to 500 charges in one request, each all or nothing, and returns their results in the same order, also
        if all of them are refusals. Each Charge needs its session_id."""
        return batch.charge_many(self._caller, charges, idempotency_key, timeout)

    def begin(
        self,
        action_type: str,
        *,
        pre_state: Optional[Mapping[str, Any]] = None,
        expires_in: Optional[Seconds] = None,
        reversible: bool = True,
        metadata: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Transaction:
        """Begins a transaction without a session: it keeps a prior state and a decision, and holds no value."""
        return transactions.begin(
            self._caller,
            idempotency_key,
            timeout,
            action_type=action_type,
            pre_state={} if pre_state is None else pre_state,
            expires_in_seconds=seconds(expires_in),
            reversible=reversible,
            metadata=metadata,
        )

    def transaction(self, id: str) -> Transaction:
        """The agent's transaction with this id, in whatever state it is. Nothing is sent."""
        return Transaction(self._caller, id)

    def transactions(
        self,
        *,
        status: Optional[str] = None,
        session_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Iterator[TransactionInfo]:
        """Yields the agent's transactions, newest first, without their states and metadata."""
        return transactions.every(self._caller, status, session_id, None, timeout)

    def events(self, after: str = "", *, wait: bool = True) -> Iterator[Event]:
        """Yields the agent's audit trail, oldest first, from after the event with the given id, or from the oldest that is
        kept. At the end of the trail it waits for what comes next, or ends if wait is False. It ends with the first error
        that retries did not mend; to go on, call it again with the id of the last event."""
        return events.follow(self._caller, self.id, after, wait)
