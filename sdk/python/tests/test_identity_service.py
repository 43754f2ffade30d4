"""Keys at the service itself. See test/same for tokens, resources, proofs and delegation."""

from __future__ import annotations

import json
from typing import Any

import remit
from network import LOSE, PASS, ServiceTest
from test_exchange import METADATA
from test_keys import RSA, text_of


class AtTheService(ServiceTest):
    def setUp(self) -> None:
        super().setUp()
        self.organization = self.new_organization()

    def new_agent(self, **settings: Any) -> remit.AgentInfo:
        return self.organization.create_agent("scout", ["read", "sessions:delegate"], **settings)

    def test_private_keys_of_every_kind_open_an_agent(self) -> None:
        info = self.new_agent(secret=False)
        self.assertFalse(info.has_secret)
        keys = [remit.generate_key(), remit.generate_key("EdDSA"), remit.parse_key(text_of(RSA))]
        keys.append(remit.parse_key({**json.loads(keys[2].text.reveal()), "alg": "PS256"}))
        for key in keys:
            self.organization.update_agent(info.id, jwks=key.jwks)
            agent = self.client.agent(info.id, key=key)
            self.assertEqual(list(agent.sessions()), [])
            agent.refresh()
            self.assertEqual(list(agent.sessions()), [])
        self.organization.update_agent(info.id, jwks=remit.REMOVE)
        with self.assertRaises(remit.Unauthorized):
            self.client.agent(info.id, key=keys[-1]).token()

    def test_an_exchange_whose_answer_was_lost_is_made_again_with_a_new_assertion(self) -> None:
        key = remit.generate_key()
        info = self.new_agent(secret=False, jwks=key.jwks)
        client, proxy = self.proxied(lambda r, n: LOSE if r.path == "/oauth2/token" and n <= 2 else PASS)
        self.assertTrue(client.agent(info.id, key=key).token())
        self.assertEqual((len(proxy.to("/oauth2/token")), len(proxy.to(METADATA))), (3, 1))
