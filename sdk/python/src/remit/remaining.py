"""What remains of a session, as far as this process knows."""

from __future__ import annotations

import math
from time import monotonic
from typing import Optional

from . import sessions
from .calls import Caller
from .leases import Size
from .money import micro
from .usage import Usage

_FRESH = 10.0  # seconds
_SAFELY = 16  # a lease above this fraction of what remains is asked for only after a look at the session


class Remaining:
    """What remains of a session. Other processes spend it too, so it is read again now and then."""

    def __init__(self, caller: Caller, session_id: str) -> None:
        self._caller = caller
        self._session_id = session_id
        self._left = Size(0, 0)
        self._read_at = -math.inf
        self._has_max_committed = False

    def known(self) -> Optional[Size]:
        """Returns what remains, or None if it is not known, or not any more."""
        return self._left if monotonic() - self._read_at <= _FRESH else None

    def covers(self, charge: Size) -> bool:
        """Returns whether a charge surely fits, unless other processes spend what remains."""
        known = self.known()
        return known is not None and known.actions >= charge.actions and known.value >= charge.value

    def is_large(self, size: Size) -> bool:
        """Returns whether a lease is so large that a look at the session comes first."""
        return _SAFELY * size.actions > self._left.actions or _SAFELY * size.value > self._left.value

    def read(self, timeout: Optional[float]) -> Size:
        """Asks the service."""
        session = sessions.get(self._caller, self._session_id, timeout)
        self._left = _left(session)
        self._has_max_committed = session.max_committed is not None
        self._read_at = monotonic()
        return self._left

    def learn(self, usage: Usage) -> None:
        """Learns from the answer to a charge. It does not tell what remains of a limit of what is ever committed."""
        if not self._has_max_committed:
            self._left = Size(usage.remaining_actions, micro(usage.remaining_value))
            self._read_at = monotonic()

    def leased(self, size: Size, sign: int) -> None:
        """Notes that this process leased an amount, or with a negative sign that it gave some back."""
        self._left = Size(self._left.actions - sign * size.actions, self._left.value - sign * size.value)

    def forget(self) -> None:
        """Forgets it, because the service has refused what should have fitted."""
        self._read_at = -math.inf


def _left(session: sessions.SessionInfo) -> Size:
    held = micro(session.value_held)
    value = micro(session.max_value) - micro(session.value_used) - held - micro(session.value_delegated)
    if session.max_committed is not None:
        value = min(value, micro(session.max_committed) - micro(session.value_committed) - held)
    return Size(session.max_actions - session.action_count - session.actions_delegated, value)
