from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Dict, List, Optional, Tuple
from unittest import mock

import remit
from ledger import Ledger
from network import Answer, Proxy, Reaction, Request, ServiceTest, refusal

MOMENT = "2026-11-21T09:19:32.859Z"
ASKED: Dict[str, Any] = {
    "id": "r1", "session_id": "s1", "agent_id": "a1", "status": "pending", "add_actions": 0, "add_value_usd": 0.1,
    "reason": "a page more", "created_at": MOMENT,
}
APPROVED = {**ASKED, "status": "approved", "granted_actions": 0, "granted_value_usd": 0.1, "decided_at": MOMENT, "comment": "go on"}
USAGE: Dict[str, Any] = {
    "action_count": 3, "max_actions": 10, "value_used_usd": 7.75, "max_value_usd": 8, "value_held_usd": 0, "remaining_actions": 7,
    "remaining_value_usd": 0.25, "expires_at": MOMENT,
}
PAIR = '{"access_token":"a","refresh_token":"r","expires_in":3600}'
CHARGES, REQUESTS, REQUEST = "/v1/sessions/s1/actions", "/v1/sessions/s1/requests", "/v1/sessions/s1/requests/r1"


def says(body: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(body))


FULL = refusal(403, "session_limit_reached", limit="max_value_usd", **USAGE)


class More(ServiceTest):
    def setUp(self) -> None:
        super().setUp()
        for name in ("POLL_PAUSE", "_SHORTEST_PATIENCE"):
            patched = mock.patch(f"remit.more.{name}", 0.001)
            patched.start()
            self.addCleanup(patched.stop)

    def charging(
        self,
        charges: Tuple[Reaction, ...] = (FULL, says(USAGE)),
        requests: Tuple[Reaction, ...] = (says(ASKED, 201),),
        decisions: Tuple[Reaction, ...] = (says(APPROVED),),
        **options: Any,
    ) -> Tuple[remit.Session, Proxy]:
        """Returns a session with 0.25 USD left, where somebody decides. Each list is answered in turn, the last one for ever."""
        turns = {CHARGES: charges, REQUESTS: requests, REQUEST: decisions, "/v1/auth/token": (Answer(200, PAIR),)}

        def react(request: Request, n: int) -> Reaction:
            return turns[request.path][min(n, len(turns[request.path])) - 1]

        client, proxy = self.proxied(react, **options)
        return client.agent("a1", "rms_1").session("s1"), proxy

    def charge(self, session: remit.Session, key: Optional[str] = None, timeout: float = 20) -> remit.Usage:
        return session.charge(value="0.35", on_limit="ask", reason="a page more", idempotency_key=key, timeout=timeout)

    def test_a_charge_asks_for_what_is_missing_waits_and_goes_on(self) -> None:
        session, proxy = self.charging(decisions=(says(ASKED), refusal(503, "unavailable"), says(APPROVED)))
        self.assertEqual(self.charge(session).remaining_actions, 7)
        self.assertEqual([r.body for r in proxy.to(REQUESTS)], [b'{"add_value_usd":0.1,"reason":"a page more"}'])
        first, second = proxy.to(CHARGES)
        self.assertEqual(first.body, second.body)
        self.assertNotEqual(first.headers["Idempotency-Key"], second.headers["Idempotency-Key"])
        self.assertEqual({r.query for r in proxy.to(REQUEST)}, {"wait=30"})

    def test_with_the_callers_own_key_all_keys_follow_from_it(self) -> None:
        for _ in range(2):
            session, proxy = self.charging(charges=(FULL, FULL, says(USAGE)), idempotency_keys=False)
            self.charge(session, "own")
            keys = [r.headers["Idempotency-Key"] for r in proxy.to(CHARGES) + proxy.to(REQUESTS)]
            self.assertEqual(keys, ["own", "own-charge-1", "own-charge-2", "own-ask-1", "own-ask-2"])

    def test_a_charge_that_is_not_approved_is_not_made(self) -> None:
        cases: List[Tuple[Dict[str, Tuple[Reaction, ...]], Optional[str], str]] = [
            ({"decisions": (says({**ASKED, "status": "denied", "comment": "too dear"}),)}, "denied", "request for more denied: too dear"),
            ({"decisions": (says(ASKED),)}, "pending", "request for more pending: the time given is over"),
            ({"decisions": (refusal(503, "unavailable"),)}, "pending", "request for more pending: the time given is over"),
            ({"requests": (refusal(404, "not_found"),)}, None, "no request for more was made: words"),
        ]
        for script, status, text in cases:
            with self.subTest(text):
                session, proxy = self.charging(**script)
                with self.assertRaises(remit.RequestNotApproved) as caught:
                    self.charge(session, timeout=0.5)
                error = caught.exception
                self.assertIsInstance(error, remit.LimitReached)
                self.assertEqual((error.limit, error.usage.remaining_value, error.status), ("max_value_usd", Decimal("0.25"), 403))
                self.assertEqual(error.request and error.request.status, status)
                self.assertIn("0.25 of 8 USD left; " + text, str(error))
                self.assertEqual(len(proxy.to(CHARGES)), 1)

    def test_asking_ends_with_the_session_or_a_smaller_grant(self) -> None:
        over = refusal(403, "session_not_active", session_status="completed")
        session, _ = self.charging(charges=(FULL, over), decisions=(says({**ASKED, "status": "ended"}),))
        with self.assertRaises(remit.SessionNotActive):
            self.charge(session)
        session, proxy = self.charging(charges=(FULL,), decisions=(says({**APPROVED, "granted_value_usd": 0.05}),))
        with self.assertRaises(remit.LimitReached):
            self.charge(session)
        self.assertEqual(len(proxy.to(CHARGES)), 2)

    def test_other_refusals_ask_nothing_and_asking_needs_a_reason(self) -> None:
        committed = refusal(403, "session_limit_reached", limit="max_committed_usd", **USAGE)
        for answer, kind in (committed, remit.LimitReached), (refusal(403, "session_suspended"), remit.SessionSuspended):
            session, proxy = self.charging(charges=(answer,))
            with self.assertRaises(kind):
                self.charge(session)
            self.assertEqual(proxy.to(REQUESTS), [])
        with self.assertRaises(TypeError):
            session.charge(on_limit="ask")
        with self.assertRaises(ValueError):
            session.charge(on_limit="wait", reason="a page more")

    def test_a_lease_gives_back_what_it_holds_before_it_asks(self) -> None:
        ledger = Ledger(self, max_actions=100)
        with ledger.session().lease() as lease:
            for _ in range(110):
                lease.charge(on_limit="ask", reason="more pages", timeout=20)
        ledger.balances(110, 0)
        self.assertEqual((ledger.count("POST requests"), ledger.max_actions), (10, 110))
