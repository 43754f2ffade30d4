import { bounded, unlessAborted } from "./abort.js";
import type { Opening } from "./agentoptions.js";
import type { Call, Caller, TokenSource } from "./call.js";
import { codes } from "./codes.js";
import { isVisible } from "./credential.js";
import { DPoPRequired, InvalidProof, RemitError } from "./errors.js";
import { maybe, object, text, Unreadable, whole, write, type Answer } from "./json.js";

// Fractions of a token's lifetime. The SDK renews a token at a random moment between the first two, so that a fleet that
// started together does not renew together. It stops using the token at the third, because the token has to arrive in time.
const renewFrom = 0.75;
const renewUntil = 0.9;
const useUntil = 0.98;

// All times are in milliseconds.
const renewalLimit = 30_000; // for an exchange or refresh, all attempts included
const renewPause = 10_000; // the longest pause after an early renewal that failed; the shortest is half of it

// How long a refresh token may be presented again after a lost response. The service returns the same successor for 60
// seconds; after that it treats the token as stolen.
const repeatWithin = 50_000;
const timerError = 2; // timers may fire this much too early

/** The result of an exchange or a refresh. */
interface Pair {
  readonly access: string;
  readonly refresh: string; // empty: none
  readonly lifetime: number; // milliseconds
}

// Presented is the moment when a refresh token was first presented. Since then it may be spent.
class Presented {
  readonly #monotonic = performance.now();
  readonly #ofDay = Date.now();

  // left returns how long the token may still be presented. The monotonic clock stops while the machine sleeps, and the
  // wall clock may be set back, so the larger difference counts.
  left(): number {
    return repeatWithin - Math.max(performance.now() - this.#monotonic, Date.now() - this.#ofDay);
  }
}

/**
 * Keeps an agent's tokens fresh. It measures time on this machine's monotonic clock, from when it received a token, so this
 * machine's clock need not agree with the service's.
 */
export class Tokens implements TokenSource {
  readonly renews = true;
  readonly #issuer: Caller; // without a credential
  readonly #opening: Opening;

  #access = ""; // empty: none
  #renewAt = 0;
  #usableUntil = 0;
  #refresh = ""; // empty: none
  #presented: Presented | undefined; // of #refresh; undefined: never presented
  #shared: Promise<string> | undefined; // the exchange or refresh in flight, shared by all callers (single flight)

  constructor(issuer: Caller, opening: Opening) {
    this.#issuer = issuer;
    this.#opening = opening;
  }

  /**
   * Returns an access token other than the refused one. It waits only if no token is usable: a token that is due for renewal
   * stays in use meanwhile.
   */
  async get(refused: string, signal: AbortSignal | undefined): Promise<string> {
    if (refused !== "" && this.#access === refused) {
      this.#access = "";
    }
    const now = performance.now();
    const access = this.#access;
    const usable = access !== "" && now < this.#usableUntil;
    if (usable && now < this.#renewAt) {
      return access;
    }
    const renewal = this.#renewal();
    return usable ? access : unlessAborted(renewal, signal);
  }

  /** Returns a new access token, even if the current one is still valid. */
  renew(signal: AbortSignal | undefined): Promise<string> {
    return unlessAborted(this.#renewal(), signal);
  }

  // #renewal returns the renewal in flight, or starts one. The renewal ignores the signal of the caller that started it,
  // because others may wait for it too. It ends by renewalLimit.
  #renewal(): Promise<string> {
    if (this.#shared === undefined) {
      this.#shared = this.#do();
      this.#shared.catch(() => {}); // an early renewal that fails may have no waiter
    }
    return this.#shared;
  }

  async #do(): Promise<string> {
    try {
      const pair = await bounded(undefined, renewalLimit, (signal) => this.#obtain(signal));
      this.#keep(pair);
      return pair.access;
    } catch (error) {
      this.#renewAt = performance.now() + between(renewPause / 2, renewPause);
      throw error;
    } finally {
      this.#shared = undefined;
    }
  }

  // #obtain refreshes. It presents the agent's own credential if there is no refresh token, the service refuses it, or it may have been spent
  // too long ago.
  async #obtain(signal: AbortSignal): Promise<Pair> {
    if (this.#refresh !== "") {
      this.#presented ??= new Presented(); // until #keep stores the successor
      try {
        return await this.#present(this.#refresh, this.#presented, signal);
      } catch (error) {
        const refused = error instanceof RemitError && error.code === codes.invalidRefreshToken;
        if (!refused && this.#presented.left() > 0) {
          throw error;
        }
        this.#refresh = "";
      }
    }
    return this.#ask(this.#opening, signal);
  }

  // #present presents a refresh token within its time limit. A timer aborts the attempt in flight at the limit. Each attempt
  // also checks the clocks before it is sent, because the timer stops while the machine sleeps.
  #present(refresh: string, presented: Presented, signal: AbortSignal): Promise<Pair> {
    const inTime = () => presented.left() > 0;
    const call = { path: "/v1/auth/refresh", body: write({ refresh_token: refresh }), inTime };
    const ask = (limited: AbortSignal) => this.#ask(call, limited);
    return bounded(signal, Math.max(presented.left(), 0) + timerError, ask);
  }

  // #ask is repeatable: the service returns the same successor, and a second family of tokens does no harm.
  async #ask(call: Opening & Pick<Call<Pair>, "inTime">, signal: AbortSignal): Promise<Pair> {
    const read = (answer: unknown) => pairFrom(answer, this.#issuer.proves);
    try {
      return await this.#issuer.do({ method: "POST", semantics: "safe", ...call, read }, signal);
    } catch (error) {
      throw error instanceof InvalidProof && !this.#issuer.proves ? new DPoPRequired(`POST ${call.path}`, error) : error;
    }
  }

  // #keep starts using a pair that was just received.
  #keep(pair: Pair): void {
    const now = performance.now();
    this.#access = pair.access;
    this.#refresh = pair.refresh;
    this.#presented = undefined;
    this.#renewAt = now + between(pair.lifetime * renewFrom, pair.lifetime * renewUntil);
    this.#usableUntil = now + pair.lifetime * useUntil;
  }
}

function pairFrom(value: unknown, bound: boolean): Pair {
  const answer = object(value);
  const access = text(answer, "access_token");
  const lifetime = whole(answer, "expires_in") * 1000;
  if (!isVisible(access) || lifetime <= 0) {
    throw new Unreadable("it has no token, or no lifetime");
  }
  tokenType(answer, bound);
  return { access, refresh: maybe(answer, "refresh_token", text) ?? "", lifetime };
}

/** Reads the type of a token, which must be bound if it was asked for with a proof: else the service does not know proofs. */
export function tokenType(answer: Answer, bound: boolean): string {
  const type = text(answer, "token_type");
  if (bound && type.toLowerCase() !== "dpop") {
    throw new Unreadable("its token is not bound to the agent's key");
  }
  return type;
}

// between returns a random number from least up to most.
function between(least: number, most: number): number {
  return least + Math.random() * (most - least);
}
