"""The talk with the service about leases: one request at a time, whose outcome is always learned."""

from __future__ import annotations

import math
import random
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Iterator, Optional

from . import codes
from .calls import Call, Caller, timeout_of
from .errors import NotFound, OutcomeUnknown, RemitError, Unavailable
from .grant import Grant, Moment
from .holdings import Holdings
from .leases import Granted, Settled, Size, grant_call, settle_call
from .pace import Pace
from .remaining import Remaining
from .wire import Fields

# Seconds without leases after the service refused one or could not be reached. Charges go to the service meanwhile.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 1.5


@dataclass(frozen=True)
class _Request:
    """A request whose outcome is not known yet. It is sent again as it was: a grant with its key, a settlement with its
    numbers."""

    call: Call
    settles: Optional[Grant]
    asks: Optional[Size]
    at: Moment


class Renewer:
    """Gets and settles the leases of one session. Only the thread in alone() calls the methods that send something."""

    def __init__(self, caller: Caller, session_id: str, seconds: int, holdings: Holdings) -> None:
        self.remaining = Remaining(caller, session_id)
        self.pace = Pace()
        self.sent = 0  # requests
        self._caller = caller
        self._session_id = session_id
        self._seconds = seconds
        self._holdings = holdings
        self._turn = threading.Lock()
        self._in_doubt: Optional[_Request] = None
        self._paused_until = -math.inf
        self._failure: Optional[RemitError] = None  # the first settlement that the service refused

    @contextmanager
    def alone(self, end: float = math.inf) -> Iterator[None]:
        """Keeps other threads out of it. Raises Unavailable if they do not leave it by the end, on the monotonic clock."""
        patience = min(end - monotonic(), threading.TIMEOUT_MAX)
        if not self._turn.acquire(timeout=max(patience, 0.0)):
            raise Unavailable("the time given is over")
        try:
            yield
        finally:
            self._turn.release()

    @property
    def is_paused(self) -> bool:
        """Whether no lease is asked for at present."""
        return monotonic() < self._paused_until

    @property
    def is_in_doubt(self) -> bool:
        """Whether a request is under way, or its outcome unknown: there may be a lease that the holdings do not have."""
        return self._in_doubt is not None

    def open(self, end: float) -> None:
        """Gets the first lease. Raises if the service refuses it."""
        self._send(self._grant(self.pace.first(self.remaining.read(timeout_of(end)))), end)

    def renew(self, charge: Size, end: float, instead: bool) -> None:
        """Gets a lease for this charge and those that follow it, and settles one that is spent in the same request.

        With instead, the current lease does not suffice for the charge and is given back. It gets none while too little remains
        for a lease. Raises if the service refuses one.
        """
        try:
            self._resolve(end)
            size = self._size_for(charge, end)
            if size is None:
                return
            if instead:
                with self._holdings.lock:
                    self._holdings.retire(monotonic())
            spent = self._holdings.spent
            self._send(self._settlement(spent[0], size) if spent else self._grant(size), end)
        except RemitError:
            self.remaining.forget()
            self._pause()
            raise

    def settle(self, end: float = math.inf) -> None:
        """Settles all leases that are spent or retired."""
        self._resolve(end)
        while self._holdings.spent:
            self._send(self._settlement(self._holdings.spent[0], None), end)

    def raise_failure(self) -> None:
        """Raises the error of the first settlement that the service refused, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _pause(self) -> None:
        self._paused_until = monotonic() + random.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE)

    def _size_for(self, charge: Size, end: float) -> Optional[Size]:
        known = self.remaining.known()
        size = None if known is None else self.pace.size(charge, known)
        if known is None or size is not None and self.remaining.is_large(size):
            return self.pace.size(charge, self.remaining.read(timeout_of(end)))
        return size

    def _grant(self, asks: Size) -> _Request:
        at = Moment()
        return _Request(grant_call(self._caller, self._session_id, asks, self._seconds), None, asks, at)

    def _settlement(self, settles: Grant, asks: Optional[Size]) -> _Request:
        at = Moment()
        call = settle_call(settles.id, settles.used(), settles.types(), asks, self._seconds)
        return _Request(call, settles, asks, at)

    def _resolve(self, end: float) -> None:
        if self._in_doubt is not None:
            self._send(self._in_doubt, end)

    def _send(self, request: _Request, end: float) -> None:
        if request.asks is not None:
            self.pace.asked(request.asks)
        again = self._in_doubt is request
        self._in_doubt = request  # whatever ends the call, an interrupt too
        self.sent += 1

        def read(said: Any) -> Settled:
            return Settled(Granted._read(Fields(said))) if request.settles is None else Settled._read(Fields(said))

        try:
            settled = self._caller.ask(request.call, read, timeout_of(end))
        except RemitError as error:
            self._failed(request, error, again)
        else:
            self._done(request, settled)

    def _failed(self, request: _Request, error: RemitError, again: bool) -> None:
        """Raises the error, unless the service has refused a settlement for good."""
        final = _is_final(error)
        if final or not again and not isinstance(error, OutcomeUnknown):
            self._in_doubt = None  # a settlement without an outcome is sent anew later
        if not final or request.settles is None:
            raise error
        with self._holdings.lock:
            self._holdings.spent.remove(request.settles)
        if again and isinstance(error, NotFound):
            return  # it was settled more than an hour ago, and the service has forgotten it
        self._failure = self._failure or error

    def _done(self, request: _Request, settled: Settled) -> None:
        renewed = settled.renewed
        with self._holdings.lock:
            self._in_doubt = None
            if request.settles is not None:
                self._holdings.spent.remove(request.settles)
                self.remaining.leased(request.settles.left(), -1)
            if renewed is not None:
                self.remaining.leased(renewed.size, 1)
                self._holdings.add(Grant(renewed, request.at))
        if renewed is None and request.asks is not None:
            self.remaining.forget()
            self._pause()


def _is_final(error: RemitError) -> bool:
    """Returns whether the service itself refuses a settlement, which another attempt does not change. A suspended organization
    may be resumed."""
    is_refused = error.code not in ("", codes.ORGANIZATION_SUSPENDED)
    return is_refused and 400 <= error.status < 500 and error.status not in (408, 429)
