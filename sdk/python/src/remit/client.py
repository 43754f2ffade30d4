"""One Remit service. Organization and Agent are the two ways to call it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Mapping, Optional, Tuple, Type, Union

from . import connect, environment
from .agent import Agent
from .calls import Call, Caller
from .credential import Credential, credential, valid
from .organization import Organization, OrganizationInfo
from .tokens import EXCHANGE, TokenPair
from .transport import Answer
from .url import path, with_query
from .wire import Fields, Malformed, present


@dataclass(frozen=True)
class Verified:
    """The agent that a valid access token belongs to."""

    agent_id: str
    organization_id: str
    scopes: Tuple[str, ...]


class Client:
    """One Remit service at its base URL, such as https://remit.example.com. The constructor sends nothing. Threads can share
    a Client. After a fork, the child needs its own.

    tls is the TLS context for https; the default is ssl.create_default_context(). max_attempts is how often the SDK sends a
    call at most, the first attempt included. With idempotency_keys=False the SDK sends a write without a key unless the
    caller passes one: the service then stores nothing for 24 hours per write, but the SDK cannot retry the write, and a lost
    response leaves its outcome unknown.
    """

    def __init__(
        self,
        base_url: str,
        *,
        tls: Optional[ssl.SSLContext] = None,
        max_attempts: int = 4,
        idempotency_keys: bool = True,
    ) -> None:
        self._service = connect.service(base_url, tls, max_attempts, idempotency_keys)

    @classmethod
    def from_env(
        cls, *, tls: Optional[ssl.SSLContext] = None, max_attempts: int = 4, idempotency_keys: bool = True
    ) -> Client:
        """Returns a Client for the service at REMIT_ADDR, or http://127.0.0.1:8080 if that is not set."""
        return cls(environment.address(), tls=tls, max_attempts=max_attempts, idempotency_keys=idempotency_keys)

    def organization(self, api_key: Union[str, Credential]) -> Organization:
        """Returns the organization with the API key. Sends nothing."""
        api_key = credential(api_key)
        return Organization(Caller(self._service, api_key=valid(api_key)))

    def agent(self, id: str, secret: Union[str, Credential]) -> Agent:
        """Returns the agent with this id and secret. It gets its first tokens when it needs them."""
        secret = credential(secret)
        caller, tokens = connect.agent(self._service, id, secret)
        return Agent(caller, tokens, id)

    def exchange(self, agent_id: str, secret: Union[str, Credential], *, timeout: Optional[float] = None) -> TokenPair:
        """Exchanges an agent's secret for a new token pair. Use it only if you store and renew tokens yourself; an Agent does
        both for you."""
        secret = credential(secret)
        call = Call("POST", EXCHANGE, {"agent_id": agent_id, "secret": valid(secret)})
        return Caller(self._service).ask(call, lambda said: TokenPair._read(Fields(said)), timeout)

    def create_organization(
        self,
        name: str,
        *,
        metadata: Optional[Mapping[str, Any]] = None,
        bootstrap_token: Optional[Union[str, Credential]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> OrganizationInfo:
        """Creates an organization. Only this response has its API key. A service that runs with --organizations=token
        requires the bootstrap token. An idempotency_key needs at least 32 characters."""
        bootstrap_token = None if bootstrap_token is None else credential(bootstrap_token)
        bearer = None if bootstrap_token is None else valid(bootstrap_token)
        call = self._service.keyed(path("organizations"), idempotency_key, present(name=name, metadata=metadata))
        return Caller(self._service, bearer=bearer).ask(
            call, lambda said: OrganizationInfo._read(Fields(said)), timeout
        )

    def verify(
        self, token: Union[str, Credential], *, scope: Optional[str] = None, timeout: Optional[float] = None
    ) -> Verified:
        """Returns the agent that an access token belongs to. Raises Unauthorized if the token is no longer valid, and
        InsufficientScope if it lacks the scope. Charges nothing."""
        token = credential(token)
        call = Call("GET", with_query(path("auth", "verify"), scope=scope))
        return Caller(self._service, bearer=valid(token)).ask_raw(call, _verified, timeout)

    def close(self) -> None:
        """Closes idle connections."""
        self._service.transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


def _verified(answer: Answer) -> Verified:
    agent, organization = answer.headers.get("X-Agent-Id"), answer.headers.get("X-Org-Id")
    if not agent or not organization:
        raise Malformed("it does not name the agent")
    return Verified(agent, organization, tuple((answer.headers.get("X-Scopes") or "").split()))
