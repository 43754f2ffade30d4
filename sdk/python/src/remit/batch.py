"""Many charges in one request."""

from __future__ import annotations

from dataclasses import dataclass
from email.message import Message
from typing import Any, Dict, Iterable, Optional, Tuple

from . import retry
from .calls import Caller
from .errors import RemitError, problem
from .money import Amount
from .transport import Failure, Kind
from .url import path
from .usage import Usage
from .wire import Fields, Malformed, encode, present, usd


@dataclass(frozen=True)
class Charge:
    """One charge to a session. The arguments have the order of Session.charge."""

    action_type: Optional[str] = None  # a label for your records, such as llm.call
    value: Amount = 0  # for all count actions together
    count: int = 1  # 1 to 1000
    scope: Optional[str] = None  # the token and the session must have it
    session_id: Optional[str] = None  # required, except by Session.charge_many

    def _body(self) -> Dict[str, Any]:
        return present(
            session_id=self.session_id,
            action_type=self.action_type,
            value_usd=usd(self.value),
            count=self.count,
            scope=self.scope,
        )


@dataclass(frozen=True)
class Result:
    """The result of one charge of a batch: either its usage or its error.

    The SDK does not retry a single charge that is Unavailable or OutcomeUnknown. To resolve it, send the same batch again with
    the same idempotency_key: the other results stay the same.
    """

    usage: Optional[Usage]
    error: Optional[RemitError]


def charge_many(
    caller: Caller, charges: Iterable[Charge], idempotency_key: Optional[str], timeout: Optional[float]
) -> Tuple[Result, ...]:
    bodies = [charge._body() for charge in charges]

    def read(said: Any) -> Tuple[Result, ...]:
        if not isinstance(said, list) or len(said) != len(bodies):
            raise Malformed(f"it has not {len(bodies)} results")
        return tuple(_result(Fields(one)) for one in said)

    return caller.ask(caller.service.keyed(path("actions"), idempotency_key, {"actions": bodies}), read, timeout)


def _result(said: Fields) -> Result:
    status, body = said.integer("status"), said.mapping("body")
    try:
        if status == 200:
            return Result(Usage._read(Fields(body)), None)
        failure = Failure(Kind.REFUSED, problem(status, Message(), encode(body or {})))
    except Malformed as e:
        failure = Failure(Kind.UNREADABLE, RemitError(f"unreadable answer: {e}"))
    return Result(None, retry.conclude("POST /v1/actions", retry.may_have_happened(failure), failure))
