// Public keys as JSON Web Keys.

import { base64url } from "./base64.js";
import { array, object, type Answer } from "./json.js";
import { webCrypto } from "./platform.js";

/** A JSON Web Key (RFC 7517). */
export type JWK = { readonly [member: string]: unknown };

/** A set of JSON Web Keys. */
export interface JWKS {
  readonly keys: readonly JWK[];
}

/** The members of a public key by its type, in the order of RFC 7638 §3.2, and those that a private key has besides. */
export const members: Readonly<Record<string, readonly [readonly string[], readonly string[]]>> = {
  EC: [["crv", "kty", "x", "y"], ["d"]],
  OKP: [["crv", "kty", "x"], ["d"]],
  RSA: [["e", "kty", "n"], ["d", "p", "q", "dp", "dq", "qi"]],
};

/** The public part of a key. */
export interface Public {
  readonly jwk: JWK; // with the members that it must have, and no other
  readonly thumbprint: string; // RFC 7638, with SHA-256
}

/** Returns the algorithm that a key is for. Throws unless it is of a type that this SDK knows. */
export function algorithmOf(jwk: JWK): string {
  if (typeof jwk !== "object" || jwk === null || typeof jwk["kty"] !== "string") {
    throw new Error("it has no key");
  }
  switch (`${jwk["kty"]} ${String(jwk["crv"] ?? "")}`.trim()) {
    case "EC P-256":
      return "ES256";
    case "EC P-384":
      return "ES384";
    case "OKP Ed25519":
      return "EdDSA";
    case "RSA":
      return jwk["alg"] === "PS256" ? "PS256" : "RS256";
    default:
      throw new Error("it is neither an RSA key, nor one on P-256, P-384 or Ed25519");
  }
}

/** Returns the public part of a private or public key. */
export async function publicOf(jwk: JWK): Promise<Public> {
  algorithmOf(jwk);
  const [names] = members[jwk["kty"] as string]!;
  if (!names.every((name) => typeof jwk[name] === "string")) {
    throw new Error(`it lacks one of ${names.join(", ")}`);
  }
  const plain: JWK = Object.fromEntries(names.map((name) => [name, jwk[name]]));
  return { jwk: plain, thumbprint: await sha256(JSON.stringify(plain)) };
}

/** Returns the name that a key gives itself. */
export function idOf(jwk: JWK): string | undefined {
  return typeof jwk["kid"] === "string" && jwk["kid"] !== "" ? jwk["kid"] : undefined;
}

/** Returns a public key as it is registered. */
export function registered({ jwk, thumbprint }: Public, algorithm: string, id: string | undefined): JWK {
  return { ...jwk, kid: id ?? thumbprint, alg: algorithm };
}

/** Reads a set of public keys of a response. */
export function jwksFrom(from: Answer, name: string): JWKS {
  return { keys: array(object(from[name])["keys"], object) };
}

/** Returns the hash of a text in base64url. */
export async function sha256(text: string): Promise<string> {
  const { subtle } = await webCrypto();
  return base64url(new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(text))));
}
