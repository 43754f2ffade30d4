"""A service of one session with an exact ledger, in this process. It follows docs/api.md where leases and charges are
concerned. It takes the place of the SDK's transport."""

from __future__ import annotations

import json
import threading
import time
import unittest
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from email.message import Message
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union
from unittest import mock

import remit
from remit import wire
from remit.credential import Credential, Sealed
from remit.errors import Unavailable, problem
from remit.transport import Answer, Failure, Kind

PASS = "pass"
LOSE = "it is done, and its answer is lost"
DOWN = "it is refused as unavailable"
SUSPENDED = "it is refused because the organization is suspended"

MANY = 1_000_000_000
_DAY = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass
class Leased:
    """A lease at the service. Amounts are micro-dollars, times seconds."""

    id: str
    max_actions: int
    max_value: int
    created_at: float
    expires_at: float
    status: str = "open"
    actions: int = 0
    value: int = 0
    late: bool = False
    settlement: Tuple[int, int] = (0, 0)
    answer: Tuple[int, bytes] = (0, b"")  # to it
    forgotten: bool = False


@dataclass(frozen=True)
class Request:
    place: str  # such as POST leases
    key: Optional[str]
    text: bytes
    body: Any
    nth: int  # counts the requests with the same place, from 1


class Refused(Exception):
    """The limit that a grant or a charge exceeds."""


class Ledger:
    def __init__(
        self, test: unittest.TestCase, *, max_actions: int = MANY, max_value: int = MANY, max_lease: int = 60
    ) -> None:
        """max_value is in dollars."""
        self.test = test
        self.max_actions, self.max_value, self.max_lease = max_actions, max_value * 1_000_000, max_lease
        self.status = "active"
        self.actions = self.value = 0  # with all that is leased
        self.leased = 0  # the value of open leases
        self.leases: Dict[str, Leased] = {}
        self.seen: List[Request] = []
        self.react: Callable[[Request], str] = lambda _: PASS
        self.now: Callable[[], float] = time.monotonic
        self._granted = 0  # actions, by the last approval
        self._answers: Dict[str, Tuple[bytes, Tuple[int, bytes]]] = {}
        self._lock = threading.RLock()
        patched = mock.patch("remit.retry.FIRST_BACKOFF", 0.0)
        patched.start()
        test.addCleanup(patched.stop)

    def session(self, **options: Any) -> remit.Session:
        """The session, through a client of its own."""
        with mock.patch("remit.connect.Transport", lambda *_: self):
            client = remit.Client("http://127.0.0.1:1", **options)
        return client.agent("a1", "rms_1").session("s1")

    def count(self, place: str) -> int:
        return len([request for request in self.seen if request.place == place])

    def open(self) -> List[Leased]:
        with self._lock:
            self._expire()
            return [lease for lease in self.leases.values() if lease.status == "open"]

    def balances(self, actions: int, cents: int) -> None:
        """Checks that the books show exactly what was charged, and that nothing is leased any more."""
        self.test.assertEqual((self.open(), self.leased), ([], 0))
        self.test.assertEqual((self.actions, self.value), (actions, cents * 10_000))
        self.within_limits()

    def within_limits(self) -> None:
        self.test.assertLessEqual((self.actions, self.value), (self.max_actions, self.max_value))
        self.test.assertLessEqual(self.value, self.max_value)

    def close(self) -> None:
        pass

    def send(
        self, method: str, path: str, headers: Mapping[str, Union[str, Credential]], body: Optional[Sealed], end: float,
        most: int, refusal: object,
    ) -> Union[Answer, Failure]:
        """Plays remit.transport.Transport."""
        parts = path.partition("?")[0].split("/")[2:]
        place = f"{method} {'session' if parts == ['sessions', 's1'] else parts[-1]}"
        text = b"" if body is None else body.open()
        key = headers.get("Idempotency-Key")
        with self._lock:
            asked = Request(place, str(key) if key else None, text, json.loads(text or b"{}", parse_float=Decimal), self.count(place) + 1)
            self.seen.append(asked)
        does = PASS if place == "POST token" else self.react(asked)
        with self._lock:
            refusal = {DOWN: (503, "unavailable"), SUSPENDED: (403, "organization_suspended")}.get(does)
            status, answer = self._problem(*refusal) if refusal else self._once(asked, parts)
        if does == LOSE:
            return Failure(Kind.LOST, Unavailable("no answer: it was lost"))
        if status in (200, 201):
            return Answer(Message(), Sealed(answer))
        return Failure(Kind.REFUSED, problem(status, Message(), Sealed(answer)))

    def _once(self, asked: Request, parts: List[str]) -> Tuple[int, bytes]:
        """Answers a request with a key as it did the first time."""
        if asked.key is None:
            return self._answer(asked, parts)
        if asked.key not in self._answers:
            self._answers[asked.key] = (asked.text, self._answer(asked, parts))
        text, answer = self._answers[asked.key]
        return answer if text == asked.text else self._problem(422, "idempotency_key_reused")

    def _answer(self, asked: Request, parts: List[str]) -> Tuple[int, bytes]:
        self._expire()
        try:
            if asked.place == "POST token":
                return self._json(200, access_token="t", refresh_token="r", token_type="bearer", expires_in=3600)
            if asked.place == "GET session":
                return self._json(200, **self._session())
            if asked.place == "POST actions":
                return self._charge(asked.body.get("count", 1), micro(asked.body.get("value_usd", 0)))
            if asked.place == "POST requests":  # they are approved at once
                self.max_actions += asked.body["add_actions"]
                self._granted = asked.body["add_actions"]
                return self._json(201, **self._more("pending"))
            if asked.place == "GET r1":
                return self._json(200, **self._more("approved"))
            if asked.place == "POST leases":
                return self._json(201, **self._shown(self._grant(asked.body)))
            assert asked.key is None, "a settlement needs no key"
            return self._settle(self.leases[parts[1]], asked.body)
        except Refused as limit:
            if self.status != "active":
                return self._problem(403, "session_not_active", session_status=self.status)
            return self._problem(403, "session_limit_reached", limit=str(limit), **self._usage())

    def _charge(self, count: int, value: int) -> Tuple[int, bytes]:
        if not 1 <= count <= 1000:
            return self._problem(400, "invalid_request")
        if self.status != "active" or self.actions + count > self.max_actions:
            raise Refused("max_actions")
        if self.value + value > self.max_value:
            raise Refused("max_value_usd")
        self.actions += count
        self.value += value
        return self._json(200, **self._usage())

    def _grant(self, body: Any) -> Leased:
        self.test.assertEqual(list(body), ["max_actions", "max_value_usd", "expires_in_seconds", "partial"])
        actions, value = body["max_actions"], micro(body["max_value_usd"])
        fitting = min(actions, self.max_actions - self.actions), min(value, self.max_value - self.value)
        if self.status != "active" or self.max_lease == 0:
            raise Refused("max_lease_seconds")
        for limit, asked, fits in ("max_actions", actions, fitting[0]), ("max_value_usd", value, fitting[1]):
            if asked > 0 and fits == 0:
                raise Refused(limit)
        now = self.now()
        lease = Leased(f"l-{len(self.leases)}", *fitting, now, now + min(body["expires_in_seconds"], self.max_lease))
        self.actions += lease.max_actions
        self.value += lease.max_value
        self.leased += lease.max_value
        self.leases[lease.id] = lease
        return lease

    def _settle(self, lease: Leased, body: Any) -> Tuple[int, bytes]:
        actions, value = body["action_count"], micro(body["value_used_usd"])
        types = body.get("by_action_type", {}).values()
        assert len(types) <= 64 and actions <= lease.max_actions and value <= lease.max_value
        assert (sum(t["action_count"] for t in types), sum(micro(t["value_usd"]) for t in types)) == (actions, value)
        if lease.status == "settled":
            if lease.forgotten:
                return self._problem(404, "not_found")
            return lease.answer if lease.settlement == (actions, value) else self._problem(409, "lease_settled")
        lease.settlement = actions, value
        lease.late = lease.status == "expired"
        self.leased -= 0 if lease.late else lease.max_value
        lease.status, lease.actions, lease.value = "settled", actions, value
        self.actions -= lease.max_actions - actions
        self.value -= lease.max_value - value
        renewed, refusal = None, None
        if "renew" in body:
            try:
                renewed = self._shown(self._grant(body["renew"]))
            except Refused as limit:
                refusal = {"code": "session_limit_reached", "limit": str(limit), "detail": "words"}
        lease.answer = self._json(200, id=lease.id, status="settled", late=lease.late, renewed=renewed, refusal=refusal)
        return lease.answer

    def _expire(self) -> None:
        """Lets leases expire. What they hold is spent in full."""
        for lease in self.leases.values():
            if lease.status == "open" and self.now() >= lease.expires_at:
                lease.status = "expired"
                self.leased -= lease.max_value

    def _shown(self, lease: Leased) -> Dict[str, Any]:
        return {
            "id": lease.id, "session_id": "s1", "status": "open", "max_actions": lease.max_actions,
            "max_value_usd": usd(lease.max_value), "created_at": moment(lease.created_at),
            "expires_at": moment(lease.expires_at),
        }

    def _more(self, status: str) -> Dict[str, Any]:
        return {
            "id": "r1", "session_id": "s1", "agent_id": "a1", "status": status, "add_actions": self._granted, "reason": "words",
            "granted_actions": self._granted, "created_at": moment(0),
        }

    def _usage(self) -> Dict[str, Any]:
        return {
            "action_count": self.actions, "max_actions": self.max_actions,
            "remaining_actions": self.max_actions - self.actions, "value_used_usd": usd(self.value - self.leased),
            "max_value_usd": usd(self.max_value), "value_held_usd": usd(self.leased),
            "remaining_value_usd": usd(self.max_value - self.value), "expires_at": moment(0),
        }

    def _session(self) -> Dict[str, Any]:
        more = {"id": "s1", "agent_id": "a1", "status": self.status, "scopes": [], "metadata": {}}
        return {**self._usage(), **more, "max_lease_seconds": self.max_lease, "created_at": moment(0)}

    def _problem(self, _status: int, _code: str, **members: Any) -> Tuple[int, bytes]:
        return self._json(_status, status=_status, code=_code, detail="words", request_id="r-1", **members)

    def _json(self, _status: int, **members: Any) -> Tuple[int, bytes]:
        return _status, wire.encode(members).open()


class Clock:
    """Both clocks of the SDK, to be moved."""

    def __init__(self, test: unittest.TestCase) -> None:
        self.moved = self.moved_wall = 0.0
        for name, now in ("monotonic", self.monotonic), ("wall_clock", self.wall):
            for module in ("grant", "holdings", "lease", "remaining", "renewer", "spender"):
                if hasattr(getattr(remit, module), name):
                    patched = mock.patch(f"remit.{module}.{name}", now)
                    patched.start()
                    test.addCleanup(patched.stop)

    def monotonic(self) -> float:
        return time.monotonic() + self.moved

    def wall(self) -> float:
        return time.time() + self.moved_wall

    def forward(self, seconds: float) -> None:
        self.moved += seconds
        self.moved_wall += seconds


def micro(number: Any) -> int:
    return int(number * 1_000_000)


def usd(micros: int) -> Decimal:
    return Decimal(micros) / 1_000_000


def moment(seconds: float) -> str:
    return (_DAY + timedelta(seconds=seconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("never")
        time.sleep(0.002)
