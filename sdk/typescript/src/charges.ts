import type { Need, OnLimit } from "./ask.js";
import { keyed, type Caller, type WriteOptions } from "./call.js";
import { errorFrom, OutcomeUnknown, RemitError } from "./errors.js";
import { array, object, Unreadable, whole, write } from "./json.js";
import type { MicroUSD } from "./money.js";
import { known, type Names } from "./options.js";
import { conclude, mayHaveHappened } from "./retry.js";
import { usageFrom, type Usage } from "./usage.js";

/** One charge to a session. An empty one counts one action and no value. */
export interface Charge {
  readonly actionType?: string; // a label for your records, such as llm.call
  readonly value?: MicroUSD; // for all count actions together
  readonly count?: number; // 1 to 1000; the default is 1
  readonly scope?: string; // the token and the session must have it
}

/** A charge of `Session.charge` and `Lease.charge`. */
export interface AskingCharge extends Charge, OnLimit {}

/** A charge to one of many sessions. */
export interface SessionCharge extends Charge {
  readonly sessionId: string;
}

/**
 * The result of one charge of a batch. The SDK does not retry a single charge that is Unavailable or OutcomeUnknown. To resolve
 * it, send the same batch again with the same idempotencyKey: the other results stay the same.
 */
export type Result = { readonly ok: true; readonly usage: Usage } | { readonly ok: false; readonly error: RemitError };

const names: Names<Charge> = { actionType: true, value: true, count: true, scope: true };

/** Returns the charge. Refuses unknown options. */
export function chargeOf(charge: Charge): Charge {
  return known("a charge", charge, names);
}

/** Splits what a limit is asked for from the charge. Refuses unknown options. */
export function withoutAsking(charge: AskingCharge): [Charge, Need, OnLimit | undefined] {
  const { onLimit, reason, ...plain } = known("a charge", charge, { ...names, onLimit: true, reason: true });
  const need = { actions: plain.count ?? 1, value: plain.value ?? 0n };
  return [plain, need, onLimit === undefined ? undefined : { onLimit, reason }];
}

export function chargeBody(charge: Charge) {
  const { actionType, value, count, scope } = chargeOf(charge);
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

// resultFrom reads one result. If it is unreadable, the outcome of this charge is unknown, but not that of the others.
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
