"""Tests of API keys, usage, the events of all agents, and webhooks."""

from __future__ import annotations

import itertools
import json
import time
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

import remit
from network import DROP, LOSE, Answer, Reaction, Request, ServiceTest, refusal

MOMENT = "2026-11-21T09:19:32.859Z"
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

    def test_all_events_end_with_a_refusal(self) -> None:
        client, proxy = self.proxied(lambda _r, _n: refusal(401, "invalid_api_key"))
        with self.assertRaises(remit.Unauthorized):
            next(client.organization("rmk_1").all_events())
        self.assertEqual(len(proxy.requests), 1)
        client, proxy = self.proxied(lambda _r, _n: refusal(503, "unavailable"))
        with self.assertRaises(remit.Unavailable):
            next(client.organization("rmk_1").all_events(wait=False))
        self.assertEqual(len(proxy.requests), 4)
