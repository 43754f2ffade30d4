import { keyed, type Caller, type WriteOptions } from "./call.js";
import { errorFrom, OutcomeUnknown, RemitError } from "./errors.js";
import { array, object, Unreadable, whole, write } from "./json.js";
import type { MicroUSD } from "./money.js";
import { known, type Names } from "./options.js";
import { conclude, mayHaveHappened } from "./retry.js";
import { usageFrom, type Usage } from "./usage.js";

/** One use of a session. An empty one counts one action and no value. */
export interface Charge {
  readonly actionType?: string; // what it is, for people: llm.call, payment
  readonly value?: MicroUSD; // of all count actions together
  readonly count?: number; // 1 to 1000; left out: 1
  readonly scope?: string; // one that the token and the session must have
}

/** A charge to one of many sessions. */
export interface SessionCharge extends Charge {
  readonly sessionId: string;
}

/**
 * What became of one charge of a batch. One that is Unavailable or OutcomeUnknown by itself was not retried: the same batch
 * with the same key of the caller's settles it, and gives the others again as they were.
 */
export type Result = { readonly ok: true; readonly usage: Usage } | { readonly ok: false; readonly error: RemitError };

const names: Names<Charge> = { actionType: true, value: true, count: true, scope: true };

export function chargeBody(charge: Charge) {
  const { actionType, value, count, scope } = known("a charge", charge, names);
  return { action_type: actionType, value_usd: value, count, scope };
}

export async function chargeMany(caller: Caller, charges: readonly SessionCharge[], options: WriteOptions): Promise<Result[]> {
  const items = charges.map((charge) => {
    const { sessionId, ...rest } = known("a charge", charge, { ...names, sessionId: true });
    return write({ session_id: sessionId, ...chargeBody(rest) });
  });
  const read = (answer: unknown) => {
    const results = array(answer, (value) => value);
    if (results.length !== charges.length) {
      throw new Unreadable(`${results.length} results for ${charges.length} charges`);
    }
    return results.map(resultFrom);
  };
  const body = `{"actions":[${items.join(",")}]}`;
  return caller.do(keyed(caller.service, place, body, options, read), options.signal);
}

const place = "/v1/actions";
const aCharge = `a charge of POST ${place}`;

// resultFrom reads one result. What cannot be read leaves its own charge in doubt, and not the others.
function resultFrom(value: unknown): Result {
  try {
    return readResult(value);
  } catch (error) {
    if (error instanceof Unreadable) {
      return { ok: false, error: inDoubt(error) };
    }
    throw error;
  }
}

function readResult(value: unknown): Result {
  const answer = object(value);
  const status = whole(answer, "status");
  if (status === 200) {
    return { ok: true, usage: usageFrom(answer["body"]) };
  }
  const error = errorFrom(aCharge, status, object(answer["body"]));
  return { ok: false, error: mayHaveHappened(error) ? inDoubt(error) : error };
}

function inDoubt(failure: unknown): OutcomeUnknown {
  return conclude(aCharge, true, failure, undefined) as OutcomeUnknown;
}
