"""Servers that take Remit's access tokens, such as MCP servers: their metadata (RFC 9728), their challenges, and a guard for WSGI."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple
from urllib.parse import quote, urlsplit

from .credential import NONE, Credential, credential
from .errors import InsufficientScope, InvalidProof, RemitError, Unauthorized

if TYPE_CHECKING:
    from .client import Client
    from .verification import Verified

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_ALGORITHMS = ["ES256", "ES384", "EdDSA", "RS256", "PS256"]  # of proofs

# A WSGI application (PEP 3333).
Environ = Dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class ProtectedResource:
    """A server of yours that takes the service's access tokens. Clients ask for tokens with the resource exactly as it is here."""

    resource: str  # the server's own URL, such as https://tools.example.com/mcp
    authorization_servers: Sequence[str] = ()  # the service's issuer
    scopes: Sequence[str] = ()  # that it uses; empty: not told
    name: str = ""  # for people
    documentation: str = ""  # a URL

    def metadata(self) -> Dict[str, Any]:
        """Returns the document that metadata_url serves."""
        told: Dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "scopes_supported": list(self.scopes),
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": _ALGORITHMS,
            "resource_name": self.name,
            "resource_documentation": self.documentation,
        }
        return {name: value for name, value in told.items() if value}

    @property
    def metadata_url(self) -> str:
        """Where clients look for the document: between host and path of the resource (RFC 9728 §3.1)."""
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{_WELL_KNOWN}{parts.path.rstrip('/')}"

    def challenge(self, error: Optional[RemitError] = None) -> str:
        """Returns the WWW-Authenticate of a response with 401 or 403. The error is that of verify; None: there was no token."""
        told = ""
        if isinstance(error, InsufficientScope):
            told = f'error="insufficient_scope", scope="{error.required_scope}", '
        elif isinstance(error, InvalidProof):
            told = f'error="{error.code}", algs="{" ".join(_ALGORITHMS)}", '
        elif error is not None:
            told = 'error="invalid_token", '
        scheme = "DPoP" if isinstance(error, InvalidProof) else "Bearer"
        return f'{scheme} {told}resource_metadata="{self.metadata_url}"'

    def wsgi(self, client: Client, application: Application) -> Application:
        """Returns a WSGI application that serves the document, and passes to yours only requests with a token for this resource
        that the service confirms: environ["remit.verified"] says whose it is. For requests with proofs, this server must be among
        the service's trusted proxies."""

        def guarded(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
            path = _path(environ)
            if path == urlsplit(self.metadata_url).path and environ["REQUEST_METHOD"] in ("GET", "HEAD"):
                headers = [("Content-Type", "application/json"), ("Cache-Control", "public, max-age=3600")]
                return _answer(environ, start_response, "200 OK", headers, json.dumps(self.metadata()))
            try:
                environ["remit.verified"] = self._verify(client, environ, path)
            except RemitError as error:
                status, headers, text = self._refusal(error)
            else:
                return application(environ, start_response)
            return _answer(environ, start_response, status, [("Content-Type", "text/plain"), *headers], text)

        return guarded

    def _verify(self, client: Client, environ: Environ, path: str) -> Verified:
        scheme, token = _presented(environ)
        if scheme == "bearer":
            return client.verify(token, audience=self.resource)
        if scheme != "dpop" or not environ.get("HTTP_DPOP"):
            raise _NoToken()
        parts, query = urlsplit(self.resource), environ.get("QUERY_STRING")
        url = f"{parts.scheme}://{parts.netloc}{path}" + (f"?{query}" if query else "")
        proof = _wellformed(credential(environ["HTTP_DPOP"]))
        return client.verify(token, audience=self.resource, proof=proof, method=environ["REQUEST_METHOD"], url=url)

    def _refusal(self, error: RemitError) -> Tuple[str, List[Tuple[str, str]], str]:
        if isinstance(error, _NoToken):
            return "401 Unauthorized", [("WWW-Authenticate", self.challenge())], "an access token is needed"
        if isinstance(error, InsufficientScope):
            return "403 Forbidden", [("WWW-Authenticate", self.challenge(error))], "the access token lacks a scope"
        if isinstance(error, Unauthorized):
            return "401 Unauthorized", [("WWW-Authenticate", self.challenge(error))], "the access token is not valid here"
        return "503 Service Unavailable", [("Retry-After", "1")], "the access token cannot be checked now"


class _NoToken(RemitError):
    """The request has no access token."""


def _presented(environ: Environ) -> Tuple[str, Credential]:
    """Returns the scheme of a request's credential, in lower case, and the credential."""
    scheme, _, text = environ.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
    token = credential(text)
    del text
    if scheme.lower() not in ("bearer", "dpop"):
        raise _NoToken()
    return scheme.lower(), _wellformed(token)


def _wellformed(given: Credential) -> Credential:
    if given is NONE:
        raise Unauthorized("the token or its proof is malformed")
    return given


def _path(environ: Environ) -> str:
    """Returns the path of a request as its client sees it."""
    return quote((environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1"), safe="/;=,:@!$&'()*+~") or "/"


def _answer(
    environ: Environ, start_response: Callable[..., Any], status: str, headers: List[Tuple[str, str]], text: str
) -> Iterable[bytes]:
    body = text.encode()
    start_response(status, [*headers, ("Content-Length", str(len(body)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
