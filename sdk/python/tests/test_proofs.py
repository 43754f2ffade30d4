"""Proofs of possession (RFC 9449)."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any, List

import remit
from authority import AGENT, TOKEN, Authority, packed, parts
from network import DROP, LOSE, PASS, Answer, Reaction, Request, refusal
from test_exchange import ExchangeTest

ACTIONS = f"/v1/sessions/{AGENT}/actions"


class Proofs(ExchangeTest):
    def test_every_request_of_a_bound_agent_proves_its_key(self) -> None:
        for binding in (True, remit.generate_key(), remit.generate_key("EdDSA").text.reveal(), remit.generate_key().text):
            given: Any = binding
            authority = Authority()
            client, proxy = self.authority(authority)
            agent = client.agent(AGENT, "rms_some", dpop=given)
            self.assertEqual(list(agent.sessions(status="active")), [])
            agent.refresh()
            self.assertEqual(list(agent.sessions()), [])
            token = agent.token().reveal()
            self.assertEqual([r.headers["Authorization"] for r in proxy.to("/v1/sessions")][1], "DPoP " + token)
            self.assertEqual(
                [(claims["htm"], claims["htu"], "ath" in claims) for claims in authority.proofs],
                [
                    ("POST", proxy.url + "/v1/auth/token", False), ("GET", proxy.url + "/v1/sessions", True),
                    ("POST", proxy.url + "/v1/auth/refresh", False), ("GET", proxy.url + "/v1/sessions", True),
                ],
            )
            self.assertEqual(len({parts(r.headers["DPoP"])[0]["jwk"]["x"] for r in proxy.requests}), 1)

    def test_every_grant_may_be_bound(self) -> None:
        key = remit.generate_key()
        client, proxy = self.authority(Authority(key.jwks))
        for agent in (client.agent(AGENT, key=key, dpop=True), client.agent(AGENT, assertion=lambda: "a.b.c", dpop=key)):
            self.assertEqual(list(agent.sessions()), [])
        self.assertTrue(all("DPoP" in r.headers for r in proxy.to(TOKEN) + proxy.to("/v1/sessions")))

    def test_a_nonce_is_learned_and_a_demand_for_it_answered_once(self) -> None:
        authority = Authority()
        authority.nonce = "first"
        client, proxy = self.authority(authority, max_attempts=1)
        agent = client.agent(AGENT, "rms_some", dpop=True)
        self.assertEqual(list(agent.sessions()), [])
        self.assertEqual([claims.get("nonce") for claims in authority.proofs], [None, "first", "first"])
        authority.nonce = "second"
        self.assertEqual(list(agent.sessions()), [])
        self.assertEqual(list(agent.sessions()), [])
        self.assertEqual([claims["nonce"] for claims in authority.proofs[3:]], ["first", "second", "second"])
        self.assertEqual(len({claims["jti"] for claims in authority.proofs}), 6)
        client.agent(AGENT, assertion=lambda: "a.b.c", dpop=True).token()
        self.assertEqual(len(proxy.to(TOKEN)), 2)

    def test_a_demand_in_the_challenge_alone_is_answered_too(self) -> None:
        """As a proxy sends it that replaces the bodies of errors."""
        challenge = 'Bearer realm="x", DPoP algs="ES256", error="use_dpop_nonce"'

        def react(request: Request, n: int) -> Reaction:
            if request.path != "/v1/sessions" or n > 1:
                return PASS
            return Answer(401, "<html>", {"WWW-Authenticate": challenge, "DPoP-Nonce": "fresh"})

        authority = Authority()
        client, _ = self.authority(authority, react, max_attempts=1)
        self.assertEqual(list(client.agent(AGENT, "rms_some", dpop=True).sessions()), [])
        self.assertEqual(authority.proofs[-1]["nonce"], "fresh")

    def test_a_second_demand_is_a_refusal(self) -> None:
        for nonce in ("always new", ""):
            headers = {"DPoP-Nonce": nonce.replace(" ", "-")} if nonce else {}
            demand = Answer(401, refusal(401, "use_dpop_nonce").body, headers)
            client, proxy = self.authority(Authority(), lambda r, _n: demand if r.path == "/v1/sessions" else PASS)
            with self.subTest(nonce), self.assertRaises(remit.InvalidProof) as caught:
                list(client.agent(AGENT, "rms_some", dpop=True).sessions())
            self.assertEqual((caught.exception.status, caught.exception.code), (401, "use_dpop_nonce"))
            self.assertEqual(len(proxy.to("/v1/sessions")), 2 if nonce else 1)

    def test_every_retry_has_a_proof_of_its_own(self) -> None:
        """The authority has already taken the proof of the attempt whose answer is lost."""
        usage = '{"action_count":1,"max_actions":2,"value_used_usd":0,"max_value_usd":1,"value_held_usd":0,"remaining_actions":1,' \
            '"remaining_value_usd":1,"expires_at":"2026-11-21T09:19:32Z"}'

        def react(request: Request, n: int) -> Reaction:
            if request.path == ACTIONS:
                return (LOSE, refusal(503, "unavailable"), DROP)[n - 1] if n <= 3 else Answer(200, usage)
            return PASS

        client, proxy = self.authority(Authority(), react)
        client.agent(AGENT, "rms_some", dpop=True).session(AGENT).charge()
        sent = proxy.to(ACTIONS)
        self.assertEqual(len(sent), 4)
        self.assertEqual(len({parts(r.headers["DPoP"])[1]["jti"] for r in sent}), 4)
        self.assertEqual(len({r.headers["Idempotency-Key"] for r in sent}), 1)

    def test_a_refused_token_is_replaced_with_a_proof_for_the_new_one(self) -> None:
        client, proxy = self.authority(
            Authority(), lambda r, n: refusal(401, "invalid_token") if r.path == "/v1/sessions" and n == 1 else PASS
        )
        self.assertEqual(list(client.agent(AGENT, "rms_some", dpop=True).sessions()), [])
        hashes = [parts(r.headers["DPoP"])[1]["ath"] for r in proxy.to("/v1/sessions")]
        self.assertEqual(len(set(hashes)), 2)

    def test_a_token_that_is_not_bound_is_not_used(self) -> None:
        """A service of the version before ignores the proof, and its token would be good for a thief."""
        pair = '{"access_token":"a.b.c","refresh_token":"r","token_type":"bearer","expires_in":3600}'
        client, proxy = self.proxied(lambda _r, _n: Answer(200, pair))
        with self.assertRaises(remit.RemitError) as caught:
            list(client.agent(AGENT, "rms_some", dpop=True).sessions())
        self.assertIn("not bound", str(caught.exception))
        self.assertEqual(proxy.to("/v1/sessions"), [])

    def test_an_invalid_proof_tells_how_far_the_clocks_differ(self) -> None:
        for ahead, text in (
            (185, "this machine's clock is 3m[2-5]s behind the service's"),
            (-40, "this machine's clock is 4[0-3]s ahead of the service's"), (0, "words"), (None, "words"),
        ):
            date = {} if ahead is None else {"Date": formatdate(time.time() + ahead, usegmt=True)}
            for path, answer in (
                ("/v1/auth/token", Answer(400, refusal(400, "invalid_dpop_proof").body, date)),
                (TOKEN, Answer(400, '{"error":"invalid_dpop_proof","error_description":"words"}', date)),
                ("/v1/sessions", Answer(401, refusal(401, "invalid_dpop_proof").body, date)),
            ):
                client, _ = self.authority(Authority(), lambda r, _n: answer if r.path == path else PASS)
                with self.subTest(path), self.assertRaises(remit.InvalidProof) as caught:
                    list(client.agent(AGENT, "rms_some", scopes=["read"] if path == TOKEN else [], dpop=True).sessions())
                self.assertAlmostEqual(caught.exception.clock_skew, -(ahead or 0), delta=3)
                self.assertRegex(str(caught.exception), text)
                self.assertEqual("this machine's clock" in str(caught.exception), text != "words")

    def test_an_agent_that_must_prove_its_key_is_told_so(self) -> None:
        answers: List[Answer] = [
            refusal(401, "dpop_required"), refusal(400, "invalid_dpop_proof"), Answer(400, '{"error":"invalid_dpop_proof"}'),
        ]
        for answer in answers:
            client, _ = self.authority(Authority(), lambda _r, _n: answer)
            scopes = ["read"] if "code" not in answer.body else []
            with self.subTest(answer.body), self.assertRaises(remit.DPoPRequired) as caught:
                client.agent(AGENT, "rms_some", scopes=scopes).token()
            self.assertIn("set dpop", str(caught.exception))
            self.assertNotIsInstance(caught.exception, remit.InvalidProof)

    def test_an_agent_proves_requests_to_other_servers(self) -> None:
        client, _ = self.authority(Authority())
        key = remit.generate_key()
        agent = client.agent(AGENT, "rms_some", dpop=key)
        headers = agent.prove("POST", "https://mcp.example.com/a?b=c#d")
        again = agent.prove("POST", "https://mcp.example.com/a?b=c#d")
        token = agent.token().reveal()
        self.assertEqual(headers["Authorization"], "DPoP " + token)
        claims = parts(headers["DPoP"])[1]
        self.assertEqual((claims["htm"], claims["htu"]), ("POST", "https://mcp.example.com/a"))
        self.assertNotEqual(headers["DPoP"], again["DPoP"])
        bearer = client.agent(AGENT, "rms_some")
        self.assertEqual(bearer.prove("GET", "https://x.example/"), {"Authorization": "Bearer " + bearer.token().reveal()})


class OneToken(ExchangeTest):
    def test_a_token_alone_acts_until_it_is_refused(self) -> None:
        plain = f"{packed(b'{}')}.{packed(b'{' + f'{chr(34)}sub{chr(34)}:{chr(34)}{AGENT}{chr(34)}'.encode() + b'}')}.x"
        client, proxy = self.authority(Authority())
        agent = client.agent_with_token(plain)
        self.assertEqual((agent.id, agent.token().reveal(), list(agent.sessions())), (AGENT, plain, []))
        with self.assertRaises(remit.Unauthorized) as caught:
            agent.refresh()
        self.assertIn("cannot be renewed", str(caught.exception))
        client, proxy = self.authority(Authority(), lambda _r, _n: refusal(401, "invalid_token"))
        with self.assertRaises(remit.Unauthorized) as caught:
            list(client.agent_with_token(plain).sessions())
        self.assertEqual((caught.exception.status, len(proxy.requests)), (401, 1))

    def test_a_bound_token_needs_its_key(self) -> None:
        key = remit.generate_key()
        client, proxy = self.authority(Authority())
        bound = client.agent(AGENT, "rms_some", dpop=key).token()
        plain = client.agent(AGENT, "rms_some").token()
        self.assertEqual(list(client.agent_with_token(bound, dpop=key).sessions()), [])
        for token, binding, why in (
            (bound, None, "pass the key"), (bound, remit.generate_key(), "not bound to the key"), (plain, key, "not bound to the key"),
            ("hush-hush", None, "no access token"), ("hush.hush.hush", None, "no access token"),
        ):
            given: Any = token
            with self.subTest(why), self.assertRaises(remit.UnusableCredential) as caught:
                client.agent_with_token(given, dpop=binding)
            self.assertIn(why, str(caught.exception))
            self.assertNotIn("hush", str(caught.exception))


class Delegation(ExchangeTest):
    def test_a_token_is_delegated_to_a_child_session(self) -> None:
        for binding in (None, remit.generate_key()):
            authority = Authority()
            client, proxy = self.authority(authority, lambda r, n: LOSE if r.path == TOKEN and n == 1 else PASS)
            agent = client.agent(AGENT, "rms_some", dpop=binding)
            got = agent.delegate("s2", scopes=["read"], resource=["urn:a"])
            self.assertEqual((got.scopes, got.session_id, got.agent_id, got.expires_in), (("read",), "s2", AGENT, 3600))
            self.assertEqual(got.token_type, "Bearer" if binding is None else "DPoP")
            self.assertEqual(authority.forms, [[
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"), ("subject_token", agent.token().reveal()),
                ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"), ("session_id", "s2"),
                ("scope", "read"), ("resource", "urn:a"),
            ]] * 2)
            self.assertTrue(all("Authorization" not in r.headers for r in proxy.to(TOKEN)))
            self.assertEqual(["DPoP" in r.headers for r in proxy.to(TOKEN)], [binding is not None] * 2)
            self.assertEqual(list(client.agent_with_token(got.access_token, dpop=binding).sessions()), [])

    def test_a_delegated_token_delegates_further(self) -> None:
        authority = Authority()
        client, _ = self.authority(authority)
        first = client.agent(AGENT, "rms_some").delegate("s2")
        second = client.agent_with_token(first.access_token).delegate("s3")
        self.assertEqual(dict(authority.forms[1])["subject_token"], first.access_token.reveal())
        self.assertEqual(second.session_id, "s3")

    def test_a_revoked_token_is_replaced_before_a_delegation_fails(self) -> None:
        """The service calls it an invalid request, as it does other mistakes."""
        for helps in (True, False):
            wrong = Answer(400, '{"error":"invalid_request","error_description":"words"}')
            authority = Authority()
            client, proxy = self.authority(
                authority, lambda r, n: wrong if r.path == TOKEN and (n == 1 or not helps) else PASS
            )
            agent = client.agent(AGENT, "rms_some")
            before = agent.token().reveal()
            if helps:
                self.assertEqual(agent.delegate("s2").session_id, "s2")
                self.assertNotEqual(dict(authority.forms[0])["subject_token"], before)
            else:
                with self.assertRaises(remit.RemitError) as caught:
                    agent.delegate("s2")
                self.assertEqual(caught.exception.code, "invalid_request")
            self.assertEqual((len(proxy.to(TOKEN)), len(proxy.to("/v1/auth/refresh"))), (2, 1))

    def test_refusals_of_delegation_have_types(self) -> None:
        answer = Answer(400, '{"error":"invalid_request","error_description":"the session is no child"}')
        client, _ = self.authority(Authority(), lambda r, _n: answer if r.path == TOKEN else PASS)
        with self.assertRaises(remit.RemitError) as caught:
            client.agent(AGENT, "rms_some").delegate("s2")
        self.assertEqual((caught.exception.code, caught.exception.detail), ("invalid_request", "the session is no child"))
        client, _ = self.authority(Authority(), lambda r, _n: refusal(403, "delegated_token") if r.path == ACTIONS else PASS)
        with self.assertRaises(remit.DelegatedTokenRefused):
            client.agent(AGENT, "rms_some").session(AGENT).charge()
