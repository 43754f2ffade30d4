"""The keys of a session."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import List, Optional, Tuple

from . import jwk
from .calls import Call, Caller
from .credential import Credential
from .errors import unusable
from .retry import Semantics
from .url import path
from .wire import Fields, each, present


@dataclass(frozen=True)
class SessionKeyInfo:
    """A key of a session."""

    id: str
    session_id: str
    name: str  # empty: none
    key: Optional[Credential]  # only in the response to create_session_key
    created_at: datetime

    @classmethod
    def _read(cls, said: Fields) -> SessionKeyInfo:
        return cls(
            id=said.text("id"),
            session_id=said.text("session_id"),
            name=said.text("name", ""),
            key=said.credential("key"),
            created_at=said.moment("created_at"),
        )


def create(
    caller: Caller, session_id: str, name: Optional[str], key: Optional[str], timeout: Optional[float]
) -> SessionKeyInfo:
    call = caller.service.keyed(path("sessions", session_id, "keys"), key, present(name=name))
    return caller.ask(call, lambda said: SessionKeyInfo._read(Fields(said)), timeout)


def every(caller: Caller, session_id: str, timeout: Optional[float]) -> List[SessionKeyInfo]:
    call = Call("GET", path("sessions", session_id, "keys"))
    return caller.ask(call, lambda said: each(said, SessionKeyInfo._read), timeout)


def delete(caller: Caller, session_id: str, id: str, timeout: Optional[float]) -> None:
    call = Call("DELETE", path("sessions", session_id, "keys", id), semantics=Semantics.IDEMPOTENT, gone=True)
    return caller.ask_raw(call, lambda _: None, timeout)


def named_by(key: Credential) -> Tuple[str, str]:
    """Returns which agent and session a key names, which the service alone verifies. Raises UnusableCredential for what is no such
    key."""
    ids = _ids(key)
    if not ids:
        raise unusable("session key", "it is no session key of the service")
    return str(uuid.UUID(bytes=ids[16:32])), str(uuid.UUID(bytes=ids[:16]))


def _ids(key: Credential) -> bytes:
    """Returns the ids of the session and the agent, or nothing. It raises nothing, because its frame holds the key."""
    text = key.reveal()
    try:
        raw = jwk.decoded(text[len("rmsk_") :]) if text.startswith("rmsk_") else b""
    except (jwk.Refused, ValueError):
        raw = b""
    return raw[20:52] if len(raw) == 100 else b""  # the name of a key, 4 ids, and an HMAC of 32
