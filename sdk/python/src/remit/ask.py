"""Asks for what a session lacks for a charge or a hold, waits for the decision, and goes on."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Callable, Coroutine, Optional, TypeVar

from . import more
from .calls import Caller, random_key, timeout_of
from .errors import LimitReached, RemitError, RequestNotApproved
from .money import Amount, micro, usd
from .more import MoreRequest

T = TypeVar("T")


@dataclass(frozen=True)
class _Missing:
    """What a session lacks."""

    actions: int
    value: Decimal

    def __bool__(self) -> bool:
        return self.actions > 0 or self.value > 0


class Asking:
    """Asks for more of a session, if a charge or a hold needs it."""

    def __init__(self, caller: Caller, session_id: str, reason: Optional[str], actions: int, value: Amount) -> None:
        if not isinstance(reason, str):
            raise TypeError('on_limit="ask" requires a reason')
        self._caller = caller
        self._session_id = session_id
        self._reason = reason
        self._actions = actions
        self._value = micro(value)

    async def charge(
        self, own_key: Optional[str], end: float, make: Callable[[Optional[str], Optional[float]], Coroutine[Any, Any, T]]
    ) -> T:
        """Makes a charge. If a limit refuses it, asks for what is missing, waits, and makes it again, until it succeeds or asking
        cannot help. With the caller's own key all further keys follow from it, and the service always answers a key the same. So
        the whole can be repeated, also after a crash: it asks once and charges once."""
        key, number = own_key, 1
        while True:
            try:
                return await make(key, timeout_of(end))
            except LimitReached as error:
                missing = self._missing(error)
                if not missing:
                    raise
                refusal = error
            request = await self._ask(refusal, missing, own_key, number, end)
            key = _key(own_key, "charge", number)
            granted = request.granted_actions >= missing.actions and request.granted_value >= missing.value
            if request.status == "ended" or not granted:
                return await make(key, timeout_of(end))  # its refusal is final
            number += 1

    def _missing(self, error: LimitReached) -> _Missing:
        """Returns what the session lacks: nothing, if the limit is none that a request can raise."""
        if error.limit not in ("max_actions", "max_value_usd"):
            return _Missing(0, Decimal(0))
        value = max(self._value - micro(error.usage.remaining_value), 0)
        return _Missing(max(self._actions - error.usage.remaining_actions, 0), usd(value))

    async def _ask(
        self, refusal: LimitReached, missing: _Missing, own_key: Optional[str], number: int, end: float
    ) -> MoreRequest:
        """Returns the approved request, or that of a session that has ended: the charge then says how."""
        # It has a key on a client without keys too: a lost response must not make it ask twice.
        key = _key(own_key, "ask", number) or random_key()
        body = more.body(self._reason, missing.actions or None, missing.value or None)
        request: Optional[MoreRequest] = None
        try:
            request = await more.patiently(
                self._caller, end, lambda left: more.ask(self._caller, self._session_id, key, left, body)
            )
            request = await more.await_decision(self._caller, self._session_id, request.id, end)
        except RemitError as error:
            raise RequestNotApproved._of(refusal, request, error.detail or str(error)) from error
        if request.status not in ("approved", "ended"):
            raise RequestNotApproved._of(refusal, request, request.comment)
        return request


def asks(on_limit: Optional[str]) -> bool:
    """Returns whether to ask. Raises ValueError for an unknown word."""
    if on_limit not in (None, "ask"):
        raise ValueError('on_limit is "ask" or None')
    return on_limit is not None


def _key(own: Optional[str], step: str, number: int) -> Optional[str]:
    """Returns the key of a step. Without a key of the caller's own there is none."""
    return None if own is None else f"{own}-{step}-{number}"
