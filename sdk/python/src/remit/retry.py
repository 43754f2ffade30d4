"""What may be sent again, when, and what is known of a write when it is given up."""

from __future__ import annotations

import copy
import enum
import random
import time
from typing import Optional

from .errors import OutcomeUnknown, RemitError
from .transport import Failure, Kind

FIRST_BACKOFF = 0.1  # seconds
LONGEST_BACKOFF = 5.0
# How long a Retry-After is honoured by waiting. Beyond it the caller is told instead.
LONGEST_WAIT = 30.0


class Effect(enum.Enum):
    """What sending a call twice would do."""

    READS = "nothing that anybody has to know of; the calls for tokens count as such"
    REPEATS = "the same as sending it once, by its key or by its nature"
    ONCE = "the same thing again"


def may_repeat(effect: Effect, failure: Failure) -> bool:
    """Whether a call may be sent again: it certainly did not happen, or twice is the same as once. Only what may pass by
    itself is worth it: lost answers, 503 and 429."""
    if failure.kind is Kind.REFUSED:
        status, code = failure.error.status, failure.error.code
        return status == 429 or status == 503 and (code == "unavailable" or effect is not Effect.ONCE)
    return failure.kind is Kind.NOT_SENT or failure.kind is Kind.LOST and effect is not Effect.ONCE


def may_have_happened(failure: Failure) -> bool:
    """Whether a write that failed so may have been done."""
    if failure.kind is Kind.REFUSED:
        status, code = failure.error.status, failure.error.code
        # Below 300: done, though by an answer that is not the service's.
        return status < 300 or status >= 500 and not (status == 503 and code == "unavailable")
    return failure.kind in (Kind.LOST, Kind.UNREADABLE)


def settles(failure: Failure) -> bool:
    """Whether a failure after an attempt in doubt tells how that came out: it does when the service got as far as looking
    up the key, or would have refused the first attempt too. What stands between, such as an ingress without a backend,
    knows of neither, and has no code."""
    status, code = failure.error.status, failure.error.code
    return failure.kind is Kind.REFUSED and code != "" and 400 <= status < 500 and status not in (401, 408, 429)


def pause(attempt: int, failure: Failure, end: float) -> bool:
    """Waits before the attempt after the given one. It returns False, and does not wait, when that would be too long for
    the caller, whose time is over at end, or for anybody."""
    wait = backoff(attempt)
    if failure.kind is Kind.REFUSED:
        if failure.error.retry_after > LONGEST_WAIT:
            return False
        wait += failure.error.retry_after
    if time.monotonic() + wait >= end:
        return False
    time.sleep(wait)
    return True


def backoff(attempt: int) -> float:
    """Exponential with full jitter: anything up to a bound that doubles, so that many callers spread out."""
    return random.uniform(0, min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(attempt - 1, 10)))


def conclude(call: str, in_doubt: bool, failure: Failure) -> RemitError:
    """The error that the caller gets; it says what is known about the write."""
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
    """An equal error for another thread to raise: a traceback belongs to one."""
    other = copy.copy(error)
    if detail is not None:
        other.detail, other.args = detail, (detail,)
    return other
