from __future__ import annotations

import contextlib
import json
import re
import sys
import unittest
from typing import Any, Callable, Dict, Iterator, List, Tuple
from unittest import mock

import remit
from authority import AGENT, Authority, packed, verified
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from network import ServiceTest
from remit.keys import parse_key
from test_errors import visible

PEM, TRADITIONAL, PKCS8 = (
    serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.PrivateFormat.PKCS8
)
RSA = rsa.generate_private_key(65537, 2048)
# RFC 8037 appendix A: a key, its thumbprint, and a JWS of it.
ED25519 = {
    "kty": "OKP", "crv": "Ed25519", "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
}


def text_of(private: Any, form: Any = PKCS8, secret: bytes = b"") -> str:
    sealing = serialization.BestAvailableEncryption(secret) if secret else serialization.NoEncryption()
    found: str = private.private_bytes(PEM, form, sealing).decode()
    return found


@contextlib.contextmanager
def without_cryptography() -> Iterator[None]:
    """Makes every import of the package fail, as on a machine that does not have it."""
    missing: Dict[str, Any] = {name: None for name in sys.modules if name.split(".")[0] == "cryptography"}
    with mock.patch.dict(sys.modules, {**missing, "cryptography": None}):
        yield


class Keys(unittest.TestCase):
    def test_signatures_and_thumbprints_are_those_of_the_rfcs(self) -> None:
        key = remit.parse_key(ED25519)
        self.assertEqual(key.thumbprint, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")  # RFC 8037 appendix A.3
        signed = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"  # and A.4
        self.assertEqual(
            packed(key._sign(signed)),
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        )
        example = {  # RFC 7638 §3.1
            "kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhM"
            "stn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n9"
            "1CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        }
        named = remit.public_jwks({**example, "kid": ""})["keys"][0]
        self.assertEqual(named["kid"], "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
        self.assertEqual(remit.public_jwks(example)["keys"][0]["kid"], "2011-04-29")

    def test_every_kind_of_key_signs_and_is_written_and_read_again(self) -> None:
        kinds: List[Tuple[str, str]] = [
            ("RS256", text_of(RSA)),
            ("RS256", text_of(RSA, TRADITIONAL)),
            ("ES256", text_of(ec.generate_private_key(ec.SECP256R1()))),
            ("ES256", text_of(ec.generate_private_key(ec.SECP256R1()), TRADITIONAL)),
            ("ES384", text_of(ec.generate_private_key(ec.SECP384R1()))),
            ("EdDSA", text_of(ed25519.Ed25519PrivateKey.generate())),
            ("ES256", remit.generate_key().text.reveal()),
            ("EdDSA", remit.generate_key("EdDSA").text.reveal()),
        ]
        for algorithm, text in kinds:
            for _ in range(16):  # numbers with leading zeros are of the same length
                key = remit.parse_key(text)
                again = remit.parse_key(key.text)
                (public,) = key.jwks["keys"]
                for signer in (key, again):
                    header, claims = verified(signer._token({"typ": "x"}, {"n": 1}).reveal(), public)
                    self.assertEqual((header, claims), ({"alg": algorithm, "typ": "x"}, {"n": 1}))
                self.assertEqual(again.jwks, key.jwks)
                self.assertEqual(remit.public_jwks(text), key.jwks)
                self.assertEqual((public["kid"], public["alg"]), (key.thumbprint, algorithm))
                if algorithm.startswith("RS"):
                    break
                text = remit.generate_key(algorithm).text.reveal() if algorithm != "ES384" else text

    def test_an_rsa_jwk_needs_no_primes_and_chooses_its_algorithm(self) -> None:
        whole = json.loads(parse_key(text_of(RSA)).text.reveal())
        bare = {name: whole[name] for name in ("kty", "n", "e", "d")}
        self.assertEqual(remit.parse_key(bare).thumbprint, parse_key(text_of(RSA)).thumbprint)
        key = remit.parse_key({**bare, "alg": "PS256", "kid": "mine"})
        self.assertEqual(verified(key._token({}, {}).reveal(), key.public)[0], {"alg": "PS256"})
        self.assertEqual((key.jwks["keys"][0]["kid"], key.jwks["keys"][0]["alg"]), ("mine", "PS256"))

    def test_public_keys_come_of_sets_and_pem_and_lose_their_private_half(self) -> None:
        own = json.loads(remit.generate_key().text.reveal())
        public_pem = RSA.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
        both = remit.public_jwks({"keys": [own, ED25519]})["keys"]
        self.assertEqual([key["alg"] for key in both], ["ES256", "EdDSA"])
        self.assertEqual(remit.public_jwks(public_pem), remit.public_jwks(text_of(RSA)))
        for key in [*both, *remit.public_jwks(text_of(RSA))["keys"]]:
            self.assertFalse(set(key) & {"d", "p", "q", "dp", "dq", "qi"})

    def test_keys_that_the_service_refuses_are_refused_here(self) -> None:
        other = json.loads(remit.generate_key().text.reveal())
        weak = text_of(rsa.generate_private_key(65537, 1024))
        for text, why in (
            ("", "neither a private JWK nor"),
            ("hush-hush", "neither a private JWK nor"),
            ("{", "neither a private JWK nor"),
            (None, "neither a private JWK nor"),
            (text_of(RSA, secret=b"hush"), "without a passphrase"),
            (weak, "2048 to 8192 bits"),
            (text_of(rsa.generate_private_key(3, 2048)), "the exponent 65537"),
            (text_of(ec.generate_private_key(ec.SECP256K1())), "RSA, P-256, P-384 and Ed25519 only"),
            ({**other, "crv": "P-521"}, "RSA, P-256, P-384 and Ed25519 only"),
            ({"kty": "oct", "k": "hush-hush"}, "RSA, P-256, P-384 and Ed25519 only"),
            ({**other, "alg": "HS256"}, "its alg is not ES256"),
            ({**other, "kid": 7}, "its kid is no text"),
            ({**other, "d": json.loads(remit.generate_key().text.reveal())["d"]}, "does not belong to its public half"),
            ({**other, "d": "?"}, "not base64url"),
            ({name: value for name, value in other.items() if name != "d"}, "it is a public key"),
            ({name: value for name, value in other.items() if name != "y"}, "lacks members of a public key"),
        ):
            given: Any = text
            with self.subTest(why):
                try:
                    self.fail(f"it is a key: {remit.parse_key(given)}")
                except remit.UnusableCredential as error:
                    self.assertIn(why, str(error))
                    self.assertEqual(error.source, "key")
                    self.assertNotRegex(visible(error), "hush-hush|BEGIN|" + re.escape(other["d"]))
        for malformed in ("hush-hush", "[]", '{"keys": []}', '{"keys": ["hush"]}'):
            with self.subTest(malformed), self.assertRaises(remit.UnusableCredential):
                remit.public_jwks(malformed)
        with self.assertRaises(ValueError):
            remit.generate_key("RS256")

    def test_nothing_shows_a_private_key(self) -> None:
        key = remit.generate_key()
        d = json.loads(key.text.reveal())["d"]
        for shown in (repr(key), str(key), f"{key}", repr(key.text), repr(vars(key)), repr([key])):
            self.assertNotIn(d, shown)


class WithoutThePackage(ServiceTest):
    def test_keys_say_what_to_install(self) -> None:
        key = remit.generate_key().text.reveal()
        takers: List[Callable[[], object]] = [
            remit.generate_key,
            lambda: remit.parse_key(key),
            lambda: remit.public_jwks(text_of(RSA)),
            lambda: self.client.agent(AGENT, key=key),
            lambda: self.client.agent(AGENT, "rms_some", dpop=True),
            lambda: self.client.agent(AGENT, "rms_some", dpop=key),
        ]
        for take in takers:
            with without_cryptography(), self.assertRaises(remit.UnusableCredential) as caught:
                take()
            self.assertIn('pip install "remit-sdk[keys]"', str(caught.exception))

    def test_everything_else_works(self) -> None:
        key = remit.generate_key()
        with without_cryptography():
            self.assertEqual(remit.public_jwks(key.text.reveal()), key.jwks)
            session = self.new_session()
            session.charge()
            client, proxy = self.proxied(Authority())
            client.agent(AGENT, assertion=lambda: "a.b.c").token()
            self.assertEqual(len(proxy.requests), 1)
