"""Tokens for one child session (RFC 8693), and agents that have such a token alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Tuple

from . import codes, jwk
from .calls import Call, Caller, end_of, timeout_of
from .credential import Credential, Sealed
from .errors import RemitError, Unauthorized, unusable
from .exchange import OAUTH_TOKEN, Wanted
from .keys import Key
from .runtime import Source, now
from .wire import Fields, Malformed, decode

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


@dataclass(frozen=True)
class DelegatedToken:
    """An access token for one child session, and for nothing else. It ends with the session, and cannot be renewed."""

    access_token: Credential
    token_type: str  # Bearer or DPoP
    expires_in: int  # seconds
    scopes: Tuple[str, ...]
    session_id: str
    agent_id: str  # whose session it is


class OneToken:
    """An access token that cannot be renewed, in the place of Tokens."""

    def __init__(self, access: Credential) -> None:
        self._access = access

    def get(self, end: float, refused: Optional[Credential] = None) -> Credential:
        return self._access

    def renew(self, end: float) -> Credential:
        raise Unauthorized("an access token alone cannot be renewed: get a new one from the agent that delegated")


async def delegate(
    issuer: Caller, tokens: Source, child_session_id: str, wanted: Wanted, timeout: Optional[float]
) -> DelegatedToken:
    """Exchanges an agent's token for one of a child session. issuer has no credential but the proofs of the agent."""
    end = end_of(timeout)

    def read(said: Any) -> DelegatedToken:
        fields = Fields(said)
        access = fields.credential("access_token")
        agent_id = "" if access is None else claims(access).text("sub", "")
        if access is None or not agent_id:
            raise Malformed("it has no access token")
        return DelegatedToken(
            access, fields.text("token_type"), fields.integer("expires_in"), tuple(fields.text("scope", "").split()),
            child_session_id, agent_id,
        )

    async def ask(access: Credential) -> DelegatedToken:
        form = wanted.form(
            ("grant_type", _EXCHANGE), ("subject_token", access), ("subject_token_type", _ACCESS_TOKEN), ("session_id", child_session_id)
        )
        return await issuer.asked(Call("POST", OAUTH_TOKEN, form=lambda: form), read, timeout_of(end))

    access = await now(tokens.get(end))
    try:
        return await ask(access)
    except RemitError as error:
        if error.code != codes.INVALID_REQUEST or isinstance(tokens, OneToken):
            raise
        refused = error
    try:
        access = await now(tokens.get(end, access))  # it may have been revoked: that is an invalid_request, too (RFC 8693 §2.2.2)
    except RemitError:
        raise refused from None
    return await ask(access)


def subject(access: Credential, key: Optional[Key]) -> str:
    """Returns the id of the agent that a token belongs to. Raises UnusableCredential unless it is bound to this key, or to none."""
    agent_id, bound_to, why = "", "", ""
    try:
        said = claims(access)
        agent_id = said.text("sub")
        bound_to = Fields(said.mapping("cnf") or {}).text("jkt", "")
    except Malformed:
        why = "it is no access token of the service"
    if not why and bound_to and key is None:
        why = "it is bound to a key: pass the key as dpop"
    elif not why and key is not None and bound_to != key.thumbprint:
        why = "it is not bound to the key that dpop is"
    if why:
        raise unusable("access token", why)
    return agent_id


def claims(access: Credential) -> Fields:
    """Returns the claims of a token, which the service alone verifies."""
    return Fields(decode(_payload(access)))


def _payload(access: Credential) -> Sealed:
    """Returns the JSON of a JWT, or nothing. It raises nothing, because its frame holds the token."""
    parts = access.reveal().split(".")
    try:
        return Sealed(jwk.decoded(parts[1]) if len(parts) == 3 else b"")
    except (jwk.Refused, ValueError):
        return Sealed(b"")
