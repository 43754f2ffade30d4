"""Tests of what each call sends, and how it reads the responses of the API description."""

from __future__ import annotations

import os
from datetime import timedelta
from decimal import Decimal
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

import remit
from network import LOSE, URL, Answer, ServiceTest, refusal

MOMENT = "2026-11-21T09:19:32.859Z"
SESSION: Dict[str, Any] = {
    "id": "s1", "agent_id": "a1", "status": "active", "max_actions": 10, "action_count": 3, "max_value_usd": 8,
    "value_used_usd": 1.5, "value_held_usd": 0.25, "value_overage_usd": 0, "value_committed_usd": 6.5, "max_committed_usd": 20,
    "scopes": [], "metadata": {}, "expires_at": MOMENT, "created_at": MOMENT, "a_field_of_tomorrow": {"x": [1]},
}
TRANSACTION: Dict[str, Any] = {
    "id": "t1", "agent_id": "a1", "session_id": "s1", "sequence_number": 4, "status": "committed", "action_type": "payment",
    "pre_state": {}, "value_usd": 0, "value_held_usd": 2.5, "overage_usd": 0, "late": True, "reversible": True, "metadata": {},
    "expires_at": MOMENT, "created_at": MOMENT,
}
ORGANIZATION: Dict[str, Any] = {
    "id": "o1", "name": "acme", "metadata": {}, "created_at": MOMENT,
    "quotas": {"agents": 10000, "of_tomorrow": 7, "bytes": None, "odd": "x", "half": 0.5}, "usage": {"agents": 3},
}
AGENT: Dict[str, Any] = {
    "id": "a1", "org_id": "o1", "name": "scout", "scopes": [], "status": "active", "metadata": {}, "created_at": MOMENT,
}
LIMIT: Dict[str, Any] = {
    "limit": "max_value_usd", "action_count": 3, "max_actions": 10, "value_used_usd": 1.5, "max_value_usd": 8,
    "value_held_usd": 0.25, "remaining_actions": 7, "remaining_value_usd": 6.25, "expires_at": MOMENT,
}


class Requests(ServiceTest):
    def test_requests_that_are_not_idempotent_carry_a_key(self) -> None:
        key = {**{"previous_expires_at": MOMENT}, "api_key": "rmk_2", "secret": "rms_2"}
        cases: List[Tuple[Callable[[remit.Client, remit.Organization], object], str, str, bool, Any]] = [
            (lambda c, o: o.rotate_key("o1"), "POST /v1/organizations/o1/api-key/rotate", "{}", True, key),
            (lambda c, o: o.rotate_key("o1", grace=0), "POST /v1/organizations/o1/api-key/rotate", '{"grace_seconds":0}', True, key),
            (lambda c, o: o.rotate_agent_secret("a1"), "POST /v1/agents/a1/secret/rotate", "{}", True, key),
            (
                lambda c, o: o.rotate_agent_secret("a1", grace=timedelta(seconds=1.5), revoke_families=True),
                "POST /v1/agents/a1/secret/rotate", '{"grace_seconds":2,"revoke_families":true}', True, key,
            ),
            (lambda c, o: c.create_organization("acme"), "POST /v1/organizations", '{"name":"acme"}', True, ORGANIZATION),
            (lambda c, o: o.create_agent("scout"), "POST /v1/agents", '{"name":"scout","scopes":[]}', True, AGENT),
            (lambda c, o: o.revoke_family("a1", "f1"), "DELETE /v1/agents/a1/families/f1", "", False, {"revoked": True}),
            (
                lambda c, o: o.create_session("a1", max_committed="20"),
                "POST /v1/sessions", '{"agent_id":"a1","max_committed_usd":20}', True, SESSION,
            ),
            (lambda c, o: o.update_session("s1", max_actions=5), "PATCH /v1/sessions/s1", '{"max_actions":5}', False, SESSION),
            (
                lambda c, o: o.update_session("s1", add_actions=5, add_value="0.25"),
                "PATCH /v1/sessions/s1", '{"add_actions":5,"add_value_usd":0.25}', True, SESSION,
            ),
            (
                lambda c, o: c.agent("a1", "s").transaction("t1").update(value=0, expires_in=60),
                "PATCH /v1/transactions/t1", '{"value_usd":0,"expires_in_seconds":60}', False, TRANSACTION,
            ),
        ]
        for call, place, body, keyed, said in cases:
            with self.subTest(place + body):
                client, sent = self.answering(said)
                call(client, client.organization("rmk_1"))
                self.assertEqual([(f"{r.method} {r.path}", r.body.decode()) for r in sent()], [(place, body)] * 3)
                keys = {r.headers["Idempotency-Key"] for r in sent()}
                self.assertEqual((len(keys), keys != {None}), (1, keyed))

    def test_a_top_up_without_a_key_is_not_retried(self) -> None:
        client, proxy = self.proxied(lambda _r, _n: LOSE, idempotency_keys=False)
        with self.assertRaises(remit.OutcomeUnknown):
            client.organization("rmk_1").update_session("s1", add_value=1)
        self.assertEqual(len(proxy.requests), 1)

    def test_responses_are_read_and_unknown_fields_ignored(self) -> None:
        client, _ = self.answering(SESSION)
        session = client.organization("rmk_1").get_session("s1")
        self.assertEqual((session.value_committed, session.max_committed), (Decimal("6.5"), Decimal(20)))
        client, _ = self.answering({n: v for n, v in SESSION.items() if "committed" not in n})
        session = client.organization("rmk_1").get_session("s1")
        self.assertEqual((session.value_committed, session.max_committed), (0, None))
        client, _ = self.answering(ORGANIZATION)
        info = client.organization("rmk_1").info("o1")
        self.assertEqual((info.quotas, info.usage), ({"agents": 10000, "of_tomorrow": 7}, {"agents": 3}))
        client, _ = self.answering({n: v for n, v in ORGANIZATION.items() if n not in ("quotas", "usage")})
        self.assertEqual(client.organization("rmk_1").info("o1").quotas, {})
        client, _ = self.answering(TRANSACTION)
        self.assertTrue(client.agent("a1", "s").transaction("t1").get().late)

    def test_families_are_listed(self) -> None:
        one = {"family_id": "f1", "created_at": MOMENT, "last_used_at": MOMENT, "expires_at": MOMENT, "address": "of tomorrow"}
        two = {"family_id": "f2", "created_at": MOMENT, "expires_at": MOMENT}
        client, sent = self.answering([one, two])
        first, second = client.organization("rmk_1").families("a1")
        self.assertEqual((first.id, first.last_used_at), ("f1", first.expires_at))
        self.assertIsNone(second.last_used_at)
        self.assertEqual(sent()[0].path, "/v1/agents/a1/families")

    def test_an_error_names_the_limit_and_what_is_left(self) -> None:
        cases: List[Tuple[Answer, type, str]] = [
            (
                refusal(403, "session_limit_reached", **LIMIT), remit.LimitReached,
                "403 session_limit_reached: words; max_value_usd: 7 of 10 actions and 6.25 of 8 USD left (request r-1)",
            ),
            (
                refusal(403, "session_limit_reached", needed_actions=1, needed_value_usd=6.5, **LIMIT), remit.LimitReached,
                "403 session_limit_reached: words; max_value_usd: 7 of 10 actions and 6.25 of 8 USD left; "
                "this call needs 6.5 USD (request r-1)",
            ),
            (
                refusal(409, "limit_below_usage", **LIMIT), remit.LimitBelowUsage,
                "409 limit_below_usage: words; max_value_usd: 3 actions and 1.5 USD used, 0.25 USD held (request r-1)",
            ),
            (
                refusal(403, "quota_exceeded", quota="agents", used=9, max=10), remit.QuotaExceeded,
                "403 quota_exceeded: words; agents: 9 of 10 used (request r-1)",
            ),
            (refusal(403, "organization_suspended"), remit.OrganizationSuspended, "403 organization_suspended: words (request r-1)"),
            (
                refusal(400, "invalid_request", errors=[{"field": "name", "message": "is required"}]), remit.RemitError,
                "400 invalid_request: words; name is required (request r-1)",
            ),
            (
                refusal(400, "invalid_request", detail="id must be a UUID", errors=[
                    {"field": "id", "message": "must be a UUID"}, {"field": "d", "message": "must be a UUID"},
                ]), remit.RemitError, "400 invalid_request: id must be a UUID; d must be a UUID (request r-1)",
            ),
        ]
        for answer, kind, text in cases:
            with self.subTest(text):
                client, _ = self.proxied(lambda _r, _n: answer)
                with self.assertRaises(remit.RemitError) as caught:
                    client.organization("rmk_1").get_session("s1")
                self.assertIs(type(caught.exception), kind)
                self.assertEqual(str(caught.exception), "GET /v1/sessions/s1: " + text)

    def test_a_str_is_refused_as_a_list_of_scopes(self) -> None:
        client, proxy = self.proxied()
        organization = client.organization("rmk_1")
        odd: Any
        for odd in ("admin", b"admin"):
            with self.assertRaises(TypeError):
                organization.create_agent("scout", odd)
            with self.assertRaises(TypeError):
                organization.create_session("a1", scopes=odd)
        self.assertEqual(proxy.requests, [])


class FromEnvironment(ServiceTest):
    NAMES = ("REMIT_ADDR", "REMIT_API_KEY", "REMIT_AGENT", "REMIT_SECRET", "REMIT_SESSION")

    def environment(self, **variables: str) -> None:
        rest = {name: value for name, value in os.environ.items() if name not in self.NAMES}
        patched = mock.patch.dict(os.environ, {**rest, **variables}, clear=True)
        patched.start()
        self.addCleanup(patched.stop)

    def test_settings_come_from_the_environment(self) -> None:
        session = self.new_session()
        secret = self.organization.rotate_agent_secret(self.agent.id).secret.reveal()
        key = self.organization.rotate_key(self.organization_id, grace=60).api_key.reveal()
        self.environment(
            REMIT_ADDR=f" {URL}\n", REMIT_API_KEY=f"{key}\n", REMIT_AGENT=self.agent.id, REMIT_SECRET=f"{secret}\n",
            REMIT_SESSION=session.id,
        )
        self.assertEqual(remit.Session.from_env().charge().action_count, 1)
        self.assertEqual(remit.Agent.from_env().id, self.agent.id)
        self.assertEqual(remit.Organization.from_env().info(self.organization_id).name, "acme")

    def test_missing_variables_are_named(self) -> None:
        cases: List[Tuple[Callable[[], object], Dict[str, str], str]] = [
            (remit.Organization.from_env, {}, "set REMIT_API_KEY"),
            (remit.Agent.from_env, {"REMIT_SECRET": " "}, "set REMIT_AGENT, REMIT_SECRET"),
            (remit.Session.from_env, {"REMIT_AGENT": "a1"}, "set REMIT_SECRET, REMIT_SESSION"),
            (remit.Organization.from_env, {"REMIT_API_KEY": "@acme.key"}, "REMIT_API_KEY must be the text itself"),
            (remit.Client.from_env, {"REMIT_ADDR": "nowhere"}, "REMIT_ADDR: the base URL needs http:// or https:// before the host"),
            (remit.Client.from_env, {"REMIT_ADDR": "127.0.0.1:8080"}, "REMIT_ADDR: the base URL needs http:// or https:// before the host"),
            (remit.Client.from_env, {"REMIT_ADDR": "redis://h"}, "the base URL must be https://host"),
        ]
        for make, variables, text in cases:
            with self.subTest(text):
                self.environment(**variables)
                with self.assertRaisesRegex(ValueError, text):
                    make()
        self.environment()
        with remit.Client.from_env():
            pass
