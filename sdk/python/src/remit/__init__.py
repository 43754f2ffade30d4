"""The Python SDK of Remit. An agent gets, keeps and renews its tokens by itself; an organization manages agents and sessions
with its API key.

A write happens once: charges, batches, relative top-ups, whatever is created or rotated, and all steps of a transaction carry
an Idempotency-Key, the same over their retries. Lost answers, 503 and 429 are retried; nothing else is, and a refused budget never. An error tells what
happened: OutcomeUnknown marks a write that may have; any other error means that it did not. Amounts are Decimals, never
floats. Credentials are in no error and no repr. All classes are safe for use by many threads.
"""

from .agent import Agent
from .batch import Charge, Result
from .client import Client, Verified
from .credential import Credential
from .errors import (
    FieldError,
    IdempotencyKeyReused,
    InsufficientScope,
    LimitBelowUsage,
    LimitReached,
    NotFound,
    OrganizationSuspended,
    OutcomeUnknown,
    QuotaExceeded,
    RateLimited,
    RemitError,
    SessionNotActive,
    TransactionDone,
    TransactionNotPending,
    TransactionNotReversible,
    Unauthorized,
    Unavailable,
)
from .events import Actor, Event
from .organization import AgentInfo, Family, Introspection, Organization, OrganizationInfo, RotatedKey, RotatedSecret
from .sessions import Session, SessionInfo, SessionSummary
from .tokens import TokenPair
from .transactions import Transaction, TransactionInfo
from .usage import Usage

__all__ = [
    "Actor", "Agent", "AgentInfo", "Charge", "Client", "Credential", "Event", "Family", "FieldError", "IdempotencyKeyReused",
    "InsufficientScope", "Introspection", "LimitBelowUsage", "LimitReached", "NotFound", "Organization", "OrganizationInfo",
    "OrganizationSuspended", "OutcomeUnknown", "QuotaExceeded", "RateLimited", "RemitError", "Result", "RotatedKey",
    "RotatedSecret", "Session", "SessionInfo", "SessionNotActive", "SessionSummary", "TokenPair", "Transaction",
    "TransactionDone", "TransactionInfo", "TransactionNotPending", "TransactionNotReversible", "Unauthorized", "Unavailable",
    "Usage", "Verified",
]
