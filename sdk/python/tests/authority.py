"""An authorization server that believes nothing: it verifies assertions and proofs by the RFCs, each once, and demands its nonce."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

from network import Answer, Request, refusal

ISSUER = "https://remit.example.com"
AGENT = "01a1ffac-a9a1-7dc1-aa48-a64bee9cc8b2"
TOKEN = "/oauth2/token"


def unpacked(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


def packed(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def parts(token: str) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Returns header and claims of a JWT, without a look at its signature."""
    header, claims, _ = token.split(".")
    return json.loads(unpacked(header)), json.loads(unpacked(claims))


def verified(token: str, key: Mapping[str, str]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Returns header and claims of a JWT that the public key verifies. Raises InvalidSignature."""
    header, claims = parts(token)
    signed, signature = token.rpartition(".")[0].encode(), unpacked(token.rpartition(".")[2])
    algorithm = header["alg"]
    if algorithm == "EdDSA":
        ed25519.Ed25519PublicKey.from_public_bytes(unpacked(key["x"])).verify(signature, signed)
    elif algorithm in ("ES256", "ES384"):
        curve, size, digest = (
            (ec.SECP256R1(), 32, hashes.SHA256()) if algorithm == "ES256" else (ec.SECP384R1(), 48, hashes.SHA384())
        )
        assert len(signature) == 2 * size and (key["crv"], key["kty"]) == (f"P-{8 * size}", "EC")
        der = utils.encode_dss_signature(*(int.from_bytes(half, "big") for half in (signature[:size], signature[size:])))
        point = ec.EllipticCurvePublicNumbers(number(key["x"]), number(key["y"]), curve)
        point.public_key().verify(der, signed, ec.ECDSA(digest))
    else:
        public = rsa.RSAPublicNumbers(number(key["e"]), number(key["n"])).public_key()
        scheme = padding.PKCS1v15() if algorithm == "RS256" else padding.PSS(padding.MGF1(hashes.SHA256()), 32)
        assert algorithm in ("RS256", "PS256")
        public.verify(signature, signed, scheme, hashes.SHA256())
    return header, claims


def number(text: str) -> int:
    return int.from_bytes(unpacked(text), "big")


def thumbprint(key: Mapping[str, str]) -> str:
    return packed(hashlib.sha256(json.dumps(dict(key), separators=(",", ":"), sort_keys=True).encode()).digest())


class Authority:
    """Reacts to requests at a Proxy. It answers those for tokens and for sessions; each other passes through."""

    def __init__(self, jwks: Optional[Mapping[str, Any]] = None) -> None:
        self.keys = {key["kid"]: key for key in (jwks or {"keys": []})["keys"]}
        self.forms: List[List[Tuple[str, str]]] = []
        self.presented: List[Dict[str, Any]] = []  # the claims of each assertion
        self.proofs: List[Dict[str, Any]] = []  # the claims of each proof
        self.nonce = ""  # that proofs must have; empty: none
        self.refresh = True
        self.issued = 0  # tokens
        self._seen: Set[str] = set()

    def __call__(self, request: Request, nth: int) -> Answer:
        wrong = self.wrong_proof(request)
        token_endpoint = request.path == TOKEN or request.path.startswith("/v1/auth/")
        headers = {"DPoP-Nonce": self.nonce} if self.nonce and "DPoP" in request.headers else {}
        if wrong and request.path == TOKEN:
            return Answer(400, json.dumps({"error": wrong, "error_description": "words"}), headers)
        if wrong:
            answer = refusal(400 if token_endpoint else 401, wrong)
            return Answer(answer.status, answer.body, headers)
        if request.path == "/.well-known/oauth-authorization-server":
            return Answer(200, json.dumps({"issuer": ISSUER, "token_endpoint": ISSUER + TOKEN}))
        if request.path == TOKEN:
            answer = self.granted(request, parse_qsl(request.body.decode(), strict_parsing=True))
        elif request.path.startswith("/v1/auth/"):
            answer = self.issue(request, "")
        elif not self.authorized(request):
            answer = refusal(401, "invalid_token")
        else:
            answer = Answer(200, "[]")
        return Answer(answer.status, answer.body, headers)

    def granted(self, request: Request, form: List[Tuple[str, str]]) -> Answer:
        self.forms.append(form)
        said = dict(form)
        if said["grant_type"] == "client_credentials" and "client_assertion" in said:
            if not self.believes(said["client_assertion"]):
                return Answer(401, '{"error":"invalid_client","error_description":"who are you?"}')
        return self.issue(request, said.get("scope", "read pay"))

    def believes(self, assertion: str) -> bool:
        header, _ = parts(assertion)
        if header.get("kid") not in self.keys:
            return False
        _, claims = verified(assertion, self.keys[header["kid"]])
        self.presented.append(claims)
        now = time.time()
        fits = claims["iss"] == claims["sub"] == AGENT and claims["aud"] == ISSUER and now < claims["exp"] <= now + 600
        return fits and header["typ"] == "client-authentication+jwt" and self.first(claims["jti"])

    def issue(self, request: Request, scope: str) -> Answer:
        bound = "DPoP" in request.headers
        self.issued += 1
        claims = {"sub": AGENT, "n": self.issued, **({"cnf": {"jkt": self.bound_to(request)}} if bound else {})}
        token = f"{packed(b'{}')}.{packed(json.dumps(claims).encode())}.{packed(b'signature')}"
        said = {"access_token": token, "token_type": "DPoP" if bound else "Bearer", "expires_in": 3600, "scope": scope}
        return Answer(200, json.dumps({**said, **({"refresh_token": f"rmr_{self.issued}"} if self.refresh else {})}))

    def authorized(self, request: Request) -> bool:
        scheme, _, token = request.headers["Authorization"].partition(" ")
        bound_to = parts(token)[1].get("cnf", {}).get("jkt")
        if bound_to is None:
            return scheme == "Bearer" and "DPoP" not in request.headers
        ath = packed(hashlib.sha256(token.encode()).digest())
        return scheme == "DPoP" and bound_to == self.bound_to(request) and self.proofs[-1].get("ath") == ath

    def bound_to(self, request: Request) -> str:
        return thumbprint(parts(request.headers["DPoP"])[0]["jwk"])

    def wrong_proof(self, request: Request) -> str:
        """Returns the error of a proof (RFC 9449 §4.3); empty: none, or there is no proof."""
        if "DPoP" not in request.headers:
            return ""
        (proof,) = request.headers.get_all("DPoP")
        header, claims = verified(proof, parts(proof)[0]["jwk"])
        self.proofs.append(claims)
        url = f"http://{request.headers['Host']}{request.path}"
        if header["typ"] != "dpop+jwt" or (claims["htm"], claims["htu"]) != (request.method, url):
            return "invalid_dpop_proof"
        if {"d", "p", "q", "kid"} & set(header["jwk"]) or abs(time.time() - claims["iat"]) > 30 or not self.first(claims["jti"]):
            return "invalid_dpop_proof"
        return "use_dpop_nonce" if self.nonce and claims.get("nonce") != self.nonce else ""

    def first(self, jti: str) -> bool:
        """Returns whether it is the first time that this id comes."""
        again = jti in self._seen
        self._seen.add(jti)
        return not again and len(jti) >= 22
