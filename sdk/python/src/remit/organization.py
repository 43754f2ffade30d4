"""The face of the service that an organization sees: agents, sessions and limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Tuple, Union

from . import batch, events, sessions, transactions
from .batch import Charge, Result
from .calls import AGENTS_PER_PAGE, Call, Caller
from .credential import Credential, credential, valid
from .events import Event
from .money import Amount
from .retry import Effect
from .sessions import SessionInfo, SessionSummary
from .transactions import Transaction, TransactionInfo
from .url import path
from .wire import Fields, Malformed, Seconds, present, seconds


@dataclass(frozen=True)
class OrganizationInfo:
    """An organization as the service shows it."""

    id: str
    name: str
    api_key: Optional[Credential]  # in the answer to its creation only
    metadata: Dict[str, Any]
    created_at: datetime

    @classmethod
    def _read(cls, said: Fields) -> OrganizationInfo:
        return cls(
            id=said.text("id"),
            name=said.text("name"),
            api_key=said.credential("api_key"),
            metadata=said.mapping("metadata") or {},
            created_at=said.moment("created_at"),
        )


@dataclass(frozen=True)
class AgentInfo:
    """An agent as the service shows it."""

    id: str
    organization_id: str
    name: str
    scopes: Tuple[str, ...]
    status: str  # active or revoked
    description: str
    metadata: Dict[str, Any]
    created_at: datetime
    revoked_at: Optional[datetime]
    secret: Optional[Credential]  # in the answer to its creation only

    @classmethod
    def _read(cls, said: Fields) -> AgentInfo:
        return cls(
            id=said.text("id"),
            organization_id=said.text("org_id"),
            name=said.text("name"),
            scopes=said.texts("scopes"),
            status=said.text("status"),
            description=said.text("description", ""),
            metadata=said.mapping("metadata") or {},
            created_at=said.moment("created_at"),
            revoked_at=said.moment_or_none("revoked_at"),
            secret=said.credential("secret"),
        )


@dataclass(frozen=True)
class RotatedCredential:
    """A new API key or secret. The one before it ends at previous_expires_at, or has ended."""

    credential: Credential
    previous_expires_at: datetime


@dataclass(frozen=True)
class Introspection:
    """What a token is good for now (RFC 7662). Of one that is not active nothing else is known."""

    active: bool
    agent_id: str
    organization_id: str
    scopes: Tuple[str, ...]
    expires_at: Optional[datetime]

    @classmethod
    def _read(cls, said: Fields) -> Introspection:
        expires = said.integer("exp", 0)
        try:
            moment = datetime.fromtimestamp(expires, timezone.utc) if expires else None
        except (ValueError, OverflowError, OSError):
            raise Malformed("exp is not a moment") from None
        return cls(
            active=said.flag("active"),
            agent_id=said.text("agent_id", ""),
            organization_id=said.text("org_id", ""),
            scopes=tuple(said.text("scope", "").split()),
            expires_at=moment,
        )


class Organization:
    """Calls the service with an API key. Client.organization makes one."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def info(self, id: str, *, timeout: Optional[float] = None) -> OrganizationInfo:
        """Reads the organization; id must be its own."""
        call = Call("GET", path("organizations", id))
        return self._caller.ask(call, lambda said: OrganizationInfo._read(Fields(said)), timeout)

    def rotate_key(self, id: str, *, grace: Seconds = 0, timeout: Optional[float] = None) -> RotatedCredential:
        """Gives the organization, by its id, a new API key; the present one stays valid for the grace time. This
        Organization goes on with the key it has. If the answer is lost, so is the new key: without a grace time the
        organization is then locked out."""
        return self._rotate(path("organizations", id) + "/api-key/rotate", "api_key", grace, timeout)

    def create_agent(
        self,
        name: str,
        scopes: Iterable[str] = (),
        *,
        description: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> AgentInfo:
        """Creates an agent. Its secret is in this answer only."""
        body = present(name=name, scopes=list(scopes), description=description, metadata=metadata)
        call = Call("POST", path("agents"), body, Effect.ONCE)
        return self._caller.ask(call, lambda said: AgentInfo._read(Fields(said)), timeout)

    def get_agent(self, id: str, *, timeout: Optional[float] = None) -> AgentInfo:
        """Reads an agent."""
        return self._caller.ask(Call("GET", path("agents", id)), lambda said: AgentInfo._read(Fields(said)), timeout)

    def agents(self, *, status: Optional[str] = None, timeout: Optional[float] = None) -> Iterator[AgentInfo]:
        """Yields the organization's agents, newest first: all, or those that are active or revoked."""
        return self._caller.pages(path("agents"), AGENTS_PER_PAGE, AgentInfo._read, timeout, status=status)

    def revoke_agent(self, id: str, *, timeout: Optional[float] = None) -> None:
        """Ends an agent at once: its secret, its tokens and its open sessions. To revoke it again changes nothing."""
        self._caller.ask(Call("POST", path("agents", id) + "/revoke", effect=Effect.REPEATS), Fields, timeout)

    def rotate_agent_secret(self, id: str, *, grace: Seconds = 0, timeout: Optional[float] = None) -> RotatedCredential:
        """Gives an agent a new secret; the present one stays valid for the grace time. If the answer is lost, so is the
        new secret: rotate again."""
        return self._rotate(path("agents", id) + "/secret/rotate", "secret", grace, timeout)

    def create_session(
        self,
        agent_id: str,
        *,
        max_actions: Optional[int] = None,
        max_value: Optional[Amount] = None,
        expires_in: Optional[Seconds] = None,
        scopes: Optional[Iterable[str]] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> SessionInfo:
        """Gives an agent a session. What is left out gets the service's default, which the answer shows; scopes are the
        agent's unless given."""
        limits = sessions.limits(max_actions, max_value, expires_in)
        return sessions.create(self._caller, agent_id, idempotency_key, timeout, scopes, metadata, limits)

    def update_session(
        self,
        id: str,
        *,
        max_actions: Optional[int] = None,
        max_value: Optional[Amount] = None,
        expires_in: Optional[Seconds] = None,
        timeout: Optional[float] = None,
    ) -> SessionInfo:
        """Tops an active session up, or tightens it, but not below what is used and held: that is a LimitBelowUsage. What
        is left out stays; expires_in counts from now."""
        return sessions.update(self._caller, id, timeout, sessions.limits(max_actions, max_value, expires_in))

    def get_session(self, id: str, *, timeout: Optional[float] = None) -> SessionInfo:
        """Reads a session."""
        return sessions.get(self._caller, id, timeout)

    def sessions(
        self, *, status: Optional[str] = None, agent_id: Optional[str] = None, timeout: Optional[float] = None
    ) -> Iterator[SessionSummary]:
        """Yields the organization's sessions, newest first. The timeout is that of each page."""
        return sessions.every(self._caller, status, agent_id, timeout)

    def end_session(self, id: str, *, timeout: Optional[float] = None) -> None:
        """Ends a session, as Session.end does."""
        sessions.end(self._caller, id, timeout)

    def charge_many(
        self, charges: Iterable[Charge], *, idempotency_key: Optional[str] = None, timeout: Optional[float] = None
    ) -> Tuple[Result, ...]:
        """Agent.charge_many for sessions of the whole organization."""
        return batch.charge_many(self._caller, charges, idempotency_key, timeout)

    def transactions(
        self,
        *,
        status: Optional[str] = None,
        session_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Iterator[TransactionInfo]:
        """Yields the organization's transactions, newest first, without their states and metadata."""
        return transactions.every(self._caller, status, session_id, agent_id, timeout)

    def open_transaction(self, id: str) -> Transaction:
        """The transaction with this id. An organization may read it and roll it back, and not commit it."""
        return Transaction(self._caller, id)

    def events(self, agent_id: str, after: str = "", *, wait: bool = True) -> Iterator[Event]:
        """Yields an agent's audit trail as Agent.events does."""
        return events.follow(self._caller, agent_id, after, wait)

    def introspect(self, token: Union[str, Credential], *, timeout: Optional[float] = None) -> Introspection:
        """Tells what an access or refresh token of this organization's agents is good for now."""
        token = credential(token)
        call = Call("POST", path("auth", "introspect"), {"token": valid(token)})
        return self._caller.ask(call, lambda said: Introspection._read(Fields(said)), timeout)

    def _rotate(self, of: str, member: str, grace: Seconds, timeout: Optional[float]) -> RotatedCredential:
        def read(said: Any) -> RotatedCredential:
            fields = Fields(said)
            renewed = fields.credential(member)
            if renewed is None:
                raise Malformed(f"{member} is missing")
            return RotatedCredential(renewed, fields.moment("previous_expires_at"))

        call = Call("POST", of, {"grace_seconds": seconds(grace)}, Effect.ONCE)
        return self._caller.ask(call, read, timeout)
