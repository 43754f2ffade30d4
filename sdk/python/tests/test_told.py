"""Tests of API keys, usage, the events of all agents, and webhooks."""

from __future__ import annotations

import itertools
import json
import time
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

import remit
from network import DROP, LOSE, PASS, Answer, Reaction, Request, ServiceTest, refusal

MOMENT = "2026-11-21T09:19:32.859Z"
ROTATED = {"api_key": "rmk_2", "secret": "whsec_2", "previous_expires_at": MOMENT}
KEY: Dict[str, Any] = {
    "id": "k1", "name": "dashboard", "role": "viewer", "hint": "wxyz", "created_at": MOMENT, "expires_at": None, "last_used_at": None,
}
WEBHOOK: Dict[str, Any] = {
    "id": "w1", "url": "https://example.com/", "types": [], "description": "", "missed_events": 0, "created_at": MOMENT,
}
DELIVERY: Dict[str, Any] = {
    "id": "d1", "webhook_id": "w1", "type": "webhook.test", "status": "pending", "attempt_count": 0, "created_at": MOMENT,
}
GONE = refusal(404, "not_found")


def event(seq: int) -> Dict[str, Any]:
    return {
        "id": f"a1:1-{seq}", "type": "agent.changed", "occurred_at": MOMENT, "agent_id": "a1",
        "actor": {"type": "api_key", "id": "k1"}, "seq": seq, "previous_hash": "5f", "of_tomorrow": [1],
    }


def page(*numbers: int, following: str = "") -> Answer:
    headers = {"Link": f'<http://elsewhere/v1/events?after={following}&limit=1>; rel="next"'} if following else {}
    return Answer(200, json.dumps([event(seq) for seq in numbers]), headers)


class Told(ServiceTest):
    def setUp(self) -> None:
        super().setUp()
        for name in ("_SHORTEST_PATIENCE", "_LONGEST_PATIENCE"):
            patched = mock.patch(f"remit.more.{name}", 0.001)
            patched.start()
            self.addCleanup(patched.stop)

    def test_requests_that_are_not_idempotent_carry_a_key(self) -> None:
        cases: List[Tuple[Callable[[remit.Organization], object], str, str, bool, Any]] = [
            (
                lambda o: o.create_api_key("dashboard", "viewer", expires_in=timedelta(seconds=1.5)),
                "POST /v1/api-keys", '{"name":"dashboard","role":"viewer","expires_in_seconds":2}', True, {**KEY, "api_key": "rmk_2"},
            ),
            (lambda o: o.rotate_api_key("k/1", grace=0), "POST /v1/api-keys/k%2F1/rotate", '{"grace_seconds":0}', True, ROTATED),
            (lambda o: o.delete_api_key("k1"), "DELETE /v1/api-keys/k1", "", False, {}),
            (
                lambda o: o.create_webhook("https://example.com/", types=("session.ended",)),
                "POST /v1/webhooks", '{"url":"https://example.com/","types":["session.ended"]}', True, {**WEBHOOK, "secret": "whsec_2"},
            ),
            (
                lambda o: o.update_webhook("w1", types=(), description=""),
                "PATCH /v1/webhooks/w1", '{"types":[],"description":""}', False, WEBHOOK,
            ),
            (lambda o: o.rotate_webhook_secret("w1"), "POST /v1/webhooks/w1/rotate", "{}", True, ROTATED),
            (lambda o: o.test_webhook("w1"), "POST /v1/webhooks/w1/test", "{}", True, DELIVERY),
            (lambda o: o.retry_delivery("w1", "d1"), "POST /v1/webhooks/w1/deliveries/d1/retry", "", False, DELIVERY),
            (lambda o: o.delete_webhook("w1"), "DELETE /v1/webhooks/w1", "", False, {}),
        ]
        for call, place, body, keyed, said in cases:
            with self.subTest(place):
                client, proxy = self.proxied(lambda _r, n: Answer(503, "<html>") if n <= 2 else Answer(200, json.dumps(said)))
                call(client.organization("rmk_1"))
                self.assertEqual([(f"{r.method} {r.path}", r.body.decode()) for r in proxy.requests], [(place, body)] * 3)
                keys = {r.headers["Idempotency-Key"] for r in proxy.requests}
                self.assertEqual((len(keys), keys != {None}), (1, keyed))

    def test_a_deletion_whose_response_is_lost_succeeds(self) -> None:
        cases: List[Tuple[Tuple[Reaction, ...], type]] = [
            ((DROP, GONE), type(None)),
            ((refusal(503, "outcome_unknown"), GONE), type(None)),
            ((GONE,), remit.NotFound),
            ((refusal(503, "unavailable"), GONE), remit.NotFound),
            ((DROP, Answer(404, "<html>")), remit.OutcomeUnknown),
        ]
        deletions: List[Callable[[remit.Organization], None]] = [lambda o: o.delete_api_key("k1"), lambda o: o.delete_webhook("w1")]
        for (answers, kind), delete in itertools.product(cases, deletions):
            with self.subTest(str(answers)):
                client, _ = self.proxied(lambda _r, n: answers[min(n, len(answers)) - 1])
                error: Any = None
                try:
                    delete(client.organization("rmk_1"))
                except remit.RemitError as e:
                    error = e
                self.assertIs(type(error), kind)

    def test_the_errors_of_keys_have_types(self) -> None:
        client, _ = self.proxied(lambda _r, n: refusal(403, "insufficient_role", required_role="admin") if n == 1 else refusal(409, "last_admin_key"))
        with self.assertRaises(remit.InsufficientRole) as lacking:
            client.organization("rmk_1").delete_api_key("k1")
        self.assertEqual((lacking.exception.required_role, lacking.exception.status), ("admin", 403))
        with self.assertRaises(remit.LastAdminKey):
            client.organization("rmk_1").delete_api_key("k1")

    def test_usage_is_read_exactly(self) -> None:
        said = [
            {"day": "2026-11-01", "session_id": None, "action_count": -2, "value_usd": -1},
            {"day": "2026-11-02", "session_id": "s1", "action_count": 3, "value_usd": 2, "of_tomorrow": {}},
        ]
        text = json.dumps(said).replace('"value_usd": -1', '"value_usd": -0.000001').replace('"value_usd": 2', '"value_usd": 9007199254.740993')
        client, proxy = self.proxied(lambda _r, _n: Answer(200, text))
        o = client.organization("rmk_1")
        back, large = o.usage(first_day=date(2026, 11, 1), last_day=date(2026, 11, 2), group_by=("day", "session"), agent_id="a1")
        self.assertEqual((back.day, back.session_id, back.action_count, back.value), (date(2026, 11, 1), None, -2, Decimal("-0.000001")))
        self.assertEqual((large.session_id, large.action_type, large.value), ("s1", None, Decimal("9007199254.740993")))
        self.assertEqual(proxy.requests[0].query, "from=2026-11-01&to=2026-11-02&group_by=day%2Csession&agent_id=a1&format=json")
        odd: Any
        for odd in ({"group_by": "day"}, {"first_day": "2026-11-01"}, {"last_day": datetime.now(timezone.utc)}):
            with self.assertRaises(TypeError):
                o.usage(**odd)
        for odd in ("session.ended", b"session.ended"):
            with self.assertRaises(TypeError):
                o.create_webhook("https://example.com/", types=odd)
            with self.assertRaises(TypeError):
                o.all_events(types=odd)
        self.assertEqual(len(proxy.requests), 1)

    def test_all_events_go_on_after_a_break(self) -> None:
        """They go on after the last one that was yielded, however long the service is away."""
        asked: List[str] = []

        def react(request: Request, n: int) -> Reaction:
            asked.append(request.query.replace("&limit=100", ""))
            if n == 1:
                return page(41, 42)
            if n <= 13:
                return (refusal(503, "unavailable"), DROP, LOSE)[n % 3]
            return page(following="43") if n == 14 else page(44)

        client, _ = self.proxied(react)
        events = client.organization("rmk_1").all_events(40)
        seen = [next(events) for _ in range(3)]
        self.assertEqual([(e.sequence, e.id, e.previous_hash, e.actor.id) for e in seen], [(n, f"a1:1-{n}", "5f", "k1") for n in (41, 42, 44)])
        self.assertEqual(asked, ["after=40&wait=30"] + ["after=42&wait=30"] * 13 + ["after=43&wait=30"])

    def test_the_events_of_an_agent_go_on_after_a_break(self) -> None:
        """They go on after the last one that was yielded, however long the service is away, and ask at most once a second."""
        times: List[float] = []

        def react(_: Request, n: int) -> Reaction:
            times.append(time.monotonic())
            return page(1) if n == 1 else refusal(503, "unavailable") if n < 7 else page() if n < 9 else page(2)

        client, proxy = self.proxied(react)
        events = client.organization("rmk_1").events("a1")
        self.assertEqual([next(events).id for _ in range(2)], ["a1:1-1", "a1:1-2"])
        self.assertEqual({request.query for request in proxy.requests[1:]}, {"after=a1%3A1-1&limit=100&wait=30"})
        self.assertGreater(times[8] - times[7], 0.9)

    def test_all_events_of_some_types_go_over_empty_pages(self) -> None:
        pages = {"0": page(following="1000"), "1000": page(1007, following="1900"), "1900": page()}
        client, proxy = self.proxied(lambda request, _: pages[request.query.partition("after=")[2].partition("&")[0]])
        found = client.organization("rmk_1").all_events(types=["agent.changed", "agent.created"], wait=False)
        self.assertEqual([e.sequence for e in found], [1007])
        self.assertIn("types=agent.changed%2Cagent.created", proxy.requests[0].query)

    def test_all_events_end_with_a_refusal(self) -> None:
        client, proxy = self.proxied(lambda _r, _n: refusal(401, "invalid_api_key"))
        with self.assertRaises(remit.Unauthorized):
            next(client.organization("rmk_1").all_events())
        self.assertEqual(len(proxy.requests), 1)
        client, proxy = self.proxied(lambda _r, _n: refusal(503, "unavailable"))
        with self.assertRaises(remit.Unavailable):
            next(client.organization("rmk_1").all_events(wait=False))
        self.assertEqual(len(proxy.requests), 4)

    def test_all_events_of_the_service_are_yielded_in_order(self) -> None:
        client, _ = self.proxied(lambda _r, n: LOSE if n % 3 else PASS)
        session = self.new_session()
        session.end()
        o = client.organization(self.organization.rotate_key(self.organization_id).api_key)
        seen = []
        for e in o.all_events():
            seen.append(e)
            if e.type == "session.ended":
                break
        self.assertEqual([(e.sequence, e.type) for e in seen],
                         list(enumerate(["agent.created", "session.created", "token.issued", "session.ended"], 1)))
        self.assertEqual((seen[3].agent_id, seen[3].session_id), (self.agent.id, session.id))
        self.assertEqual([e.sequence for e in o.all_events(1, types=["session.ended", "session.created"], wait=False)], [2, 4])

    def test_keys_do_what_their_roles_allow(self) -> None:
        o = self.new_organization()
        made = o.create_api_key("desk", "operator", expires_in=timedelta(days=1))
        assert made.api_key and made.expires_at
        self.assertEqual((made.expires_at - made.created_at, made.hint), (timedelta(days=1), made.api_key.reveal()[-4:]))
        operator = self.client.organization(made.api_key)
        with self.assertRaises(remit.InsufficientRole) as caught:
            operator.create_agent("scout")
        self.assertEqual(caught.exception.required_role, "admin")
        own, first = operator.api_keys()
        self.assertEqual((own.id, own.api_key, first.role, first.expires_at), (made.id, None, "admin", None))
        with self.assertRaises(remit.LastAdminKey):
            o.delete_api_key(first.id)
        renewed = self.client.organization(o.rotate_api_key(made.id, grace=0).api_key)
        with self.assertRaises(remit.Unauthorized):
            operator.api_keys()
        self.assertEqual(len(renewed.api_keys()), 2)
        o.delete_api_key(made.id)
        with self.assertRaises(remit.Unauthorized):
            renewed.api_keys()

    def test_usage_adds_up_to_what_the_session_shows(self) -> None:
        session = self.new_session()
        session.charge("llm.call", "0.125", count=2)
        session.charge(value="0.000001")
        calls, rest = session.usage()
        self.assertEqual((calls.action_type, calls.action_count, calls.value), ("llm.call", 2, Decimal("0.125")))
        self.assertEqual((rest.action_type, calls.value + rest.value), (None, session.get().value_used))
        (line,) = self.organization.usage(group_by=["session"])
        self.assertEqual((line.session_id, line.action_count, line.value), (session.id, 3, session.get().value_used))
        self.assertEqual(self.organization.usage_csv(group_by=["action_type"]),
                         "action_type,action_count,value_usd\r\n,1,0.000001\r\nllm.call,2,0.125\r\n")

    def test_a_webhook_is_created_tested_and_deleted(self) -> None:
        o = self.new_organization()
        made = o.create_webhook("https://127.0.0.1/remit", description="on call")  # to which the service refuses to connect
        assert made.secret
        self.assertEqual((made.types, made.description, made.failing_since), ((), "on call", None))
        self.assertEqual((o.get_webhook(made.id).secret, [w.id for w in o.webhooks()]), (None, [made.id]))
        sent = o.test_webhook(made.id)
        self.assertEqual((sent.type, sent.status, sent.event_sequence, sent.webhook_id), ("webhook.test", "pending", None, made.id))
        pending = [d.id for d in o.deliveries(made.id, status="pending")]  # the test that the service sends by itself may be there too
        self.assertEqual(pending.count(sent.id), 1)
        self.assertEqual(o.retry_delivery(made.id, sent.id).id, sent.id)
        o.delete_webhook(made.id)
        with self.assertRaises(remit.NotFound):
            o.test_webhook(made.id)
