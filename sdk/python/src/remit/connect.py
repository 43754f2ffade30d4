"""Makes the callers of a service. Client and the from_env methods share it."""

from __future__ import annotations

import ssl
from typing import Any, Callable, Optional, Tuple, Union

from . import environment, exchange, proofs, url
from .aio.runtime import AsyncRuntime
from .aio.transport import AsyncTransport
from .calls import Call, Caller, Service, end_of, timeout_of
from .credential import Credential
from .exchange import REFRESH, Exchange
from .proofs import Held
from .runtime import Runtime
from .tokens import AsyncTokens, TokenPair, Tokens
from .transport import Transport
from .wire import Fields, Malformed


def service(
    base_url: str,
    tls: Optional[ssl.SSLContext] = None,
    max_attempts: int = 4,
    idempotency_keys: bool = True,
    concurrent: bool = False,
) -> Service:
    """Returns a service to call by blocking, or with concurrent from asyncio."""
    if max_attempts < 1:
        raise ValueError("max_attempts is at least 1")
    base = url.parse(base_url)
    if concurrent:
        return Service(AsyncTransport(base, tls), max_attempts, idempotency_keys, AsyncRuntime())
    return Service(Transport(base, tls), max_attempts, idempotency_keys, Runtime())


def from_env(concurrent: bool = False) -> Service:
    """Returns the service at REMIT_ADDR, or http://127.0.0.1:8080 if that is not set."""
    return service(environment.address(), concurrent=concurrent)


def agent(at: Service, by: Exchange, binding: Held = None) -> Tuple[Caller, Union[Tokens, AsyncTokens]]:
    """Returns a caller that authenticates as an agent, and the tokens that it uses."""
    bound = proofs.proofs(binding)
    issuer = Caller(at, proofs=bound)

    async def ask(refresh: Optional[Credential], timeout: float, may_go_on: Callable[[], bool]) -> TokenPair:
        if refresh is None:
            return await pair(issuer, by, timeout)
        call = Call("POST", REFRESH, {"refresh_token": refresh}, may_go_on=may_go_on)
        return await issuer.asked(call, lambda said: _pair(said, issuer), timeout)

    tokens: Union[Tokens, AsyncTokens] = Tokens(lambda *given: issuer.run(ask(*given)))
    if isinstance(at.runtime, AsyncRuntime):
        tokens = AsyncTokens(ask)
    return Caller(at, tokens=tokens, proofs=bound), tokens


async def pair(issuer: Caller, by: Exchange, timeout: Optional[float]) -> TokenPair:
    """Exchanges an agent's credential. issuer has no credential but the proofs of the agent."""
    end = end_of(timeout)
    call = await by(issuer, timeout)
    return await issuer.asked(call, lambda said: _pair(said, issuer), timeout_of(end))


def _pair(said: Any, issuer: Caller) -> TokenPair:
    got = TokenPair._read(Fields(said))
    if issuer.proofs is not None and got.token_type.lower() != "dpop":  # the service is older, or a proxy drops the header
        raise Malformed("the token is not bound to the key")
    return got


def agent_from_env(concurrent: bool = False) -> Tuple[Caller, Union[Tokens, AsyncTokens], str]:
    """Returns the same and the agent's id, from the environment."""
    environment.require_agent()
    id, wanted = environment.identifier(environment.AGENT), exchange.Wanted(environment.resource())
    key_file, assertion_file = environment.identifier(environment.KEY_FILE), environment.identifier(environment.ASSERTION_FILE)
    if key_file:
        by = exchange.by_key(id, exchange.key_in(key_file), wanted)
    elif assertion_file:
        by = exchange.by_assertion(id, exchange.token_in(assertion_file), wanted)
    else:
        by = exchange.by_secret(id, environment.credential(environment.SECRET), wanted)
    return (*agent(from_env(concurrent), by, environment.dpop()), id)
