"""Webhooks, which send an organization's events to a URL as Standard Webhooks describes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from .apikeys import rotated
from .calls import PER_PAGE, Call, Caller
from .credential import Credential
from .retry import Semantics
from .url import path
from .wire import Fields, Seconds, each, present, seconds


@dataclass(frozen=True)
class WebhookInfo:
    """A webhook as the service shows it."""

    id: str
    url: str  # whole only for an admin's key; others see scheme and host: https://receiver.example/…
    types: Tuple[str, ...]  # of events; empty: all
    description: str
    missed_events: int  # that the service no longer kept when it came to them
    confirmed_at: Optional[datetime]  # when the receiver at this URL first accepted a test; None: it has yet to, and gets tests only
    failing_since: Optional[datetime]  # None: the last attempt succeeded
    created_at: datetime
    # Only in the response to create_webhook. A library of Standard Webhooks verifies with it what arrives.
    secret: Optional[Credential]

    @classmethod
    def _read(cls, said: Fields) -> WebhookInfo:
        return cls(
            id=said.text("id"),
            url=said.text("url"),
            types=said.texts("types"),
            description=said.text("description", ""),
            missed_events=said.integer("missed_events", 0),
            confirmed_at=said.moment_or_none("confirmed_at"),
            failing_since=said.moment_or_none("failing_since"),
            created_at=said.moment("created_at"),
            secret=said.credential("secret"),
        )


@dataclass(frozen=True)
class RotatedWebhookSecret:
    """A new secret of a webhook. Until previous_expires_at requests carry signatures by both."""

    secret: Credential
    previous_expires_at: datetime


@dataclass(frozen=True)
class Delivery:
    """One event on its way to a webhook's receiver."""

    id: str  # the webhook-id that the receiver sees
    webhook_id: str
    event_sequence: Optional[int]  # None: a test
    type: str  # of the event
    status: str  # pending, delivered or dead
    attempt_count: int
    response_status: Optional[int]  # of the last attempt; None: there was no response
    error: str  # why the last attempt failed; empty: it did not
    duration_ms: Optional[int]  # of the last attempt
    created_at: datetime
    last_attempt_at: Optional[datetime]
    next_attempt_at: Optional[datetime]

    @classmethod
    def _read(cls, said: Fields) -> Delivery:
        return cls(
            id=said.text("id"),
            webhook_id=said.text("webhook_id"),
            event_sequence=said.integer_or_none("event_seq"),
            type=said.text("type"),
            status=said.text("status"),
            attempt_count=said.integer("attempt_count"),
            response_status=said.integer_or_none("response_status"),
            error=said.text("error", ""),
            duration_ms=said.integer_or_none("duration_ms"),
            created_at=said.moment("created_at"),
            last_attempt_at=said.moment_or_none("last_attempt_at"),
            next_attempt_at=said.moment_or_none("next_attempt_at"),
        )


def settings(url: Optional[str], types: Optional[Iterable[str]], description: Optional[str]) -> Dict[str, Any]:
    """Returns the body of a new or a changed webhook."""
    if isinstance(types, (str, bytes)):
        raise TypeError('types are a list, such as ["session.ended"]')
    return present(url=url, types=None if types is None else list(types), description=description)


def create(caller: Caller, body: Dict[str, Any], key: Optional[str], timeout: Optional[float]) -> WebhookInfo:
    return caller.ask(caller.service.keyed(path("webhooks"), key, body), lambda said: WebhookInfo._read(Fields(said)), timeout)


def every(caller: Caller, timeout: Optional[float]) -> List[WebhookInfo]:
    return caller.ask(Call("GET", path("webhooks")), lambda said: each(said, WebhookInfo._read), timeout)


def get(caller: Caller, id: str, timeout: Optional[float]) -> WebhookInfo:
    return caller.ask(Call("GET", path("webhooks", id)), lambda said: WebhookInfo._read(Fields(said)), timeout)


def update(caller: Caller, id: str, body: Dict[str, Any], timeout: Optional[float]) -> WebhookInfo:
    call = Call("PATCH", path("webhooks", id), body, Semantics.IDEMPOTENT)
    return caller.ask(call, lambda said: WebhookInfo._read(Fields(said)), timeout)


def delete(caller: Caller, id: str, timeout: Optional[float]) -> None:
    call = Call("DELETE", path("webhooks", id), semantics=Semantics.IDEMPOTENT, gone=True)
    return caller.ask_raw(call, lambda _: None, timeout)


def rotate(
    caller: Caller, id: str, grace: Optional[Seconds], key: Optional[str], timeout: Optional[float]
) -> RotatedWebhookSecret:
    call = caller.service.keyed(path("webhooks", id, "rotate"), key, present(grace_seconds=seconds(grace)))
    return caller.ask(call, lambda said: RotatedWebhookSecret(*rotated(Fields(said), "secret")), timeout)


def test(caller: Caller, id: str, key: Optional[str], timeout: Optional[float]) -> Delivery:
    call = caller.service.keyed(path("webhooks", id, "test"), key, {})
    return caller.ask(call, lambda said: Delivery._read(Fields(said)), timeout)


def deliveries(caller: Caller, webhook_id: str, status: Optional[str], timeout: Optional[float]) -> Iterator[Delivery]:
    return caller.pages(path("webhooks", webhook_id, "deliveries"), PER_PAGE, Delivery._read, timeout, status=status)


def retry(caller: Caller, webhook_id: str, id: str, timeout: Optional[float]) -> Delivery:
    call = Call("POST", path("webhooks", webhook_id, "deliveries", id, "retry"), semantics=Semantics.IDEMPOTENT)
    return caller.ask(call, lambda said: Delivery._read(Fields(said)), timeout)
