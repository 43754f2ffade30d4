"""How an agent gets its tokens: by its secret, its private key (RFC 7523 §2.2) or a token of its workload (RFC 7523 §2.1)."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from typing import Any, Callable, Coroutine, Iterable, List, Optional, Tuple, Union

from .calls import Call, Caller
from .credential import NONE, Credential, Sealed, credential, valid
from .errors import unusable
from .keys import Key, parse
from .wire import Fields, Form, Malformed, names, uris

Path = Union[str, "os.PathLike[str]"]

EXCHANGE, REFRESH = "/v1/auth/token", "/v1/auth/refresh"
OAUTH_TOKEN = "/oauth2/token"
METADATA = "/.well-known/oauth-authorization-server"

_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_LIFETIME = 60  # seconds
_LONGEST_TOKEN = 8 << 10  # bytes
_LONGEST_KEY = 64 << 10  # bytes

# Returns the call that gets an agent's first tokens. It may first ask the service for its issuer, within the timeout in seconds.
Exchange = Callable[[Caller, Optional[float]], Coroutine[Any, Any, Call]]


@dataclass(frozen=True)
class Wanted:
    """Which tokens an agent asks for."""

    resource: Tuple[str, ...] = ()  # empty: tokens for the service itself
    scopes: Tuple[str, ...] = ()  # empty: all that the agent holds

    def form(self, *members: Tuple[str, Union[str, Credential]]) -> Form:
        scope: List[Tuple[str, str]] = [("scope", " ".join(self.scopes))] if self.scopes else []
        return [*members, *scope, *(("resource", one) for one in self.resource)]


def wanted(resource: Optional[Iterable[str]], scopes: Optional[Iterable[str]]) -> Wanted:
    return Wanted(tuple(uris("resource", resource or ())), tuple(names(scopes or ())))


@dataclass(frozen=True)
class Credentials:
    """How an agent authenticates: exactly one is given."""

    secret: Optional[Credential]
    key: Union[Key, Sealed, None]
    key_file: Optional[Path]
    assertion: Optional[Callable[[], str]]
    assertion_file: Optional[Path]

    def check(self) -> None:
        given = [n for n in ("secret", "key", "key_file", "assertion", "assertion_file") if getattr(self, n) is not None]
        if not given:
            raise TypeError("an agent has a secret, key, key_file, assertion or assertion_file")
        if len(given) > 1:
            raise TypeError(f"an agent has one credential, not {' and '.join(given)}")
        if self.assertion is not None and not callable(self.assertion):
            raise TypeError("assertion is a function that returns the workload's token")


def given(agent: str, by: Credentials, wanted: Wanted) -> Exchange:
    """Returns how the agent with these credentials gets its tokens. Reads no file."""
    by.check()
    if by.secret is not None:
        return by_secret(agent, valid(by.secret), wanted)
    if by.assertion is not None:
        return by_assertion(agent, token_from(by.assertion), wanted)
    if by.assertion_file is not None:
        return by_assertion(agent, token_in(by.assertion_file), wanted)
    if by.key_file is not None:
        return by_key(agent, key_in(by.key_file), wanted)
    assert by.key is not None
    key = by.key if isinstance(by.key, Key) else parse(by.key, "key")
    return by_key(agent, lambda: key, wanted)


def by_secret(agent: str, secret: Credential, wanted: Wanted) -> Exchange:
    members = {"agent_id": agent, "secret": secret, **({"resource": list(wanted.resource)} if wanted.resource else {})}
    form = wanted.form(("grant_type", "client_credentials"), ("client_id", agent), ("client_secret", secret))

    async def call(caller: Caller, timeout: Optional[float]) -> Call:
        if wanted.scopes:  # which only OAuth has
            return Call("POST", OAUTH_TOKEN, form=lambda: form)
        return Call("POST", EXCHANGE, members)

    return call


def by_key(agent: str, key: Callable[[], Key], wanted: Wanted) -> Exchange:
    async def call(caller: Caller, timeout: Optional[float]) -> Call:
        signer, audience = key(), await _issuer(caller, timeout)

        def form() -> Form:  # for each attempt, because the service takes an assertion once
            return wanted.form(
                ("grant_type", "client_credentials"),
                ("client_id", agent),
                ("client_assertion_type", _ASSERTION_TYPE),
                ("client_assertion", _assertion(agent, signer, audience)),
            )

        return Call("POST", OAUTH_TOKEN, form=form)

    return call


def _assertion(agent: str, key: Key, audience: str) -> Credential:
    header = {**({"kid": key.key_id} if key.key_id else {}), "typ": "client-authentication+jwt"}
    now = int(time.time())
    claims = {
        "iss": agent, "sub": agent, "aud": audience, "iat": now, "exp": now + _ASSERTION_LIFETIME, "jti": secrets.token_urlsafe(16),
    }
    return key._token(header, claims)


async def _issuer(caller: Caller, timeout: Optional[float]) -> str:
    """Returns the issuer of the service (RFC 8414), whose base URL is often another, such as an address inside a cluster. It is read
    once."""

    def read(said: Any) -> str:
        issuer = Fields(said).text("issuer")
        if not issuer:
            raise Malformed("issuer is empty")
        return issuer

    known = caller.service.metadata
    if "issuer" not in known:
        known["issuer"] = await caller.asked(Call("GET", METADATA), read, timeout)
    return known["issuer"]


def by_assertion(agent: str, assertion: Callable[[], Credential], wanted: Wanted) -> Exchange:
    async def call(caller: Caller, timeout: Optional[float]) -> Call:
        presented = assertion()
        form = wanted.form(("grant_type", _JWT_BEARER), ("client_id", agent), ("assertion", presented))
        return Call("POST", OAUTH_TOKEN, form=lambda: form)

    return call


def key_in(file: Path) -> Callable[[], Key]:
    """Returns what reads a private key again at each exchange, so that a replaced file counts."""
    path = os.fspath(file)
    return lambda: parse(_read(path, _LONGEST_KEY), path)


def token_in(file: Path) -> Callable[[], Credential]:
    """Returns what reads a workload's token again at each exchange: a projected token is replaced before it expires."""
    path = os.fspath(file)

    def read() -> Credential:
        return _token(credential(_read(path, _LONGEST_TOKEN + 2).open().decode("ascii", "replace")), path)

    return read


def token_from(provider: Callable[[], str]) -> Callable[[], Credential]:
    """Returns what asks the caller's own function for the workload's token."""

    def ask() -> Credential:
        why, given = "", NONE
        try:
            given = credential(provider())
        except Exception as e:  # the caller's own, whose text may hold the token
            why = f"its function raised {type(e).__name__}"
        if why:
            raise unusable("assertion", why)
        return _token(given, "assertion")

    return ask


def _token(given: Credential, source: str) -> Credential:
    """Returns a workload's token if it is a JWT."""
    text = given.reveal()
    is_jwt = text.count(".") == 2 and len(text) <= _LONGEST_TOKEN
    del text
    if given is NONE or not is_jwt:
        raise unusable(source, f"it is no JWT of at most {_LONGEST_TOKEN >> 10} KiB")
    return given


def _read(path: str, most: int) -> Sealed:
    try:
        with open(path, "rb") as file:
            text = file.read(most + 1)
    except (OSError, ValueError) as e:
        text, why = b"", (e.strerror if isinstance(e, OSError) else "") or "it cannot be read"
    else:
        why = "it is empty" if not text.strip() else f"it is longer than {most >> 10} KiB" if len(text) > most else ""
    held = Sealed(text)
    del text
    if why:
        raise unusable(path, why)
    return held
