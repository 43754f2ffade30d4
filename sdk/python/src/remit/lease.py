"""A lease: a part of a session's budget that this process spends without asking."""

from __future__ import annotations

import logging
import math
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Optional, Type

from . import process
from .ask import Asking, asks
from .calls import Caller, end_of
from .errors import LeaseClosed, RemitError
from .grant import is_type
from .leases import Size
from .money import Amount, micro
from .spender import Spender

if TYPE_CHECKING:
    from .sessions import Session

_MOST_COUNT = 1000

_log = logging.getLogger("remit")
_known_micro = lru_cache(maxsize=1024, typed=True)(micro)  # programs charge the same few prices again and again


class Lease:
    """A part of a session's budget that this process spends without asking: charge decides here, and never beyond the session's
    limits. Session.lease opens one.

        with session.lease() as lease:
            lease.charge("llm.call", "0.01")

    It gets further leases in the background, as large as the pace of the charges asks for, about one a second. After 5 seconds
    without charges it gives all of them back. What it holds is not available to other charges of the session. Close it: what is
    not settled counts as spent. Leases that are still open when the interpreter exits are settled then, but not after os._exit
    or a signal without a handler. Threads can share a Lease. A forked child does not spend what its parent has leased: it gets
    leases of its own.
    """

    def __init__(self, caller: Caller, session: Session, seconds: int) -> None:
        self._caller = caller
        self._session = session
        self._seconds = seconds
        self._closed = False
        self._spender = Spender(caller, session.id, seconds)
        self._forks = process.forks  # when the spender was made

    def __repr__(self) -> str:
        return f"Lease({self._session.id!r})"

    def charge(
        self,
        action_type: Optional[str] = None,
        value: Amount = 0,
        *,
        count: int = 1,
        scope: Optional[str] = None,
        on_limit: Optional[str] = None,
        reason: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> None:
        """Charges an action before the agent takes it. The arguments are those of Session.charge.

        It waits only when nothing is leased. A charge with a scope or with your own idempotency key goes to the service, and so
        does one that is too large for a lease. So does every charge while the service grants no lease, such as close to the
        limit: the last unit that fits is charged, and the error is the one of Session.charge. With on_limit="ask" it asks for
        what is missing then. Raises LeaseClosed after close.
        """
        if on_limit is not None:
            self._charge_or_ask(action_type, value, count, scope, on_limit, reason, idempotency_key, timeout)
            return
        if self._closed:
            raise LeaseClosed("the lease is closed")
        spender = self._spender if self._forks == process.forks else self._own_spender()
        try:
            micros = _known_micro(value)
        except TypeError:  # not hashable, or no amount
            micros = micro(value)
        end = math.inf if timeout is None else end_of(timeout)
        is_local = scope is None and idempotency_key is None and type(count) is int and 1 <= count <= _MOST_COUNT
        if is_local and (action_type is None or is_type(action_type)):
            if spender.take(count, micros, action_type) or spender.take_renewed(count, micros, action_type, end):
                return
            if self._closed:
                raise LeaseClosed("the lease is closed")
        size = Size(count if isinstance(count, int) else 0, micros)
        spender.charge_directly(
            lambda left: self._session.charge(
                action_type, value, count=count, scope=scope, idempotency_key=idempotency_key, timeout=left
            ),
            size, idempotency_key is not None, end,
        )

    def _charge_or_ask(
        self,
        action_type: Optional[str],
        value: Amount,
        count: int,
        scope: Optional[str],
        on_limit: str,
        reason: Optional[str],
        idempotency_key: Optional[str],
        timeout: Optional[float],
    ) -> None:
        """Asks for what neither this lease nor the session has. Before it asks, the lease has given back what it held."""
        asks(on_limit)

        async def once(key: Optional[str], left: Optional[float]) -> None:
            self.charge(action_type, value, count=count, scope=scope, idempotency_key=key, timeout=left)

        asking = Asking(self._caller, self._session.id, reason, count, value)
        self._caller.run(asking.charge(idempotency_key, end_of(timeout), once))

    def close(self, *, timeout: Optional[float] = None) -> None:
        """Settles everything. Afterwards the lease charges no more. Idempotent: after an error it can be tried again."""
        end = end_of(timeout)
        spender = self._spender if self._forks == process.forks else self._own_spender()
        self._closed = spender.closed = True
        spender.give_back(end)
        spender.raise_failure()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except RemitError as e:  # the error that ended the block matters more
            _log.warning("%r could not be settled and counts as spent: %s", self, e)

    def _own_spender(self) -> Spender:
        """Returns the spender of this process, which was forked after the last one was made."""
        with process.lock:
            if self._forks != process.forks:
                self._spender = Spender(self._caller, self._session.id, self._seconds)
                self._forks = process.forks
            return self._spender


def open_lease(caller: Caller, session: Session, seconds: int, timeout: Optional[float]) -> Lease:
    lease = Lease(caller, session, seconds)
    lease._spender.open(end_of(timeout))
    return lease
