"""One lease of the service, and what of it is spent in this process."""

from __future__ import annotations

from time import monotonic
from time import time as wall_clock
from typing import Dict, List, Optional

from .leases import Granted, Size

_USABLE = 0.95  # the part of its lifetime in which a lease is spent, so that its settlement arrives before it expires
_MOST_TYPES = 63  # that the settlement tells apart; the 64th is other
_OTHER = "other"
_LONGEST_TYPE = 200  # characters


class Moment:
    """A moment on both clocks. The monotonic clock stops while the machine sleeps; the wall clock may be set."""

    __slots__ = ("monotonic", "wall")

    def __init__(self) -> None:
        self.monotonic = monotonic()
        self.wall = wall_clock()


class Grant:
    """A lease with its local counters. The lock of the Holdings guards it until it is retired."""

    __slots__ = ("id", "usable", "_max", "_until", "_wall_until", "_types", "_actions", "_value", "_since", "_retired_at")

    def __init__(self, granted: Granted, requested: Moment) -> None:
        """requested is a moment before the service granted the lease: its lifetime counts from then."""
        self.id = granted.id
        self.usable = granted.lifetime * _USABLE  # seconds
        self._max = granted.size
        self._actions, self._value = granted.size  # that are left
        self._until = requested.monotonic + self.usable
        self._wall_until = requested.wall + self.usable
        self._types: Dict[str, List[int]] = {}
        self._since = requested.monotonic  # when it came into use
        self._retired_at: Optional[float] = None

    def take(self, actions: int, value: int, type: Optional[str], now: float) -> bool:
        """Spends a charge, unless the lease lacks the budget or the time for it."""
        if actions > self._actions or value > self._value or now >= self._until or wall_clock() >= self._wall_until:
            return False
        self._actions -= actions
        self._value -= value
        if type is not None:
            spent = self._types.get(type)
            if spent is not None:
                spent[0] += actions
                spent[1] += value
            elif len(self._types) < _MOST_TYPES:
                self._types[type] = [actions, value]
        return True

    def begin(self, now: float) -> None:
        """Notes that charges are taken from it from now on."""
        self._since = now

    def retire(self, now: float) -> None:
        """Notes that no charge is taken from it any more."""
        self._retired_at = now

    def left(self) -> Size:
        return Size(self._actions, self._value)

    def used(self) -> Size:
        return Size(self._max.actions - self._actions, self._max.value - self._value)

    def average(self) -> Size:
        """Returns one action, at the average value of those that are spent."""
        used = self.used()
        return Size(1, -(-used.value // max(used.actions, 1)))

    def in_use(self, now: float) -> float:
        """For how many seconds it has been in use."""
        return now - self._since

    def out_of_use(self, now: float) -> float:
        """For how many seconds it has been out of use."""
        return 0.0 if self._retired_at is None else now - self._retired_at

    def time_left(self, now: float) -> float:
        """For how many seconds more it may be spent; 0 or less: it is over."""
        return min(self._until - now, self._wall_until - wall_clock())

    def runs_out(self, now: float, seconds: float) -> bool:
        """Returns whether more than half of an amount is spent, and at the pace so far the rest lasts less than so long."""
        actions, value = self._max
        if 2 * self._actions >= actions and 2 * self._value >= value:
            return False
        elapsed = now - self._since
        return (
            self._actions * elapsed < (actions - self._actions) * seconds
            or self._value * elapsed < (value - self._value) * seconds
        )

    def types(self) -> Dict[str, Size]:
        """Returns what was spent by type of action. Whatever no type accounts for is other: the sums are the totals."""
        types = {type: Size(*spent) for type, spent in self._types.items()}
        used = self.used()
        actions = used.actions - sum(spent.actions for spent in types.values())
        value = used.value - sum(spent.value for spent in types.values())
        if actions or value:
            named = types.get(_OTHER, Size(0, 0))
            types[_OTHER] = Size(named.actions + actions, named.value + value)
        return types


def is_type(text: object) -> bool:
    """Returns whether the service takes a text as a type of action in a settlement."""
    if not isinstance(text, str) or not 1 <= len(text) <= _LONGEST_TYPE:
        return False
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)
