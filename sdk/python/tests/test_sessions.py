from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Callable, List

import remit
from network import ServiceTest
from remit import Charge


class Sessions(ServiceTest):
    def test_a_charge_returns_what_remains(self) -> None:
        usage = self.new_session(max_actions=10, max_value=8).charge("llm.call", "1.5", count=3)
        self.assertEqual((usage.action_count, usage.max_actions, usage.remaining_actions), (3, 10, 7))
        self.assertEqual((usage.value_used, usage.max_value, usage.remaining_value), (Decimal("1.5"), 8, Decimal("6.5")))
        self.assertGreater(usage.expires_at, datetime.now(timezone.utc))

    def test_a_charge_beyond_the_limit_charges_nothing(self) -> None:
        session = self.new_session(max_actions=2, max_value=1)
        for limit, charge in {"max_value_usd": {"value": 2}, "max_actions": {"count": 3}}.items():
            with self.assertRaises(remit.LimitReached) as caught:
                session.charge(**charge)  # type: ignore[arg-type]
            self.assertEqual((caught.exception.limit, caught.exception.status), (limit, 403))
            self.assertEqual(caught.exception.usage.remaining_value, 1)
            self.assertTrue(caught.exception.request_id)
        self.assertEqual(session.get().action_count, 0)

    def test_an_ended_session_is_not_active(self) -> None:
        session = self.new_session()
        session.end()
        session.end()
        with self.assertRaises(remit.SessionNotActive) as caught:
            session.charge()
        self.assertEqual(caught.exception.session_status, "completed")
        info = session.get()
        self.assertEqual(info.status, "completed")
        self.assertIsNotNone(info.ended_at)

    def test_a_missing_scope_is_named(self) -> None:
        with self.assertRaises(remit.InsufficientScope) as caught:
            self.new_session().charge(scope="payments")
        self.assertEqual(caught.exception.required_scope, "payments")

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

    def test_a_batch_item_is_encoded_like_a_single_charge(self) -> None:
        session = self.new_session()
        alone = session.charge("llm.call", "0.37", count=2, scope="admin")
        (batched,) = session.charge_many([Charge("llm.call", "0.37", count=2, scope="admin")])
        assert batched.usage
        self.assertEqual((alone.value_used, batched.usage.value_used), (Decimal("0.37"), Decimal("0.74")))

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

    def test_session_limits_are_raised_and_lowered(self) -> None:
        session = self.new_session(max_actions=5, max_value=1, expires_in=timedelta(minutes=1), metadata={"a": Decimal("0.1")})
        session.charge(value="0.5", count=2)
        changed = self.organization.update_session(session.id, max_value="2.5", expires_in=3600.1)
        self.assertEqual((changed.max_actions, changed.max_value, changed.metadata), (5, Decimal("2.5"), {"a": Decimal("0.1")}))
        self.assertGreater(changed.expires_at - datetime.now(timezone.utc), timedelta(minutes=50))
        with self.assertRaises(remit.LimitBelowUsage) as caught:
            self.organization.update_session(session.id, max_actions=1)
        self.assertEqual((caught.exception.limit, caught.exception.usage.action_count), ("max_actions", 2))
        self.assertEqual(self.organization.get_session(session.id), changed)
        self.organization.end_session(session.id)

    def test_the_callers_key_replays_the_first_outcome(self) -> None:
        session = self.new_session()
        first = session.charge(value=1, idempotency_key="order-4711")
        self.assertEqual(session.charge(value=1, idempotency_key="order-4711"), first)
        with self.assertRaises(remit.IdempotencyKeyReused):
            session.charge(value=2, idempotency_key="order-4711")
        for key in ("", "two words", "new\r\nline", "x" * 256):
            with self.assertRaises(ValueError):
                session.charge(idempotency_key=key)


class Organizations(ServiceTest):
    def test_agents_are_created_and_revoked(self) -> None:
        organization = self.new_organization()
        made = organization.create_agent("scout", ["read"], description="looks", metadata={"team": {"size": 3}})
        assert made.secret
        agent = self.client.agent(made.id, made.secret)
        self.assertEqual(self.client.verify(agent.token()).agent_id, made.id)
        self.assertEqual(organization.get_agent(made.id).metadata, {"team": {"size": 3}})
        rotated = organization.rotate_agent_secret(made.id)
        with self.assertRaises(remit.Unauthorized):
            self.client.agent(made.id, made.secret).token()
        self.client.agent(made.id, rotated.secret).token()
        organization.revoke_agent(made.id)
        organization.revoke_agent(made.id)
        self.assertEqual([a.id for a in organization.agents(status="revoked")], [made.id])
        self.assertEqual(list(organization.agents(status="active")), [])
        with self.assertRaises(remit.Unauthorized):
            self.client.verify(agent.token())

    def test_an_api_key_is_rotated(self) -> None:
        organization = self.new_organization()
        rotated = organization.rotate_key(self.organization_id, grace=timedelta(minutes=1))
        self.assertGreater(rotated.previous_expires_at, datetime.now(timezone.utc))
        again = self.client.organization(rotated.api_key)
        self.assertEqual(again.info(self.organization_id), organization.info(self.organization_id))
        self.assertIsNone(again.info(self.organization_id).api_key)

    def test_tokens_are_introspected_and_verified(self) -> None:
        self.new_session()
        token = self.agent.token()
        live = self.organization.introspect(token)
        self.assertEqual((live.active, live.agent_id, live.scopes), (True, self.agent.id, ("admin",)))
        self.assertFalse(self.organization.introspect("nonsense").active)
        self.assertEqual(self.client.verify(token, scope="admin").organization_id, self.organization_id)
        with self.assertRaises(remit.Unauthorized):
            self.client.verify("nonsense")

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

    def test_invalid_fields_are_named(self) -> None:
        with self.assertRaises(remit.RemitError) as caught:
            self.new_organization().create_agent("")
        self.assertEqual([wrong.field for wrong in caught.exception.fields], ["name"])
        self.assertIn("name", str(caught.exception))


class Events(ServiceTest):
    def test_the_audit_trail_is_read_and_followed(self) -> None:
        session = self.new_session(max_actions=1)
        session.charge()
        seen = list(self.agent.events(wait=False))
        types = [event.type for event in seen]
        self.assertEqual(types[:3], ["agent.created", "session.created", "token.issued"])
        self.assertEqual(seen[1].data and seen[1].data["max_actions"], 1)
        self.assertEqual((seen[0].actor.type, seen[2].actor.type, seen[1].session_id), ("api_key", "agent", session.id))
        rest = self.organization.events(self.agent.id, seen[-1].id)
        session.end()
        self.assertEqual(next(rest).type, "session.ended")
