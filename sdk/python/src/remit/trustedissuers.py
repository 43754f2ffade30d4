"""Trusted issuers: platforms whose tokens become tokens of an organization's agents (RFC 7523 §2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from .calls import Call, Caller
from .retry import Semantics
from .url import path
from .wire import Fields, Malformed, each, present


@dataclass(frozen=True)
class TrustRule:
    """Lets tokens with all of these claims become tokens of the agent. A trailing * behind / or : stands for any rest."""

    agent_id: str
    claims: Mapping[str, str]  # such as {"sub": "repo:acme/agent:*"}

    @classmethod
    def _read(cls, said: Fields) -> TrustRule:
        claims = said.mapping("claims") or {}
        if not all(isinstance(value, str) for value in claims.values()):
            raise Malformed("claims is not an object of texts")
        return cls(said.text("agent_id"), claims)


@dataclass(frozen=True)
class TrustedIssuerInfo:
    """A trusted issuer as the service shows it."""

    id: str
    issuer: str  # as its tokens name it in iss
    jwks_uri: str  # empty: the keys are in jwks
    jwks: Optional[Dict[str, Any]]  # None: the keys are at jwks_uri
    rules: Tuple[TrustRule, ...]
    description: str
    created_at: datetime

    @classmethod
    def _read(cls, said: Fields) -> TrustedIssuerInfo:
        return cls(
            id=said.text("id"),
            issuer=said.text("issuer"),
            jwks_uri=said.text("jwks_uri", ""),
            jwks=said.mapping("jwks"),
            rules=tuple(each(said.members("rules"), TrustRule._read)),
            description=said.text("description", ""),
            created_at=said.moment("created_at"),
        )


def settings(
    issuer: Optional[str],
    rules: Optional[Iterable[TrustRule]],
    jwks_uri: Optional[str],
    jwks: Optional[Mapping[str, Any]],
    description: Optional[str],
) -> Dict[str, Any]:
    """Returns the body of a new or a changed trusted issuer."""
    named = None if rules is None else [{"agent_id": rule.agent_id, "claims": dict(rule.claims)} for rule in rules]
    return present(issuer=issuer, rules=named, jwks_uri=jwks_uri, jwks=jwks, description=description)


def create(caller: Caller, body: Dict[str, Any], key: Optional[str], timeout: Optional[float]) -> TrustedIssuerInfo:
    return caller.ask(caller.service.keyed(path("trusted-issuers"), key, body), _info, timeout)


def every(caller: Caller, timeout: Optional[float]) -> List[TrustedIssuerInfo]:
    return caller.ask(Call("GET", path("trusted-issuers")), lambda said: each(said, TrustedIssuerInfo._read), timeout)


def get(caller: Caller, id: str, timeout: Optional[float]) -> TrustedIssuerInfo:
    return caller.ask(Call("GET", path("trusted-issuers", id)), _info, timeout)


def update(caller: Caller, id: str, body: Dict[str, Any], timeout: Optional[float]) -> TrustedIssuerInfo:
    call = Call("PATCH", path("trusted-issuers", id), body, semantics=Semantics.IDEMPOTENT)
    return caller.ask(call, _info, timeout)


def delete(caller: Caller, id: str, timeout: Optional[float]) -> None:
    call = Call("DELETE", path("trusted-issuers", id), semantics=Semantics.IDEMPOTENT, gone=True)
    return caller.ask_raw(call, lambda _: None, timeout)


def _info(said: Any) -> TrustedIssuerInfo:
    return TrustedIssuerInfo._read(Fields(said))
