import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import test from "node:test";
import { inspect } from "node:util";
import { generateKey, Key, parseKey, publicJwks, UnusableCredential, type JWK, type PrivateKey } from "@remit/sdk";
import { isSigned } from "./jws.js";
import { failure } from "./outcome.js";

// Every kind of key in every form that tools write it in.
const ec = (namedCurve: string) => generateKeyPairSync("ec", { namedCurve }).privateKey;
const kinds: Record<string, { key: KeyObject; forms: ("pkcs8" | "sec1" | "pkcs1")[] }> = {
  ES256: { key: ec("P-256"), forms: ["pkcs8", "sec1"] },
  ES384: { key: ec("P-384"), forms: ["pkcs8", "sec1"] },
  EdDSA: { key: generateKeyPairSync("ed25519").privateKey, forms: ["pkcs8"] },
  RS256: { key: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey, forms: ["pkcs8", "pkcs1"] },
};

const pem = (key: KeyObject, type: string) => key.export({ type: type as "pkcs8", format: "pem" }) as string;
const jwk = (key: KeyObject) => key.export({ format: "jwk" }) as JWK;
const secretsOf = (key: KeyObject) => ["d", "p", "q"].flatMap((name) => (name in jwk(key) ? [String(jwk(key)[name])] : []));

for (const [algorithm, { key, forms }] of Object.entries(kinds)) {
  const texts = [...forms.map((form) => [form, pem(key, form)] as const), ["JWK", JSON.stringify(jwk(key))] as const];
  for (const [form, text] of texts) {
    test(`a private key for ${algorithm} is read from ${form}`, async () => {
      const read = await parseKey(text);
      assert.equal(read.algorithm, algorithm);
      const token = await read.sign({ typ: "JWT" }, { n: 1 });
      assert.ok(isSigned(token, key, algorithm));
      assert.ok(!isSigned(token.replace(/^./, "f"), key, algorithm));
      const { d: _, p: __, q: ___, dp: ____, dq: _____, qi: ______, ...half } = jwk(key);
      assert.deepEqual(read.jwks, { keys: [{ ...half, kid: read.thumbprint, alg: algorithm }] });
      assert.deepEqual(await publicJwks(text), read.jwks);
      assert.deepEqual(jwk(createPrivateKey({ key: JSON.parse(read.text.reveal()), format: "jwk" })), jwk(key));
      assert.equal((await parseKey(read.text)).thumbprint, read.thumbprint);
    });
  }

  test(`a public key for ${algorithm} is registered, and is no private key`, async () => {
    const half = createPublicKey(key);
    const said = await publicJwks(half.export({ type: "spki", format: "pem" }) as string);
    assert.deepEqual(said, await publicJwks(JSON.stringify(jwk(half))));
    assert.deepEqual(await publicJwks(JSON.stringify({ keys: [jwk(half), jwk(key)] })), { keys: [said.keys[0], said.keys[0]] });
    await failure(parseKey(JSON.stringify(jwk(half))), UnusableCredential);
  });

  test(`no form of a key for ${algorithm} is printed`, async () => {
    const read = await parseKey(pem(key, "pkcs8"));
    for (const secret of secretsOf(key)) {
      for (const printed of [inspect(read, { depth: Infinity, showHidden: true }), JSON.stringify(read), String(read), inspect(read.text)]) {
        assert.ok(!printed.includes(secret), printed);
      }
    }
  });
}

test("a JWK may name PS256, and itself", async () => {
  const { key } = kinds["RS256"]!;
  const read = await parseKey(JSON.stringify({ ...jwk(key), alg: "PS256", kid: "mine", use: "sig", key_ops: ["sign"] }));
  assert.deepEqual([read.algorithm, read.jwks.keys[0]?.["kid"]], ["PS256", "mine"]);
  assert.ok(isSigned(await read.sign({}, {}), key, "PS256"));
  assert.equal((await parseKey(read.text)).algorithm, "PS256");
});

test("a thumbprint is that of RFC 7638", async () => {
  const n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_" +
    "2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrd" +
    "kt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
  const { keys } = await publicJwks(JSON.stringify({ kty: "RSA", n, e: "AQAB", alg: "RS256", kid: undefined }));
  assert.equal(keys[0]?.["kid"], "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
});

test("a generated key can be stored", async () => {
  for (const algorithm of ["ES256", "EdDSA"] as const) {
    const made = await generateKey(algorithm);
    assert.ok(made instanceof Key);
    assert.equal(made.algorithm, algorithm);
    const read = await parseKey(made.text);
    assert.deepEqual(read.jwks, made.jwks);
    assert.ok(isSigned(await made.sign({}, {}), createPrivateKey({ key: JSON.parse(read.text.reveal()), format: "jwk" }), algorithm));
  }
  await assert.rejects(generateKey("RS256" as "ES256"), TypeError);
});

test("what is no private key is an UnusableCredential that does not quote it", async () => {
  const { key } = kinds["ES256"]!;
  const encrypted = key.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" }) as string;
  const wrong: [PrivateKey | unknown, RegExp][] = [
    ["", /neither a private key as a JWK nor one in PEM/],
    ["hunter2", /neither a private key as a JWK nor one in PEM/],
    ['{"secret":"hunter2"}', /it has no key/],
    ["null", /it has no key/],
    [JSON.stringify({ kty: "oct", k: "hunter2" }), /neither an RSA key/],
    [JSON.stringify({ ...jwk(ec("secp521r1")) }), /neither an RSA key/],
    [JSON.stringify({ ...jwk(key), x: undefined }), /it lacks one of crv, kty, x, y/],
    [JSON.stringify({ ...jwk(key), x: "hunter2" }), /neither a private key/],
    ["-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----", /./],
    [pem(key, "pkcs8").replace(/\n-----END.*/, ""), /it has no key in PEM/],
    [encrypted, /the key is encrypted/],
    [createPublicKey(key).export({ type: "spki", format: "pem" }) as string, /it is a public key/],
    [pem(ec("secp256k1"), "pkcs8"), /neither an RSA key/],
  ];
  for (const [given, why] of wrong) {
    const error = await failure(parseKey(given as string), UnusableCredential);
    assert.match(error.message, why, String(given));
    assert.deepEqual([error.source, error.status], ["key", 0]);
    assert.ok(!inspect(error).includes("hunter2"), inspect(error));
  }
});

test("PEM may have other blocks before the key, and lines of any length", async () => {
  const { key } = kinds["ES256"]!;
  const parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
  assert.equal((await parseKey(parameters + pem(key, "sec1"))).algorithm, "ES256");
  assert.equal((await parseKey(pem(key, "pkcs8").replace(/\n(?=[^-])/g, "\r\n  "))).algorithm, "ES256");
});
