"""A transaction is an action with a prior state, to be settled by a commit or a rollback."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import TracebackType
from typing import Any, Dict, Iterator, Mapping, Optional, Type

from .calls import PER_PAGE, Call, Caller, end_of
from .errors import OutcomeUnknown, RemitError, TransactionDone, TransactionNotPending, TransactionNotReversible
from .money import Amount
from .retry import Effect
from .url import path
from .wire import Fields, Seconds, encode, present, seconds, usd_or_none

_ROLLBACK_LIMIT = 10.0  # seconds for the rollback of a block that an exception ends

_log = logging.getLogger("remit")


@dataclass(frozen=True)
class TransactionInfo:
    """A transaction as the service shows it. Lists leave out pre_state, post_state and metadata."""

    id: str
    agent_id: str
    session_id: str  # empty: none
    sequence_number: int  # in its session, from 1, without gaps; 0: no session
    status: str  # pending, committed, rolled_back or expired
    action_type: str
    pre_state: Optional[Dict[str, Any]]
    post_state: Optional[Dict[str, Any]]
    value: Decimal  # what it was begun with; once committed, what was charged
    value_held: Decimal  # while it is pending
    overage: Decimal  # spent beyond the session's limit
    late: bool  # committed after it had expired
    reversible: bool
    reason: str  # of the rollback
    metadata: Optional[Dict[str, Any]]
    expires_at: datetime
    created_at: datetime
    committed_at: Optional[datetime]
    rolled_back_at: Optional[datetime]

    @classmethod
    def _read(cls, said: Fields) -> TransactionInfo:
        return cls(
            id=said.text("id"),
            agent_id=said.text("agent_id"),
            session_id=said.text("session_id", ""),
            sequence_number=said.integer("sequence_number", 0),
            status=said.text("status"),
            action_type=said.text("action_type"),
            pre_state=said.mapping("pre_state"),
            post_state=said.mapping("post_state"),
            value=said.usd("value_usd"),
            value_held=said.usd("value_held_usd", Decimal(0)),
            overage=said.usd("overage_usd", Decimal(0)),
            late=said.flag("late", False),
            reversible=said.flag("reversible"),
            reason=said.text("reason", ""),
            metadata=said.mapping("metadata"),
            expires_at=said.moment("expires_at"),
            created_at=said.moment("created_at"),
            committed_at=said.moment_or_none("committed_at"),
            rolled_back_at=said.moment_or_none("rolled_back_at"),
        )


class Transaction:
    """A pending transaction, to be settled by commit or rollback, each done once however often it is sent.

        with session.begin("payment", pre_state=before, value="12.5") as tx:
            ...  # act
            tx.commit(value=spent, post_state=after)

    An exception that leaves the block rolls back, and goes on its way. A block that ends without one and has settled
    nothing commits what is held: what has happened must not leave the books by accident. One in which a rollback was
    asked for and failed asks for it once more instead, and raises nothing. A transaction that nobody settles expires, and
    its hold is released.
    """

    def __init__(self, caller: Caller, id: str, info: Optional[TransactionInfo] = None) -> None:
        self._caller = caller
        self._path = path("transactions", id)
        self._lock = threading.Lock()
        self._done = False  # settled, or being settled, or committed for all we know
        self._given_up: Optional[str] = None  # the reason of the rollback that was asked for last, of those that failed
        self.id = id
        self._info = info

    def __repr__(self) -> str:
        return f"Transaction({self.id!r})"

    @property
    def info(self) -> TransactionInfo:
        """What the service said of the transaction last. Nothing is sent but by one that was opened by its id only."""
        return self._info or self.get()

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._done:
            return
        if error is None and self._given_up is None:
            self.commit()
            return
        try:
            self.rollback(self._given_up or "not finished", timeout=_ROLLBACK_LIMIT)
        except RemitError as e:  # what ended the block, or was caught in it, matters more
            _log.warning("transaction %s could not be rolled back and is left to expire: %s", self.id, e)

    def commit(
        self,
        *,
        value: Optional[Amount] = None,
        post_state: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> TransactionInfo:
        """Settles the transaction as done.

        value is what was really spent; left out, it is what is held. Of less the rest is released. Of more the excess is
        charged as far as the session allows; the overage of the answer is what did not fit.

        A commit that comes after the transaction has expired is still taken, and its answer is late: what was spent must not
        be missing from the books.

        After success, after OutcomeUnknown and after an exception that is not the SDK's, such as a KeyboardInterrupt, it
        is done with: leaving the block then does nothing. To settle a commit in doubt, call get or reverse. After any
        other error it is pending still, unless that is a TransactionNotPending.
        """
        self._given_up = None
        body = present(value_usd=usd_or_none(value), post_state=post_state)
        call = self._caller.service.keyed(self._path + "/commit", idempotency_key, body)
        return self._settle(call, timeout, done_in_doubt=True)

    def update(
        self,
        *,
        value: Optional[Amount] = None,
        expires_in: Optional[Seconds] = None,
        timeout: Optional[float] = None,
    ) -> TransactionInfo:
        """Changes a pending transaction: it raises or lowers what is held, or gives it more time, counted from now. What does
        not fit is a LimitReached and changes nothing; of one that is not pending, TransactionNotPending tells."""
        body = present(value_usd=usd_or_none(value), expires_in_seconds=seconds(expires_in))
        return self._ask(Call("PATCH", self._path, body, Effect.REPEATS), timeout)

    def rollback(self, reason: Optional[str] = None, *, timeout: Optional[float] = None) -> TransactionInfo:
        """Settles the transaction as not done and releases its hold; the answer has the prior state to restore. The action
        stays counted. After a commit or rollback it is TransactionDone and sends nothing. An agent may always give back its
        own hold."""
        call = self._rollback(reason)
        self._given_up = reason or ""
        return self._settle(call, timeout, done_in_doubt=False)

    def reverse(self, reason: Optional[str] = None, *, timeout: Optional[float] = None) -> TransactionInfo:
        """Rolls the transaction back even if it is committed, which rollback does not; the value is given back to the
        session. For that an agent needs the scope transactions:rollback, or admin, in its token and its session, else it is
        an InsufficientScope. Further errors are those of rollback, and TransactionNotReversible."""
        call = self._rollback(reason)
        self._given_up = reason or ""
        info = self._ask(call, timeout)
        self._done = True
        return info

    def get(self, *, timeout: Optional[float] = None) -> TransactionInfo:
        """Reads the transaction."""
        return self._ask(Call("GET", self._path), timeout)

    def _rollback(self, reason: Optional[str]) -> Call:
        return self._caller.service.keyed(self._path + "/rollback", None, present(reason=reason))

    def _settle(self, call: Call, timeout: Optional[float], done_in_doubt: bool) -> TransactionInfo:
        end_of(timeout), encode(call.body)  # raises what is wrong with them before anything can be in doubt
        with self._lock:
            if self._done:
                raise TransactionDone("the transaction is committed or rolled back already")
            self._done = True
        done = done_in_doubt  # also when an interrupt or an alarm ends the wait for the answer
        try:
            info = self._ask(call, timeout)
            done = True
            return info
        except (TransactionNotPending, TransactionNotReversible):
            done = True
            raise
        except OutcomeUnknown:
            raise
        except RemitError:  # it did not happen
            done = False
            raise
        finally:
            self._done = done

    def _ask(self, call: Call, timeout: Optional[float]) -> TransactionInfo:
        self._info = self._caller.ask(call, lambda said: TransactionInfo._read(Fields(said)), timeout)
        return self._info


def begin(caller: Caller, idempotency_key: Optional[str], timeout: Optional[float], **members: Any) -> Transaction:
    call = caller.service.keyed(path("transactions"), idempotency_key, present(**members))
    info = caller.ask(call, lambda said: TransactionInfo._read(Fields(said)), timeout)
    return Transaction(caller, info.id, info)


def every(
    caller: Caller,
    status: Optional[str],
    session_id: Optional[str],
    agent_id: Optional[str],
    timeout: Optional[float],
) -> Iterator[TransactionInfo]:
    return caller.pages(
        path("transactions"), PER_PAGE, TransactionInfo._read, timeout,
        status=status, session_id=session_id, agent_id=agent_id,
    )
