"""Proofs of possession (DPoP, RFC 9449): they bind an agent's tokens to a key that stays in the process."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from email.message import Message
from typing import Any, Dict, Optional, Union

from . import keys
from .credential import Credential, Sealed
from .jwk import encoded
from .keys import Key, KeyText, generate_key, parse

# What an agent's tokens are bound to: True makes a key in memory. None and False: nothing.
Binding = Union[bool, Key, KeyText, None]

_LONGEST_NONCE = re.compile(r"[!#-\[\]-~]{1,256}")  # RFC 9449 §8.1
_DEMAND = re.compile(r'DPoP [^\r\n]*error="use_dpop_nonce"')


class Proofs:
    """Makes the proofs of one agent. It remembers the last nonce that the service gave."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self._nonce = ""

    def make(self, method: str, url: str, access: Optional[Credential]) -> Credential:
        """Returns a proof for one request, with the access token that the request carries. The service takes a proof once."""
        claims: Dict[str, Any] = {"htm": method, "htu": url, "iat": int(time.time()), "jti": secrets.token_urlsafe(16)}
        if access is not None:
            claims["ath"] = encoded(hashlib.sha256(access.reveal().encode()).digest())
        if self._nonce:
            claims["nonce"] = self._nonce
        return self.key._token({"typ": "dpop+jwt", "jwk": dict(self.key.public)}, claims)

    def learn(self, headers: Message) -> bool:
        """Remembers the nonce of a response. Returns whether there is one."""
        nonce = headers.get("DPoP-Nonce") or ""
        if not _LONGEST_NONCE.fullmatch(nonce):
            return False
        self._nonce = nonce
        return True


def demands_nonce(headers: Message) -> bool:
    """Returns whether a 401 demands a nonce (RFC 9449 §9)."""
    return any(_DEMAND.search(challenge) for challenge in headers.get_all("WWW-Authenticate") or ())


Held = Union[bool, Key, Sealed, None]  # the same, with the text of a key sealed


def held(binding: Binding) -> Held:
    return binding if isinstance(binding, bool) else keys.held(binding)


def proofs(binding: Held) -> Optional[Proofs]:
    """Returns what makes the proofs of a new agent. Raises UnusableCredential."""
    if isinstance(binding, bool):
        return Proofs(generate_key()) if binding else None
    if isinstance(binding, Sealed):
        binding = parse(binding, "dpop")
    return None if binding is None else Proofs(binding)
