// Verifies what the SDK signs, with Node's own cryptography.
import { constants, createPublicKey, verify, type KeyObject } from "node:crypto";

/** Reports whether a key has made this token, as the algorithm says. */
export function isSigned(token: string, key: KeyObject, algorithm: string): boolean {
  const [header, payload, signature] = token.split(".");
  const hash = algorithm === "EdDSA" ? null : algorithm === "ES384" ? "sha384" : "sha256";
  const options = { key: key.type === "public" ? key : createPublicKey(key), dsaEncoding: "ieee-p1363" as const, ...(algorithm === "PS256" ? { padding: constants.RSA_PKCS1_PSS_PADDING } : {}) };
  return verify(hash, Buffer.from(`${header}.${payload}`), options, Buffer.from(signature!, "base64url"));
}

/** Returns the header (0) or the claims (1) of a token. */
export function part(jwt: string, at: 0 | 1): Record<string, unknown> {
  return JSON.parse(Buffer.from(jwt.split(".")[at]!, "base64url").toString()) as Record<string, unknown>;
}
