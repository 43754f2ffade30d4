import { bounded, unlessAborted } from "./abort.js";
import type { Caller } from "./call.js";
import { codes } from "./codes.js";
import { isVisible, reveal, type Credential } from "./credential.js";
import { RemitError } from "./errors.js";
import { object, text, Unreadable, whole, write } from "./json.js";

// A token is renewed at a random moment between the first two parts of its lifetime, so that a fleet that began together
// does not renew together, and not used after the last part, as it has to arrive in time.
const renewFrom = 0.75;
const renewUntil = 0.9;
const useUntil = 0.98;

const flightLimit = 30_000; // milliseconds, as all here: the end of an exchange or refresh, over all its attempts
const renewPause = 10_000; // between early renewals that fail, half of it at least

// How long a refresh token is presented again after a lost answer. The service returns the same successor for 60 seconds;
// after that it would have to take the token for stolen.
const repeatWithin = 50_000;
const timerError = 2; // by which timers may be early

/** The answer to an exchange and to a refresh. */
interface Pair {
  readonly access: string;
  readonly refresh: string;
  readonly lifetime: number; // milliseconds
}

// Doubt about a refresh token begins when it is presented: it may be spent, for want of an answer.
class Doubt {
  readonly #monotonic = performance.now();
  readonly #ofDay = Date.now();

  // left is how long the token may still be presented. The monotonic clock stands still while the machine sleeps, and the
  // other may be put back, so the one that went farther counts.
  left(): number {
    return repeatWithin - Math.max(performance.now() - this.#monotonic, Date.now() - this.#ofDay);
  }
}

/**
 * Keeps an agent's tokens fresh. Time is measured on this machine's monotonic clock, from when a token was received, so its
 * clock need not agree with the service's.
 */
export class Tokens {
  readonly #issuer: Caller; // without a credential
  readonly #agent: string;
  readonly #secret: string | Credential;

  #access = ""; // empty: none
  #renewAt = 0;
  #usableUntil = 0;
  #refresh = ""; // empty: none
  #doubt: Doubt | undefined; // of #refresh; undefined: it was never presented
  #flight: Promise<string> | undefined; // the one exchange or refresh under way, and its access token

  constructor(issuer: Caller, agent: string, secret: string | Credential) {
    this.#issuer = issuer;
    this.#agent = agent;
    this.#secret = secret;
  }

  /**
   * An access token that is not the refused one. It waits only when there is none that can be used: a token that should
   * be renewed still serves while that happens.
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
    const flight = this.#board();
    return usable ? access : unlessAborted(flight, signal);
  }

  /** A new access token, whatever the state of the present one. */
  renew(signal: AbortSignal | undefined): Promise<string> {
    return unlessAborted(this.#board(), signal);
  }

  // #board is the flight that is under way, or a new one. It does not end with the signal of whoever came first, for others
  // may wait for it, but by flightLimit.
  #board(): Promise<string> {
    if (this.#flight === undefined) {
      this.#flight = this.#fly();
      this.#flight.catch(() => {}); // of an early renewal nobody waits for the failure
    }
    return this.#flight;
  }

  async #fly(): Promise<string> {
    try {
      const pair = await bounded(undefined, flightLimit, (signal) => this.#obtain(signal));
      this.#keep(pair);
      return pair.access;
    } catch (error) {
      this.#renewAt = performance.now() + between(renewPause / 2, renewPause);
      throw error;
    } finally {
      this.#flight = undefined;
    }
  }

  // #obtain refreshes, or exchanges the secret when there is no refresh token, or it is refused or in doubt for too long.
  async #obtain(signal: AbortSignal): Promise<Pair> {
    if (this.#refresh !== "") {
      this.#doubt ??= new Doubt(); // until #keep has the successor
      try {
        return await this.#present(this.#refresh, this.#doubt, signal);
      } catch (error) {
        const refused = error instanceof RemitError && error.code === codes.invalidRefreshToken;
        if (!refused && this.#doubt.left() > 0) {
          throw error;
        }
        this.#refresh = "";
      }
    }
    return this.#ask("/v1/auth/token", write({ agent_id: this.#agent, secret: reveal(this.#secret) }), signal);
  }

  // #present presents a refresh token for as long as its doubt allows: a timer ends the attempt that is under way then, and
  // each attempt looks at the clocks before it is sent, for the timer does not run while the machine sleeps.
  #present(refresh: string, doubt: Doubt, signal: AbortSignal): Promise<Pair> {
    const body = write({ refresh_token: refresh });
    const inTime = () => doubt.left() > 0;
    const ask = (limited: AbortSignal) => this.#ask("/v1/auth/refresh", body, limited, inTime);
    return bounded(signal, Math.max(doubt.left(), 0) + timerError, ask);
  }

  // #ask may be repeated: the service returns the same successor, and a second family of tokens does no harm.
  #ask(path: string, body: string, signal: AbortSignal, inTime = () => true): Promise<Pair> {
    return this.#issuer.do({ method: "POST", path, body, semantics: "safe", inTime, read: pairFrom }, signal);
  }

  // #keep takes a pair that was just received into use.
  #keep(pair: Pair): void {
    const now = performance.now();
    this.#access = pair.access;
    this.#refresh = pair.refresh;
    this.#doubt = undefined;
    this.#renewAt = now + between(pair.lifetime * renewFrom, pair.lifetime * renewUntil);
    this.#usableUntil = now + pair.lifetime * useUntil;
  }
}

function pairFrom(value: unknown): Pair {
  const answer = object(value);
  const access = text(answer, "access_token");
  const lifetime = whole(answer, "expires_in") * 1000;
  if (!isVisible(access) || lifetime <= 0) {
    throw new Unreadable("it has no token, or no lifetime");
  }
  return { access, refresh: text(answer, "refresh_token"), lifetime };
}

// between is a random number from least up to most.
function between(least: number, most: number): number {
  return least + Math.random() * (most - least);
}
