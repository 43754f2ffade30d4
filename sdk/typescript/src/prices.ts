/**
 * What calls of models cost, by the JSON of costs per token that LiteLLM keeps and many tools read. Costs are exact decimals. The
 * cost of a call is one exact sum, rounded up to the micro-dollar once.
 */
import type { MicroUSD } from "./money.js";
import { known, type Names } from "./options.js";
import { InvalidPrices, UnknownModel } from "./priceerrors.js";
import { decimals, readTable, type Model, type Rates } from "./pricetable.js";
import { requested, served, type ServiceTier } from "./servicetier.js";

export { InvalidPrices, UnknownModel };

/** What a call used, in tokens. Each token counts in one member only. What is left out is 0. */
export interface TokenUsage {
  readonly input?: number; // neither read from a cache nor written to one
  readonly cachedInput?: number; // read from a cache
  readonly cacheCreationInput?: number; // written to a cache, but not for an hour
  readonly hourCacheCreationInput?: number; // written to a cache for an hour
  readonly output?: number; // without reasoning
  readonly reasoning?: number;
}

/** What a model takes and produces at most, in tokens; undefined: the table does not say. */
export interface ModelLimits {
  readonly maxInputTokens: number | undefined;
  readonly maxOutputTokens: number | undefined;
}

/** The service_tier of a request and of its answer; undefined: it has none. */
export interface CallTiers {
  readonly requested?: string | undefined;
  readonly served?: string | undefined;
}

const names: Names<TokenUsage> = {
  input: true, cachedInput: true, cacheCreationInput: true, hourCacheCreationInput: true, output: true, reasoning: true,
};
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
   * Returns what a call of the model cost: in the standard tier, or by the service_tier of its request and of its answer. Throws
   * UnknownModel, and RangeError for a count that is not a whole number from 0 to 2 ** 53 - 1, for a cost above 1,000,000,000 USD, and
   * for a cache of an hour that has no price.
   */
  cost(model: string, usage: TokenUsage, tiers: CallTiers = { served: "default" }): MicroUSD {
    const { steps, hasHourCache } = this.#model(model);
    const counts = known("a usage of tokens", usage, names);
    const tokens = (kind: keyof TokenUsage) => count(kind, counts[kind] ?? 0);
    const prompt = tokens("input") + tokens("cachedInput") + tokens("cacheCreationInput") + tokens("hourCacheCreationInput");
    if (tokens("hourCacheCreationInput") > 0n && !hasHourCache) {
      throw unpricedHourCache(model);
    }
    const sums = served(tiers.served, tiers.requested).map((tier) => {
      const { rates } = steps[tier].find(({ above }) => prompt > above)!;
      return (Object.keys(rates) as (keyof Rates)[]).reduce((sum, kind) => sum + rates[kind] * tokens(kind), 0n);
    });
    return roundedUp(highest(...sums));
  }

  /**
   * Returns the most that a call of the model can cost with so many tokens: all of them of the kinds that cost most, at the thresholds
   * that cost most of those that the input can reach, in the dearest tier that a request with this service_tier can get. Only with
   * `hourCache` it may write to a cache for an hour. Throws the same errors as `cost`.
   */
  worst(model: string, inputTokens: number, outputTokens: number, requestedTier?: string, hourCache = false): MicroUSD {
    const { steps, hasHourCache } = this.#model(model);
    if (hourCache && !hasHourCache) {
      throw unpricedHourCache(model);
    }
    const [input, output] = [count("inputTokens", inputTokens), count("outputTokens", outputTokens)];
    const sums = requested(requestedTier)
      .flatMap((tier) => steps[tier])
      .filter(({ above }) => input > above)
      .map(({ rates }) => {
        const written = hourCache ? highest(rates.cacheCreationInput, rates.hourCacheCreationInput) : rates.cacheCreationInput;
        return input * highest(rates.input, rates.cachedInput, written) + output * highest(rates.output, rates.reasoning);
      });
    return roundedUp(highest(...sums));
  }

  /** Returns the limits of the model. Throws UnknownModel. */
  limits(model: string): ModelLimits {
    const { maxInputTokens, maxOutputTokens } = this.#model(model);
    return { maxInputTokens, maxOutputTokens };
  }

  /**
   * Returns whether a service tier has its own base price of input, and of output unless that costs nothing in the standard tier. Throws
   * UnknownModel.
   */
  hasTier(model: string, tier: ServiceTier): boolean {
    return this.#model(model).ownTiers.has(tier);
  }

  /** Returns whether tokens that are written to a cache for an hour have a base price, in the standard tier. Throws UnknownModel. */
  hasHourCache(model: string): boolean {
    return this.#model(model).hasHourCache;
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

function unpricedHourCache(model: string): RangeError {
  return new RangeError(`remit: model ${JSON.stringify(model)} has no price of a cache of an hour: add cache_creation_input_token_cost_above_1hr`);
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
