"""One Remit service. Organization and Agent are the two ways to call it."""

from __future__ import annotations

import ssl
from types import TracebackType
from typing import Any, Callable, Iterable, Mapping, Optional, Type, TypeVar, Union

from . import connect, delegation, environment, exchange, keys, proofs, sessionkeys, verification
from .agent import Agent
from .calls import Call, Caller
from .credential import Credential, credential, valid
from .exchange import Credentials, Path, wanted
from .keys import Key, KeyText
from .organization import Organization, OrganizationInfo
from .proofs import Binding
from .runtime import now
from .sessions import Session
from .tokens import TokenPair
from .url import path
from .verification import Presented, Verified
from .wire import Fields, present


R = TypeVar("R", bound="OneClient")


class OneClient:
    """What Client and AsyncRemit have in common."""

    _concurrent = False  # for asyncio

    def __init__(
        self,
        base_url: str,
        *,
        tls: Optional[ssl.SSLContext] = None,
        max_attempts: int = 4,
        idempotency_keys: bool = True,
    ) -> None:
        self._service = connect.service(base_url, tls, max_attempts, idempotency_keys, self._concurrent)

    @classmethod
    def from_env(
        cls: Type[R], *, tls: Optional[ssl.SSLContext] = None, max_attempts: int = 4, idempotency_keys: bool = True
    ) -> R:
        """Returns a client for the service at REMIT_ADDR, or http://127.0.0.1:8080 if that is not set."""
        return cls(environment.address(), tls=tls, max_attempts=max_attempts, idempotency_keys=idempotency_keys)


class Client(OneClient):
    """One Remit service at its base URL, such as https://remit.example.com. The constructor sends nothing. Threads can share
    a Client. After a fork, the child needs its own.

    tls is the TLS context for https; the default is ssl.create_default_context(). max_attempts is how often the SDK sends a
    call at most, the first attempt included. With idempotency_keys=False the SDK sends a write without a key unless the
    caller passes one: the service then stores nothing for 24 hours per write, but the SDK cannot retry the write, and a lost
    response leaves its outcome unknown.
    """

    _organization, _agent, _session = Organization, Agent, Session

    def organization(self, api_key: Union[str, Credential]) -> Organization:
        """Returns the organization with the API key. Sends nothing."""
        api_key = credential(api_key)
        return self._organization(Caller(self._service, api_key=valid(api_key)))

    def agent(
        self,
        id: str,
        secret: Optional[Union[str, Credential]] = None,
        *,
        key: Optional[Union[KeyText, Key]] = None,
        key_file: Optional[Path] = None,
        assertion: Optional[Callable[[], str]] = None,
        assertion_file: Optional[Path] = None,
        resource: Optional[Iterable[str]] = None,
        scopes: Optional[Iterable[str]] = None,
        dpop: Binding = None,
    ) -> Agent:
        """Returns the agent with this id. It gets its first tokens when it needs them, by exactly one of these:

        secret; key, a private key whose public half the service knows, as a JWK or PEM; key_file, a file of one; assertion, a function
        that returns the token which the agent's workload has from its platform, such as a CI job's; assertion_file, a file of one, such
        as a projected service account token. Files are read again at each exchange.

        resource is what the tokens are for, as absolute URIs; the default is the service itself. scopes are some of the agent's; the
        default is all. dpop binds the tokens to a key (RFC 9449), so that a stolen token is useless without it: True makes a key in
        memory. Raises UnusableCredential for a key that is wrong."""
        secret = None if secret is None else credential(secret)
        by, binding = Credentials(secret, keys.held(key), key_file, assertion, assertion_file), proofs.held(dpop)
        del key, dpop
        return self._agent(*connect.agent(self._service, exchange.given(id, by, wanted(resource, scopes)), binding), id)

    def agent_with_token(self, token: Union[str, Credential], *, dpop: Binding = None) -> Agent:
        """Returns an agent that has an access token and nothing else, such as one of Agent.delegate. It uses the token until the
        service refuses it. dpop is the key that the token is bound to. Raises UnusableCredential if the token needs another."""
        token, binding = credential(token), proofs.held(dpop)
        del dpop
        bound = proofs.proofs(binding)
        id = delegation.subject(valid(token), None if bound is None else bound.key)
        return self._agent(Caller(self._service, bearer=token, proofs=bound), delegation.OneToken(token), id)

    def session_with_key(self, key: Union[str, Credential]) -> Session:
        """Returns the session of a session key. It charges, leases, begins and settles transactions, asks for more and reads; what
        concerns more than the session raises SessionKeyOnly. Raises UnusableCredential for what is no such key."""
        key = credential(key)
        agent, id = sessionkeys.named_by(key)
        return self._session(Caller(self._service, bearer=valid(key)), agent, id)

    def exchange(
        self,
        agent_id: str,
        secret: Optional[Union[str, Credential]] = None,
        *,
        key: Optional[Union[KeyText, Key]] = None,
        key_file: Optional[Path] = None,
        assertion: Optional[Callable[[], str]] = None,
        assertion_file: Optional[Path] = None,
        resource: Optional[Iterable[str]] = None,
        scopes: Optional[Iterable[str]] = None,
        dpop: Binding = None,
        timeout: Optional[float] = None,
    ) -> TokenPair:
        """Exchanges an agent's credential for new tokens, with the arguments of agent. Use it only if you store and renew tokens
        yourself; an Agent does both for you."""
        secret = None if secret is None else credential(secret)
        by, binding = Credentials(secret, keys.held(key), key_file, assertion, assertion_file), proofs.held(dpop)
        del key, dpop
        issuer = Caller(self._service, proofs=proofs.proofs(binding))
        return issuer.run(connect.pair(issuer, exchange.given(agent_id, by, wanted(resource, scopes)), timeout))

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
        self,
        token: Union[str, Credential],
        scope: Optional[str] = None,
        *,
        audience: Optional[str] = None,
        proof: Optional[Union[str, Credential]] = None,
        method: Optional[str] = None,
        url: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Verified:
        """Returns the agent that an access token belongs to. Raises Unauthorized if the token is no longer valid, or not for the
        audience (by default the service itself), and InsufficientScope if it lacks the scope. Charges nothing.

        A token that is bound to a key comes with the header DPoP: proof is its value, and method and url are those of the request, as
        its client sees them. The service believes these two only if this machine is among its trusted proxies."""
        token, proof = credential(token), None if proof is None else credential(proof)
        if proof is None:
            return verification.bearer(self._service, valid(token), scope, audience, timeout)
        presented = Presented(valid(proof), method, url)
        return verification.bound(self._service, valid(token), presented, scope, audience, timeout)

    def close(self) -> None:
        """Closes idle connections."""
        return self._service.runtime.run(now(self._service.transport.close()))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

