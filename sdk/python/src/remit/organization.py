"""The calls that an organization makes: it manages agents, sessions and limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import (
    allevents, apikeys, batch, budget, connect, environment, events, more, sessionkeys, sessions, transactions, trustedissuers,
    usagereport, webhooks,
)
from .allevents import OrganizationEvent
from .apikeys import ApiKeyInfo, RotatedKey, rotated
from .batch import Charge, Result
from .budget import Budget
from .calls import AGENTS_PER_PAGE, PER_PAGE, Call, Caller, nothing
from .credential import Credential, credential, valid
from .events import Event
from .limits import AgentLimits, AgentUsage, NoLimit, Remove
from .money import Amount
from .more import MoreRequest
from .retry import Semantics
from .sessionkeys import SessionKeyInfo
from .sessions import SessionInfo, SessionSummary, SessionTree
from .transactions import Transaction, TransactionInfo
from .trustedissuers import TrustedIssuerInfo, TrustRule
from .url import path
from .usagereport import UsageLine
from .webhooks import Delivery, RotatedWebhookSecret, WebhookInfo
from .wire import Fields, Malformed, Seconds, names, present, seconds, uris, usd_or_none


@dataclass(frozen=True)
class OrganizationInfo:
    """An organization as the service shows it."""

    id: str
    name: str
    api_key: Optional[Credential]  # only in the response to create_organization
    metadata: Dict[str, Any]
    created_at: datetime
    quotas: Dict[str, int]  # the maximum of each resource; empty if the service does not report quotas
    usage: Dict[str, int]  # how much of each resource the organization uses

    @classmethod
    def _read(cls, said: Fields) -> OrganizationInfo:
        return cls(
            id=said.text("id"),
            name=said.text("name"),
            api_key=said.credential("api_key"),
            metadata=said.mapping("metadata") or {},
            created_at=said.moment("created_at"),
            quotas=said.quantities("quotas"),
            usage=said.quantities("usage"),
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
    suspended_at: Optional[datetime]
    suspension_reason: str  # empty: none
    limits: Optional[AgentLimits]  # None: not returned, as in lists
    usage: Optional[AgentUsage]
    audiences: Optional[Tuple[str, ...]]  # that its tokens may have; None: any
    jwks: Optional[Dict[str, Any]]  # its public keys; None: none, or they are at jwks_uri
    jwks_uri: str  # empty: none
    dpop_required: bool  # its tokens must be bound to a key
    has_secret: bool
    secret: Optional[Credential]  # only in the response to create_agent

    @classmethod
    def _read(cls, said: Fields) -> AgentInfo:
        limits, usage = said.mapping("limits"), said.mapping("usage")
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
            suspended_at=said.moment_or_none("suspended_at"),
            suspension_reason=said.text("suspension_reason", ""),
            limits=None if limits is None else AgentLimits._read(Fields(limits)),
            usage=None if usage is None else AgentUsage._read(Fields(usage)),
            audiences=said.texts_or_none("audiences"),
            jwks=said.mapping("jwks"),
            jwks_uri=said.text("jwks_uri", ""),
            dpop_required=said.flag("dpop_required", False),
            has_secret=said.flag("has_secret", True),
            secret=said.credential("secret"),
        )


@dataclass(frozen=True)
class RotatedSecret:
    """A new secret of an agent. The previous one ends at previous_expires_at, or has ended."""

    secret: Credential
    previous_expires_at: datetime


@dataclass(frozen=True)
class Family:
    """All refresh tokens that descend from one exchange of an agent's secret."""

    id: str
    created_at: datetime
    last_used_at: Optional[datetime]
    expires_at: datetime

    @classmethod
    def _read(cls, said: Fields) -> Family:
        return cls(
            id=said.text("family_id"),
            created_at=said.moment("created_at"),
            last_used_at=said.moment_or_none("last_used_at"),
            expires_at=said.moment("expires_at"),
        )


@dataclass(frozen=True)
class Introspection:
    """The current state of a token (RFC 7662). For an inactive token only active is set."""

    active: bool
    agent_id: str
    organization_id: str
    scopes: Tuple[str, ...]
    expires_at: Optional[datetime]
    audience: Tuple[str, ...]  # the servers that accept the token
    token_type: str  # Bearer, DPoP or refresh_token; empty: it is not active
    thumbprint: str  # of the key that it is bound to; empty: a bearer token
    session_id: str  # of a delegated token; empty: it is not delegated
    actors: Tuple[str, ...]  # who delegated it, outermost first

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
            audience=said.text_or_texts("aud"),
            token_type=said.text("token_type", ""),
            thumbprint=Fields(said.mapping("cnf") or {}).text("jkt", ""),
            session_id=said.text("session_id", ""),
            actors=_actors(said),
        )


def _actors(said: Fields) -> Tuple[str, ...]:
    """Reads the chain of act (RFC 8693 §4.1)."""
    found: List[str] = []
    act = said.mapping("act")
    while act is not None:
        actor = Fields(act)
        found.append(actor.text("sub"))
        act = actor.mapping("act")
    return tuple(found)


O = TypeVar("O", bound="OneOrganization")  # noqa: E741


class OneOrganization:
    """What Organization and AsyncOrganization have in common."""

    _concurrent = False  # for asyncio

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    @classmethod
    def from_env(cls: Type[O]) -> O:
        """Returns the organization whose API key is in REMIT_API_KEY, at the service of Client.from_env."""
        environment.require(environment.KEY)
        return cls(Caller(connect.from_env(cls._concurrent), api_key=valid(environment.credential(environment.KEY))))

    def _change_agent(self, id: str, how: str, reason: Optional[str], timeout: Optional[float]) -> AgentInfo:
        call = Call("POST", path("agents", id, how), present(reason=reason), Semantics.IDEMPOTENT)
        return self._caller.ask(call, lambda said: AgentInfo._read(Fields(said)), timeout)


class Organization(OneOrganization):
    """Calls the service with an API key. Client.organization makes one."""

    def info(self, id: str, *, timeout: Optional[float] = None) -> OrganizationInfo:
        """Gets the organization. id must be the id of the API key's own organization."""
        call = Call("GET", path("organizations", id))
        return self._caller.ask(call, lambda said: OrganizationInfo._read(Fields(said)), timeout)

    def rotate_key(
        self,
        id: str,
        *,
        grace: Optional[Seconds] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> RotatedKey:
        """Rotates the API key of the organization with this id. This Organization object keeps using the old key, which stays
        valid for the grace period: 5 minutes, the service's default, unless grace is given. 0 ends the old key at once: if
        the response is then lost for good, the organization is locked out."""
        return apikeys.rotate(self._caller, path("organizations", id, "api-key", "rotate"), grace, idempotency_key, timeout)

    def create_api_key(
        self,
        name: str,
        role: str,
        *,
        expires_in: Optional[Seconds] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> ApiKeyInfo:
        """Creates an API key. Only this response has it. A viewer reads everything that contains no credential. An operator also
        creates, changes and ends sessions, suspends, resumes, revokes and rolls back. An admin may do everything. By default the
        key never expires. Raises QuotaExceeded beyond 64 keys."""
        return apikeys.create(self._caller, name, role, expires_in, idempotency_key, timeout)

    def api_keys(self, *, timeout: Optional[float] = None) -> List[ApiKeyInfo]:
        """Lists the organization's API keys, newest first."""
        return apikeys.every(self._caller, timeout)

    def rotate_api_key(
        self,
        id: str,
        *,
        grace: Optional[Seconds] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> RotatedKey:
        """Rotates one of the API keys. Its id, name, role and expiry stay. The old key stays valid for the grace period."""
        return apikeys.rotate(self._caller, path("api-keys", id, "rotate"), grace, idempotency_key, timeout)

    def delete_api_key(self, id: str, *, timeout: Optional[float] = None) -> None:
        """Deletes an API key: it ends at once. Raises LastAdminKey for the last admin key that never expires."""
        return apikeys.delete(self._caller, id, timeout)

    def create_session_key(
        self,
        session_id: str,
        name: Optional[str] = None,
        *,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> SessionKeyInfo:
        """Creates a key of an active session, for programs that take nothing but an API key: with it they act as the session's agent in
        that session alone. Only this response has it. Raises TooManySessionKeys beyond 8 at a time."""
        return sessionkeys.create(self._caller, session_id, name, idempotency_key, timeout)

    def session_keys(self, session_id: str, *, timeout: Optional[float] = None) -> List[SessionKeyInfo]:
        """Lists the keys of a session, newest first."""
        return sessionkeys.every(self._caller, session_id, timeout)

    def delete_session_key(self, session_id: str, id: str, *, timeout: Optional[float] = None) -> None:
        """Deletes a session key: it ends at once."""
        return sessionkeys.delete(self._caller, session_id, id, timeout)

    def usage(
        self,
        *,
        first_day: Optional[date] = None,
        last_day: Optional[date] = None,
        group_by: Iterable[str] = (),
        agent_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> List[UsageLine]:
        """Reports what the organization used: by default in the last 30 days, by day. Days are in UTC. group_by is one or two of
        day, agent, session and action_type. The service refuses a report of more than 10,000 lines: ask for fewer days or for one
        agent."""
        of = usagereport.address(first_day, last_day, group_by, agent_id, "json")
        return usagereport.report(self._caller, of, timeout)

    def usage_csv(
        self,
        *,
        first_day: Optional[date] = None,
        last_day: Optional[date] = None,
        group_by: Iterable[str] = (),
        agent_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> str:
        """Like usage, as a table with a header (RFC 4180), in which no action type is a formula to a spreadsheet."""
        of = usagereport.address(first_day, last_day, group_by, agent_id, "csv")
        return usagereport.table(self._caller, of, timeout)

    def session_usage(self, id: str, *, timeout: Optional[float] = None) -> List[UsageLine]:
        """Reports what a session was used for, as Session.usage does."""
        return usagereport.of_session(self._caller, id, timeout)

    def create_agent(
        self,
        name: str,
        scopes: Iterable[str] = (),
        *,
        description: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        limits: Optional[AgentLimits] = None,
        secret: bool = True,
        jwks: Optional[Mapping[str, Any]] = None,
        jwks_uri: Optional[str] = None,
        audiences: Optional[Iterable[str]] = None,
        dpop_required: bool = False,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> AgentInfo:
        """Creates an agent. Only this response has its secret. The limits bound it over all of its sessions.

        With secret=False it has none: it authenticates by a private key or a token of its workload. jwks are its public keys, as
        public_jwks returns them, or jwks_uri is where they are. audiences are what its tokens may be for: by default anything, and
        with an empty list nothing but the service. With dpop_required its tokens must be bound to a key."""
        bounds = None if limits is None else limits._body()
        body = present(
            name=name, scopes=names(scopes), description=description, metadata=metadata, limits=bounds,
            secret=None if secret else False, jwks=jwks, jwks_uri=jwks_uri,
            audiences=None if audiences is None else uris("audiences", audiences), dpop_required=dpop_required or None,
        )
        call = self._caller.service.keyed(path("agents"), idempotency_key, body)
        return self._caller.ask(call, lambda said: AgentInfo._read(Fields(said)), timeout)

    def get_agent(self, id: str, *, timeout: Optional[float] = None) -> AgentInfo:
        """Gets an agent."""
        return self._caller.ask(Call("GET", path("agents", id)), lambda said: AgentInfo._read(Fields(said)), timeout)

    def agents(self, *, status: Optional[str] = None, timeout: Optional[float] = None) -> Iterator[AgentInfo]:
        """Yields the organization's agents, newest first. status, if given, is active or revoked."""
        return self._caller.pages(path("agents"), AGENTS_PER_PAGE, AgentInfo._read, timeout, status=status)

    def update_agent(
        self,
        id: str,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        scopes: Optional[Iterable[str]] = None,
        limits: Optional[AgentLimits] = None,
        jwks: Union[Mapping[str, Any], Remove, None] = None,
        jwks_uri: Union[str, Remove, None] = None,
        audiences: Union[Iterable[str], Remove, None] = None,
        dpop_required: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> AgentInfo:
        """Changes an agent. What is omitted stays. A scope that it loses is refused from now on, whatever its tokens and sessions
        say. A new limit counts from now on. REMOVE removes jwks, jwks_uri or audiences; a key that is removed opens nothing from
        now on. audiences count for new tokens; dpop_required refuses the tokens that are not bound to a key."""
        body = present(
            name=name, description=description, metadata=metadata, scopes=None if scopes is None else names(scopes),
            limits=None if limits is None else limits._body(), dpop_required=dpop_required,
        )
        if audiences is not None and not isinstance(audiences, Remove):
            audiences = uris("audiences", audiences)
        for field, value in (("jwks", jwks), ("jwks_uri", jwks_uri), ("audiences", audiences)):
            if value is not None:
                body[field] = None if isinstance(value, Remove) else value
        call = Call("PATCH", path("agents", id), body, Semantics.IDEMPOTENT)
        return self._caller.ask(call, lambda said: AgentInfo._read(Fields(said)), timeout)

    def suspend_agent(self, id: str, reason: Optional[str] = None, *, timeout: Optional[float] = None) -> AgentInfo:
        """Suspends an agent at once: until it is resumed, it gets no tokens, charges nothing, begins nothing and leases nothing.
        What it has begun and leased may still be settled, and its sessions' time runs on. The reason is for people. Suspending it
        again keeps the first time and reason."""
        return self._change_agent(id, "suspend", reason, timeout)

    def resume_agent(self, id: str, reason: Optional[str] = None, *, timeout: Optional[float] = None) -> AgentInfo:
        """Lets a suspended agent go on. Idempotent."""
        return self._change_agent(id, "resume", reason, timeout)

    def suspend_all_agents(self, reason: Optional[str] = None, *, timeout: Optional[float] = None) -> int:
        """Suspends every agent of the organization, and returns how many live agents are suspended then. Idempotent."""
        body = {"all": True, **present(reason=reason)}
        call = Call("POST", path("agents", "suspend"), body, Semantics.IDEMPOTENT)
        return self._caller.ask(call, lambda said: Fields(said).integer("suspended"), timeout)

    def resume_all_agents(self, *, timeout: Optional[float] = None) -> int:
        """Resumes every agent of the organization, and returns how many live agents are not suspended then. Idempotent."""
        call = Call("POST", path("agents", "resume"), {"all": True}, Semantics.IDEMPOTENT)
        return self._caller.ask(call, lambda said: Fields(said).integer("resumed"), timeout)

    def revoke_agent(self, id: str, *, timeout: Optional[float] = None) -> None:
        """Revokes an agent at once, with its secret, its tokens and its open sessions. Idempotent."""
        call = Call("POST", path("agents", id) + "/revoke", semantics=Semantics.IDEMPOTENT)
        return self._caller.ask(call, nothing, timeout)

    def rotate_agent_secret(
        self,
        id: str,
        *,
        grace: Optional[Seconds] = None,
        revoke_families: bool = False,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> RotatedSecret:
        """Rotates an agent's secret. The old secret ends at once, or stays valid for the grace period if given. Set
        revoke_families if the secret was stolen: it also revokes all refresh and access tokens of the agent."""
        of = path("agents", id) + "/secret/rotate"
        body = present(grace_seconds=seconds(grace), revoke_families=revoke_families or None)
        call = self._caller.service.keyed(of, idempotency_key, body)
        return self._caller.ask(call, lambda said: RotatedSecret(*rotated(Fields(said), "secret")), timeout)

    def families(self, agent_id: str, *, timeout: Optional[float] = None) -> Iterator[Family]:
        """Yields the agent's refresh-token families that are still valid, newest first. A family that you do not recognize
        may come from a stolen secret."""
        return self._caller.pages(path("agents", agent_id, "families"), PER_PAGE, Family._read, timeout)

    def revoke_family(self, agent_id: str, family_id: str, *, timeout: Optional[float] = None) -> None:
        """Revokes a family at once, with its access tokens. Idempotent."""
        call = Call("DELETE", path("agents", agent_id, "families", family_id), semantics=Semantics.IDEMPOTENT)
        return self._caller.ask(call, nothing, timeout)

    def create_session(
        self,
        agent_id: str,
        *,
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
        parent_session_id: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> SessionInfo:
        """Creates a session for an agent. Omitted limits get the service's defaults, which the response shows. Omitted scopes
        are all scopes of the agent. max_committed limits value_committed, which rollbacks do not lower; the default is no
        limit. max_lease is how long a lease of its budget may last, up to 1 hour; the default, 0, allows none.
        max_value_per_action limits one charge or hold. With the enforcement "observe", what limits would refuse is done and
        counted; the default is "enforce". thresholds are percents of the limits that the event budget.threshold tells; the default
        is 80 and 100. parent_session_id is the session of which this one is a part, as Session.create_child
        sets it."""
        limits = {
            **sessions.limits(max_actions, max_value, expires_in, max_lease, max_value_per_action, enforcement, thresholds),
            **present(max_committed_usd=usd_or_none(max_committed), parent_session_id=parent_session_id),
        }
        return sessions.create(self._caller, agent_id, idempotency_key, timeout, scopes, metadata, limits)

    def update_session(
        self,
        id: str,
        *,
        max_actions: Optional[int] = None,
        max_value: Optional[Amount] = None,
        expires_in: Optional[Seconds] = None,
        add_actions: Optional[int] = None,
        add_value: Optional[Amount] = None,
        max_lease: Optional[Seconds] = None,
        max_value_per_action: Union[Amount, NoLimit, None] = None,
        enforcement: Optional[str] = None,
        thresholds: Optional[Iterable[int]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> SessionInfo:
        """Changes the limits of an active session. Raises LimitBelowUsage if a limit is below what is used and held. Omitted
        limits stay; expires_in counts from now. add_actions and add_value are relative, so concurrent top-ups all count, and
        their idempotency key makes each count once. The service refuses add_actions with max_actions, and add_value with
        max_value. NO_LIMIT removes max_value_per_action."""
        limits = sessions.limits(max_actions, max_value, expires_in, max_lease, max_value_per_action, enforcement, thresholds)
        added = present(add_actions=add_actions, add_value_usd=usd_or_none(add_value))
        return sessions.update(self._caller, id, idempotency_key, timeout, limits, added)

    def get_session(self, id: str, *, timeout: Optional[float] = None) -> SessionInfo:
        """Gets a session."""
        return sessions.get(self._caller, id, timeout)

    def sessions(
        self, *, status: Optional[str] = None, agent_id: Optional[str] = None, timeout: Optional[float] = None
    ) -> Iterator[SessionSummary]:
        """Yields the organization's sessions, newest first. The timeout applies to each page."""
        return sessions.every(self._caller, status, agent_id, timeout)

    def end_session(self, id: str, *, timeout: Optional[float] = None) -> None:
        """Ends a session, as Session.end does."""
        return sessions.end(self._caller, id, timeout)

    def session_tree(self, id: str, *, timeout: Optional[float] = None) -> SessionTree:
        """Gets a session with its descendants."""
        return sessions.tree(self._caller, id, timeout)

    def suspend_session(self, id: str, reason: Optional[str] = None, *, timeout: Optional[float] = None) -> SessionInfo:
        """Suspends an active session and its descendants at once, as suspend_agent does an agent."""
        return sessions.change(self._caller, id, "suspend", reason, timeout)

    def resume_session(self, id: str, reason: Optional[str] = None, *, timeout: Optional[float] = None) -> SessionInfo:
        """Lets a suspended session go on. Idempotent."""
        return sessions.change(self._caller, id, "resume", reason, timeout)

    def requests(
        self, session_id: str, *, status: Optional[str] = None, timeout: Optional[float] = None
    ) -> List[MoreRequest]:
        """Lists a session's requests for more, as Session.requests does."""
        return more.every(self._caller, session_id, status, timeout)

    def get_request(self, session_id: str, id: str, *, timeout: Optional[float] = None) -> MoreRequest:
        """Gets a request for more."""
        return more.get(self._caller, session_id, id, timeout)

    def approve_request(
        self,
        session_id: str,
        id: str,
        *,
        add_actions: Optional[int] = None,
        add_value: Optional[Amount] = None,
        comment: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> MoreRequest:
        """Approves a request for more: it raises the session's limits by what it grants, by default all that was asked for.
        Idempotent. Raises RequestDecided if it was decided otherwise."""
        granted = present(add_actions=add_actions, add_value_usd=usd_or_none(add_value), comment=comment)
        return more.decide(self._caller, session_id, id, "approve", timeout, granted)

    def deny_request(
        self, session_id: str, id: str, comment: Optional[str] = None, *, timeout: Optional[float] = None
    ) -> MoreRequest:
        """Denies a request for more, with a comment for the agent. Idempotent. Raises RequestDecided if it was approved."""
        return more.decide(self._caller, session_id, id, "deny", timeout, present(comment=comment))

    def set_budget(self, max_value: Amount, period: str, *, timeout: Optional[float] = None) -> Budget:
        """Sets the organization's budget or changes it. The period is day, month or none. Raises LimitBelowUsage for a value below
        what is reserved and used."""
        return budget.put(self._caller, max_value, period, timeout)

    def get_budget(self, *, timeout: Optional[float] = None) -> Budget:
        """Gets the organization's budget. Raises NotFound if there is none."""
        return budget.get(self._caller, timeout)

    def delete_budget(self, *, timeout: Optional[float] = None) -> None:
        """Removes the organization's budget: nothing bounds its root sessions together any more. Sessions keep their limits."""
        return budget.delete(self._caller, timeout)

    def charge_many(
        self, charges: Iterable[Charge], *, idempotency_key: Optional[str] = None, timeout: Optional[float] = None
    ) -> Tuple[Result, ...]:
        """Like Agent.charge_many, for sessions of the whole organization."""
        return batch.charge_many(self._caller, charges, idempotency_key, timeout)

    def transactions(
        self,
        *,
        status: Optional[str] = None,
        session_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        settled_by: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Iterator[TransactionInfo]:
        """Yields the organization's transactions, newest first, without pre_state, post_state and metadata. With
        settled_by="expiry", those whose hold was spent because it expired."""
        return transactions.every(self._caller, status, session_id, agent_id, settled_by, timeout)

    def transaction(self, id: str) -> Transaction:
        """Returns the transaction with this id. Sends nothing. An organization can read it and roll it back, but not commit
        it."""
        return Transaction(self._caller, id)

    def events(self, agent_id: str, after: str = "", *, wait: bool = True) -> Iterator[Event]:
        """Yields an agent's audit trail, like Agent.events."""
        return events.follow(self._caller, agent_id, after, wait)

    def all_events(self, after: int = 0, *, types: Sequence[str] = (), wait: bool = True) -> Iterator[OrganizationEvent]:
        """Yields the events of all agents after the one with this number, in order for each agent, and then waits for new ones. 0
        begins at the oldest that the service keeps. With types it yields only events of these types.

        It goes on after a break, also when the service is unavailable for long, and misses nothing that the service keeps.
        Remember the sequence of the last event that you have processed: after a crash, go on after it. You then get those again
        that you had processed and not remembered. With wait=False it ends with the last event or its first error."""
        return allevents.follow(self._caller, after, types, wait)

    def checkpoint(self, *, timeout: Optional[float] = None) -> str:
        """Returns a statement of where the organization's events end, signed by the issuer: a JWS in its compact form."""
        return allevents.checkpoint(self._caller, timeout)

    def create_webhook(
        self,
        url: str,
        *,
        types: Optional[Iterable[str]] = None,
        description: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> WebhookInfo:
        """Creates a webhook, which is sent all events, or those of these types. Only this response has its secret. Raises
        QuotaExceeded beyond 32 webhooks."""
        return webhooks.create(self._caller, webhooks.settings(url, types, description), idempotency_key, timeout)

    def webhooks(self, *, timeout: Optional[float] = None) -> List[WebhookInfo]:
        """Lists the organization's webhooks, newest first."""
        return webhooks.every(self._caller, timeout)

    def get_webhook(self, id: str, *, timeout: Optional[float] = None) -> WebhookInfo:
        """Gets a webhook."""
        return webhooks.get(self._caller, id, timeout)

    def update_webhook(
        self,
        id: str,
        *,
        url: Optional[str] = None,
        types: Optional[Iterable[str]] = None,
        description: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> WebhookInfo:
        """Changes a webhook. What is omitted stays; empty types are all types."""
        return webhooks.update(self._caller, id, webhooks.settings(url, types, description), timeout)

    def delete_webhook(self, id: str, *, timeout: Optional[float] = None) -> None:
        """Deletes a webhook with its deliveries. A request that is under way may still arrive."""
        return webhooks.delete(self._caller, id, timeout)

    def rotate_webhook_secret(
        self,
        id: str,
        *,
        grace: Optional[Seconds] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> RotatedWebhookSecret:
        """Rotates a webhook's secret. For the grace period, by default a day, requests carry signatures by both."""
        return webhooks.rotate(self._caller, id, grace, idempotency_key, timeout)

    def test_webhook(self, id: str, *, idempotency_key: Optional[str] = None, timeout: Optional[float] = None) -> Delivery:
        """Sends an event of the type webhook.test to a webhook. Returns the delivery before its first attempt."""
        return webhooks.test(self._caller, id, idempotency_key, timeout)

    def deliveries(
        self, webhook_id: str, *, status: Optional[str] = None, timeout: Optional[float] = None
    ) -> Iterator[Delivery]:
        """Yields a webhook's deliveries, newest first: those that wait, and those last delivered and last given up. status, if
        given, is pending, delivered or dead."""
        return webhooks.deliveries(self._caller, webhook_id, status, timeout)

    def retry_delivery(self, webhook_id: str, id: str, *, timeout: Optional[float] = None) -> Delivery:
        """Sends a delivery again at once, under the same id, and with the service's retries before it."""
        return webhooks.retry(self._caller, webhook_id, id, timeout)

    def create_trusted_issuer(
        self,
        issuer: str,
        rules: Iterable[TrustRule],
        *,
        jwks_uri: Optional[str] = None,
        jwks: Optional[Mapping[str, Any]] = None,
        description: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> TrustedIssuerInfo:
        """Trusts a platform, such as a Kubernetes cluster or a CI service, for what the rules say: workloads with its tokens become
        agents without a secret (assertion and assertion_file of Client.agent). issuer is as the tokens name it in iss: https://… or
        spiffe://trust-domain. Its public keys are at jwks_uri, or jwks itself. Raises QuotaExceeded beyond 32 trusted issuers."""
        body = trustedissuers.settings(issuer, rules, jwks_uri, jwks, description)
        return trustedissuers.create(self._caller, body, idempotency_key, timeout)

    def trusted_issuers(self, *, timeout: Optional[float] = None) -> List[TrustedIssuerInfo]:
        """Lists the organization's trusted issuers, newest first."""
        return trustedissuers.every(self._caller, timeout)

    def get_trusted_issuer(self, id: str, *, timeout: Optional[float] = None) -> TrustedIssuerInfo:
        """Gets a trusted issuer."""
        return trustedissuers.get(self._caller, id, timeout)

    def update_trusted_issuer(
        self,
        id: str,
        *,
        rules: Optional[Iterable[TrustRule]] = None,
        jwks_uri: Optional[str] = None,
        jwks: Optional[Mapping[str, Any]] = None,
        description: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> TrustedIssuerInfo:
        """Changes a trusted issuer. What is omitted stays; jwks_uri replaces jwks, and the other way round. Tokens that were issued
        before live on until they expire, up to an hour."""
        body = trustedissuers.settings(None, rules, jwks_uri, jwks, description)
        return trustedissuers.update(self._caller, id, body, timeout)

    def delete_trusted_issuer(self, id: str, *, timeout: Optional[float] = None) -> None:
        """Trusts the issuer no more. Tokens that were issued before live on until they expire, up to an hour."""
        return trustedissuers.delete(self._caller, id, timeout)

    def introspect(self, token: Union[str, Credential], *, timeout: Optional[float] = None) -> Introspection:
        """Returns the current state of an access or refresh token of this organization's agents."""
        token = credential(token)
        call = Call("POST", path("auth", "introspect"), {"token": valid(token)})
        return self._caller.ask(call, lambda said: Introspection._read(Fields(said)), timeout)

