/**
 * What calls of models cost, by the JSON of costs per token that LiteLLM keeps and many tools read. Costs are exact decimals. The
 * cost of a call is one exact sum, rounded up to the micro-dollar once.
 */
import type { MicroUSD } from "./money.js";
import { known, type Names } from "./options.js";
import { InvalidPrices, UnknownModel } from "./priceerrors.js";
import { decimals, readTable, type Model, type Rates } from "./pricetable.js";
import type { ServiceTier } from "./servicetier.js";

export { InvalidPrices, UnknownModel };
export type { ServiceTier };

/** What a call used, in tokens. Each token counts in one member only. What is left out is 0. */
export interface TokenUsage {
  readonly input?: number; // neither read from a cache nor written to one
  readonly cachedInput?: number; // read from a cache
  readonly cacheCreationInput?: number; // written to a cache
  readonly output?: number; // without reasoning
  readonly reasoning?: number;
}

/** What a model takes and produces at most, in tokens; undefined: the table does not say. */
export interface ModelLimits {
  readonly maxInputTokens: number | undefined;
  readonly maxOutputTokens: number | undefined;
}

const names: Names<TokenUsage> = { input: true, cachedInput: true, cacheCreationInput: true, output: true, reasoning: true };
const mostCost = 1_000_000_000_000_000n; // micro-dollars, the service's largest amount
const microUSD = 10n ** BigInt(decimals - 6);

/** A table of prices. It does not change. */
export class Prices {
  readonly #models: ReadonlyMap<string, Model>;

  private constructor(models: ReadonlyMap<string, Model>) {
    this.#models = models;
  }

  /**
   * Reads a table of at most 16 MiB: a JSON object from the model to `input_cost_per_token` and so on. An entry without both an
   * input and an output cost per token is no model. Throws InvalidPrices.
   */
  static parse(text: string): Prices {
    return new Prices(readTable(text));
  }

  /**
   * Returns what a call of the model cost, in a service tier for which its entry has prices. Throws UnknownModel, and RangeError for a count that is not a whole number from 0 to
   * 2 ** 53 - 1, for a cost above 1,000,000,000 USD, and for a service tier without prices.
   */
  cost(model: string, usage: TokenUsage, serviceTier: ServiceTier = "standard"): MicroUSD {
    const tiers = this.#model(model).tiers.get(serviceTier);
    if (tiers === undefined) {
      throw new RangeError(`remit: ${JSON.stringify(model)} has no prices of the service tier ${serviceTier}`);
    }
    const counts = known("a usage of tokens", usage, names);
    const tokens = (kind: keyof TokenUsage) => count(kind, counts[kind] ?? 0);
    const prompt = tokens("input") + tokens("cachedInput") + tokens("cacheCreationInput");
    const { rates } = tiers.find(({ above }) => prompt > above)!;
    return roundedUp((Object.keys(rates) as (keyof Rates)[]).reduce((sum, kind) => sum + rates[kind] * tokens(kind), 0n));
  }

  /**
   * Returns the most that a call of the model can cost with so many tokens: all of them of the kinds that cost most, in the tier
   * that costs most of those that the input can reach. It can be in these service tiers, as far as the entry has prices of them; the
   * default is all. Throws the same errors as `cost`.
   */
  worst(model: string, inputTokens: number, outputTokens: number, serviceTiers?: readonly ServiceTier[]): MicroUSD {
    const tiers = [...this.#model(model).tiers].filter(([tier]) => serviceTiers?.includes(tier) ?? true).flatMap(([, own]) => own);
    const [input, output] = [count("inputTokens", inputTokens), count("outputTokens", outputTokens)];
    const sums = tiers
      .filter(({ above }) => input > above)
      .map(({ rates }) => input * highest(rates.input, rates.cachedInput, rates.cacheCreationInput) + output * highest(rates.output, rates.reasoning));
    return roundedUp(highest(...sums));
  }

  /** Returns the limits of the model. Throws UnknownModel. */
  limits(model: string): ModelLimits {
    const { maxInputTokens, maxOutputTokens } = this.#model(model);
    return { maxInputTokens, maxOutputTokens };
  }

  /** Returns the service tiers for which the model has prices. Throws UnknownModel. */
  serviceTiers(model: string): readonly ServiceTier[] {
    return [...this.#model(model).tiers.keys()];
  }

  /** Returns whether the model can reason: its entry has `supports_reasoning`, or a price of reasoning. Throws UnknownModel. */
  reasons(model: string): boolean {
    return this.#model(model).reasons;
  }

  #model(name: string): Model {
    const model = this.#models.get(name);
    if (model === undefined) {
      throw new UnknownModel(name);
    }
    return model;
  }
}

function count(name: string, tokens: number): bigint {
  if (!Number.isSafeInteger(tokens) || tokens < 0) {
    throw new RangeError(`remit: ${name} must be a whole number of tokens, from 0 to ${Number.MAX_SAFE_INTEGER}`);
  }
  return BigInt(tokens);
}

function highest(...values: bigint[]): bigint {
  return values.reduce((most, value) => (value > most ? value : most));
}

function roundedUp(sum: bigint): MicroUSD {
  const cost = (sum + microUSD - 1n) / microUSD;
  if (cost > mostCost) {
    throw new RangeError("remit: a call cannot cost more than 1000000000 USD");
  }
  return cost;
}
