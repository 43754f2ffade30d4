"""The leases that this process holds: the one in use, the next one, and those that are spent and not yet settled."""

from __future__ import annotations

import threading
from time import monotonic
from typing import Callable, List, Optional

from .grant import Grant


class Holdings:
    """The leases of one session in this process. lock guards all of it; callers hold it, except for the spent ones, which
    only one thread settles at a time."""

    def __init__(self, retired: Callable[[Grant, float], None]) -> None:
        """retired is called, with the lock held, for each lease that is taken out of use."""
        self.lock = threading.Lock()
        self.current: Optional[Grant] = None
        self.next: Optional[Grant] = None
        self.spent: List[Grant] = []
        self.last_taken = monotonic()
        self._retired = retired

    def is_empty(self) -> bool:
        return self.current is None and not self.spent

    def take(self, actions: int, value: int, type: Optional[str], now: float) -> bool:
        """Takes a charge from the current lease, or else from the next one, which then takes its place."""
        current = self.current
        if current is not None and current.take(actions, value, type, now):
            self.last_taken = now
            return True
        if self.next is not None and self.next.take(actions, value, type, now):
            self.last_taken = now
            self.retire(now)
            return True
        return False

    def retire(self, now: float) -> None:
        """Takes the current lease out of use. The next one takes its place."""
        retired = self.current
        if retired is None:
            return
        retired.retire(now)
        self.spent.append(retired)
        self.current, self.next = self.next, None
        if self.current is not None:
            self.current.begin(now)
        self._retired(retired, now)

    def retire_all(self, now: float) -> None:
        """Takes all leases out of use."""
        self.retire(now)
        self.retire(now)

    def add(self, grant: Grant) -> None:
        now = monotonic()
        if self.current is None:
            self.current = grant
            grant.begin(now)
        elif self.next is None:
            self.next = grant
        else:
            grant.retire(now)  # its answer was lost, and is learned late
            self.spent.append(grant)

    def unspent(self, of: str) -> int:
        """Returns what is leased and not spent, of "actions" or "value"."""
        held = [grant for grant in (self.current, self.next, *self.spent) if grant is not None]
        return sum(grant.left().actions if of == "actions" else grant.left().value for grant in held)
