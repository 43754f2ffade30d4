"""Spends the leases of one session in this process, and has them renewed and settled by a thread."""

from __future__ import annotations

import math
import threading
from time import monotonic
from typing import Callable, Optional

from . import process
from .calls import Caller, timeout_of
from .errors import LimitReached, RemitError
from .grant import Grant
from .holdings import Holdings
from .leases import Size
from .renewer import Renewer
from .usage import Usage

# All times are in seconds.
_AHEAD = 0.5  # the next lease is asked for when the current one lasts no longer
_PERIOD = 0.5  # between checks for idle leases
_IDLE = 5.0  # without charges for so long, all leases are given back
_SETTLE_AFTER = 1.0  # a lease that is spent is settled then, if no renewal has taken the settlement along
_RETRY_AFTER = 1.0  # after a failure in the background


class Spender:
    """The leases of one session in one process. Its daemon thread runs while there are any."""

    def __init__(self, caller: Caller, session_id: str, seconds: int) -> None:
        self.closed = False
        self._holdings = Holdings(self._retired)
        self._renewer = Renewer(caller, session_id, seconds, self._holdings)
        self._thread: Optional[threading.Thread] = None
        self._wake = threading.Event()
        self._wanted: Optional[Size] = None  # the charge after which the next lease is wanted
        self._ahead_at = -math.inf  # no lease is asked for ahead of need before
        self._retry_at = -math.inf

    def open(self, end: float) -> None:
        """Gets the first lease. Raises if the service refuses it."""
        try:
            with self._renewer.alone(end):
                self._renewer.open(end)
        except BaseException:
            self.closed = True  # a grant whose answer was lost is given back
            raise
        finally:
            self._watch()

    def take(self, actions: int, value: int, type: Optional[str]) -> bool:
        """Charges what is leased. Returns False if that does not suffice."""
        now = monotonic()
        holdings = self._holdings
        with holdings.lock:
            if not holdings.take(actions, value, type, now):
                return False
            current = holdings.current
            if now < self._ahead_at or holdings.next is not None or current is None or not current.runs_out(now, _AHEAD):
                return True
            self._ahead_at = math.inf  # until the thread has tried
            self._wanted = Size(actions, value)
        self._wake.set()
        return True

    def take_renewed(self, actions: int, value: int, type: Optional[str], end: float) -> bool:
        """Charges a lease that is yet to be had. Returns False if there is none: the service's answer to the charge itself
        then says why."""
        if self._renewer.is_paused:
            return False
        try:
            with self._renewer.alone(end):
                if self.closed or self._renewer.is_paused:
                    return False
                if self.take(actions, value, type):
                    return True
                self._renewer.renew(Size(actions, value), end, instead=True)
                return self.take(actions, value, type)
        except RemitError:
            return False
        finally:
            self._watch()

    def charge_directly(self, charge: Callable[[Optional[float]], Usage], size: Size, own_key: bool, end: float) -> None:
        """Charges the session. If the service refuses, and the leases hold what may be missing, it gives everything back and
        charges again."""
        remaining = self._renewer.remaining
        if own_key and not remaining.covers(size):
            self._give_back_quietly(end)  # a refusal under this key would stay
        sent = self._renewer.sent
        try:
            remaining.learn(charge(timeout_of(end)))
            return
        except LimitReached as error:
            remaining.learn(error.usage)
            if own_key or not self._holds_what_lacks(error.limit, sent):
                raise
        with self._renewer.alone(end):
            self._give_back_quietly(end, alone=True)  # then the service's next answer is as exact as it can be
            remaining.learn(charge(timeout_of(end)))

    def give_back(self, end: float = math.inf) -> None:
        """Settles everything."""
        with self._renewer.alone(end):
            self._give_back(end)
        self._watch()

    def raise_failure(self) -> None:
        """Raises the error of the first settlement that the service refused, once."""
        self._renewer.raise_failure()

    def _give_back(self, end: float) -> None:
        with self._holdings.lock:
            self._holdings.retire_all(monotonic())
        self._renewer.settle(end)

    def _holds_what_lacks(self, limit: str, sent: int) -> bool:
        with self._holdings.lock:
            held = self._holdings.unspent("actions" if limit == "max_actions" else "value")
        return held > 0 or self._renewer.is_in_doubt or self._renewer.sent != sent

    def _retired(self, grant: Grant, now: float) -> None:
        """Learns from a lease that is taken out of use. The lock is held."""
        self._renewer.pace.observe(grant.used(), grant.in_use(now))
        if grant.time_left(now) < _SETTLE_AFTER + _PERIOD:
            self._wake.set()  # the next look at it would be too late

    def _watch(self) -> None:
        """Starts the thread, if there is something to look at and no thread yet."""
        with self._holdings.lock:
            if self._has_nothing() or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="remit-lease", daemon=True)
        process.note_open(self)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is shutting down: process settles at exit
            self._thread = None

    def _has_nothing(self) -> bool:
        return self._holdings.is_empty() and not self._renewer.is_in_doubt

    def _run(self) -> None:
        patience = self._patience()
        while patience is not None:
            self._wake.wait(patience)
            self._wake.clear()
            self._look(monotonic())
            patience = self._patience()

    def _patience(self) -> Optional[float]:
        """Returns how long the thread waits for the next look. None: there is nothing to look at, and the thread ends."""
        with self._holdings.lock:
            if self._has_nothing():
                process.note_settled(self)
                self._thread = None
                return None
            current = self._holdings.current
            return _PERIOD if current is None else min(max(current.time_left(monotonic()), 0.001), _PERIOD)

    def _look(self, now: float) -> None:
        with self._holdings.lock:
            wanted = self._plan(now)
            due = self._renewer.is_in_doubt or any(
                grant.out_of_use(now) >= _SETTLE_AFTER or grant.time_left(now) < _SETTLE_AFTER + _PERIOD
                for grant in self._holdings.spent
            )
        if wanted is not None:
            self._renew_ahead(wanted)
        elif (due or self.closed) and now >= self._retry_at:
            try:
                with self._renewer.alone():
                    self._renewer.settle()
            except RemitError:
                self._retry_at = monotonic() + _RETRY_AFTER

    def _plan(self, now: float) -> Optional[Size]:
        """Retires what is not to be spent any more, and returns the charge after which a lease is wanted."""
        holdings, wanted = self._holdings, self._wanted
        self._wanted = None
        current, idle_for = holdings.current, now - holdings.last_taken
        if self.closed or idle_for >= _IDLE:
            holdings.retire_all(now)
            self._renewer.pace.forget()
            return None
        if current is not None and current.time_left(now) <= (0 if holdings.next is None else _PERIOD):
            holdings.retire(now)  # now, because the next look may be too late to settle it in time
        elif wanted is None and current is not None and holdings.next is None and now >= self._ahead_at:
            expires_soon = current.time_left(now) < max(current.usable / 4, 2 * _PERIOD)
            wanted = current.average() if expires_soon and idle_for < current.usable / 2 else None
        return wanted if holdings.next is None else None

    def _renew_ahead(self, charge: Size) -> None:
        try:
            with self._renewer.alone():
                if self._holdings.next is None and not self.closed:
                    self._renewer.renew(charge, math.inf, instead=False)
        except RemitError:  # the charge that finds no lease learns why
            pass
        self._ahead_at = -math.inf if self._holdings.next is not None else monotonic() + _RETRY_AFTER

    def _give_back_quietly(self, end: float, alone: bool = False) -> None:
        try:
            if alone:
                self._give_back(end)
            else:
                self.give_back(end)
        except RemitError:
            pass
