"""Verifies access tokens that others present, as a proxy does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple, Union
from urllib.parse import urlsplit

from .calls import Call, Caller, Service
from .credential import Credential
from .retry import Semantics
from .transport import Answer
from .url import path, with_query
from .wire import Malformed


@dataclass(frozen=True)
class Verified:
    """The agent that a valid access token belongs to."""

    agent_id: str
    organization_id: str
    scopes: Tuple[str, ...]
    actor_id: Optional[str] = None  # the agent that delegated the token; None: it is not delegated
    thumbprint: Optional[str] = None  # of the key that the token is bound to; None: a bearer token

    @classmethod
    def _read(cls, answer: Answer) -> Verified:
        said = answer.headers.get
        agent, organization = said("X-Agent-Id"), said("X-Org-Id")
        if not agent or not organization:
            raise Malformed("it does not name the agent")
        scopes = tuple((said("X-Scopes") or "").split())
        return cls(agent, organization, scopes, said("X-Actor-Id") or None, said("X-Cnf-Jkt") or None)


def bearer(
    at: Service, token: Credential, scope: Optional[str], audience: Optional[str], timeout: Optional[float]
) -> Verified:
    call = Call("GET", _query(scope, audience))
    return Caller(at, bearer=token).ask_raw(call, Verified._read, timeout)


@dataclass(frozen=True)
class Presented:
    """The DPoP header of a request with a token, and that request's method and URL as its client sees them."""

    proof: Credential
    method: Optional[str]
    url: Optional[str]

    def headers(self, token: Credential) -> Dict[str, Union[str, Credential]]:
        """Returns the headers with which a proxy passes them on."""
        parts = urlsplit(self.url or "")
        if not self.method or parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("a proof is for one request: pass its method, and its url as https://host/path")
        return {
            "Authorization": Credential("DPoP " + token.reveal()),
            "DPoP": self.proof,
            "X-Forwarded-Method": self.method,
            "X-Forwarded-Proto": parts.scheme,
            "X-Forwarded-Host": parts.netloc,
            "X-Forwarded-Uri": (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        }


def bound(
    at: Service,
    token: Credential,
    presented: Presented,
    scope: Optional[str],
    audience: Optional[str],
    timeout: Optional[float],
) -> Verified:
    """Verifies a token with its proof. The service takes a proof once, so a lost answer is not asked for again."""
    call = Call("GET", _query(scope, audience), headers=presented.headers(token), semantics=Semantics.UNSAFE)
    return Caller(at).ask_raw(call, Verified._read, timeout)


def _query(scope: Optional[str], audience: Optional[str]) -> str:
    return with_query(path("auth", "verify"), scope=scope, audience=audience)
