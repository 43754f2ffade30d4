"""What an organization says of who its agents are: their keys, their audiences, and the platforms that vouch for them."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Tuple

import remit
from network import Answer, Reaction, Request, ServiceTest, refusal

MOMENT = "2026-11-21T09:19:32.859Z"
AGENT: Dict[str, Any] = {
    "id": "a1", "org_id": "o1", "name": "scout", "scopes": [], "status": "active", "metadata": {}, "created_at": MOMENT,
}
KEYS: Dict[str, Any] = {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}
TRUSTED: Dict[str, Any] = {
    "id": "i1", "issuer": "https://ci.example.com", "jwks_uri": "https://ci.example.com/keys",
    "rules": [{"agent_id": "a1", "claims": {"sub": "repo:acme/agent:*"}}], "description": "CI", "created_at": MOMENT, "more": {},
}


class Identity(ServiceTest):
    def sent(self, said: Any, call: Callable[[remit.Organization], object]) -> Tuple[Request, object]:
        """Returns the request of a call whose first two answers are lost, and its result."""
        client, requests = self.answering(said)
        got = call(client.organization("rmk_1"))
        first, second, third = requests()
        self.assertEqual((first.body, second.body), (third.body, third.body))
        return third, got

    def test_what_the_service_says_of_an_agent_is_read(self) -> None:
        _, got = self.sent(AGENT, lambda o: o.get_agent("a1"))
        assert isinstance(got, remit.AgentInfo)
        self.assertEqual((got.audiences, got.jwks, got.jwks_uri, got.dpop_required, got.has_secret), (None, None, "", False, True))
        told = {**AGENT, "audiences": [], "jwks": KEYS, "jwks_uri": "https://k", "dpop_required": True, "has_secret": False}
        _, got = self.sent(told, lambda o: o.get_agent("a1"))
        assert isinstance(got, remit.AgentInfo)
        self.assertEqual((got.audiences, got.jwks, got.jwks_uri, got.dpop_required, got.has_secret), ((), KEYS, "https://k", True, False))

    def test_a_lost_deletion_is_a_deletion(self) -> None:
        deletions: List[Callable[[remit.Organization], None]] = [lambda o: o.delete_trusted_issuer("i1"), lambda o: o.delete_budget()]
        for delete in deletions:
            client, proxy = self.proxied(lambda _r, n: Answer(503, "<html>") if n == 1 else refusal(404, "not_found"))
            delete(client.organization("rmk_1"))
            self.assertEqual(len(proxy.requests), 2)

    def test_an_unreadable_trusted_issuer_is_refused(self) -> None:
        cases: List[Dict[str, Any]] = [
            {"rules": "x"}, {"rules": [{"agent_id": "a1", "claims": {"sub": 7}}]}, {"issuer": None}, {"jwks": "x"},
        ]
        for wrong in cases:
            reaction: Reaction = Answer(200, json.dumps({**TRUSTED, **wrong}))
            client, _ = self.proxied(lambda _r, _n: reaction)
            with self.subTest(wrong), self.assertRaises(remit.RemitError) as caught:
                client.organization("rmk_1").get_trusted_issuer("i1")
            self.assertIn("unreadable answer", str(caught.exception))
