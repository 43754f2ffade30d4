/**
 * Holds the worst case of a call of a model before it is sent, and settles what it cost. The adapters are made of it, and so can
 * be one for a framework that has none.
 */
import { unlessAborted } from "./abort.js";
import type { OnLimit } from "./ask.js";
import { isBoundedByBytes, toolPrompt } from "./content.js";
import { AgentLimitReached, BudgetExhausted, LimitReached } from "./errors.js";
import { Hold } from "./hold.js";
import { formatUSD, type MicroUSD } from "./money.js";
import { UnboundedCall, UsageMissing } from "./meteringerrors.js";
import { totals } from "./modelusage.js";
import { known, type Names } from "./options.js";
import { UnknownModel, type Prices } from "./prices.js";
import { asksToReason } from "./reasoning.js";
import { addText } from "./remiterror.js";
import type { Session } from "./session.js";
import type { Transaction } from "./transaction.js";
import type { TransactionParams } from "./transactions.js";
import { unpriced } from "./unpriced.js";

export { Hold, isBoundedByBytes, toolPrompt, totals as usageOfTotals, UnboundedCall, UnknownModel, UsageMissing };
export type { TokenUsage } from "./prices.js";

/** Settings of all adapters. */
export interface MeteringOptions extends OnLimit {
  /** The action type of the holds; the default is llm.call. */
  readonly actionType?: string;
  /** After how many seconds a hold expires, and is spent, if this process ends; the default is 600. A call may last longer. */
  readonly expiresInSeconds?: number;
  /** The model whose price a model has, by its name in requests: `{ "my-deployment": "gpt-4.1" }`. */
  readonly models?: Readonly<Record<string, string>>;
  /** Learns of a settlement that failed. The answer is delivered all the same. The default writes the error to the console. */
  readonly onError?: (error: unknown) => void;
}

export const meteringNames: Names<MeteringOptions> = {
  actionType: true, expiresInSeconds: true, models: true, onError: true, onLimit: true, reason: true,
};

/** What bounds a call before it is sent. */
export interface ModelCall {
  readonly model: string; // as it is in the request
  readonly inputBytes: number; // of the request, and toolPrompt; each token is at least a byte
  readonly refersElsewhere: boolean; // whether the prompt has content that these bytes do not bound
  readonly maxOutputTokens: number | undefined; // of each answer; undefined: the request does not say
  readonly maxOutputName?: string; // as a caller sets it, such as max_tokens
  readonly answers?: number; // the default is 1
  readonly members?: Readonly<Record<string, unknown>>; // of the request, as far as they are known, by the names of the provider's API
}

/** The most tokens that a call can use. */
export interface Bound {
  readonly input: number;
  readonly output: number;
  readonly serviceTier: string | undefined; // that it asks for
}

/** Meters the calls of one session. */
export class Metering {
  readonly #session: Session;
  readonly #prices: Prices;
  readonly #options: MeteringOptions;

  constructor(session: Session, prices: Prices, options: MeteringOptions = {}) {
    this.#session = session;
    this.#prices = prices;
    this.#options = known("the options of metering", options, meteringNames);
  }

  /**
   * Holds the most that a call can cost. Throws UnknownModel and UnboundedCall before anything is sent, and what `Session.begin`
   * throws, such as LimitReached.
   */
  async hold(call: ModelCall, signal?: AbortSignal): Promise<Hold> {
    const { actionType = "llm.call", expiresInSeconds = 600, models = {}, onLimit, reason } = this.#options;
    const model = Object.hasOwn(models, call.model) ? models[call.model]! : call.model;
    const bound = boundOf(call, model, this.#prices);
    const value = this.#worst(call, model, bound);
    const params = {
      actionType, value, expiresInSeconds, metadata: { model: call.model }, reversible: false, onExpiry: "commit" as const,
      ...(onLimit === undefined ? {} : { onLimit, reason }),
    };
    const reasons = asksToReason(call.members ?? {}) ?? this.#prices.reasons(model);
    const transaction = await this.#begin(params, signal).catch((error: unknown) => {
      throw explained(error, call, value, bound);
    });
    return new Hold({ transaction, value, model, bound, reasons, prices: this.#prices, expiresInSeconds, onError: this.#options.onError ?? report });
  }

  // #begin returns at once when the signal aborts. A hold that comes to be meanwhile is rolled back.
  async #begin(params: TransactionParams, signal: AbortSignal | undefined): Promise<Transaction> {
    if (params.onLimit !== undefined || signal === undefined) {
      return this.#session.begin(params, { signal });
    }
    signal.throwIfAborted();
    const begun = this.#session.begin(params);
    try {
      return await unlessAborted(begun, signal);
    } catch (error) {
      if (signal.aborted) {
        begun.then((late) => late.rollback("cancelled")).catch(() => {}); // it expires
      }
      throw error;
    }
  }

  #worst({ model: sent }: ModelCall, model: string, { input, output, serviceTier }: Bound): MicroUSD {
    try {
      return this.#prices.worst(model, input, output, serviceTier);
    } catch (error) {
      throw error instanceof RangeError ? new UnboundedCall(`call of ${JSON.stringify(sent)}`, "its worst case is beyond all budgets: lower its maximum of tokens") : error;
    }
  }
}

function boundOf(call: ModelCall, model: string, prices: Prices): Bound {
  const { maxInputTokens, maxOutputTokens } = prices.limits(model);
  const unbounded = (why: string) => new UnboundedCall(`call of ${JSON.stringify(call.model)}`, why);
  const named = call.members?.["model"] ?? call.model;
  const why = named === call.model ? unpriced(call.members ?? {}) : `its options name another model, ${JSON.stringify(named)}`;
  if (why !== undefined) {
    throw unbounded(why);
  }
  const input = call.refersElsewhere ? maxInputTokens : Math.min(call.inputBytes, maxInputTokens ?? Infinity);
  if (input === undefined) {
    throw unbounded("its prompt has content that is not text in the request: add max_input_tokens to the price of the model");
  }
  const each = call.maxOutputTokens ?? maxOutputTokens;
  if (each === undefined) {
    throw unbounded("nothing bounds its output: set a maximum of tokens in the request, or max_output_tokens in the price of the model");
  }
  const output = each * (call.answers ?? 1);
  if (!Number.isSafeInteger(output) || output < 0) {
    throw unbounded("its maximum of output tokens is not a whole number from 0 on");
  }
  const serviceTier = (call.members?.["service_tier"] ?? undefined) as string | undefined; // by unpriced
  if (serviceTier === "priority" && !prices.hasTier(model, serviceTier)) {
    throw unbounded("the model has no price of this service_tier: add input_cost_per_token_priority and output_cost_per_token_priority");
  }
  return { input, output, serviceTier };
}

// explained adds to a refusal by a limit of value what the call needs.
function explained(error: unknown, { maxOutputTokens, maxOutputName = "its maximum of tokens" }: ModelCall, value: MicroUSD, { output }: Bound): unknown {
  const isLimit = error instanceof LimitReached || error instanceof AgentLimitReached;
  if (error instanceof BudgetExhausted || (isLimit && /^max_(committed_usd$|value_usd)/.test(error.limit))) {
    const how = maxOutputTokens === undefined ? `set ${maxOutputName}` : `lower ${maxOutputName}, or send less`;
    addText(error, `the call may cost up to ${formatUSD(value)} USD (${output.toLocaleString("en-US")} tokens of output): ${how}`);
  }
  return error;
}

function report(error: unknown): void {
  console.error("remit: a call of a model could not be settled; its hold expires:", error instanceof Error ? error.message : error);
}
