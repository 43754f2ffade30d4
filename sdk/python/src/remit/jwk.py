"""JSON Web Keys (RFC 7517), without any cryptography: their members, their public halves and their thumbprints."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any, Dict, List, Mapping, Tuple

# The members of a public key by its type, which are those of its thumbprint (RFC 7638 §3.2).
_PUBLIC = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}
# The algorithms that the service accepts, by curve or type. The first is the one of a key that names none.
_ALGORITHMS = {"P-256": ("ES256",), "P-384": ("ES384",), "Ed25519": ("EdDSA",), "RSA": ("RS256", "PS256")}
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")


class Refused(Exception):
    """Why a key is unusable. It never leaves the SDK, because its frames hold the key."""


def encoded(content: bytes) -> str:
    """Returns base64url without padding (RFC 7515 §2)."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    if not _BASE64URL.fullmatch(text):
        raise Refused("a member of the key is not base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def whole(number: int, size: int = 0) -> str:
    """Returns a number in big-endian bytes: of the given size, or as few as it needs."""
    return encoded(number.to_bytes(size or (number.bit_length() + 7) // 8, "big"))


def number(text: str) -> int:
    return int.from_bytes(decoded(text), "big")


def members(text: bytes) -> Dict[str, Any]:
    """Parses a JSON object."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise Refused("it is no JSON object")
    return value


def kind(public: Mapping[str, Any]) -> str:
    """Returns the curve, or RSA."""
    found = public.get("crv") if public.get("kty") in ("EC", "OKP") else public.get("kty")
    if found not in _ALGORITHMS:
        raise Refused("the service accepts RSA, P-256, P-384 and Ed25519 only")
    return str(found)


def algorithm(public: Mapping[str, Any]) -> str:
    """Returns what a key signs with: its own alg, or the first of its kind."""
    possible = _ALGORITHMS[kind(public)]
    own = public.get("alg")
    if own is not None and own not in possible:
        raise Refused(f"its alg is not {' or '.join(possible)}")
    return own or possible[0]


def key_id(public: Mapping[str, Any]) -> str:
    """Returns a key's own kid; empty: none."""
    own = public.get("kid", "")
    if not isinstance(own, str):
        raise Refused("its kid is no text")
    return own


def public_half(of: Mapping[str, Any]) -> Dict[str, str]:
    """Returns the members of a key that make its thumbprint."""
    kind(of)
    half = {name: of.get(name) for name in _PUBLIC[of["kty"]]}
    if not all(isinstance(value, str) for value in half.values()):
        raise Refused("it lacks members of a public key")
    return {name: str(value) for name, value in half.items()}


def thumbprint(public: Mapping[str, str]) -> str:
    """Returns the SHA-256 of a key with no members but those of the thumbprint (RFC 7638 §3)."""
    return encoded(hashlib.sha256(json.dumps(dict(public), separators=(",", ":"), sort_keys=True).encode()).digest())


def public_set(keys: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Returns a JWK Set of the public halves of keys. Each has a kid and an alg."""
    return {"keys": [_published(key) for key in keys]}


def _published(key: Mapping[str, Any]) -> Dict[str, str]:
    public = public_half(key)
    return {**public, "kid": key_id(key) or thumbprint(public), "alg": algorithm(key)}


def each(value: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """Returns the keys of a JWK Set, or the one key."""
    keys: Tuple[Any, ...] = tuple(value["keys"]) if "keys" in value else (value,)
    if not keys or not all(isinstance(key, dict) for key in keys):
        raise Refused("it is no JWK Set")
    return [dict(key) for key in keys]
