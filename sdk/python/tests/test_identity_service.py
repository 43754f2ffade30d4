"""Keys, workload tokens, resources, proofs and delegation at the service itself."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any, List, Tuple
from urllib.request import urlopen

import remit
from network import LOSE, PASS, URL, ServiceTest
from test_exchange import METADATA
from test_keys import RSA, text_of

TOOLS = "https://tools.example.com/mcp"
SCOPES: Tuple[List[str], ...] = ([], ["read"])


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

    def test_a_workload_becomes_the_agent_that_a_rule_names(self) -> None:
        platform, info = remit.generate_key(), self.new_agent(secret=False)
        rule = remit.TrustRule(info.id, {"sub": "repo:acme/agent:*"})
        trusted = self.organization.create_trusted_issuer("https://ci.example.com", [rule], jwks=platform.jwks)
        with urlopen(URL + METADATA) as answer:
            audience = json.load(answer)["issuer"]

        def token(repository: str = "acme/agent") -> str:
            now = int(time.time())
            claims = {"iss": "https://ci.example.com", "sub": f"repo:{repository}:main", "aud": audience, "exp": now + 300}
            return platform._token({"typ": "JWT", "kid": platform.key_id}, claims).reveal()

        agent = self.client.agent(info.id, assertion=token)
        self.assertEqual(list(agent.sessions()), [])
        agent.refresh()
        with self.assertRaises(remit.Unauthorized):
            self.client.agent(info.id, assertion=lambda: token("acme/other")).token()
        self.organization.delete_trusted_issuer(trusted.id)
        with self.assertRaises(remit.Unauthorized):
            agent.refresh()

    def test_a_token_is_for_its_resources_alone(self) -> None:
        info = self.new_agent(audiences=[TOOLS])
        assert info.secret
        for scopes in SCOPES:
            agent = self.client.agent(info.id, info.secret, resource=[TOOLS], scopes=scopes)
            self.assertEqual(self.client.verify(agent.token(), "read", audience=TOOLS).agent_id, info.id)
            self.assertEqual(self.organization.introspect(agent.token()).audience, (TOOLS,))
            with self.assertRaises(remit.Unauthorized):
                self.client.verify(agent.token())
            with self.assertRaises(remit.InvalidTarget):
                self.client.agent(info.id, info.secret, resource=["https://other.example.com"], scopes=scopes).token()

    def test_a_bound_agent_proves_its_key(self) -> None:
        info = self.new_agent(dpop_required=True)
        assert info.secret
        for scopes in SCOPES:
            with self.assertRaises(remit.DPoPRequired):
                self.client.agent(info.id, info.secret, scopes=scopes).token()
        budget = self.organization.create_session(info.id, max_value=2)
        for key in (remit.generate_key(), remit.generate_key("EdDSA")):
            client, proxy = self.proxied(lambda r, n: LOSE if r.path.endswith("/actions") and n == 1 else PASS)
            agent = client.agent(info.id, info.secret, dpop=key)
            session = agent.session(budget.id)
            session.charge("llm.call", "0.5")  # its first answer is lost
            agent.refresh()
            with session.begin("payment", value="0.25"):
                pass
            about = self.organization.introspect(agent.token())
            self.assertEqual((about.thumbprint, about.token_type), (key.thumbprint, "DPoP"))
            self.assertEqual(self.client.agent_with_token(agent.token(), dpop=key).session(budget.id).get().id, budget.id)
            with self.assertRaises(remit.Unauthorized):
                self.client.verify(agent.token())  # as a bearer token
            agent._caller.proofs._nonce = "of-another-service"  # type: ignore[union-attr]
            self.assertEqual(len(list(agent.sessions())), 1)
        self.assertEqual(session.get().value_used, Decimal("1.5"))

    def test_a_delegated_token_acts_on_its_session_and_ends_with_it(self) -> None:
        parent, helper = self.new_agent(), self.new_agent()
        assert parent.secret
        agent = self.client.agent(parent.id, parent.secret)
        session = agent.session(self.organization.create_session(parent.id, max_value=2).id)
        child = session.create_child(agent_id=helper.id, max_value="0.5")
        token = agent.delegate(child.id, scopes=["read"])
        self.assertEqual((token.agent_id, token.session_id, token.scopes), (helper.id, child.id, ("read",)))
        alone = self.client.agent_with_token(token.access_token)
        self.assertEqual(alone.session(child.id).charge(value="0.1").remaining_value, Decimal("0.4"))
        about = self.organization.introspect(token.access_token)
        self.assertEqual((about.session_id, about.actors), (child.id, (parent.id,)))
        self.assertEqual(self.client.verify(token.access_token).actor_id, parent.id)
        with self.assertRaises(remit.NotFound):
            alone.session(session.id).get()
        with self.assertRaises(remit.DelegatedTokenRefused):
            list(alone.events(wait=False))
        self.organization.end_session(child.id)
        with self.assertRaises(remit.Unauthorized):
            alone.session(child.id).get()
