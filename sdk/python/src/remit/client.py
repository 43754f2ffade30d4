"""One Remit service. Organization and Agent are the two ways to call it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, Tuple, Type, Union

from . import environment, url
from .agent import Agent
from .calls import Call, Caller, Service
from .credential import Credential, credential, valid
from .organization import Organization, OrganizationInfo
from .tokens import EXCHANGE, TokenPair, Tokens
from .transport import Answer, Transport
from .url import path, with_query
from .wire import Fields, Malformed, present


@dataclass(frozen=True)
class Verified:
    """Whose a valid access token is."""

    agent_id: str
    organization_id: str
    scopes: Tuple[str, ...]


class Client:
    """One Remit service, by its base URL, such as https://remit.example.com. Making one sends nothing. All threads may
    share it; a process that forks makes its own.

    tls is for https; left out, it is ssl.create_default_context(). max_attempts bounds how often one call is sent, the
    first time included. With idempotency_keys=False writes are sent without a key unless the caller gives one: the service
    then keeps nothing for 24 hours per write, but a lost answer stays in doubt, and such a write is not retried.
    """

    def __init__(
        self,
        base_url: str,
        *,
        tls: Optional[ssl.SSLContext] = None,
        max_attempts: int = 4,
        idempotency_keys: bool = True,
    ) -> None:
        if max_attempts < 1:
            raise ValueError("max_attempts is at least 1")
        self._service = Service(Transport(url.parse(base_url), tls), max_attempts, idempotency_keys)

    @classmethod
    def from_env(
        cls, *, tls: Optional[ssl.SSLContext] = None, max_attempts: int = 4, idempotency_keys: bool = True
    ) -> Client:
        """A Client for the service at REMIT_ADDR, or http://127.0.0.1:8080 when that is not set."""
        return cls(environment.address(), tls=tls, max_attempts=max_attempts, idempotency_keys=idempotency_keys)

    def organization(self, api_key: Union[str, Credential]) -> Organization:
        """The organization that holds the API key. Nothing is sent."""
        api_key = credential(api_key)
        return Organization(Caller(self._service, api_key=valid(api_key)))

    def agent(self, id: str, secret: Union[str, Credential]) -> Agent:
        """The agent with this id and secret. It gets its first tokens when it needs them."""
        secret = credential(secret)
        issuer = Caller(self._service)

        def ask(where: str, body: Mapping[str, object], timeout: float, may_go_on: Callable[[], bool]) -> TokenPair:
            call = Call("POST", where, body, may_go_on=may_go_on)
            return issuer.ask(call, lambda said: TokenPair._read(Fields(said)), timeout)

        tokens = Tokens(id, valid(secret), ask)
        return Agent(Caller(self._service, tokens=tokens), tokens, id)

    def exchange(self, agent_id: str, secret: Union[str, Credential], *, timeout: Optional[float] = None) -> TokenPair:
        """Exchanges an agent's secret for a new pair of tokens, for whoever keeps and renews them by other means. An Agent
        does it by itself."""
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
        """Creates an organization. Its API key is in this answer only. A service that runs with --organizations=token
        wants the bootstrap token. An idempotency_key has at least 32 characters."""
        bootstrap_token = None if bootstrap_token is None else credential(bootstrap_token)
        bearer = None if bootstrap_token is None else valid(bootstrap_token)
        call = self._service.keyed(path("organizations"), idempotency_key, present(name=name, metadata=metadata))
        return Caller(self._service, bearer=bearer).ask(
            call, lambda said: OrganizationInfo._read(Fields(said)), timeout
        )

    def verify(
        self, token: Union[str, Credential], *, scope: Optional[str] = None, timeout: Optional[float] = None
    ) -> Verified:
        """Tells whose an access token is. It is Unauthorized when that is not valid any more, and InsufficientScope when
        it lacks the scope. Nothing is charged."""
        token = credential(token)
        call = Call("GET", with_query(path("auth", "verify"), scope=scope))
        return Caller(self._service, bearer=valid(token)).ask_raw(call, _verified, timeout)

    def close(self) -> None:
        """Closes the connections that wait for a next call."""
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
