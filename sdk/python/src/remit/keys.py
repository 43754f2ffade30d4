"""The private keys of agents: they sign client assertions (RFC 7523) and proofs (RFC 9449). Only this module needs the package
cryptography, and only when it reads, makes or uses a private key."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Mapping, Union

from . import jwk
from .credential import Credential, Sealed
from .errors import unusable
from .jwk import Refused, encoded, number, whole

KeyText = Union[str, Mapping[str, Any], Credential]  # a JWK, as text or as its members, or PEM

_LEAST_RSA, _MOST_RSA = 2048, 8192  # bits
_EXPONENT = 65537
_RSA = f"an RSA key has {_LEAST_RSA} to {_MOST_RSA} bits and the exponent {_EXPONENT}"
_SIZES = {"P-256": 32, "P-384": 48}  # bytes of a coordinate, and of each half of a signature
_NO_PACKAGE = 'a private key needs the package cryptography: pip install "remit-sdk[keys]"'


@dataclass(frozen=True)
class Key:
    """A private key. Its repr shows the public half only. Threads share it."""

    algorithm: str  # RS256, PS256, ES256, ES384 or EdDSA
    key_id: str  # the JWK's own kid, or the thumbprint of a key that was made here; empty: none
    public: Mapping[str, str]  # the members that make the thumbprint
    _sign: Callable[[bytes], bytes] = field(repr=False, compare=False)
    _private: Callable[[], Dict[str, str]] = field(repr=False, compare=False)

    @property
    def thumbprint(self) -> str:
        """The SHA-256 of the public key (RFC 7638), in base64url."""
        return jwk.thumbprint(self.public)

    @property
    def jwks(self) -> Dict[str, Any]:
        """The public key as a JWK Set, for create_agent."""
        return jwk.public_set([self._named])

    @property
    def text(self) -> Credential:
        """The private key as a JWK, to be stored where only the agent can read it."""
        return Credential(json.dumps({**self._named, **self._private()}, separators=(",", ":")).replace(" ", "\\u0020"))

    @property
    def _named(self) -> Dict[str, Any]:
        return {**self.public, "alg": self.algorithm, **({"kid": self.key_id} if self.key_id else {})}

    def _token(self, header: Mapping[str, Any], claims: Mapping[str, Any]) -> Credential:
        """Returns a JWS in its compact form (RFC 7515 §7.1)."""
        parts = ({"alg": self.algorithm, **header}, claims)
        signed = ".".join(encoded(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
        return Credential(f"{signed}.{encoded(self._sign(signed.encode()))}")


def generate_key(alg: str = "ES256") -> Key:
    """Makes a private key for ES256 or EdDSA. It exists in this process only, unless you store its text."""
    if alg not in ("ES256", "EdDSA"):
        raise ValueError("a key is made for ES256 or EdDSA")
    found = _generated(alg)
    if isinstance(found, str):
        raise unusable("key", found)
    return found


def parse_key(text: KeyText) -> Key:
    """Reads a private key: a JWK, or PEM (PKCS #8, SEC 1 or PKCS #1) without a passphrase. Raises UnusableCredential, which does not
    quote it, unless it is an RSA key of 2048 to 8192 bits, P-256, P-384 or Ed25519."""
    key = sealed(text)
    del text
    return parse(key, "key")


def public_jwks(text: KeyText) -> Dict[str, Any]:
    """Returns the JWK Set of public keys, for create_agent, of a private or public JWK, a JWK Set or PEM. PEM alone needs the package
    cryptography."""
    key = sealed(text)
    del text
    found = _published(key)
    if isinstance(found, str):
        raise unusable("key", found)
    return found


def sealed(text: Union[KeyText, Sealed]) -> Sealed:
    """Returns the bytes of a key. It raises nothing, because tools that print the variables of a traceback would print the key.
    Callers first forget their text, then parse the result."""
    try:
        if isinstance(text, Sealed):
            return text
        if isinstance(text, Credential):
            return Sealed(text.reveal().encode())
        return Sealed((json.dumps(dict(text)) if isinstance(text, Mapping) else text).encode())
    except (TypeError, ValueError, AttributeError):
        return Sealed(b"")


def held(key: Union[KeyText, Key, Sealed, None]) -> Union[Key, Sealed, None]:
    """Seals a key unless it is a Key already."""
    return key if key is None or isinstance(key, Key) else sealed(key)


def parse(key: Sealed, source: str) -> Key:
    """Like parse_key. The error names the source of the key."""
    found = _read(key)
    if isinstance(found, str):
        raise unusable(source, found)
    return found


# These three return why there is no key instead of raising it, because a traceback holds the key.


def _generated(alg: str) -> Union[Key, str]:
    try:
        crypto = _cryptography()
    except Refused as e:
        return str(e)
    if alg == "EdDSA":
        made = _key(crypto, crypto.ed25519.Ed25519PrivateKey.generate(), {})
    else:
        made = _key(crypto, crypto.ec.generate_private_key(crypto.ec.SECP256R1()), {})
    return replace(made, key_id=made.thumbprint)


def _read(key: Sealed) -> Union[Key, str]:
    try:
        crypto = _cryptography()
        text = key.open().strip()
        members = jwk.members(text) if text.startswith(b"{") else {}
        private = _of_jwk(crypto, members) if members else crypto.serialization.load_pem_private_key(text, None)
        return _key(crypto, private, members)
    except Refused as e:
        return str(e)
    except Exception:  # the package raises one of its own, too, for what its OpenSSL does not know
        return "it is neither a private JWK nor a private key in PEM without a passphrase"


def _published(key: Sealed) -> Union[Dict[str, Any], str]:
    try:
        text = key.open().strip()
        if text.startswith(b"{"):
            return jwk.public_set(jwk.each(jwk.members(text)))
        crypto = _cryptography()
        if b"PRIVATE KEY" in text:
            private = crypto.serialization.load_pem_private_key(text, None)
            return _key(crypto, private, {}).jwks
        return jwk.public_set([dict(_public(crypto, crypto.serialization.load_pem_public_key(text)))])
    except Refused as e:
        return str(e)
    except Exception:
        return "it is neither a JWK, nor a JWK Set, nor a key in PEM without a passphrase"


@dataclass(frozen=True)
class _Cryptography:
    """What this module uses of the package."""

    hashes: Any
    serialization: Any
    ec: Any
    ed25519: Any
    padding: Any
    rsa: Any
    utils: Any


def _cryptography() -> _Cryptography:
    try:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
    except ImportError:
        raise Refused(_NO_PACKAGE) from None
    return _Cryptography(hashes, serialization, ec, ed25519, padding, rsa, utils)


def _key(crypto: _Cryptography, private: Any, members: Mapping[str, Any]) -> Key:
    """Returns the key with the alg and kid of its JWK."""
    if not isinstance(
        private, (crypto.rsa.RSAPrivateKey, crypto.ec.EllipticCurvePrivateKey, crypto.ed25519.Ed25519PrivateKey)
    ):
        raise Refused("the service accepts RSA, P-256, P-384 and Ed25519 only")
    public = _public(crypto, private.public_key())
    algorithm = jwk.algorithm({**public, **{name: members[name] for name in ("alg",) if name in members}})
    sign = _signing(crypto, private, algorithm)
    return Key(algorithm, jwk.key_id(members), public, sign, lambda: _secret_half(crypto, private))


def _public(crypto: _Cryptography, public: Any) -> Dict[str, str]:
    """Returns the JWK of a public key."""
    if isinstance(public, crypto.ed25519.Ed25519PublicKey):
        raw = public.public_bytes(crypto.serialization.Encoding.Raw, crypto.serialization.PublicFormat.Raw)
        return {"crv": "Ed25519", "kty": "OKP", "x": encoded(raw)}
    numbers = public.public_numbers()
    if isinstance(public, crypto.rsa.RSAPublicKey):
        if not _LEAST_RSA <= public.key_size <= _MOST_RSA or numbers.e != _EXPONENT:
            raise Refused(_RSA)
        return {"e": whole(numbers.e), "kty": "RSA", "n": whole(numbers.n)}
    curve = {"secp256r1": "P-256", "secp384r1": "P-384"}.get(public.curve.name)
    if curve is None:
        raise Refused("the service accepts RSA, P-256, P-384 and Ed25519 only")
    return {"crv": curve, "kty": "EC", "x": whole(numbers.x, _SIZES[curve]), "y": whole(numbers.y, _SIZES[curve])}


def _of_jwk(crypto: _Cryptography, members: Mapping[str, Any]) -> Any:
    public, kind = jwk.public_half(members), jwk.kind(members)
    if not isinstance(members.get("d"), str):
        raise Refused("it is a public key")
    if kind == "Ed25519":
        private = crypto.ed25519.Ed25519PrivateKey.from_private_bytes(jwk.decoded(members["d"]))
    elif kind == "RSA":
        private = _rsa_of_jwk(crypto, members)
    else:
        curve = crypto.ec.SECP256R1() if kind == "P-256" else crypto.ec.SECP384R1()
        private = crypto.ec.derive_private_key(number(members["d"]), curve)
    if _public(crypto, private.public_key()) != public:
        raise Refused("its private half does not belong to its public half")
    return private


def _rsa_of_jwk(crypto: _Cryptography, members: Mapping[str, Any]) -> Any:
    public = crypto.rsa.RSAPublicNumbers(number(members["e"]), number(members["n"]))
    if not _LEAST_RSA <= public.n.bit_length() <= _MOST_RSA or public.e != _EXPONENT:
        raise Refused(_RSA)
    d = number(members["d"])
    if "p" in members:
        p, q = number(members["p"]), number(members["q"])
    else:
        p, q = crypto.rsa.rsa_recover_prime_factors(public.n, public.e, d)
    rest = crypto.rsa.rsa_crt_dmp1(d, p), crypto.rsa.rsa_crt_dmq1(d, q), crypto.rsa.rsa_crt_iqmp(p, q)
    return crypto.rsa.RSAPrivateNumbers(p, q, d, *rest, public).private_key()


def _secret_half(crypto: _Cryptography, private: Any) -> Dict[str, str]:
    """Returns the private members of the JWK (RFC 7518 §6.2.2 and §6.3.2, RFC 8037 §2)."""
    if isinstance(private, crypto.ed25519.Ed25519PrivateKey):
        of = crypto.serialization
        return {"d": encoded(private.private_bytes(of.Encoding.Raw, of.PrivateFormat.Raw, of.NoEncryption()))}
    numbers = private.private_numbers()
    if isinstance(private, crypto.rsa.RSAPrivateKey):
        values = {"d": numbers.d, "p": numbers.p, "q": numbers.q, "dp": numbers.dmp1, "dq": numbers.dmq1, "qi": numbers.iqmp}
        return {name: whole(value) for name, value in values.items()}
    return {"d": whole(numbers.private_value, (private.key_size + 7) // 8)}


def _signing(crypto: _Cryptography, private: Any, algorithm: str) -> Callable[[bytes], bytes]:
    """Returns the function that signs as RFC 7518 §3.3 to §3.5 and RFC 8037 §3.1 describe."""
    sha256 = crypto.hashes.SHA256()
    if algorithm == "EdDSA":
        return lambda content: bytes(private.sign(content))
    if algorithm == "RS256":
        return lambda content: bytes(private.sign(content, crypto.padding.PKCS1v15(), sha256))
    if algorithm == "PS256":
        padding = crypto.padding.PSS(crypto.padding.MGF1(sha256), sha256.digest_size)
        return lambda content: bytes(private.sign(content, padding, sha256))
    size, digest = (32, sha256) if algorithm == "ES256" else (48, crypto.hashes.SHA384())

    def ecdsa(content: bytes) -> bytes:
        r, s = crypto.utils.decode_dss_signature(private.sign(content, crypto.ec.ECDSA(digest)))
        return bytes(r.to_bytes(size, "big") + s.to_bytes(size, "big"))

    return ecdsa
