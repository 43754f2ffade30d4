"""The API keys of an organization."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import List, Optional, Tuple

from .calls import Call, Caller
from .credential import Credential
from .retry import Semantics
from .url import path
from .wire import Fields, Malformed, Seconds, each, present, seconds


@dataclass(frozen=True)
class ApiKeyInfo:
    """One of an organization's API keys. The key that came with the organization has the organization's id."""

    id: str
    name: str
    role: str  # viewer, operator or admin
    api_key: Optional[Credential]  # only in the response to create_api_key
    hint: str  # its last four characters
    created_at: datetime
    expires_at: Optional[datetime]  # None: never
    last_used_at: Optional[datetime]  # to the minute; None: it has not been used

    @classmethod
    def _read(cls, said: Fields) -> ApiKeyInfo:
        return cls(
            id=said.text("id"),
            name=said.text("name"),
            role=said.text("role"),
            api_key=said.credential("api_key"),
            hint=said.text("hint"),
            created_at=said.moment("created_at"),
            expires_at=said.moment_or_none("expires_at"),
            last_used_at=said.moment_or_none("last_used_at"),
        )


@dataclass(frozen=True)
class RotatedKey:
    """A new API key. The previous one ends at previous_expires_at, or has ended."""

    api_key: Credential
    previous_expires_at: datetime


def create(
    caller: Caller, name: str, role: str, expires_in: Optional[Seconds], key: Optional[str], timeout: Optional[float]
) -> ApiKeyInfo:
    body = present(name=name, role=role, expires_in_seconds=seconds(expires_in))
    call = caller.service.keyed(path("api-keys"), key, body)
    return caller.ask(call, lambda said: ApiKeyInfo._read(Fields(said)), timeout)


def every(caller: Caller, timeout: Optional[float]) -> List[ApiKeyInfo]:
    return caller.ask(Call("GET", path("api-keys")), lambda said: each(said, ApiKeyInfo._read), timeout)


def rotate(caller: Caller, of: str, grace: Optional[Seconds], key: Optional[str], timeout: Optional[float]) -> RotatedKey:
    """Rotates the key whose rotation has this path."""
    call = caller.service.keyed(of, key, present(grace_seconds=seconds(grace)))
    return caller.ask(call, lambda said: RotatedKey(*rotated(Fields(said), "api_key")), timeout)


def delete(caller: Caller, id: str, timeout: Optional[float]) -> None:
    call = Call("DELETE", path("api-keys", id), semantics=Semantics.IDEMPOTENT, gone=True)
    return caller.ask_raw(call, lambda _: None, timeout)


def rotated(said: Fields, member: str) -> Tuple[Credential, datetime]:
    """Reads a rotated credential, and when the previous one ends."""
    renewed = said.credential(member)
    if renewed is None:
        raise Malformed(f"{member} is missing")
    return renewed, said.moment("previous_expires_at")
