"""The variables that the SDKs of all languages read, and the commands of remit too."""

from __future__ import annotations

import os
from typing import List

from .credential import Credential

ADDRESS = "REMIT_ADDR"  # the base URL of the service; not set: the default
KEY = "REMIT_API_KEY"  # of an organization
AGENT = "REMIT_AGENT"  # its id
SECRET = "REMIT_SECRET"  # the agent's
SESSION = "REMIT_SESSION"  # its id

_DEFAULT_ADDRESS = "http://127.0.0.1:8080"


def address() -> str:
    return _get(ADDRESS) or _DEFAULT_ADDRESS


def require(*names: str) -> None:
    """Checks variables that must be set. The commands of remit read a credential from a file given as @FILE, or from standard
    input given as -; sent as it stands, that would only be refused as a wrong credential."""
    missing: List[str] = [name for name in names if not _get(name)]
    if missing:
        raise ValueError(f"set {', '.join(missing)}")
    for name in names:
        if _get(name).startswith("@") or _get(name) == "-":
            raise ValueError(f"{name} must be the text itself: the SDK reads no file")


def identifier(name: str) -> str:
    return _get(name)


def credential(name: str) -> Credential:
    return Credential(_get(name))


def _get(name: str) -> str:
    return os.environ.get(name, "").strip()
