"""Tests of what calls take. What they send and read is compared in all languages; see test/same."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

import remit
from network import LOSE, URL, ServiceTest


class Requests(ServiceTest):
    def test_a_top_up_without_a_key_is_not_retried(self) -> None:
        client, proxy = self.proxied(lambda _r, _n: LOSE, idempotency_keys=False)
        with self.assertRaises(remit.OutcomeUnknown):
            client.organization("rmk_1").update_session("s1", add_value=1)
        self.assertEqual(len(proxy.requests), 1)

    def test_a_str_is_refused_as_a_list_of_scopes_or_audiences(self) -> None:
        client, proxy = self.proxied()
        organization = client.organization("rmk_1")
        odd: Any
        for odd in ("admin", b"admin"):
            with self.assertRaises(TypeError):
                organization.create_agent("scout", odd)
            with self.assertRaises(TypeError):
                organization.create_session("a1", scopes=odd)
            with self.assertRaises(TypeError):
                organization.create_agent("scout", audiences=odd)
            with self.assertRaises(TypeError):
                organization.update_agent("a1", audiences=odd)
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
