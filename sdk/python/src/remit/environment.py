"""The environment variables that all SDKs and the remit commands read."""

from __future__ import annotations

import os
from typing import List

from .credential import Credential

ADDRESS = "REMIT_ADDR"  # base URL of the service; optional
KEY = "REMIT_API_KEY"  # of an organization
AGENT = "REMIT_AGENT"  # its id
SECRET = "REMIT_SECRET"  # the agent's
SESSION = "REMIT_SESSION"  # its id

_DEFAULT_ADDRESS = "http://127.0.0.1:8080"


def address() -> str:
    return _get(ADDRESS) or _DEFAULT_ADDRESS


def require(*names: str) -> None:
    """Checks that variables are set. It refuses @FILE and -, with which the remit commands read a credential from a file or
    from standard input: the SDK would send them as the credential itself."""
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
