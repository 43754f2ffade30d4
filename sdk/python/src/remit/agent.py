"""The calls that an agent makes."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Tuple, Type, TypeVar

from . import batch, connect, delegation, events, sessions, transactions
from .batch import Charge, Result
from .calls import Caller, end_of
from .credential import Credential
from .delegation import DelegatedToken
from .events import Event
from .exchange import wanted
from .proofs import Proofs
from .runtime import Source, now
from .sessions import Session, SessionSummary
from .transactions import Transaction, TransactionInfo
from .wire import Seconds, seconds


A = TypeVar("A", bound="OneAgent")


class OneAgent:
    """What Agent and AsyncAgent have in common."""

    _concurrent = False  # for asyncio

    def __init__(self, caller: Caller, tokens: Source, id: str) -> None:
        self._caller = caller
        self._tokens = tokens
        self.id = id

    @classmethod
    def from_env(cls: Type[A]) -> A:
        """Returns the agent with the id REMIT_AGENT, at the service of Client.from_env. Its secret is in REMIT_SECRET; or its private
        key or the token of its workload is in the file REMIT_KEY_FILE or REMIT_ASSERTION_FILE. REMIT_RESOURCE and REMIT_DPOP, if set,
        are resource and dpop of Client.agent."""
        return cls(*connect.agent_from_env(cls._concurrent))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def _renew(self, end: float) -> None:
        await now(self._tokens.renew(end))

    async def _prove(self, method: str, url: str, end: float) -> Dict[str, str]:
        access, proofs = await now(self._tokens.get(end)), self._caller.proofs
        if proofs is None:
            return {"Authorization": f"Bearer {access.reveal()}"}
        own = Proofs(proofs.key)  # without the service's nonces
        proof = own.make(method, url.partition("#")[0].partition("?")[0], access)
        return {"Authorization": f"DPoP {access.reveal()}", "DPoP": proof.reveal()}


class Agent(OneAgent):
    """Calls the service as one agent. It gets, caches and renews its tokens. Client.agent makes one. Keep one Agent for the
    lifetime of the process and share it between threads, because each new Agent exchanges its credential again."""

    _transaction = Transaction

    def token(self, *, timeout: Optional[float] = None) -> Credential:
        """Returns an access token for your own HTTP calls, such as those through a proxy. It stays valid for a while. Call
        token again before each use instead of storing the token."""
        return self._caller.run(now(self._tokens.get(end_of(timeout))))

    def refresh(self, *, timeout: Optional[float] = None) -> None:
        """Replaces the access token now. The previous one stays valid until it expires."""
        return self._caller.run(self._renew(end_of(timeout)))

    def prove(self, method: str, url: str, *, timeout: Optional[float] = None) -> Dict[str, str]:
        """Returns the headers that authenticate one request of your own to another server, such as one behind a proxy:
        Authorization, and DPoP if the agent's tokens are bound to a key. A server takes a proof once: call it for each request."""
        return self._caller.run(self._prove(method, url, end_of(timeout)))

    def delegate(
        self,
        child_session_id: str,
        *,
        scopes: Optional[Iterable[str]] = None,
        resource: Optional[Iterable[str]] = None,
        timeout: Optional[float] = None,
    ) -> DelegatedToken:
        """Returns a token for a child of one of the agent's sessions (Session.create_child), for the process that works on it:
        Client.agent_with_token uses it. The agent needs the scope sessions:delegate. The token has at most the scopes of the agent, of
        the child session and of its agent, and ends with the session. If the agent's tokens are bound to a key, it is, too."""
        issuer = Caller(self._caller.service, proofs=self._caller.proofs)
        steps = delegation.delegate(issuer, self._tokens, child_session_id, wanted(resource, scopes), timeout)
        return self._caller.run(steps)

    def session(self, id: str) -> Session:
        """Returns the agent's session with this id. Sends nothing."""
        return Session(self._caller, self.id, id)

    def sessions(self, *, status: Optional[str] = None, timeout: Optional[float] = None) -> Iterator[SessionSummary]:
        """Yields the agent's sessions, newest first. The timeout applies to each page."""
        return sessions.every(self._caller, status, None, timeout)

    def charge_many(
        self, charges: Iterable[Charge], *, idempotency_key: Optional[str] = None, timeout: Optional[float] = None
    ) -> Tuple[Result, ...]:
        """Sends up to 500 charges in one request and returns their results in the same order. Each charge succeeds or fails on
        its own; charge_many raises nothing even if all of them fail. Each Charge needs its session_id."""
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
        """Begins a transaction without a session. It records the state before an action and the outcome, and holds no
        value."""
        return self._caller.run(transactions.begin(
            self._caller,
            self._transaction,
            idempotency_key,
            timeout,
            action_type=action_type,
            pre_state={} if pre_state is None else pre_state,
            expires_in_seconds=seconds(expires_in),
            reversible=reversible,
            metadata=metadata,
        ))

    def transaction(self, id: str) -> Transaction:
        """Returns the agent's transaction with this id, in any state. Sends nothing."""
        return Transaction(self._caller, id)

    def transactions(
        self,
        *,
        status: Optional[str] = None,
        session_id: Optional[str] = None,
        settled_by: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Iterator[TransactionInfo]:
        """Yields the agent's transactions, newest first, without pre_state, post_state and metadata. With settled_by="expiry", those
        whose hold was spent because it expired."""
        return transactions.every(self._caller, status, session_id, None, settled_by, timeout)

    def events(self, after: str = "", *, wait: bool = True) -> Iterator[Event]:
        """Yields the agent's audit trail, oldest first. It starts after the event with the given id, or at the oldest event
        that the service keeps. At the end of the trail it waits for new events, also when the service is unavailable for long.
        After a restart of your program, call it with the id of the last event that you have processed. With wait=False it ends
        with the last event or its first error."""
        return events.follow(self._caller, self.id, after, wait)
