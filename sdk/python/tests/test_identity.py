"""What an organization says of who its agents are: their keys, their audiences, and the platforms that vouch for them."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Tuple

import remit
from network import Answer, Reaction, Request, ServiceTest, refusal
from test_requests import AGENT, MOMENT

KEYS: Dict[str, Any] = {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}
RULE = remit.TrustRule("a1", {"sub": "repo:acme/agent:*"})
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

    def test_agents_have_keys_audiences_and_no_secret(self) -> None:
        calls: List[Tuple[Callable[[remit.Organization], object], str]] = [
            (
                lambda o: o.create_agent(
                    "scout", secret=False, jwks=KEYS, audiences=["https://a.example", "urn:b"], dpop_required=True
                ),
                '{"name":"scout","scopes":[],"secret":false,"jwks":%s,"audiences":["https://a.example","urn:b"],"dpop_required":true}'
                % json.dumps(KEYS, separators=(",", ":")),
            ),
            (lambda o: o.create_agent("scout", jwks_uri="https://a.example/keys", audiences=()),
             '{"name":"scout","scopes":[],"jwks_uri":"https://a.example/keys","audiences":[]}'),
            (lambda o: o.create_agent("scout"), '{"name":"scout","scopes":[]}'),
            (lambda o: o.update_agent("a1", jwks=remit.REMOVE, jwks_uri=remit.REMOVE, audiences=remit.REMOVE, dpop_required=False),
             '{"dpop_required":false,"jwks":null,"jwks_uri":null,"audiences":null}'),
            (lambda o: o.update_agent("a1", jwks_uri="https://a.example/keys", audiences=[]),
             '{"jwks_uri":"https://a.example/keys","audiences":[]}'),
        ]
        for call, body in calls:
            request, _ = self.sent(AGENT, call)
            with self.subTest(body):
                self.assertEqual(request.body.decode(), body)
        wrong: List[Callable[[remit.Organization], object]] = [
            lambda o: o.create_agent("scout", audiences="urn:a"), lambda o: o.update_agent("a1", audiences="urn:a"),
        ]
        for one in wrong:
            with self.assertRaises(TypeError):
                one(self.client.organization("rmk_1"))

    def test_what_the_service_says_of_an_agent_is_read(self) -> None:
        _, got = self.sent(AGENT, lambda o: o.get_agent("a1"))
        assert isinstance(got, remit.AgentInfo)
        self.assertEqual((got.audiences, got.jwks, got.jwks_uri, got.dpop_required, got.has_secret), (None, None, "", False, True))
        told = {**AGENT, "audiences": [], "jwks": KEYS, "jwks_uri": "https://k", "dpop_required": True, "has_secret": False}
        _, got = self.sent(told, lambda o: o.get_agent("a1"))
        assert isinstance(got, remit.AgentInfo)
        self.assertEqual((got.audiences, got.jwks, got.jwks_uri, got.dpop_required, got.has_secret), ((), KEYS, "https://k", True, False))

    def test_what_a_token_is_good_for_is_read(self) -> None:
        said = {"active": True, "agent_id": "a1", "org_id": "o1", "scope": "read", "exp": 1763716772, "aud": "urn:a"}
        _, got = self.sent(said, lambda o: o.introspect("a.b.c"))
        assert isinstance(got, remit.Introspection)
        self.assertEqual((got.audience, got.thumbprint, got.session_id, got.actors), (("urn:a",), "", "", ()))
        said.update(aud=["urn:a", "urn:b"], cnf={"jkt": "t"}, session_id="s1", act={"sub": "a2", "act": {"sub": "a3"}})
        _, got = self.sent(said, lambda o: o.introspect("a.b.c"))
        assert isinstance(got, remit.Introspection)
        self.assertEqual((got.audience, got.thumbprint, got.session_id, got.actors), (("urn:a", "urn:b"), "t", "s1", ("a2", "a3")))
        _, got = self.sent({"active": False}, lambda o: o.introspect("a.b.c"))
        assert isinstance(got, remit.Introspection)
        self.assertEqual((got.active, got.audience, got.actors), (False, (), ()))

    def test_trusted_issuers_are_created_read_changed_and_deleted(self) -> None:
        rules = '"rules":[{"agent_id":"a1","claims":{"sub":"repo:acme/agent:*"}}]'
        create: Callable[[remit.Organization], object] = lambda o: o.create_trusted_issuer(
            "https://ci.example.com", [RULE], jwks_uri="https://ci.example.com/keys", description="CI"
        )
        calls: List[Tuple[Callable[[remit.Organization], object], str, str, bool, Any]] = [
            (create, "POST /v1/trusted-issuers",
             '{"issuer":"https://ci.example.com",%s,"jwks_uri":"https://ci.example.com/keys","description":"CI"}' % rules, True, TRUSTED),
            (lambda o: o.get_trusted_issuer("i1"), "GET /v1/trusted-issuers/i1", "", False, TRUSTED),
            (lambda o: o.trusted_issuers(), "GET /v1/trusted-issuers", "", False, [TRUSTED]),
            (lambda o: o.update_trusted_issuer("i1", rules=(RULE,), jwks=KEYS, description=""), "PATCH /v1/trusted-issuers/i1",
             '{%s,"jwks":%s,"description":""}' % (rules, json.dumps(KEYS, separators=(",", ":"))), False, TRUSTED),
            (lambda o: o.delete_trusted_issuer("i1"), "DELETE /v1/trusted-issuers/i1", "", False, {"deleted": True}),
        ]
        for call, place, body, keyed, said in calls:
            request, got = self.sent(said, call)
            with self.subTest(place):
                self.assertEqual((f"{request.method} {request.path}", request.body.decode()), (place, body))
                self.assertEqual(len(request.headers["Idempotency-Key"] or "") >= 32, keyed)
                infos = got if isinstance(got, list) else [got] if got else []
                for info in infos:
                    self.assertEqual((info.issuer, info.jwks_uri, info.jwks, info.rules, info.description), (
                        "https://ci.example.com", "https://ci.example.com/keys", None, (RULE,), "CI",
                    ))

    def test_a_lost_deletion_is_a_deletion(self) -> None:
        client, proxy = self.proxied(lambda _r, n: Answer(503, "<html>") if n == 1 else refusal(404, "not_found"))
        client.organization("rmk_1").delete_trusted_issuer("i1")
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
