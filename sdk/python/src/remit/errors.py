"""What a call may raise. Each error says what happened: of OutcomeUnknown the service may have done it, of any other not."""

from __future__ import annotations

import time
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Callable, Dict, Optional, Tuple

from .credential import Sealed
from .usage import Usage
from .wire import Fields, Malformed, decode


_LONGEST_SAID = float(1 << 30)  # seconds: what stands for more


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of a request."""

    field: str
    message: str


class RemitError(Exception):
    """A call that did not succeed. All errors of the SDK are one; no error holds a credential."""

    detail: str
    call: str = ""  # such as POST /v1/sessions
    status: int = 0  # of HTTP; 0: there was no answer
    code: str = ""  # machine-readable, such as invalid_request; empty when the answer did not come from Remit
    request_id: str = ""  # as in the service's log
    fields: Tuple[FieldError, ...] = ()
    retry_after: float = 0.0  # seconds; 0: not said

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail)
        self.detail = detail

    def _more(self) -> str:
        """What a type of its own adds to the text."""
        return ""

    def __str__(self) -> str:
        said = " ".join(part for part in (str(self.status or ""), self.code) if part)
        text = ": ".join(part for part in (self.call, said, self.detail) if part)
        for part in (*(f"{wrong.field} {wrong.message}".strip() for wrong in self.fields), self._more()):
            if part and f"; {part}; " not in f"; {self.detail}; ":
                text += "; " + part
        return text + (f" (request {self.request_id})" if self.request_id else "")


class LimitReached(RemitError):
    """It does not fit into the session. Nothing was charged."""

    limit: str  # max_actions, max_value_usd or max_committed_usd
    usage: Usage

    def _more(self) -> str:
        left = self.usage
        return (
            f"{self.limit}: {left.remaining_actions} of {left.max_actions} actions "
            f"and {left.remaining_value} of {left.max_value} USD left"
        )


class QuotaExceeded(RemitError):
    """It exceeds a quota of the organization. Nothing was done."""

    quota: str  # which one, such as agents
    used: int
    max: int

    def _more(self) -> str:
        return f"{self.quota}: {self.used} of {self.max} used"


class OrganizationSuspended(RemitError):
    """The operator of the service has suspended the organization."""


class LimitBelowUsage(RemitError):
    """New limits of a session are below what is used and held."""

    limit: str  # max_actions or max_value_usd
    usage: Usage

    def _more(self) -> str:
        now = self.usage
        return f"{self.limit}: {now.action_count} actions and {now.value_used} USD used, {now.value_held} USD held"


class SessionNotActive(RemitError):
    """Only an active session allows it."""

    session_status: str  # completed, expired or revoked


class InsufficientScope(RemitError):
    """The access token, or the session, lacks a scope."""

    required_scope: str


class TransactionNotPending(RemitError):
    """The transaction is settled, or has expired."""

    transaction_status: str  # committed, rolled_back or expired


class TransactionNotReversible(RemitError):
    """The transaction was committed, and begun as irreversible."""

    transaction_status: str


class TransactionDone(RemitError):
    """This Transaction was committed or rolled back already; nothing was sent."""


class Unauthorized(RemitError):
    """The API key, secret or token is not valid (401)."""


class NotFound(RemitError):
    """There is no such object, or it belongs to somebody else (404)."""


class RateLimited(RemitError):
    """Too many requests (429); retry_after says for how long."""


class IdempotencyKeyReused(RemitError):
    """The idempotency key was used before, for another request (422)."""


class Unavailable(RemitError):
    """The service or its store cannot be reached or used now. Nothing happened."""


class OutcomeUnknown(RemitError):
    """A write that may have happened or not: its answer was lost. Its __cause__ is what the last attempt ended in."""


def problem(status: int, headers: Message, body: Sealed) -> RemitError:
    """Reads an answer other than success into the type that its code stands for."""
    try:
        error = _read(status, Fields(decode(body)))
    except Malformed:
        error = _of_status(status, "")(_phrase(status))
    error.status, error.retry_after = status, retry_after(headers)
    return error


def _read(status: int, said: Fields) -> RemitError:
    code = said.text("code")
    try:
        error = _TYPES.get(code, lambda _: _of_status(status, code)())(said)
    except Malformed:  # the code alone is worth more than nothing
        error = _of_status(status, code)()
    error.detail = said.text("detail", "")
    error.args = (error.detail,)
    error.code, error.request_id = code, said.text("request_id", "")
    wrong = [Fields(entry) for entry in said.members("errors")]
    error.fields = tuple(FieldError(w.text("field", ""), w.text("message", "")) for w in wrong)
    return error


def _limit_reached(said: Fields) -> RemitError:
    error = LimitReached()
    error.limit, error.usage = said.text("limit"), Usage._read(said)
    return error


def _limit_below_usage(said: Fields) -> RemitError:
    error = LimitBelowUsage()
    error.limit, error.usage = said.text("limit"), Usage._read(said)
    return error


def _quota_exceeded(said: Fields) -> RemitError:
    error = QuotaExceeded()
    error.quota, error.used, error.max = said.text("quota"), said.integer("used"), said.integer("max")
    return error


def _session_not_active(said: Fields) -> RemitError:
    error = SessionNotActive()
    error.session_status = said.text("session_status", "")
    return error


def _insufficient_scope(said: Fields) -> RemitError:
    error = InsufficientScope()
    error.required_scope = said.text("required_scope", "")
    return error


def _transaction_not_pending(said: Fields) -> RemitError:
    error = TransactionNotPending()
    error.transaction_status = said.text("transaction_status", "")
    return error


def _transaction_not_reversible(said: Fields) -> RemitError:
    error = TransactionNotReversible()
    error.transaction_status = said.text("transaction_status", "")
    return error


_TYPES: Dict[str, Callable[[Fields], RemitError]] = {
    "session_limit_reached": _limit_reached,
    "limit_below_usage": _limit_below_usage,
    "quota_exceeded": _quota_exceeded,
    "organization_suspended": lambda _: OrganizationSuspended(),
    "session_not_active": _session_not_active,
    "insufficient_scope": _insufficient_scope,
    "transaction_not_pending": _transaction_not_pending,
    "transaction_not_reversible": _transaction_not_reversible,
}


def _of_status(status: int, code: str) -> Callable[..., RemitError]:
    if code == "idempotency_key_reused":
        return IdempotencyKeyReused
    return {401: Unauthorized, 404: NotFound, 429: RateLimited, 503: Unavailable}.get(status, RemitError)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def retry_after(headers: Message) -> float:
    """Reads the header in either form of RFC 9110 §10.2.3."""
    text: Optional[str] = headers.get("Retry-After")
    if not text:
        return 0.0
    if text.isascii() and text.isdigit():
        return float(text) if len(text.lstrip("0")) < 10 else _LONGEST_SAID
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
