// Proofs of possession (RFC 9449): a request shows that it comes from the holder of the key to which its token is bound.

import { base64url } from "./base64.js";
import { sha256 } from "./jwk.js";
import type { Key } from "./keys.js";
import { once } from "./once.js";
import { webCrypto } from "./platform.js";

/** Makes the proofs of one agent. */
export class Prover {
  readonly #read: () => Promise<Key>;
  #nonce: string | undefined; // the last that the service gave
  #hashed: readonly [token: string, hash: string] = ["", ""]; // of the token in use

  /** read makes or reads the key when the first proof is needed, and again if it failed. */
  constructor(read: () => Promise<Key>) {
    this.#read = once(read);
  }

  /** Returns a proof for one attempt to send a request to the service. The token is empty for requests for one. */
  proof(method: string, url: string, accessToken: string): Promise<string> {
    return this.#sign(method, url, accessToken, this.#nonce);
  }

  /** Returns a proof for a request to another server, which does not know the service's nonces. */
  elsewhere(method: string, url: string, accessToken: string): Promise<string> {
    return this.#sign(method, url, accessToken, undefined);
  }

  async #sign(method: string, url: string, accessToken: string, nonce: string | undefined): Promise<string> {
    const key = await this.#read();
    const claims = {
      jti: await randomId(), htm: method, htu: url, iat: Math.floor(Date.now() / 1000),
      ...(accessToken === "" ? {} : { ath: await this.#hash(accessToken) }),
      ...(nonce === undefined ? {} : { nonce }),
    };
    return key.sign({ typ: "dpop+jwt", jwk: key.publicJwk }, claims);
  }

  /** Keeps the nonce of an answer, for the proofs to come. */
  hear(headers: Headers): void {
    this.#nonce = headers.get("DPoP-Nonce") ?? this.#nonce;
  }

  async #hash(token: string): Promise<string> {
    if (this.#hashed[0] !== token) {
      this.#hashed = [token, await sha256(token)];
    }
    return this.#hashed[1];
  }
}

/** Returns 128 random bits as text. */
export async function randomId(): Promise<string> {
  return base64url((await webCrypto()).getRandomValues(new Uint8Array(16)));
}
