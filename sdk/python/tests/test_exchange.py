"""How agents get tokens without a secret: by private keys and by the tokens of their workloads."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple, Type
from unittest import mock

import remit
from authority import AGENT, ISSUER, TOKEN, Authority, parts
from network import DROP, LOSE, PASS, Answer, Proxy, Reaction, Request, ServiceTest
from test_errors import visible

METADATA = "/.well-known/oauth-authorization-server"
CLIENT, ASSERTION = "client_credentials", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
WORKLOAD = "hush.hush.hush"


class ExchangeTest(ServiceTest):
    def authority(
        self, authority: Authority, react: Callable[[Request, int], Reaction] = lambda _r, _n: PASS, **options: Any
    ) -> Tuple[remit.Client, Proxy]:
        """Returns a client of the authority, whose reactions to requests that pass are the authority's."""

        def answer(request: Request, n: int) -> Reaction:
            does = react(request, n)
            if does == LOSE:
                authority(request, n)
                return DROP
            return authority(request, n) if does == PASS else does

        return self.proxied(answer, **options)

    def file(self, text: str) -> Path:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "credential"
        path.write_text(text)
        return path

    def paths(self, proxy: Proxy) -> List[str]:
        return [f"{request.method} {request.path}" for request in proxy.requests]


class PrivateKeys(ExchangeTest):
    def test_a_key_signs_an_assertion_for_the_issuer(self) -> None:
        key = remit.generate_key()
        authority = Authority(key.jwks)
        client, proxy = self.authority(authority)
        agent = client.agent(AGENT, key=key.text.reveal(), resource=["https://a.example", "urn:b"], scopes=["read", "pay"])
        self.assertEqual(list(agent.sessions()), [])
        self.assertEqual(self.paths(proxy), [f"GET {METADATA}", f"POST {TOKEN}", "GET /v1/sessions"])
        self.assertEqual(proxy.to(TOKEN)[0].headers["Content-Type"], "application/x-www-form-urlencoded")
        (form,) = authority.forms
        assertion = dict(form)["client_assertion"]
        self.assertEqual(form, [
            ("grant_type", CLIENT), ("client_id", AGENT), ("client_assertion_type", ASSERTION), ("client_assertion", assertion),
            ("scope", "read pay"), ("resource", "https://a.example"), ("resource", "urn:b"),
        ])
        header, claims = parts(assertion)
        self.assertEqual(header, {"alg": "ES256", "kid": key.thumbprint, "typ": "client-authentication+jwt"})
        self.assertEqual({**claims, "jti": "", "iat": 0, "exp": claims["exp"] - claims["iat"]}, {
            "iss": AGENT, "sub": AGENT, "aud": ISSUER, "iat": 0, "exp": 60, "jti": "",
        })

    def test_every_attempt_has_an_assertion_of_its_own(self) -> None:
        """The authority has already taken the assertion of the attempt whose answer is lost."""
        key = remit.generate_key("EdDSA")
        authority = Authority(key.jwks)
        client, proxy = self.authority(authority, lambda r, n: LOSE if r.path == TOKEN and n <= 2 else PASS)
        client.agent(AGENT, key=key).token()
        self.assertEqual(len({claims["jti"] for claims in authority.presented}), 3)
        self.assertEqual(len(proxy.to(METADATA)), 1)

    def test_a_key_refreshes_like_a_secret_and_the_issuer_is_read_once(self) -> None:
        key = remit.generate_key()
        client, proxy = self.authority(Authority(key.jwks))
        first, second = client.agent(AGENT, key=key), client.agent(AGENT, key=key)
        first.token()
        first.refresh()
        second.token()
        self.assertEqual(self.paths(proxy), [f"GET {METADATA}", f"POST {TOKEN}", "POST /v1/auth/refresh", f"POST {TOKEN}"])
        self.assertEqual(proxy.to("/v1/auth/refresh")[0].body, b'{"refresh_token":"rmr_1"}')

    def test_a_key_file_is_read_again_at_each_exchange(self) -> None:
        old, new = remit.generate_key(), remit.generate_key("EdDSA")
        authority = Authority({"keys": [*old.jwks["keys"], *new.jwks["keys"]]})
        authority.refresh = False
        client, _ = self.authority(authority)
        file = self.file(old.text.reveal() + "\n")
        agent = client.agent(AGENT, key_file=file)
        agent.token()
        file.write_text(new.text.reveal())
        agent.refresh()
        signers = [parts(dict(form)["client_assertion"])[0]["kid"] for form in authority.forms]
        self.assertEqual(signers, [old.thumbprint, new.thumbprint])

    def test_a_file_that_is_unusable_is_named_and_asked_for_again(self) -> None:
        key = remit.generate_key()
        client, proxy = self.authority(Authority(key.jwks))
        file = self.file("hush-hush")
        agent = client.agent(AGENT, key_file=str(file))  # reads nothing yet
        spoilt: List[Tuple[Callable[[], object], str]] = [
            (lambda: file.write_text("hush-hush"), "neither a private JWK"),
            (lambda: file.write_text(" \n"), "it is empty"),
            (lambda: file.write_text("hush" * (16 << 10) + "."), "it is longer than 64 KiB"),
            (file.unlink, "No such file"),
        ]
        for spoil, why in spoilt:
            spoil()
            with self.subTest(why):
                try:
                    self.fail(f"there is a token: {agent.token()}")
                except remit.UnusableCredential as error:
                    self.assertIn(why, str(error))
                    self.assertEqual(error.source, str(file))
                    self.assertNotIn("hush", visible(error).replace(str(file), ""))
        self.assertEqual(proxy.requests, [])
        file.write_text(key.text.reveal())
        self.assertTrue(agent.token())

    def test_a_key_that_the_service_does_not_know_is_unauthorized(self) -> None:
        client, proxy = self.authority(Authority(remit.generate_key().jwks))
        with self.assertRaises(remit.Unauthorized) as caught:
            client.agent(AGENT, key=remit.generate_key()).session(AGENT).charge()
        self.assertEqual((caught.exception.status, caught.exception.code), (401, "invalid_client"))
        self.assertIn("who are you?", str(caught.exception))
        self.assertEqual(len(proxy.to(TOKEN)), 1)

    def test_a_key_without_an_id_names_none(self) -> None:
        """The service tries the agent's keys then."""
        key = remit.generate_key()
        authority = Authority(key.jwks)
        bare = {name: value for name, value in json.loads(key.text.reveal()).items() if name != "kid"}
        client, _ = self.authority(authority)
        with self.assertRaises(remit.Unauthorized):  # this one does not
            client.agent(AGENT, key=bare).token()
        self.assertEqual(parts(dict(authority.forms[0])["client_assertion"])[0], {"alg": "ES256", "typ": "client-authentication+jwt"})

    def test_every_credential_is_exchanged_for_a_pair(self) -> None:
        key = remit.generate_key()
        authority = Authority(key.jwks)
        client, _ = self.authority(authority)
        pair = client.exchange(AGENT, key=key, dpop=True, timeout=30)
        self.assertEqual((pair.token_type, pair.refresh_token is not None), ("DPoP", True))
        authority.refresh = False
        pair = client.exchange(AGENT, assertion=lambda: "a.b.c", scopes=["read"])
        self.assertEqual((pair.token_type, pair.refresh_token), ("Bearer", None))

    def test_without_the_issuer_there_is_no_exchange(self) -> None:
        key = remit.generate_key()
        for said in ("{}", '{"issuer":""}', "<html>"):
            client, proxy = self.authority(Authority(key.jwks), lambda r, _n: Answer(200, said) if r.path == METADATA else PASS)
            with self.subTest(said), self.assertRaises(remit.RemitError):
                client.agent(AGENT, key=key).token()
            self.assertEqual(proxy.to(TOKEN), [])
        client, proxy = self.authority(Authority(key.jwks), lambda r, n: DROP if r.path == METADATA and n <= 2 else PASS)
        self.assertTrue(client.agent(AGENT, key=key).token())


class Workloads(ExchangeTest):
    def test_the_token_of_a_workload_is_exchanged_each_time(self) -> None:
        authority = Authority()
        authority.refresh = False
        client, proxy = self.authority(authority)
        tokens = iter(["a.b.c", "d.e.f\n"])
        agent = client.agent(AGENT, assertion=lambda: next(tokens), resource=("https://a.example",), scopes=("read",))
        agent.token()
        agent.refresh()
        self.assertEqual(self.paths(proxy), [f"POST {TOKEN}"] * 2)
        self.assertEqual(authority.forms, [
            [
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("client_id", AGENT), ("assertion", text),
                ("scope", "read"), ("resource", "https://a.example"),
            ]
            for text in ("a.b.c", "d.e.f")
        ])

    def test_a_projected_file_is_read_at_each_exchange(self) -> None:
        """Kubernetes replaces the directory that the file's link leads to."""
        authority = Authority()
        authority.refresh = False
        client, _ = self.authority(authority)
        file = self.file("a.b.c\n")
        agent = client.agent(AGENT, assertion_file=file)
        agent.token()
        new = file.with_name("new")
        new.write_text("d.e.f\n")
        os.replace(new, file)
        agent.refresh()
        self.assertEqual([dict(form)["assertion"] for form in authority.forms], ["a.b.c", "d.e.f"])

    def test_what_is_no_token_is_not_sent(self) -> None:
        client, proxy = self.authority(Authority())

        def fails() -> str:
            raise OSError(WORKLOAD)

        given: List[Tuple[Dict[str, Any], str, str]] = [
            ({"assertion": lambda: "hush"}, "assertion", "no JWT"),
            ({"assertion": lambda: ""}, "assertion", "no JWT"),
            ({"assertion": lambda: None}, "assertion", "no JWT"),
            ({"assertion": lambda: "hush.hush.hush\nhush"}, "assertion", "no JWT"),
            ({"assertion": lambda: f"{WORKLOAD}{'h' * 8192}"}, "assertion", "at most 8 KiB"),
            ({"assertion": fails}, "assertion", "OSError"),
        ]
        for text in ("hush", "", "hush.\u00fc.hush", WORKLOAD + "h" * 8192, "hush\x00.hush.hush"):
            file = self.file(text)
            given.append(({"assertion_file": file}, str(file), ""))
        for by, source, why in given:
            with self.subTest(why):
                try:
                    self.fail(f"there is a token: {client.agent(AGENT, **by).token()}")
                except remit.UnusableCredential as error:
                    self.assertIn(why, str(error))
                    self.assertEqual(error.source, source)
                    self.assertNotIn("hush", visible(error).replace(source, ""))
        self.assertEqual(proxy.requests, [])

    def test_a_refused_token_is_unauthorized(self) -> None:
        refused = Answer(400, '{"error":"invalid_grant","error_description":"words"}')
        client, proxy = self.authority(Authority(), lambda _r, _n: refused)
        with self.assertRaises(remit.Unauthorized) as caught:
            client.agent(AGENT, assertion=lambda: WORKLOAD).token()
        self.assertEqual((caught.exception.code, caught.exception.detail), ("invalid_grant", "words"))
        self.assertEqual(len(proxy.requests), 1)

    def test_a_refusal_with_the_services_own_code_has_its_type(self) -> None:
        since = datetime(2026, 2, 28, 23, 59, 59, tzinfo=timezone.utc)
        refusals: List[Tuple[int, str, str, Type[remit.RemitError], Dict[str, Any]]] = [
            (400, "unauthorized_client", '"code":"agent_suspended","suspended_at":"2026-02-28T23:59:59Z"', remit.AgentSuspended,
             {"suspended_at": since, "code": "agent_suspended"}),
            (400, "unauthorized_client", '"code":"organization_suspended"', remit.OrganizationSuspended, {}),
            (403, "temporarily_unavailable", '"code":"quota_exceeded","quota":"bytes","used":7,"max":8', remit.QuotaExceeded,
             {"quota": "bytes", "used": 7, "max": 8}),
            (400, "invalid_scope", '"code":"insufficient_scope","required_scope":"pay"', remit.InsufficientScope, {"required_scope": "pay"}),
            (400, "invalid_dpop_proof", '"code":"dpop_required"', remit.DPoPRequired, {}),
            (400, "invalid_request", '"code":"not_found"', remit.NotFound, {}),
        ]
        for status, code, cause, kind, told in refusals:
            with self.subTest(cause):
                refused = Answer(status, f'{{"error":"{code}","error_description":"words",{cause}}}')

                def refuse(_request: Request, _n: int, refused: Answer = refused) -> Reaction:
                    return refused

                client, _ = self.authority(Authority(), refuse)
                with self.assertRaises(kind) as caught:
                    client.agent(AGENT, assertion=lambda: WORKLOAD).token()
                self.assertEqual(caught.exception.detail, "words")
                self.assertEqual({name: getattr(caught.exception, name) for name in told}, told)


class Options(ExchangeTest):
    def test_a_secret_asks_for_resources_and_scopes(self) -> None:
        authority = Authority()
        client, proxy = self.authority(authority)
        client.agent(AGENT, "rms_some", resource=["urn:a", "urn:b"]).token()
        self.assertEqual(
            proxy.requests[0].body, f'{{"agent_id":"{AGENT}","secret":"rms_some","resource":["urn:a","urn:b"]}}'.encode()
        )
        client.agent(AGENT, "rms_some", resource=["urn:a"], scopes=["read"]).token()
        self.assertEqual(authority.forms, [[
            ("grant_type", CLIENT), ("client_id", AGENT), ("client_secret", "rms_some"), ("scope", "read"), ("resource", "urn:a"),
        ]])
        self.assertEqual(self.paths(proxy), ["POST /v1/auth/token", f"POST {TOKEN}"])

    def test_an_agent_has_exactly_one_credential(self) -> None:
        client = self.client_of("http://127.0.0.1:1")
        key: Any = remit.generate_key()
        wrong: List[Tuple[Dict[str, Any], str]] = [
            ({}, "secret, key, key_file, assertion or assertion_file"),
            ({"secret": "rms_some", "key": key}, "secret and key"),
            ({"key_file": "/k", "assertion_file": "/a"}, "key_file and assertion_file"),
            ({"assertion": WORKLOAD}, "assertion is a function"),
            ({"secret": "rms_some", "resource": "https://a.example"}, "resource is a list of URIs"),
            ({"secret": "rms_some", "scopes": "read"}, "scopes are a list of names"),
            ({"secret": "rms_some", "keys": key}, "unexpected keyword"),
        ]
        for options, why in wrong:
            with self.subTest(why), self.assertRaises(TypeError) as caught:
                client.agent(AGENT, **options)
            self.assertIn(why, str(caught.exception))
            self.assertNotIn("hush", str(caught.exception))

    def test_no_error_shows_a_key_or_a_token(self) -> None:
        client = self.client_of("http://127.0.0.1:1")
        takers: List[Callable[[Any], object]] = [
            lambda text: client.agent(AGENT, key=text),
            lambda text: client.agent(AGENT, "rms_some", dpop=text),
            lambda text: client.exchange(AGENT, key=text),
            lambda text: client.exchange(AGENT, "rms_some", dpop=text),
            lambda text: client.agent_with_token(text),
            lambda text: client.agent_with_token("a.b.c", dpop=text),
            lambda text: remit.parse_key(text),
            lambda text: remit.public_jwks(text),
        ]
        for take in takers:
            for text in ("hush-hush", "{\"kty\":\"hush\"}", "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----", "hush.hush.hush"):
                try:
                    self.fail(f"it is taken: {take(text)}")
                except remit.UnusableCredential as error:
                    assert error.__traceback__  # the lambda is the test's own, too
                    self.assertNotIn("hush", visible(error.with_traceback(error.__traceback__.tb_next)))
                except ValueError as error:  # a token with a line break
                    self.assertNotIn("hush", str(error))

    def test_a_resource_that_is_not_allowed_is_an_invalid_target(self) -> None:
        json_answer = '{"status":400,"code":"invalid_target","detail":"words","errors":[{"field":"resource","message":"words"}]}'
        for options, answer in (
            ({"resource": ["urn:x"]}, Answer(400, json_answer)),
            ({"resource": ["urn:x"], "scopes": ["read"]}, Answer(400, '{"error":"invalid_target","error_description":"words"}')),
        ):
            client, _ = self.authority(Authority(), lambda _r, _n: answer)
            given: Dict[str, Any] = options
            with self.subTest(options), self.assertRaises(remit.InvalidTarget) as caught:
                client.agent(AGENT, "rms_some", **given).token()
            self.assertEqual((caught.exception.status, caught.exception.detail), (400, "words"))


class FromEnvironment(ExchangeTest):
    def agent_from_env(self, client_url: str, **settings: str) -> remit.Agent:
        with mock.patch.dict(os.environ, {"REMIT_ADDR": client_url, "REMIT_AGENT": AGENT, **settings}):
            return remit.Agent.from_env()

    def test_files_resources_and_proofs_are_settings(self) -> None:
        key, bound = remit.generate_key(), remit.generate_key()
        authority = Authority(key.jwks)
        _, proxy = self.authority(authority)
        self.agent_from_env(proxy.url, REMIT_KEY_FILE=str(self.file(key.text.reveal())), REMIT_RESOURCE=" urn:a  urn:b").token()
        self.assertEqual([value for name, value in authority.forms[0] if name == "resource"], ["urn:a", "urn:b"])
        self.agent_from_env(proxy.url, REMIT_ASSERTION_FILE=str(self.file("a.b.c"))).token()
        self.assertEqual(dict(authority.forms[1])["assertion"], "a.b.c")
        for value, thumbprints in (("1", 1), (str(self.file(bound.text.reveal())), 1), ("0", 0), ("", 0)):
            agent = self.agent_from_env(proxy.url, REMIT_SECRET="rms_some", REMIT_DPOP=value)
            agent.token()
            proofs = proxy.requests[-1].headers.get_all("DPoP") or []
            self.assertEqual(len(proofs), thumbprints)
            if value.startswith("/"):
                self.assertEqual(parts(proofs[0])[0]["jwk"], dict(bound.public))

    def test_two_credentials_are_an_error_that_names_them(self) -> None:
        with self.assertRaises(ValueError) as caught:
            self.agent_from_env("http://127.0.0.1:1", REMIT_SECRET="rms_some", REMIT_KEY_FILE="/k")
        self.assertEqual(str(caught.exception), "set only one of REMIT_SECRET, REMIT_KEY_FILE")
        with mock.patch.dict(os.environ, {"REMIT_ADDR": "http://127.0.0.1:1"}), self.assertRaises(ValueError) as caught:
            remit.Agent.from_env()
        self.assertEqual(
            str(caught.exception),
            "set REMIT_AGENT, REMIT_SECRET (or REMIT_KEY_FILE or REMIT_ASSERTION_FILE instead of REMIT_SECRET)",
        )
        with mock.patch.dict(os.environ, {"REMIT_KEY_FILE": "/k"}), self.assertRaises(ValueError) as caught:
            remit.Session.from_env()
        self.assertEqual(str(caught.exception), "set REMIT_AGENT, REMIT_SESSION")
        with self.assertRaises(remit.UnusableCredential):
            self.agent_from_env("http://127.0.0.1:1", REMIT_SECRET="rms_some", REMIT_DPOP="/nowhere")
