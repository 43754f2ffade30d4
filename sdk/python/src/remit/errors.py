"""The errors that calls raise. OutcomeUnknown means that the write may have happened; all others mean that it did not."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from email.message import Message
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Callable, Dict, Optional, Tuple

from . import codes
from .credential import Sealed
from .usage import Usage
from .wire import Fields, Malformed, decode

if TYPE_CHECKING:
    from .more import MoreRequest

_LONGEST_RETRY_AFTER = float(1 << 30)  # seconds; larger values are cut to it
_TOLERATED_SKEW = 30.0  # seconds between two clocks that no error mentions
INVALID_TARGET, INVALID_PROOF, USE_NONCE = "invalid_target", "invalid_dpop_proof", "use_dpop_nonce"
DPOP_REQUIRED, DELEGATED_TOKEN = "dpop_required", "delegated_token"


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of a request."""

    field: str
    message: str


class RemitError(Exception):
    """A call that did not succeed. All errors of the SDK derive from it. No error contains a credential."""

    detail: str
    call: str = ""  # such as POST /v1/sessions
    status: int = 0  # HTTP status; 0 if there was no response
    code: str = ""  # machine-readable, such as invalid_request; empty if the response did not come from Remit
    request_id: str = ""  # as in the service's log
    fields: Tuple[FieldError, ...] = ()
    retry_after: float = 0.0  # seconds; 0 if the response does not say
    _needs: str = ""  # what was refused needs, and how it needs less

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail)
        self.detail = detail

    def _more(self) -> str:
        """Returns what a subclass adds to the text."""
        return ""

    def __str__(self) -> str:
        said = " ".join(part for part in (str(self.status or ""), self.code) if part)
        text = ": ".join(part for part in (self.call, said, self.detail) if part)
        for part in (*(f"{wrong.field} {wrong.message}".strip() for wrong in self.fields), self._more(), self._needs):
            if part and f"; {part}; " not in f"; {self.detail}; ":
                text += "; " + part
        return text + (f" (request {self.request_id})" if self.request_id else "")


def _needs(limit: str, actions: int, value: Decimal) -> str:
    """Ends a text with what the call wanted of the limit. Empty for a limit of neither actions nor value."""
    if limit.startswith("max_actions") and actions > 0:
        return f"; this call needs {actions} action{'' if actions == 1 else 's'}"
    if (limit.startswith("max_value_usd") or limit == "max_committed_usd") and value > 0:
        return f"; this call needs {value} USD"
    return ""


class LimitReached(RemitError):
    """The charge or hold exceeds a limit of the session. Nothing was charged."""

    # max_actions, max_value_usd, max_committed_usd or max_value_usd_per_action; for a lease also max_lease_seconds, expires_at or
    # max_open_leases; for a request for more max_pending_requests; for a child also
    # max_lease_seconds, expires_at, max_depth or max_open_children
    limit: str
    parent_session_id: str = ""  # whose limit it is, when a child is refused; empty: the session's own
    needed_actions: int = 0  # that the call wanted
    # what the call wanted to spend, hold, lease or set aside; to raise a hold, the new hold in full
    needed_value: Decimal = Decimal(0)
    usage: Usage

    def _more(self) -> str:
        left = self.usage
        whose = f"{self.limit} of the parent {self.parent_session_id}" if self.parent_session_id else self.limit
        return (
            f"{whose}: {left.remaining_actions} of {left.max_actions} actions "
            f"and {left.remaining_value} of {left.max_value} USD left"
            f"{_needs(self.limit, self.needed_actions, self.needed_value)}"
        )


class RequestNotApproved(LimitReached):
    """A charge asked for more in vain: the request was denied, was not decided in time, or it could not be made. Nothing was
    charged. What is approved later still raises the session's limits."""

    request: Optional[MoreRequest]  # None: it could not be made
    _why: str

    @classmethod
    def _of(cls, refusal: LimitReached, request: Optional[MoreRequest], why: str) -> RequestNotApproved:
        error = cls(refusal.detail)
        error.__dict__.update(refusal.__dict__)
        error.request, error._why = request, why
        return error

    def _more(self) -> str:
        decided = "no request for more was made" if self.request is None else f"request for more {self.request.status}"
        return f"{super()._more()}; {decided}" + (f": {self._why}" if self._why else "")


class AgentLimitReached(RemitError):
    """A charge, a hold, a lease or a session exceeds a limit of the agent. Nothing was done."""

    limit: str  # max_value_usd_per_day or max_open_sessions
    resets_at: Optional[datetime]  # of a limit per day
    needed_actions: int = 0  # as those of LimitReached
    needed_value: Decimal = Decimal(0)

    def _more(self) -> str:
        until = "" if self.resets_at is None else f", until {self.resets_at.isoformat().replace('+00:00', 'Z')}"
        return f"{self.limit}{until}{_needs(self.limit, self.needed_actions, self.needed_value)}"


class BudgetExhausted(RemitError):
    """A root session, or its top-up, exceeds what remains of the organization's budget. Nothing was done."""

    remaining: Decimal
    resets_at: Optional[datetime]  # None: the budget has no period
    needed_actions: int = 0  # as those of LimitReached
    needed_value: Decimal = Decimal(0)

    def _more(self) -> str:
        return f"{self.remaining} USD left{_needs('max_value_usd', self.needed_actions, self.needed_value)}"


class AgentSuspended(RemitError):
    """The agent is suspended."""

    suspended_at: Optional[datetime]


class SessionSuspended(RemitError):
    """The session is suspended."""

    suspended_at: Optional[datetime]


class RequestDecided(RemitError):
    """The request for more was decided otherwise before."""


class QuotaExceeded(RemitError):
    """The request exceeds a quota of the organization. Nothing was changed."""

    quota: str  # which one, such as agents
    used: int
    max: int

    def _more(self) -> str:
        return f"{self.quota}: {self.used} of {self.max} used"


class OrganizationSuspended(RemitError):
    """The operator of the service has suspended the organization."""


class LimitBelowUsage(RemitError):
    """A new limit of a session is below what is used and held."""

    limit: str  # max_actions or max_value_usd
    usage: Usage

    def _more(self) -> str:
        now = self.usage
        return f"{self.limit}: {now.action_count} actions and {now.value_used} USD used, {now.value_held} USD held"


class SessionNotActive(RemitError):
    """The session is not active."""

    session_status: str  # completed, expired or revoked


class InsufficientScope(RemitError):
    """The access token or the session lacks a scope."""

    required_scope: str


class InsufficientRole(RemitError):
    """The API key's role does not allow the call. Nothing was done."""

    required_role: str  # operator or admin


class IssuerExists(RemitError):
    """The organization trusts this issuer already: change that trusted issuer."""


class LastAdminKey(RemitError):
    """The last admin key that never expires cannot be deleted."""


class TransactionNotPending(RemitError):
    """The transaction is committed or rolled back, or has expired."""

    transaction_status: str  # committed, rolled_back or expired


class TransactionNotReversible(RemitError):
    """The transaction is committed and was begun as irreversible."""

    transaction_status: str


class TransactionDone(RemitError):
    """This Transaction is already committed or rolled back. Nothing was sent."""


class LeaseClosed(RemitError):
    """This Lease is closed. Nothing was charged or sent."""


class Unauthorized(RemitError):
    """The API key, secret or token is not valid (401)."""


class InvalidTarget(RemitError):
    """A resource is malformed, or not among the agent's audiences or those of the grant. There is no token."""


class InvalidProof(Unauthorized):
    """The service refuses the proof of possession (RFC 9449). Nothing was done."""

    # Seconds that this machine's clock is ahead of the service's, by the Date of the response; negative: behind. 0 without one.
    clock_skew: float = 0.0

    def _more(self) -> str:
        if abs(self.clock_skew) <= _TOLERATED_SKEW:
            return ""
        minutes, seconds = divmod(round(abs(self.clock_skew)), 60)
        length = f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
        return f"this machine's clock is {length} {'ahead of' if self.clock_skew > 0 else 'behind'} the service's"


class DPoPRequired(Unauthorized):
    """The agent must prove that it holds a key: make it with dpop=True or a key."""

    def _more(self) -> str:
        return "set dpop"


class DelegatedTokenRefused(RemitError):
    """A delegated token may act on its own session only. Nothing was done."""


class SessionKeyOnly(RemitError):
    """A session key may act on its own session only. Nothing was done."""


class TooManySessionKeys(RemitError):
    """The session has 8 keys."""


class HeldByGateway(RemitError):
    """The metering gateway holds the transaction, and alone settles or changes it. Nothing was done."""


class UnusableCredential(RemitError):
    """A key, a token or the file of one cannot be used. Nothing was sent with it."""

    source: str = ""  # the file's path, or key, dpop, assertion or token


class NotFound(RemitError):
    """The object does not exist or belongs to another organization or agent (404, or 400 at the token endpoint)."""


class RateLimited(RemitError):
    """Too many requests (429). retry_after says how long to wait."""


class IdempotencyKeyReused(RemitError):
    """The idempotency key was used for another request (422)."""


class Unavailable(RemitError):
    """The service or its Redis cannot be reached or used now. Nothing happened."""


class OutcomeUnknown(RemitError):
    """The write may have happened: its response was lost. __cause__ is the error of the last attempt."""


def unusable(source: str, why: str) -> UnusableCredential:
    error = UnusableCredential(f"{source}: {why}")
    error.source = source
    return error


def problem(status: int, headers: Message, body: Sealed) -> RemitError:
    """Reads an error response into the type for its code."""
    return _problem(status, headers, body, ("code", "detail"))


def oauth_problem(status: int, headers: Message, body: Sealed) -> RemitError:
    """Like problem, for the token endpoint, whose errors are those of RFC 6749 §5.2, with the service's own code where that says more."""
    return _problem(status, headers, body, ("error", "error_description"))


def _problem(status: int, headers: Message, body: Sealed, names: Tuple[str, str]) -> RemitError:
    try:
        error = _read(status, Fields(decode(body)), *names)
    except Malformed:
        error = _of_status(status, "")(_phrase(status))
    error.status, error.retry_after = status, retry_after(headers) or error.retry_after
    if isinstance(error, InvalidProof):
        error.clock_skew = _skew(headers)
    return error


def _read(status: int, said: Fields, code_name: str, detail_name: str) -> RemitError:
    code = said.text("code", "") or said.text(code_name)
    try:
        error = _TYPES.get(code, lambda _: _of_status(status, code)())(said)
    except Malformed:  # keep at least the code
        error = _of_status(status, code)()
    error.detail = said.text(detail_name, "")
    error.args = (error.detail,)
    error.code, error.request_id = code, said.text("request_id", "")
    wait = said.integer("retry_after_seconds", 0)  # as in the header, which an item of a batch does not have
    error.retry_after = float(min(max(wait, 0), _LONGEST_RETRY_AFTER))
    wrong = [Fields(entry) for entry in said.members("errors")]
    error.fields = tuple(FieldError(w.text("field", ""), w.text("message", "")) for w in wrong)
    return error


def _limit_reached(said: Fields) -> RemitError:
    error = LimitReached()
    error.limit, error.usage = said.text("limit"), Usage._read(said)
    error.parent_session_id = said.text("parent_session_id", "")
    error.needed_actions, error.needed_value = _needed(said)
    return error


def _needed(said: Fields) -> Tuple[int, Decimal]:
    return said.integer("needed_actions", 0), said.usd("needed_value_usd", Decimal(0))


def _agent_limit_reached(said: Fields) -> RemitError:
    error = AgentLimitReached()
    error.limit, error.resets_at = said.text("limit"), said.moment_or_none("resets_at")
    error.needed_actions, error.needed_value = _needed(said)
    return error


def _budget_exhausted(said: Fields) -> RemitError:
    error = BudgetExhausted()
    error.remaining, error.resets_at = said.usd("remaining_usd"), said.moment_or_none("resets_at")
    error.needed_actions, error.needed_value = _needed(said)
    return error


def _agent_suspended(said: Fields) -> RemitError:
    error = AgentSuspended()
    error.suspended_at = said.moment_or_none("suspended_at")
    return error


def _session_suspended(said: Fields) -> RemitError:
    error = SessionSuspended()
    error.suspended_at = said.moment_or_none("suspended_at")
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


def _insufficient_role(said: Fields) -> RemitError:
    error = InsufficientRole()
    error.required_role = said.text("required_role", "")
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
    codes.SESSION_LIMIT_REACHED: _limit_reached,
    codes.AGENT_LIMIT_REACHED: _agent_limit_reached,
    codes.BUDGET_EXHAUSTED: _budget_exhausted,
    codes.AGENT_SUSPENDED: _agent_suspended,
    codes.SESSION_SUSPENDED: _session_suspended,
    codes.REQUEST_DECIDED: lambda _: RequestDecided(),
    codes.LIMIT_BELOW_USAGE: _limit_below_usage,
    codes.QUOTA_EXCEEDED: _quota_exceeded,
    codes.ORGANIZATION_SUSPENDED: lambda _: OrganizationSuspended(),
    codes.NOT_FOUND: lambda _: NotFound(),
    codes.SESSION_NOT_ACTIVE: _session_not_active,
    codes.INSUFFICIENT_SCOPE: _insufficient_scope,
    codes.INSUFFICIENT_ROLE: _insufficient_role,
    codes.ISSUER_EXISTS: lambda _: IssuerExists(),
    codes.LAST_ADMIN_KEY: lambda _: LastAdminKey(),
    codes.TRANSACTION_NOT_PENDING: _transaction_not_pending,
    codes.TRANSACTION_NOT_REVERSIBLE: _transaction_not_reversible,
    INVALID_TARGET: lambda _: InvalidTarget(),
    INVALID_PROOF: lambda _: InvalidProof(),
    USE_NONCE: lambda _: InvalidProof(),
    DPOP_REQUIRED: lambda _: DPoPRequired(),
    DELEGATED_TOKEN: lambda _: DelegatedTokenRefused(),
    codes.SESSION_KEY_ONLY: lambda _: SessionKeyOnly(),
    codes.TOO_MANY_SESSION_KEYS: lambda _: TooManySessionKeys(),
    codes.HELD_BY_GATEWAY: lambda _: HeldByGateway(),
    "invalid_client": lambda _: Unauthorized(),
    "invalid_grant": lambda _: Unauthorized(),
}


def _of_status(status: int, code: str) -> Callable[..., RemitError]:
    if code == codes.IDEMPOTENCY_KEY_REUSED:
        return IdempotencyKeyReused
    return {401: Unauthorized, 404: NotFound, 429: RateLimited, 503: Unavailable}.get(status, RemitError)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _skew(headers: Message) -> float:
    """Returns the seconds that this machine's clock is ahead of the Date of a response. 0: there is none."""
    try:
        return time.time() - parsedate_to_datetime(headers.get("Date") or "").timestamp()
    except (TypeError, ValueError, OverflowError, IndexError):
        return 0.0


def retry_after(headers: Message) -> float:
    """Returns the header in seconds, from either form of RFC 9110 §10.2.3."""
    text: Optional[str] = headers.get("Retry-After")
    if not text:
        return 0.0
    if text.isascii() and text.isdigit():
        return float(text) if len(text.lstrip("0")) < 10 else _LONGEST_RETRY_AFTER
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
