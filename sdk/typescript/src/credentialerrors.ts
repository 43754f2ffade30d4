// Errors about tokens, proofs and keys.

import { RemitError, type Said } from "./remiterror.js";

/** The code of a proof that lacks the service's newest nonce. */
export const useNonce = "use_dpop_nonce";

const agreement = 30; // seconds by which clocks may differ

/** The agent may have no token for this resource. */
export class InvalidTarget extends RemitError {
  override name = "InvalidTarget";
}

/** The service refuses a proof of the key to which the tokens are bound. Nothing was done. */
export class InvalidProof extends RemitError {
  override name = "InvalidProof";
  /** How many seconds this machine's clock is ahead of the service's; undefined if the answer does not say. */
  readonly clockSkew: number | undefined;
  constructor(place: string, said: Said) {
    const { clockSkew } = said;
    const off = clockSkew !== undefined && Math.abs(clockSkew) > agreement ? clockOff(clockSkew) : said.more;
    super(place, off === undefined ? said : { ...said, more: off });
    this.clockSkew = clockSkew;
  }
}

/** The agent gets tokens only with a proof: set its option `dpop`. */
export class DPoPRequired extends RemitError {
  override name = "DPoPRequired";
  constructor(place: string, said: Said) {
    super(place, { ...said, more: "set the agent's option dpop" });
  }
}

/** A delegated token is for its session only. Nothing was done. */
export class DelegatedTokenRefused extends RemitError {
  override name = "DelegatedTokenRefused";
}

/** A session key is for its session only. Nothing was done. */
export class SessionKeyOnly extends RemitError {
  override name = "SessionKeyOnly";
}

/** The session has 8 keys. */
export class TooManySessionKeys extends RemitError {
  override name = "TooManySessionKeys";
}

/** A key or token of this process cannot be used. Nothing was sent. */
export class UnusableCredential extends RemitError {
  override name = "UnusableCredential";
  /** The path of the file, or the name of the option. */
  readonly source: string;
  constructor(source: string, detail: string) {
    super(source, { status: 0, detail });
    this.source = source;
  }
}

function clockOff(seconds: number): string {
  const whole = Math.round(Math.abs(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const long = `${hours > 0 ? `${hours}h` : ""}${whole >= 60 ? `${minutes}m` : ""}${whole % 60}s`;
  return `this machine's clock is ${long} ${seconds < 0 ? "behind" : "ahead of"} the service's`;
}
