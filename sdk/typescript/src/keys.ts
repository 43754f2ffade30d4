// Private keys: with one an agent authenticates, or proves that its tokens are its own.

import { base64url } from "./base64.js";
import { Credential, reveal } from "./credential.js";
import { UnusableCredential } from "./errors.js";
import { algorithmOf, idOf, members, publicOf, registered, type JWK, type JWKS, type Public } from "./jwk.js";
import { fromPem, isPem } from "./pem.js";
import { webCrypto } from "./platform.js";

/** A key of WebCrypto, which may be non-extractable. */
export interface PlatformKey {
  readonly type: string;
  readonly extractable: boolean;
  readonly algorithm: { readonly name: string };
}

/** Both halves of a key of WebCrypto. */
export interface PlatformKeyPair {
  readonly privateKey: PlatformKey;
  readonly publicKey: PlatformKey;
}

/** A private key: a JWK or PEM (PKCS #8, SEC 1, PKCS #1) as text, a JWK as an object, keys of WebCrypto, or a Key. */
export type PrivateKey = string | Credential | JWK | PlatformKey | PlatformKeyPair | Key;

type Import = RsaHashedImportParams | EcKeyImportParams | AlgorithmIdentifier;
type Signing = EcdsaParams | RsaPssParams | AlgorithmIdentifier;

/** For each algorithm of RFC 7518 and RFC 8037 what WebCrypto calls it. */
const algorithms: Readonly<Record<string, { readonly imports: Import; readonly signs: Signing }>> = {
  ES256: { imports: { name: "ECDSA", namedCurve: "P-256" }, signs: { name: "ECDSA", hash: "SHA-256" } },
  ES384: { imports: { name: "ECDSA", namedCurve: "P-384" }, signs: { name: "ECDSA", hash: "SHA-384" } },
  EdDSA: { imports: { name: "Ed25519" }, signs: { name: "Ed25519" } },
  RS256: { imports: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }, signs: { name: "RSASSA-PKCS1-v1_5" } },
  PS256: { imports: { name: "RSA-PSS", hash: "SHA-256" }, signs: { name: "RSA-PSS", saltLength: 32 } },
};

/** A private key. It prints without its secret part. */
export class Key {
  /** ES256, ES384, EdDSA, RS256 or PS256. */
  readonly algorithm: string;
  readonly #signing: PlatformKey;
  readonly #public: Public | undefined; // undefined: a private key of WebCrypto alone
  readonly #id: string | undefined;
  readonly #text: string | undefined; // undefined: not extractable

  /** @internal */
  constructor(algorithm: string, signing: PlatformKey, known: Public | undefined, id?: string, text?: string) {
    this.algorithm = algorithm;
    this.#signing = signing;
    this.#public = known;
    this.#id = id;
    this.#text = text;
  }

  /** The thumbprint of the public key (RFC 7638), with which tokens are bound to it. */
  get thumbprint(): string {
    return this.#known.thumbprint;
  }

  /** The public key as a set of one, to register with an agent. */
  get jwks(): JWKS {
    return { keys: [registered(this.#known, this.algorithm, this.#id)] };
  }

  /** The private key as a JWK. Throws TypeError if WebCrypto does not let it out. */
  get text(): Credential {
    if (this.#text === undefined) {
      throw new TypeError("remit: this key cannot be exported");
    }
    return new Credential(this.#text);
  }

  /** The name that the key has, or its thumbprint if it was made here. The service may know the others under any name. @internal */
  get id(): string | undefined {
    return this.#id;
  }

  /** The public key as proofs carry it. @internal */
  get publicJwk(): JWK {
    return this.#known.jwk;
  }

  /** Returns a JWT of these claims. @internal */
  async sign(header: JWK, claims: JWK): Promise<string> {
    const input = `${segment({ alg: this.algorithm, ...header })}.${segment(claims)}`;
    const { subtle } = await webCrypto();
    const signs = algorithms[this.algorithm]!.signs;
    const signature = await subtle.sign(signs, this.#signing as CryptoKey, new TextEncoder().encode(input));
    return `${input}.${base64url(new Uint8Array(signature))}`;
  }

  get #known(): Public {
    if (this.#public === undefined) {
      throw new UnusableCredential("key", "it is a private key of WebCrypto alone: pass the pair of both keys");
    }
    return this.#public;
  }
}

/** Makes a new key. `text` stores it, `parseKey` reads it again. */
export async function generateKey(algorithm: "ES256" | "EdDSA" = "ES256"): Promise<Key> {
  return generated(algorithm, true);
}

/** Makes a non-extractable key. */
export function generateOwnKey(): Promise<Key> {
  return generated("ES256", false);
}

async function generated(algorithm: string, extractable: boolean): Promise<Key> {
  if (algorithm !== "ES256" && algorithm !== "EdDSA") {
    throw new TypeError("remit: generateKey makes ES256 and EdDSA keys");
  }
  const { subtle } = await webCrypto();
  const pair = (await subtle.generateKey(algorithms[algorithm]!.imports as EcKeyGenParams, extractable, ["sign", "verify"])) as CryptoKeyPair;
  if (!extractable) {
    return fromPlatform(pair.privateKey, pair.publicKey);
  }
  const jwk = named(await subtle.exportKey("jwk", pair.privateKey) as JWK);
  return fromJwk({ ...jwk, kid: (await publicOf(jwk)).thumbprint });
}

/** Reads a private key from a JWK or from PEM. Throws UnusableCredential. */
export async function parseKey(text: string | Credential): Promise<Key> {
  return keyOf(text, "key");
}

/** Reads a private key of any form. The source is for the error. @internal */
export async function keyOf(given: PrivateKey, source: string): Promise<Key> {
  checkKey(given, source);
  try {
    if (given instanceof Key) {
      return given;
    }
    if (typeof given === "string" || given instanceof Credential) {
      const text = reveal(given);
      return await (isPem(text) ? fromPrivatePem(text) : fromJwk(JSON.parse(text) as JWK));
    }
    if ("privateKey" in given) {
      return await fromPlatform(given.privateKey as CryptoKey, given.publicKey as CryptoKey);
    }
    return await ("kty" in given ? fromJwk(given as JWK) : fromPlatform(given as unknown as CryptoKey));
  } catch (error) {
    throw unusable(source, error);
  }
}

/** Throws UnusableCredential for what is no private key at first sight, which needs no WebCrypto. @internal */
export function checkKey(given: PrivateKey, source: string): void {
  try {
    if (typeof given === "string" || given instanceof Credential) {
      const text = reveal(given);
      isPem(text) ? fromPem(text) : algorithmOf(JSON.parse(text) as JWK);
    } else if (typeof given !== "object" || given === null) {
      throw new Error("it is no private key");
    } else if ("kty" in given) {
      algorithmOf(given as JWK);
    }
  } catch (error) {
    throw unusable(source, error);
  }
}

/** Returns the public keys of a private or public JWK, of a set of them, or of PEM, as an agent registers them. Throws UnusableCredential. */
export async function publicJwks(text: string | Credential): Promise<JWKS> {
  try {
    const said = reveal(text);
    const given = isPem(said) ? await publicOfPem(said) : (JSON.parse(said) as JWK);
    const all = Array.isArray(given["keys"]) ? (given["keys"] as JWK[]) : [given];
    const read = async (jwk: JWK) => registered(await publicOf(jwk), algorithmOf(jwk), idOf(jwk));
    return { keys: await Promise.all(all.map(read)) };
  } catch (error) {
    throw unusable("key", error);
  }
}

// unusable names what is wrong with a key. Errors of JSON.parse and WebCrypto are left out: they may quote it.
function unusable(source: string, error: unknown): UnusableCredential {
  if (error instanceof UnusableCredential) {
    return error;
  }
  const plain = error instanceof Error && error.constructor === Error;
  return new UnusableCredential(source, plain ? error.message : "it is neither a private key as a JWK nor one in PEM");
}

async function fromPrivatePem(text: string): Promise<Key> {
  const { format, der, algorithm } = fromPem(text);
  if (format === "spki") {
    throw new Error("it is a public key");
  }
  const { subtle } = await webCrypto();
  const key = await subtle.importKey(format, der, algorithm, true, ["sign"]);
  return fromJwk(named(await subtle.exportKey("jwk", key) as JWK));
}

async function publicOfPem(text: string): Promise<JWK> {
  const { format, der, algorithm } = fromPem(text);
  const { subtle } = await webCrypto();
  const key = await subtle.importKey(format, der, algorithm, true, [format === "spki" ? "verify" : "sign"]);
  return named(await subtle.exportKey("jwk", key) as JWK);
}

// named returns a key that WebCrypto exports without the members that only WebCrypto reads. Old versions write other names of
// algorithms there.
function named({ alg: _, key_ops: __, ext: ___, ...key }: JWK): JWK {
  return key;
}

async function fromJwk(jwk: JWK): Promise<Key> {
  const algorithm = algorithmOf(jwk);
  if (typeof jwk["d"] !== "string") {
    throw new Error("it is a public key");
  }
  const [, secret] = members[jwk["kty"] as string]!;
  const known = await publicOf(jwk);
  const whole = { ...known.jwk, ...Object.fromEntries(secret.map((name) => [name, jwk[name]])) };
  const { subtle } = await webCrypto();
  const signing = await subtle.importKey("jwk", whole as JsonWebKey, algorithms[algorithm]!.imports, false, ["sign"]);
  const id = idOf(jwk);
  return new Key(algorithm, signing, known, id, JSON.stringify({ ...whole, alg: algorithm, ...(id === undefined ? {} : { kid: id }) }));
}

// fromPlatform takes keys of WebCrypto as they are.
async function fromPlatform(signing: CryptoKey, verifying?: CryptoKey): Promise<Key> {
  const { name, namedCurve, hash } = signing.algorithm as { name: string; namedCurve?: string; hash?: { name: string } };
  const found = Object.entries(algorithms).find(([, { imports }]) => {
    const { name: wanted, namedCurve: curve, hash: digest } = imports as EcKeyImportParams & RsaHashedImportParams;
    return wanted === name && curve === namedCurve && (hash === undefined || hash.name === digest);
  });
  if (signing.type !== "private" || !signing.usages.includes("sign") || found === undefined) {
    throw new Error("it is not a private key of WebCrypto that signs with ES256, ES384, EdDSA, RS256 or PS256");
  }
  const { subtle } = await webCrypto();
  const exported = verifying ?? (signing.extractable ? signing : undefined);
  const known = exported && (await publicOf(await subtle.exportKey("jwk", exported) as JWK));
  return new Key(found[0], signing, known);
}

function segment(part: JWK): string {
  return base64url(new TextEncoder().encode(JSON.stringify(part)));
}
