"""The Python SDK of Remit. An agent gets, caches and renews its tokens; an organization manages agents and sessions with its
API key.

Each write happens at most once: charges, batches, relative top-ups, creations, rotations and all steps of a transaction carry
an Idempotency-Key, and their retries reuse it. The SDK retries lost responses, 503 and 429, and nothing else; it never
retries a refused charge. OutcomeUnknown means that a write may have happened; any other error means that it did not. Amounts
are Decimals, never floats. No error and no repr contains a credential. All classes are thread-safe.
"""

from .agent import Agent
from .aio.agent import AsyncAgent
from .aio.client import AsyncRemit
from .aio.organization import AsyncOrganization
from .aio.session import AsyncSession
from .aio.transactions import AsyncTransaction
from .allevents import OrganizationEvent
from .apikeys import ApiKeyInfo, RotatedKey
from .batch import Charge, Result
from .budget import Budget
from .client import Client
from .credential import Credential
from .delegation import DelegatedToken
from .errors import (
    AgentLimitReached,
    AgentSuspended,
    BudgetExhausted,
    DelegatedTokenRefused,
    DPoPRequired,
    FieldError,
    HeldByGateway,
    IdempotencyKeyReused,
    InsufficientRole,
    InsufficientScope,
    InvalidProof,
    InvalidTarget,
    IssuerExists,
    LastAdminKey,
    LeaseClosed,
    LimitBelowUsage,
    LimitReached,
    NotFound,
    OrganizationSuspended,
    OutcomeUnknown,
    QuotaExceeded,
    RateLimited,
    RemitError,
    RequestDecided,
    RequestNotApproved,
    SessionKeyOnly,
    SessionNotActive,
    SessionSuspended,
    TooManySessionKeys,
    TransactionDone,
    TransactionNotPending,
    TransactionNotReversible,
    Unauthorized,
    Unavailable,
    UnusableCredential,
)
from .events import Actor, Event
from .eventtypes import EventType
from .keys import Key, generate_key, parse_key, public_jwks
from .lease import Lease
from .limits import NO_LIMIT, REMOVE, AgentLimits, AgentUsage, NoLimit, Remove
from .meteredcall import AsyncMeteredCall, MeteredCall
from .modelerrors import InvalidPrices, UnboundedCall, UnknownModel, UnpricedTool, UsageMissing
from .more import MoreRequest
from .organization import AgentInfo, Family, Introspection, Organization, OrganizationInfo, RotatedSecret
from .protected import ProtectedResource
from .sessionkeys import SessionKeyInfo
from .sessions import Session, SessionInfo, SessionSummary, SessionTree
from .tokens import TokenPair
from .transactions import DryRun, Transaction, TransactionInfo
from .trustedissuers import TrustedIssuerInfo, TrustRule
from .usage import Usage
from .usagereport import UsageLine
from .verification import Verified
from .webhooks import Delivery, RotatedWebhookSecret, WebhookInfo

__all__ = [
    "Actor", "Agent", "AgentInfo", "AgentLimitReached", "AgentLimits", "AgentSuspended", "AgentUsage", "ApiKeyInfo",
    "AsyncAgent", "AsyncMeteredCall", "AsyncOrganization", "AsyncRemit", "AsyncSession", "AsyncTransaction", "Budget",
    "BudgetExhausted", "Charge", "Client", "Credential", "DelegatedToken", "DelegatedTokenRefused", "Delivery", "DPoPRequired",
    "DryRun", "Event", "EventType", "Family", "FieldError", "generate_key", "HeldByGateway", "IdempotencyKeyReused", "InsufficientRole",
    "InsufficientScope", "Introspection", "InvalidPrices", "InvalidProof", "InvalidTarget", "IssuerExists", "Key", "LastAdminKey", "Lease", "LeaseClosed",
    "LimitBelowUsage", "LimitReached", "MeteredCall", "MoreRequest", "NO_LIMIT", "NoLimit", "NotFound", "Organization", "OrganizationEvent",
    "OrganizationInfo", "OrganizationSuspended", "OutcomeUnknown", "parse_key", "ProtectedResource", "public_jwks",
    "QuotaExceeded", "RateLimited", "RemitError", "REMOVE", "Remove", "RequestDecided", "RequestNotApproved", "Result",
    "RotatedKey", "RotatedSecret", "RotatedWebhookSecret", "Session", "SessionInfo", "SessionKeyInfo", "SessionKeyOnly", "SessionNotActive",
    "SessionSummary", "SessionSuspended", "SessionTree", "TokenPair", "TooManySessionKeys", "Transaction", "TransactionDone", "TransactionInfo",
    "TransactionNotPending", "TransactionNotReversible", "TrustedIssuerInfo", "TrustRule", "Unauthorized", "Unavailable",
    "UnboundedCall", "UnknownModel", "UnpricedTool", "UnusableCredential", "Usage", "UsageLine", "UsageMissing", "Verified", "WebhookInfo",
]
