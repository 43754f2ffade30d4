from __future__ import annotations

from decimal import Decimal
from typing import Any, Callable, List

import remit
from network import ServiceTest
from remit import Charge


class Sessions(ServiceTest):
    def test_a_batch_is_answered_in_order(self) -> None:
        session = self.new_session(max_value=3)
        first, second, third = session.charge_many([Charge(value="1.25"), Charge(value=5), Charge("llm.call", "1.75")])
        assert first.usage and third.usage
        self.assertEqual((first.usage.value_used, third.usage.value_used), (Decimal("1.25"), 3))
        self.assertIsInstance(second.error, remit.LimitReached)
        other = self.organization.create_session(self.agent.id).id
        for charge_many in (self.agent.charge_many, self.organization.charge_many):
            here, there, nowhere = charge_many(
                [Charge(session_id=session.id), Charge(value=1, session_id=other), Charge(session_id="?")]
            )
            assert here.usage and there.usage and nowhere.error
            self.assertEqual((nowhere.error.status, nowhere.error.fields[0].field), (400, "session_id"))

    def test_a_missing_amount_is_not_zero(self) -> None:
        session = self.new_session()
        none: Any = None
        calls: List[Callable[[], object]] = [
            lambda: session.charge("llm.call", none),
            lambda: session.charge_many([Charge("llm.call", none)]),
            lambda: session.begin("payment", value=none),
        ]
        for does in calls:
            with self.assertRaisesRegex(TypeError, "no NoneType"):
                does()
        self.assertEqual(session.get().action_count, 0)

    def test_a_key_that_no_header_can_hold_is_refused(self) -> None:
        session = self.new_session()
        for key in ("", "two words", "new\r\nline", "x" * 256):
            with self.assertRaises(ValueError):
                session.charge(idempotency_key=key)


class Organizations(ServiceTest):
    def test_a_secret_is_exchanged_for_a_pair(self) -> None:
        organization = self.new_organization()
        made = organization.create_agent("scout", ["read"])
        assert made.secret
        pair = self.client.exchange(made.id, made.secret.reveal())
        self.assertEqual(self.client.verify(pair.access_token).agent_id, made.id)
        self.assertTrue(pair.refresh_token and organization.introspect(pair.refresh_token).active)
        self.assertGreater(pair.expires_in, 0)
        self.assertNotIn(pair.access_token.reveal(), repr(pair))
        with self.assertRaises(remit.Unauthorized):
            self.client.exchange(made.id, "rms_wrong")

    def test_lists_yield_every_page(self) -> None:
        organization = self.new_organization()
        made = [organization.create_agent(f"a{i}").id for i in range(43)]
        self.assertEqual([a.id for a in organization.agents()], made[::-1])
        sessions = [organization.create_session(made[0]).id for _ in range(103)]
        self.assertEqual([s.id for s in organization.sessions()], sessions[::-1])
        self.assertEqual([s.id for s in organization.sessions(agent_id=made[1])], [])
        organization.end_session(sessions[7])
        self.assertEqual([s.id for s in organization.sessions(status="completed", agent_id=made[0])], [sessions[7]])

    def test_a_missing_object_is_not_found(self) -> None:
        organization = self.new_organization()
        with self.assertRaises(remit.NotFound):
            organization.get_agent("01a1ffac-a9a1-7dc1-aa48-a64bee9cc8b2")
        with self.assertRaises(remit.RemitError) as caught:
            organization.get_agent("../organizations?x=#")
        self.assertEqual(caught.exception.code, "invalid_request")
        for id in ("", "..", "."):
            with self.assertRaises(ValueError):
                organization.get_agent(id)
