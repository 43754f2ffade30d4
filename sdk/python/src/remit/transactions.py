"""A transaction is an action with a prior state. It ends with a commit or a rollback."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import TracebackType
from typing import Any, Coroutine, Dict, Iterator, Mapping, Optional, Type, TypeVar

from .calls import PER_PAGE, Call, Caller, end_of
from .errors import OutcomeUnknown, RemitError, TransactionDone, TransactionNotPending, TransactionNotReversible
from .money import Amount
from .retry import Semantics
from .url import path
from .wire import Fields, Seconds, encode, present, seconds, usd_or_none

_ROLLBACK_LIMIT = 10.0  # seconds for the rollback at the end of a `with` block

_log = logging.getLogger("remit")

X = TypeVar("X", bound="OneTransaction")


@dataclass(frozen=True)
class TransactionInfo:
    """A transaction as the service shows it. Lists omit pre_state, post_state and metadata."""

    id: str
    agent_id: str
    session_id: str  # empty: none
    sequence_number: int  # in its session, from 1, without gaps; 0: no session
    status: str  # pending, committed, rolled_back or expired
    action_type: str
    pre_state: Optional[Dict[str, Any]]
    post_state: Optional[Dict[str, Any]]
    value: Decimal  # the value it was begun with; once committed, the value that was charged
    value_held: Decimal  # while it is pending
    overage: Decimal  # spent beyond the session's limit
    late: bool  # whether it was committed after it had expired
    reversible: bool
    on_expiry: str  # commit: its hold is spent when it expires; empty: released
    held_by: str  # gateway: the metering gateway settles it, and no agent does; empty: its agent
    settled_by: str  # expiry: it is committed because its hold was spent, and a commit may still correct it; empty: not so
    reason: str  # the reason of the rollback
    metadata: Optional[Dict[str, Any]]
    expires_at: datetime
    created_at: datetime
    would_refuse: str  # at its begin, the limit of a session that only observes its limits; empty: none
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
            on_expiry=said.text("on_expiry", ""),
            held_by=said.text("held_by", ""),
            settled_by=said.text("settled_by", ""),
            reason=said.text("reason", ""),
            metadata=said.mapping("metadata"),
            expires_at=said.moment("expires_at"),
            created_at=said.moment("created_at"),
            would_refuse=said.text("would_refuse", ""),
            committed_at=said.moment_or_none("committed_at"),
            rolled_back_at=said.moment_or_none("rolled_back_at"),
        )


@dataclass(frozen=True)
class DryRun:
    """What a transaction that was only tried would have met."""

    would_refuse: str  # the limit that would have refused it, if the session did not only observe its limits; empty: none


class OneTransaction:
    """What Transaction and AsyncTransaction have in common."""

    def __init__(self, caller: Caller, id: str, info: Optional[TransactionInfo] = None) -> None:
        self._caller = caller
        self._path = path("transactions", id)
        self._lock = threading.Lock()
        self._done = False  # committed or rolled back, in progress, or a commit with an unknown outcome
        self._given_up: Optional[str] = None  # the reason of the last rollback that failed
        self.id = id
        self._info = info

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def _ended(self, error: Optional[BaseException]) -> None:
        """Ends a block that an exception left, or none."""
        if self._done:
            return
        if error is None and self._given_up is None:
            await self._commit({}, None, None)
            return
        try:
            await self._roll_back(self._given_up or "not finished", _ROLLBACK_LIMIT)
        except RemitError as e:  # the error that ended the block, or was caught in it, matters more
            _log.warning("transaction %s could not be rolled back and is left to expire: %s", self.id, e)

    async def _commit(self, body: Mapping[str, Any], key: Optional[str], timeout: Optional[float]) -> TransactionInfo:
        self._given_up = None
        call = self._caller.service.keyed(self._path + "/commit", key, body)
        return await self._settle(call, timeout, done_in_doubt=True)

    async def _roll_back(self, reason: Optional[str], timeout: Optional[float]) -> TransactionInfo:
        call = self._rollback(reason)
        self._given_up = reason or ""
        return await self._settle(call, timeout, done_in_doubt=False)

    async def _reverse(self, reason: Optional[str], timeout: Optional[float]) -> TransactionInfo:
        call = self._rollback(reason)
        self._given_up = reason or ""
        info = await self._ask(call, timeout)
        self._done = True
        return info

    def _rollback(self, reason: Optional[str]) -> Call:
        return self._caller.service.keyed(self._path + "/rollback", None, present(reason=reason))

    async def _settle(self, call: Call, timeout: Optional[float], done_in_doubt: bool) -> TransactionInfo:
        end_of(timeout), encode(call.body)  # raises on invalid arguments before anything is sent
        with self._lock:
            if self._done:
                raise TransactionDone("the transaction is committed or rolled back already")
            self._done = True
        return await self._caller.service.runtime.to_end(lambda: self._settled(call, timeout, done_in_doubt))

    async def _settled(self, call: Call, timeout: Optional[float], done_in_doubt: bool) -> TransactionInfo:
        done = done_in_doubt  # also when an interrupt or an alarm ends the wait for the answer
        try:
            info = await self._ask(call, timeout)
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

    async def _ask(self, call: Call, timeout: Optional[float]) -> TransactionInfo:
        self._info = await self._caller.asked(call, lambda said: TransactionInfo._read(Fields(said)), timeout)
        return self._info


class Transaction(OneTransaction):
    """A pending transaction. It ends with commit or rollback, each of which is idempotent.

        with session.begin("payment", pre_state=before, value="12.5") as tx:
            ...  # act
            tx.commit(value=spent, post_state=after)

    If an exception leaves the block, the transaction is rolled back and the exception propagates. If the block ends without a
    commit or rollback, the held value is committed, because the action has happened and must be accounted for. If a rollback
    inside the block failed, the end of the block tries it once more and raises nothing. A transaction that is neither
    committed nor rolled back expires, and its hold is released.
    """

    @property
    def info(self) -> TransactionInfo:
        """Returns the state in the service's last response. It sends a request only if there was none yet."""
        return self._info or self.get()

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._caller.run(self._ended(error))

    def commit(
        self,
        *,
        value: Optional[Amount] = None,
        post_state: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> TransactionInfo:
        """Commits the transaction.

        value is what was spent; the default is the held value. If it is below the hold, the rest is released. If it is above,
        the session is charged up to its limit, and overage in the result is the remainder.

        A commit after the transaction has expired still succeeds, and late is then True: spending must be accounted for.

        After success, after OutcomeUnknown and after an exception from outside the SDK, such as KeyboardInterrupt, the end of
        the block does nothing. To resolve an unknown outcome, call get or reverse. After any other error except
        TransactionNotPending, the transaction is still pending.
        """
        body = present(value_usd=usd_or_none(value), post_state=post_state)
        return self._caller.run(self._commit(body, idempotency_key, timeout))

    def update(
        self,
        *,
        value: Optional[Amount] = None,
        expires_in: Optional[Seconds] = None,
        timeout: Optional[float] = None,
    ) -> TransactionInfo:
        """Changes the hold of a pending transaction, or its expiry, counted from now. Raises LimitReached if the new hold does
        not fit, and TransactionNotPending if the transaction is not pending. Then nothing changes."""
        body = present(value_usd=usd_or_none(value), expires_in_seconds=seconds(expires_in))
        return self._caller.run(self._ask(Call("PATCH", self._path, body, Semantics.IDEMPOTENT), timeout))

    def rollback(self, reason: Optional[str] = None, *, timeout: Optional[float] = None) -> TransactionInfo:
        """Rolls back the transaction and releases its hold. The result has the prior state to restore. The action stays
        counted. After a commit or rollback it raises TransactionDone and sends nothing. An agent may always release its own
        hold."""
        return self._caller.run(self._roll_back(reason, timeout))

    def reverse(self, reason: Optional[str] = None, *, timeout: Optional[float] = None) -> TransactionInfo:
        """Rolls back the transaction even if it is committed, and refunds the value to the session. An agent needs the scope
        transactions:rollback or admin for that, in its token and its session; otherwise it raises InsufficientScope. It also
        raises the errors of rollback, and TransactionNotReversible."""
        return self._caller.run(self._reverse(reason, timeout))

    def get(self, *, timeout: Optional[float] = None) -> TransactionInfo:
        """Gets the transaction."""
        return self._caller.run(self._ask(Call("GET", self._path), timeout))


async def begin(
    caller: Caller, kind: Type[X], idempotency_key: Optional[str], timeout: Optional[float], **members: Any
) -> X:
    """Begins a transaction. If its caller is cancelled meanwhile, it is rolled back."""
    call = caller.service.keyed(path("transactions"), idempotency_key, present(**members))

    def work() -> Coroutine[Any, Any, TransactionInfo]:
        return caller.asked(call, lambda said: TransactionInfo._read(Fields(said)), timeout)

    def undo(info: TransactionInfo) -> Coroutine[Any, Any, None]:
        return kind(caller, info.id, info)._ended(RemitError("cancelled"))

    info = await caller.service.runtime.to_end(work, undo)
    return kind(caller, info.id, info)


def dry_run(caller: Caller, timeout: Optional[float], **members: Any) -> DryRun:
    call = Call("POST", path("transactions"), {**present(**members), "dry_run": True})
    return caller.ask(call, lambda said: DryRun(Fields(said).text("would_refuse", "")), timeout)


def every(
    caller: Caller,
    status: Optional[str],
    session_id: Optional[str],
    agent_id: Optional[str],
    settled_by: Optional[str],
    timeout: Optional[float],
) -> Iterator[TransactionInfo]:
    return caller.pages(
        path("transactions"), PER_PAGE, TransactionInfo._read, timeout,
        status=status, session_id=session_id, agent_id=agent_id, settled_by=settled_by,
    )
