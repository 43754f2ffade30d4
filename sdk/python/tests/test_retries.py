from __future__ import annotations

import random
import socket
import threading
import unittest
from typing import Callable, Dict, List, Tuple, Type
from unittest import mock

import remit
from network import DROP, LOSE, PASS, Answer, Reaction, Request, ServiceTest, refusal
from remit import retry
from remit.errors import Unavailable
from remit.transport import Failure, Kind

SOME = "01a1ffac-a9a1-7dc1-aa48-a64bee9cc8b2"

# Calls by their method semantics.
CALLS: Dict[str, Callable[[remit.Organization], object]] = {
    "read": lambda o: o.get_session(SOME),
    "keyed write": lambda o: o.create_session(SOME),
    "repeatable write": lambda o: o.end_session(SOME),
    "creation": lambda o: o.create_agent("scout"),
}

Error = Type[remit.RemitError]
R, U, O = remit.RemitError, remit.Unavailable, remit.OutcomeUnknown

# For each response: how often each kind of call is sent if the response is always the same, and the error that it ends with, for
# a read, the other calls, and the last one, which has no key.
ALWAYS: List[Tuple[str, Reaction, Tuple[int, int, int, int], Tuple[Error, Error, Error]]] = [
    ("lost answer", DROP, (4, 4, 4, 1), (U, O, O)),
    ("unavailable", refusal(503, "unavailable"), (4, 4, 4, 4), (U, U, U)),
    ("outcome unknown", refusal(503, "outcome_unknown"), (4, 4, 4, 1), (U, O, O)),
    ("503 of a proxy", Answer(503, "<html>"), (4, 4, 4, 1), (U, O, O)),
    ("rate limited", refusal(429, "rate_limited"), (4, 4, 4, 4), (remit.RateLimited,) * 3),
    ("500", refusal(500, "internal_error"), (1, 1, 1, 1), (R, O, O)),
    ("502", Answer(502), (1, 1, 1, 1), (R, O, O)),
    ("budget", refusal(403, "session_limit_reached"), (1, 1, 1, 1), (R, R, R)),
    ("400", refusal(400, "invalid_request"), (1, 1, 1, 1), (R, R, R)),
    ("401", refusal(401, "invalid_api_key"), (1, 1, 1, 1), (remit.Unauthorized,) * 3),
    ("404", refusal(404, "not_found"), (1, 1, 1, 1), (remit.NotFound,) * 3),
    ("408", refusal(408, "request_timeout"), (1, 1, 1, 1), (R, R, R)),
    ("409", refusal(409, "session_not_active"), (1, 1, 1, 1), (remit.SessionNotActive,) * 3),
    ("422", refusal(422, "idempotency_key_reused"), (1, 1, 1, 1), (remit.IdempotencyKeyReused,) * 3),
    ("redirect", Answer(307, "", {"Location": "http://127.0.0.1:9/"}), (1, 1, 1, 1), (R, R, R)),
    ("204", Answer(204), (1, 1, 1, 1), (R, O, O)),
    ("no JSON", Answer(200, "<html>"), (1, 1, 1, 1), (R, O, O)),
    ("null", Answer(200, "null"), (1, 1, 1, 1), (R, O, O)),
    ("NaN", Answer(200, "NaN"), (1, 1, 1, 1), (R, O, O)),
    ("too deep", Answer(200, "[" * 100_000), (1, 1, 1, 1), (R, O, O)),
    ("too long", Answer(200, '"' + "x" * (1 << 20) + '"'), (1, 1, 1, 1), (R, O, O)),
    ("too long in pieces", Answer(200, '"' + "x" * (1 << 20) + '"', {}, chunked=True), (1, 1, 1, 1), (R, O, O)),
]


class Retries(ServiceTest):
    def test_which_failures_are_retried_and_which_errors_they_become(self) -> None:
        reaction: Reaction = DROP
        client, proxy = self.proxied(lambda _r, _n: reaction)
        organization = client.organization("rmk_some")
        keyless = self.client_of(proxy.url, idempotency_keys=False).organization("rmk_some")
        for name, reaction, sent, errors in ALWAYS:
            for (kind, call), times, error in zip(CALLS.items(), sent, (errors[0], errors[1], errors[1], errors[2])):
                with self.subTest(f"{name}/{kind}"):
                    del proxy.requests[:]
                    with self.assertRaises(remit.RemitError) as caught:
                        call(keyless if kind == "creation" else organization)
                    self.assertIs(type(caught.exception), error, caught.exception)
                    self.assertEqual(len(proxy.requests), times)

    def test_every_call_retries_a_refused_connection(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
        organization = self.client_of(f"http://127.0.0.1:{port}").organization("rmk_some")
        waits: List[int] = []  # by thread: that of an earlier test may still ask for a token

        def backoff(_: int) -> float:
            waits.append(threading.get_ident())
            return 0.0

        for kind, call in CALLS.items():
            with self.subTest(kind), mock.patch("remit.retry.backoff", backoff):
                waits.clear()
                with self.assertRaises(remit.Unavailable):
                    call(organization)
                self.assertEqual(waits.count(threading.get_ident()), 3)

    def test_a_charge_whose_response_is_lost_is_charged_once(self) -> None:
        def react(request: Request, n: int) -> Reaction:
            return LOSE if request.path.endswith("/actions") and n <= 2 else PASS

        client, proxy = self.proxied(react)
        session = self.new_session(client)
        self.assertEqual(session.charge("llm.call", "0.37").action_count, 1)
        sent = proxy.to(f"/v1/sessions/{session.id}/actions")
        self.assertEqual(len(sent), 3)
        self.assertEqual(len({request.headers["Idempotency-Key"] for request in sent}), 1)
        now = session.get()
        self.assertEqual((now.action_count, str(now.value_used)), (1, "0.37"))

    def key_of(self, organization: remit.Organization) -> remit.Credential:
        return organization.rotate_key(self.organization_id, grace=60).api_key

    def test_without_keys_a_creation_with_unknown_outcome_is_not_retried(self) -> None:
        client, _ = self.proxied(lambda _r, _n: LOSE, idempotency_keys=False)
        organization = self.new_organization()
        with self.assertRaises(remit.OutcomeUnknown):
            client.organization(self.key_of(organization)).create_agent("scout")
        self.assertEqual(len(list(organization.agents())), 1)

    def test_random_keys_differ_and_the_callers_key_is_used(self) -> None:
        client, proxy = self.proxied()
        session = self.new_session(client)
        for own in (None, None, "order-4711"):
            session.charge(idempotency_key=own)
        first, second, third = (r.headers["Idempotency-Key"] for r in proxy.to(f"/v1/sessions/{session.id}/actions"))
        self.assertNotEqual(first, second)
        self.assertGreaterEqual(len(first), 32)
        self.assertEqual(third, "order-4711")

    def test_without_keys_a_write_with_unknown_outcome_is_not_retried(self) -> None:
        client, proxy = self.proxied(lambda r, _n: LOSE if r.path.endswith("/actions") else PASS, idempotency_keys=False)
        session = self.new_session(client)
        with self.assertRaises(remit.OutcomeUnknown):
            session.charge()
        sent = proxy.to(f"/v1/sessions/{session.id}/actions")
        self.assertEqual([r.headers["Idempotency-Key"] for r in sent], [None])
        with self.assertRaises(remit.OutcomeUnknown):
            session.charge(idempotency_key="own")
        self.assertEqual(len(proxy.to(f"/v1/sessions/{session.id}/actions")), 5)
        self.assertEqual(session.get().action_count, 2)

    def test_the_outcome_stays_unknown_until_a_response_resolves_it(self) -> None:
        then: Reaction = PASS

        def react(request: Request, n: int) -> Reaction:
            return PASS if not request.path.endswith("/actions") else LOSE if n == 1 else then

        for then, error in (
            (refusal(403, "session_not_active"), remit.SessionNotActive),
            (refusal(422, "idempotency_key_reused"), remit.IdempotencyKeyReused),
            (refusal(503, "unavailable"), remit.OutcomeUnknown),
            (refusal(429, "rate_limited"), remit.OutcomeUnknown),
            (refusal(408, "request_timeout"), remit.OutcomeUnknown),
            (refusal(401, "invalid_token"), remit.OutcomeUnknown),
            (Answer(404, "default backend - 404"), remit.OutcomeUnknown),
            (Answer(403, '{"error":"forbidden"}'), remit.OutcomeUnknown),
        ):
            client, _ = self.proxied(react)
            with self.subTest(then=then), self.assertRaises(remit.RemitError) as caught:
                self.new_session(client).charge()
            self.assertIs(type(caught.exception), error)
            if isinstance(then, Answer):
                self.assertEqual(caught.exception.status, then.status)

    def test_without_a_token_the_outcome_is_known(self) -> None:
        client, proxy = self.proxied(lambda _r, _n: DROP)
        session = self.new_session(client)
        with self.assertRaises(remit.Unavailable) as caught:
            session.charge()
        self.assertIn("no access token", str(caught.exception))
        self.assertEqual(len(proxy.requests), 4)

    def test_a_batch_item_with_unknown_outcome_says_so(self) -> None:
        refused = '{"status":503,"body":{"code":"%s"}}'
        body = f'[{refused % "outcome_unknown"},{refused % "unavailable"},{{"status":200,"body":{{}}}}]'
        client, _ = self.proxied(lambda r, _n: Answer(200, body))
        results = client.organization("rmk_some").charge_many([remit.Charge(session_id=SOME)] * 3)
        self.assertEqual([type(r.error) for r in results], [O, U, O])

    def test_a_timeout_bounds_all_attempts(self) -> None:
        release, arrived = threading.Event(), threading.Semaphore(0)
        self.addCleanup(release.set)

        def react(_r: Request, _n: int) -> Reaction:
            arrived.release()
            release.wait(60)
            return DROP

        client, proxy = self.proxied(react)
        with self.assertRaises(remit.Unavailable):
            client.organization("rmk_some").get_session(SOME, timeout=0.5)
        with self.assertRaises(remit.Unavailable):
            client.agent(SOME, "rms_some").session(SOME).charge(timeout=0.5)  # it waits for a token
        self.assertTrue(arrived.acquire(timeout=10) and arrived.acquire(timeout=10))
        self.assertEqual([r.method for r in proxy.requests], ["GET", "POST"])
        for timeout in (0, -1, "5", True, float("nan")):
            with self.assertRaises(ValueError):
                client.organization("rmk_some").get_session(SOME, timeout=timeout)  # type: ignore[arg-type]


class Pauses(unittest.TestCase):
    """The test controls the clock."""

    def setUp(self) -> None:
        self.now, self.waits = 1000.0, []  # type: Tuple[float, List[float]]
        clock = mock.patch.object(retry, "time", mock.Mock(monotonic=lambda: self.now, sleep=self.waits.append))
        clock.start()
        self.addCleanup(clock.stop)

    def failure(self, retry_after: float) -> Failure:
        error = remit.RateLimited()
        error.status, error.retry_after = 429, retry_after
        return Failure(Kind.REFUSED, error)

    def test_a_short_retry_after_is_honoured(self) -> None:
        for said, left, least in [(7, 3600.0, 7.0), (0, 3600.0, 0.0), (30, 3600.0, 30.0), (31, 3600.0, None), (7, 5.0, None)]:
            with self.subTest(said=said, left=left):
                del self.waits[:]
                self.assertEqual(retry.pause(1, self.failure(said), self.now + left), least is not None)
                if least is None:
                    self.assertEqual(self.waits, [])
                else:
                    self.assertTrue(least <= self.waits[0] <= least + 0.1, self.waits)

    def test_both_forms_of_retry_after_are_read(self) -> None:
        from email.message import Message
        from email.utils import formatdate

        from remit import errors

        for text, least, most in [
            ("7", 7, 7), ("-5", 0, 0), ("soon", 0, 0), ("", 0, 0), ("9" * 400, 1 << 30, 1 << 30),
            ("1" + "0" * 9, 1 << 30, 1 << 30), ("0" * 400 + "7", 7, 7), ("\u0663", 0, 0),
            (formatdate(0, usegmt=True), 0, 0), (formatdate(4_000_000_000, usegmt=True), 1e8, 4e9),
        ]:
            headers = Message()
            headers["Retry-After"] = text
            with self.subTest(text):
                self.assertTrue(least <= errors.retry_after(headers) <= most)
        self.assertEqual(errors.retry_after(Message()), 0)

    def test_backoff_grows_with_jitter(self) -> None:
        random.seed(4711)
        self.addCleanup(random.seed)
        for attempt, bound in enumerate([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0], start=1):
            waits = [retry.backoff(attempt) for _ in range(400)]
            self.assertTrue(all(0 <= wait <= bound for wait in waits))
            self.assertTrue(0.4 * bound < sum(waits) / 400 < 0.6 * bound, attempt)
            self.assertGreater(len(set(waits)), 390)
        self.assertLessEqual(retry.backoff(10**6), 5.0)

    def test_a_lost_response_waits_only_for_the_backoff(self) -> None:
        self.assertTrue(retry.pause(2, Failure(Kind.LOST, Unavailable()), self.now + 60))
        self.assertLessEqual(self.waits[0], 0.2)
