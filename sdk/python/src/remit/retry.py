"""Decides which calls to retry and when, and what is known about a write that failed."""

from __future__ import annotations

import copy
import enum
import random
import time
from typing import Optional

from . import codes
from .errors import OutcomeUnknown, RemitError
from .transport import Failure, Kind

FIRST_BACKOFF = 0.1  # seconds
LONGEST_BACKOFF = 5.0
# The longest Retry-After that the SDK waits for. A longer one is reported to the caller instead.
LONGEST_WAIT = 30.0


class Semantics(enum.Enum):
    """What repeating a call does (RFC 9110 §9.2)."""

    SAFE = "changes nothing; token requests count as safe, because repeating one does no harm"
    IDEMPOTENT = "has the same effect as one call, by its idempotency key or by its nature"
    UNSAFE = "may have its effect again"


def may_repeat(semantics: Semantics, failure: Failure) -> bool:
    """Returns whether to retry a call: it certainly did not happen, or it is idempotent. Only transient failures are worth a
    retry: lost responses, 503 and 429."""
    if failure.kind is Kind.REFUSED:
        status, code = failure.error.status, failure.error.code
        return status == 429 or status == 503 and (code == codes.UNAVAILABLE or semantics is not Semantics.UNSAFE)
    return failure.kind is Kind.NOT_SENT or failure.kind is Kind.LOST and semantics is not Semantics.UNSAFE


def may_have_happened(failure: Failure) -> bool:
    """Returns whether a write may have happened although it failed in this way."""
    if failure.kind is Kind.REFUSED:
        status, code = failure.error.status, failure.error.code
        # A status below 300 means success, even if the response is not Remit's.
        return status < 300 or status >= 500 and not (status == 503 and code == codes.UNAVAILABLE)
    return failure.kind in (Kind.LOST, Kind.UNREADABLE)


def resolves(failure: Failure) -> bool:
    """Returns whether a failure resolves the doubt about an earlier attempt. It does if the service looked up the idempotency
    key, or would have refused the first attempt too. A proxy, such as an ingress without a backend, knows neither, and its
    refusals have no code."""
    status, code = failure.error.status, failure.error.code
    return failure.kind is Kind.REFUSED and code != "" and 400 <= status < 500 and status not in (401, 408, 429)


def wait(attempt: int, failure: Failure, end: float) -> Optional[float]:
    """Returns the seconds to wait before the attempt after the given one. None: the wait would last beyond end, or Retry-After
    exceeds LONGEST_WAIT, so there is no further attempt."""
    seconds = backoff(attempt)
    if failure.kind is Kind.REFUSED:
        if failure.error.retry_after > LONGEST_WAIT:
            return None
        seconds += failure.error.retry_after
    return None if time.monotonic() + seconds >= end else seconds


def pause(attempt: int, failure: Failure, end: float) -> bool:
    """Waits before the attempt after the given one. Returns False without waiting if there is no further attempt."""
    seconds = wait(attempt, failure, end)
    if seconds is None:
        return False
    time.sleep(seconds)
    return True


def backoff(attempt: int) -> float:
    """Returns seconds of exponential backoff with full jitter: a random time below a bound that doubles."""
    return random.uniform(0, min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(attempt - 1, 10)))


def conclude(call: str, in_doubt: bool, failure: Failure) -> RemitError:
    """Returns the error to raise. It says what is known about the write."""
    error = failure.error
    error.call = call
    if not in_doubt:
        return error
    unknown = OutcomeUnknown(f"the outcome is unknown: {error.detail or error.code or error.status}")
    unknown.call, unknown.status, unknown.code = call, error.status, error.code
    unknown.request_id, unknown.fields, unknown.retry_after = error.request_id, error.fields, error.retry_after
    unknown.__cause__ = error
    return unknown


def again(error: RemitError, detail: Optional[str] = None) -> RemitError:
    """Returns an equal error for another thread to raise, because a traceback belongs to one thread."""
    other = copy.copy(error)
    if detail is not None:
        other.detail, other.args = detail, (detail,)
    return other
