"""Makes the callers of a service. Client and the from_env methods share it."""

from __future__ import annotations

import ssl
from typing import Callable, Mapping, Optional, Tuple

from . import environment, url
from .calls import Call, Caller, Service
from .credential import Credential, valid
from .tokens import TokenPair, Tokens
from .transport import Transport
from .wire import Fields


def service(
    base_url: str, tls: Optional[ssl.SSLContext] = None, max_attempts: int = 4, idempotency_keys: bool = True
) -> Service:
    if max_attempts < 1:
        raise ValueError("max_attempts is at least 1")
    return Service(Transport(url.parse(base_url), tls), max_attempts, idempotency_keys)


def from_env() -> Service:
    """Returns the service at REMIT_ADDR, or http://127.0.0.1:8080 if that is not set."""
    return service(environment.address())


def agent(at: Service, id: str, secret: Credential) -> Tuple[Caller, Tokens]:
    """Returns a caller that authenticates as an agent, and the tokens that it uses."""
    issuer = Caller(at)

    def ask(where: str, body: Mapping[str, object], timeout: float, may_go_on: Callable[[], bool]) -> TokenPair:
        call = Call("POST", where, body, may_go_on=may_go_on)
        return issuer.ask(call, lambda said: TokenPair._read(Fields(said)), timeout)

    tokens = Tokens(id, valid(secret), ask)
    return Caller(at, tokens=tokens), tokens
