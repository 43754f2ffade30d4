"""The environment variables that all SDKs and the remit commands read."""

from __future__ import annotations

import os
from typing import List, Tuple, Union

from . import exchange
from .credential import Credential
from .keys import Key

ADDRESS = "REMIT_ADDR"  # base URL of the service; optional
KEY = "REMIT_API_KEY"  # of an organization
AGENT = "REMIT_AGENT"  # its id
SECRET = "REMIT_SECRET"  # the agent's
KEY_FILE = "REMIT_KEY_FILE"  # with the agent's private key, instead of its secret
ASSERTION_FILE = "REMIT_ASSERTION_FILE"  # with the token of its workload, instead of its secret
DPOP = "REMIT_DPOP"  # 1, or a file with the private key that its tokens are bound to
RESOURCE = "REMIT_RESOURCE"  # what its tokens are for, separated by spaces; optional
SESSION = "REMIT_SESSION"  # its id
SESSION_KEY = "REMIT_SESSION_KEY"  # instead of the agent's id and credential, and of the session's id

_DEFAULT_ADDRESS = "http://127.0.0.1:8080"


def address() -> str:
    """Returns the base URL of the service. Names the variable if it has no scheme."""
    given = _get(ADDRESS) or _DEFAULT_ADDRESS
    if "://" not in given:
        raise ValueError(f"{ADDRESS}: the base URL needs http:// or https:// before the host")
    return given


def require(*names: str) -> None:
    """Checks that variables are set. It refuses @FILE and -, with which the remit commands read a credential from a file or
    from standard input: the SDK would send them as the credential itself."""
    missing: List[str] = [name for name in names if not _get(name)]
    if missing:
        instead = f" (or {KEY_FILE} or {ASSERTION_FILE} instead of {SECRET})" if SECRET in missing else ""
        raise ValueError(f"set {', '.join(missing)}{instead}")
    for name in set(names) - {KEY_FILE, ASSERTION_FILE}:
        if _get(name).startswith("@") or _get(name) == "-":
            raise ValueError(f"{name} must be the text itself: the SDK reads no file")


def require_agent(*others: str) -> None:
    """Checks that an agent's id, exactly one of its credentials, and the others are set."""
    given = [name for name in (SECRET, KEY_FILE, ASSERTION_FILE) if _get(name)]
    if len(given) > 1:
        raise ValueError(f"set only one of {', '.join(given)}")
    require(AGENT, *(given or [SECRET]), *others)


def resource() -> Tuple[str, ...]:
    return tuple(_get(RESOURCE).split())


def dpop() -> Union[bool, Key]:
    """Returns the key that the agent's tokens are bound to: of a file, True for one in memory, or False for none."""
    given = _get(DPOP)
    return given == "1" if given in ("", "0", "1") else exchange.key_in(given)()


def identifier(name: str) -> str:
    return _get(name)


def credential(name: str) -> Credential:
    return Credential(_get(name))


def _get(name: str) -> str:
    return os.environ.get(name, "").strip()
