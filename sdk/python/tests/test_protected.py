"""Verifying the tokens that others present, and servers that do it for each request."""

from __future__ import annotations

import json
import unittest
from typing import Any, Callable, Dict, List, Optional, Tuple
from wsgiref.util import setup_testing_defaults

import remit
from network import LOSE, PASS, Answer, Reaction, Request, ServiceTest, refusal

VERIFY = "/v1/auth/verify"
RESOURCE = "https://tools.example.com/mcp"
METADATA = "/.well-known/oauth-protected-resource/mcp"
CONFIRMED = Answer(200, "", {"X-Agent-Id": "a1", "X-Org-Id": "o1", "X-Scopes": "read pay", "X-Actor-Id": "a2", "X-Cnf-Jkt": "t"})


TOOLS = remit.ProtectedResource(
    RESOURCE, ["https://remit.example.com"], scopes=["read"], name="Tools", documentation="https://tools.example.com/docs"
)


class Verification(ServiceTest):
    def test_an_audience_and_a_scope_are_asked_for(self) -> None:
        client, proxy = self.proxied(lambda _r, _n: CONFIRMED)
        verified = client.verify("a.b.c", "read", audience=RESOURCE)
        self.assertEqual(verified, remit.Verified("a1", "o1", ("read", "pay"), "a2", "t"))
        (request,) = proxy.requests
        self.assertEqual(request.query, "scope=read&audience=https%3A%2F%2Ftools.example.com%2Fmcp")
        self.assertEqual((request.headers["Authorization"], request.headers["DPoP"]), ("Bearer a.b.c", None))
        plain = Answer(200, "", {"X-Agent-Id": "a1", "X-Org-Id": "o1"})
        client, proxy = self.proxied(lambda _r, _n: plain)
        self.assertEqual(client.verify("a.b.c", scope="read"), remit.Verified("a1", "o1", (), None, None))

    def test_a_proof_is_verified_for_the_request_that_it_came_with(self) -> None:
        client, proxy = self.proxied(lambda _r, _n: CONFIRMED)
        client.verify("a.b.c", audience=RESOURCE, proof="d.e.f", method="POST", url=RESOURCE + "/x?y=1#z")
        client.verify("a.b.c", proof="d.e.f", method="GET", url="http://127.0.0.1:1")
        first, second = ({name: r.headers[name] for name in r.headers if name.startswith(("X-", "Auth", "DPoP"))} for r in proxy.requests)
        self.assertEqual(first, {
            "Authorization": "DPoP a.b.c", "DPoP": "d.e.f", "X-Forwarded-Method": "POST", "X-Forwarded-Proto": "https",
            "X-Forwarded-Host": "tools.example.com", "X-Forwarded-Uri": "/mcp/x?y=1",
        })
        self.assertEqual((second["X-Forwarded-Host"], second["X-Forwarded-Uri"]), ("127.0.0.1:1", "/"))
        for method, url in ((None, RESOURCE), ("GET", None), ("GET", "/mcp"), ("GET", "ftp://x/")):
            given: Any = {"method": method, "url": url}
            with self.subTest(given), self.assertRaises(ValueError):
                client.verify("a.b.c", proof="d.e.f", **given)

    def test_a_proof_is_not_sent_twice(self) -> None:
        """The service would take the second for a replay, and the request that carried the proof for stolen."""
        client, proxy = self.proxied(lambda _r, _n: LOSE)
        with self.assertRaises(remit.OutcomeUnknown):
            client.verify("a.b.c", proof="d.e.f", method="GET", url=RESOURCE)
        self.assertEqual(len(proxy.requests), 1)
        client, proxy = self.proxied(lambda _r, n: refusal(503, "unavailable") if n == 1 else CONFIRMED)
        client.verify("a.b.c", proof="d.e.f", method="GET", url=RESOURCE)
        client, proxy = self.proxied(lambda _r, _n: refusal(401, "invalid_dpop_proof"))
        with self.assertRaises(remit.InvalidProof):
            client.verify("a.b.c", proof="d.e.f", method="GET", url=RESOURCE)

    def test_a_token_of_another_audience_is_unauthorized(self) -> None:
        client, _ = self.proxied(lambda _r, _n: refusal(401, "invalid_token"))
        with self.assertRaises(remit.Unauthorized):
            client.verify("a.b.c", audience=RESOURCE)


class Documents(unittest.TestCase):
    def test_the_document_names_what_is_known(self) -> None:
        algorithms = ["ES256", "ES384", "EdDSA", "RS256", "PS256"]
        self.assertEqual(TOOLS.metadata(), {
            "resource": RESOURCE, "authorization_servers": ["https://remit.example.com"], "scopes_supported": ["read"],
            "bearer_methods_supported": ["header"], "dpop_signing_alg_values_supported": algorithms, "resource_name": "Tools",
            "resource_documentation": "https://tools.example.com/docs",
        })
        self.assertEqual(remit.ProtectedResource(RESOURCE).metadata(), {
            "resource": RESOURCE, "bearer_methods_supported": ["header"], "dpop_signing_alg_values_supported": algorithms,
        })

    def test_the_document_is_between_host_and_path(self) -> None:
        for resource, url in (
            (RESOURCE, "https://tools.example.com" + METADATA),
            ("https://tools.example.com", "https://tools.example.com/.well-known/oauth-protected-resource"),
            ("https://tools.example.com/", "https://tools.example.com/.well-known/oauth-protected-resource"),
            ("https://tools.example.com:8443/a/b/", "https://tools.example.com:8443/.well-known/oauth-protected-resource/a/b"),
        ):
            self.assertEqual(remit.ProtectedResource(resource).metadata_url, url)

    def test_a_challenge_names_the_document_and_the_error(self) -> None:
        scope, proof = remit.InsufficientScope(), remit.InvalidProof()
        scope.required_scope, proof.code = "pay", "use_dpop_nonce"
        where = f'resource_metadata="https://tools.example.com{METADATA}"'
        for error, want in (
            (None, f"Bearer {where}"),
            (remit.Unauthorized(), f'Bearer error="invalid_token", {where}'),
            (scope, f'Bearer error="insufficient_scope", scope="pay", {where}'),
            (proof, f'DPoP error="use_dpop_nonce", algs="ES256 ES384 EdDSA RS256 PS256", {where}'),
        ):
            self.assertEqual(TOOLS.challenge(error), want)


class Wsgi(ServiceTest):
    """A WSGI application behind the guard. The proxy answers for the service."""

    def call(self, reaction: Reaction, **environ: str) -> Tuple[str, Dict[str, str], bytes]:
        """Returns status, headers and body of a response, and keeps what reached the application and the service."""
        client, self.proxy = self.proxied(lambda _r, _n: reaction, max_attempts=1)
        self.reached: List[remit.Verified] = []
        answers: List[Tuple[str, List[Tuple[str, str]]]] = []

        def application(environ: Dict[str, Any], start_response: Callable[..., Any]) -> List[bytes]:
            self.reached.append(environ["remit.verified"])
            start_response("200 OK", [])
            return [b"the tools"]

        setup_testing_defaults(environ)
        given: Dict[str, Any] = {"PATH_INFO": "/mcp", **environ}
        body = b"".join(TOOLS.wsgi(client, application)(given, lambda status, headers: answers.append((status, headers))))
        ((status, headers),) = answers
        return status, dict(headers), body

    def test_the_document_needs_no_token(self) -> None:
        status, headers, body = self.call(CONFIRMED, PATH_INFO=METADATA)
        self.assertEqual((status, headers["Content-Type"]), ("200 OK", "application/json"))
        self.assertEqual(json.loads(body), TOOLS.metadata())
        status, headers, body = self.call(CONFIRMED, PATH_INFO=METADATA, REQUEST_METHOD="HEAD")
        self.assertEqual((body, int(headers["Content-Length"]) > 0, self.reached), (b"", True, []))

    def test_a_token_for_this_resource_reaches_the_application(self) -> None:
        self.assertEqual(self.call(CONFIRMED, HTTP_AUTHORIZATION="bearer a.b.c")[2], b"the tools")
        self.assertEqual((self.reached[0].agent_id, self.proxy.requests[0].query), ("a1", "audience=https%3A%2F%2Ftools.example.com%2Fmcp"))

    def test_a_proof_is_for_the_resources_own_host(self) -> None:
        """A server that replays a proof it has seen sends that server's name as Host."""
        self.call(
            CONFIRMED, HTTP_AUTHORIZATION="DPoP a.b.c", HTTP_DPOP="d.e.f", HTTP_HOST="evil.example", REQUEST_METHOD="POST",
            SCRIPT_NAME="/mcp", PATH_INFO="/caf\u00c3\u00a9 au lait", QUERY_STRING="x=%20",
        )
        headers = self.proxy.requests[0].headers
        self.assertEqual(
            [headers[f"X-Forwarded-{name}"] for name in ("Method", "Proto", "Host", "Uri")],
            ["POST", "https", "tools.example.com", "/mcp/caf%C3%A9%20au%20lait?x=%20"],
        )
        self.assertEqual((headers["Authorization"], headers["DPoP"], len(self.reached)), ("DPoP a.b.c", "d.e.f", 1))

    def test_others_are_refused_with_a_challenge(self) -> None:
        bearer, where = {"HTTP_AUTHORIZATION": "Bearer a.b.c"}, f'resource_metadata="https://tools.example.com{METADATA}"'
        bound = {"HTTP_AUTHORIZATION": "DPoP a.b.c", "HTTP_DPOP": "d.e.f"}
        cases: List[Tuple[Dict[str, str], Reaction, str, Optional[str], int]] = [
            ({}, CONFIRMED, "401 Unauthorized", f"Bearer {where}", 0),
            ({"HTTP_AUTHORIZATION": "Basic eDp5"}, CONFIRMED, "401 Unauthorized", f"Bearer {where}", 0),
            ({"HTTP_AUTHORIZATION": "DPoP a.b.c"}, CONFIRMED, "401 Unauthorized", f"Bearer {where}", 0),
            ({"HTTP_AUTHORIZATION": "Bearer two tokens here"}, CONFIRMED, "401 Unauthorized", f'Bearer error="invalid_token", {where}', 0),
            (bearer, refusal(401, "invalid_token"), "401 Unauthorized", f'Bearer error="invalid_token", {where}', 1),
            (
                bearer, refusal(403, "insufficient_scope", required_scope="pay"), "403 Forbidden",
                f'Bearer error="insufficient_scope", scope="pay", {where}', 1,
            ),
            (
                bound, refusal(401, "invalid_dpop_proof"), "401 Unauthorized",
                f'DPoP error="invalid_dpop_proof", algs="ES256 ES384 EdDSA RS256 PS256", {where}', 1,
            ),
            (bearer, refusal(503, "unavailable"), "503 Service Unavailable", None, 1),
            (bound, LOSE, "503 Service Unavailable", None, 1),
            (bearer, Answer(200, "", {"X-Agent-Id": "a1"}), "503 Service Unavailable", None, 1),
        ]
        for environ, reaction, status, challenge, sent in cases:
            with self.subTest(environ=environ, status=status):
                got, headers, body = self.call(reaction, **environ)
                self.assertEqual((got, headers.get("WWW-Authenticate")), (status, challenge))
                self.assertEqual((self.reached, len(self.proxy.requests), int(headers["Content-Length"])), ([], sent, len(body)))
                self.assertEqual("Retry-After" in headers, status.startswith("503"))
