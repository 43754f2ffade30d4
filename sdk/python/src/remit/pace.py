"""How large leases are: they follow the pace of the charges, so that each lasts about a second, and take a small part of what
remains of the session."""

from __future__ import annotations

from typing import Optional

from .leases import Size

_FIRST_ACTIONS = 16
_CHARGES = 8  # in the smallest lease, of the size of the charge that asks for it
_LEAST_CHARGES = 4  # if fewer fit into a lease, the charge goes to the service instead
_GROWTH = 8  # from one lease to the next, so that a burst does not take the whole session
_SHARE = 8  # a lease takes at most this fraction of what remains
_MOST = Size(16_777_215, 1_099_511_000_000)
_NONE = Size(0, 0)


class Pace:
    """The pace of a lease's charges."""

    def __init__(self) -> None:
        self._per_second = _NONE
        self._last = _NONE  # the size of the lease that was asked for last

    def first(self, remaining: Size) -> Size:
        """Returns the size of the first lease, which is opened before there is a charge."""
        return Size(max(min(_FIRST_ACTIONS, remaining.actions // _SHARE), 1), 0)

    def size(self, charge: Size, remaining: Size) -> Optional[Size]:
        """Returns the size of the next lease, for a charge of this size and those that follow it, or None if too little
        remains of the session for a lease."""
        size = Size(*map(_amount, charge, self._per_second, self._last, remaining, _MOST))
        if any(of < _LEAST_CHARGES * one for of, one in zip(size, charge)):
            return None
        return size

    def asked(self, size: Size) -> None:
        """Notes the size of the lease that was asked for."""
        self._last = size

    def observe(self, used: Size, seconds: float) -> None:
        """Learns from a lease that was in use for so many seconds."""
        milliseconds = max(round(seconds * 1000), 1)
        self._per_second = Size(*(-(-amount * 1000 // milliseconds) for amount in used))

    def forget(self) -> None:
        """Forgets the pace, after a time without charges."""
        self._per_second = self._last = _NONE


def _amount(one: int, per_second: int, last: int, remaining: int, most: int) -> int:
    return min(max(_CHARGES * one, min(per_second, _GROWTH * last)), max(remaining, 0) // _SHARE, most)
