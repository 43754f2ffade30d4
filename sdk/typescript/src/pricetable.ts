// Reads LiteLLM's JSON of models and their costs per token.

import { InvalidPrices } from "./priceerrors.js";
import type { ServiceTier } from "./servicetier.js";

/** How many decimals of a dollar a cost per token has. It is a bigint in this unit, so that sums of costs are exact. */
export const decimals = 30;

/** The cost of a token of each kind. */
export interface Rates {
  readonly input: bigint;
  readonly cachedInput: bigint;
  readonly cacheCreationInput: bigint;
  readonly hourCacheCreationInput: bigint; // of a model that has this price
  readonly output: bigint;
  readonly reasoning: bigint;
}

/** The rates of a call whose prompt has more than `above` tokens. */
export interface Step {
  readonly above: number;
  readonly rates: Rates;
}

/** A model of the table. */
export interface Model {
  readonly steps: Readonly<Record<ServiceTier, readonly Step[]>>; // the highest first; the last one applies above -1
  readonly ownTiers: ReadonlySet<ServiceTier>; // that have their own base prices of input and, if it costs anything, output
  readonly hasHourCache: boolean; // a cache of an hour has its own base price in the standard tier
  readonly maxInputTokens: number | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly reasons: boolean;
}

type Kind = keyof Rates;
type Costs = Partial<Record<Kind, bigint>>;
type CostsAbove = ReadonlyMap<number, Costs>; // by the number of tokens in the prompt

const kinds: ReadonlyMap<string, Kind> = new Map([
  ["input_cost_per_token", "input"],
  ["cache_read_input_token_cost", "cachedInput"],
  ["cache_creation_input_token_cost", "cacheCreationInput"],
  ["cache_creation_input_token_cost_above_1hr", "hourCacheCreationInput"],
  ["output_cost_per_token", "output"],
  ["output_cost_per_reasoning_token", "reasoning"],
]);
const longest = 16 * 2 ** 20; // ten times LiteLLM's table
const sample = "sample_spec"; // by which LiteLLM's table describes itself
const mostTiers = 16; // of a price: every call goes through them
const mostDigits = 400; // no number of a table has so many; without a bound, 1e-999999999 would fill the memory

/** Reads a table of at most 16 MiB. Throws InvalidPrices. */
export function readTable(text: string): Map<string, Model> {
  const models = new Map<string, Model>();
  const [table, exact] = read(text);
  for (const name of Object.keys(table)) {
    const [entry, costs] = [table[name], exact[name]];
    if (name === sample) {
      continue;
    }
    if (!isObject(entry) || !isObject(costs)) {
      throw new InvalidPrices("it must be an object", name);
    }
    const model = modelFrom(name, entry, costs);
    if (model !== undefined) {
      models.set(name, model);
    }
  }
  return models;
}

type Members = { readonly [member: string]: unknown };

// read reads a table twice: as it is, and with its numbers as texts, because a JavaScript number would round them.
function read(text: string): [Members, Members] {
  if (text.length > longest) {
    throw new InvalidPrices("the table must have at most 16 MiB");
  }
  let table: unknown;
  let exact: unknown;
  try {
    table = JSON.parse(text); // first, because other text than JSON could take the expression below quadratic time
    exact = JSON.parse(text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g, (token) => (token.startsWith('"') ? token : `"${token}"`)));
  } catch {
    throw new InvalidPrices("the table must be JSON"); // or has a text of millions of escapes
  }
  if (!isObject(table)) {
    throw new InvalidPrices("the table must be an object of models");
  }
  return [table, exact as Members];
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// modelFrom returns undefined for an entry without both an input and an output cost per token.
function modelFrom(name: string, entry: Members, exact: Members): Model | undefined {
  const costs = costsFrom(name, exact);
  const { input, output, reasoning, hourCacheCreationInput } = costs.get("standard")?.get(-1) ?? {};
  if (input === undefined || output === undefined) {
    return undefined;
  }
  return {
    steps: { standard: stepsOf(costs, "standard"), flex: stepsOf(costs, "flex"), priority: stepsOf(costs, "priority") },
    ownTiers: new Set([...costs.keys()].filter((tier) => {
      const base = costs.get(tier)?.get(-1);
      return base?.input !== undefined && (base.output !== undefined || output === 0n);
    })),
    hasHourCache: hourCacheCreationInput !== undefined,
    maxInputTokens: tokensFrom(entry["max_input_tokens"]),
    maxOutputTokens: tokensFrom(entry["max_output_tokens"]) ?? tokensFrom(entry["max_tokens"]),
    reasons: entry["supports_reasoning"] === true || reasoning !== undefined,
  };
}

// A price, and the tier before or after the threshold in thousands of tokens: LiteLLM writes both.
const memberName = /^(\w+?(?:_above_1hr)?)(?:_(flex|priority))?(?:_above_([1-9]\d{0,8})k_tokens)?(?:_(flex|priority))?$/;

// costsFrom returns the costs by the service tier and the number of tokens in the prompt above which they apply.
function costsFrom(name: string, entry: Members): Map<ServiceTier, Map<number, Costs>> {
  const all = new Map<ServiceTier, Map<number, Costs>>();
  const count = new Map<string, number>(); // of thresholds
  for (const [member, value] of Object.entries(entry)) {
    const [, base = "", before, thousands, after] = memberName.exec(member) ?? [];
    const kind = kinds.get(base);
    const isOfTwoTiers = before !== undefined && after !== undefined;
    if (kind === undefined || value === null || isOfTwoTiers || (kind === "reasoning" && thousands !== undefined)) {
      continue;
    }
    const above = thousands === undefined ? -1 : Number(thousands) * 1000;
    const service = (before ?? after ?? "standard") as ServiceTier;
    const price = `${kind} ${service}`;
    const thresholds = (count.get(price) ?? 0) + (above < 0 ? 0 : 1);
    if (thresholds > mostTiers) {
      throw new InvalidPrices("it must not be the seventeenth threshold of its price", name, member);
    }
    count.set(price, thresholds);
    const tiers = all.get(service) ?? new Map<number, Costs>();
    const [cost, same] = [costFrom(name, member, value), tiers.get(above)?.[kind] ?? 0n]; // of two names for one price the dearer counts
    all.set(service, tiers.set(above, { ...tiers.get(above), [kind]: cost > same ? cost : same }));
  }
  return all;
}

function stepsOf(costs: ReadonlyMap<ServiceTier, CostsAbove>, tier: ServiceTier): readonly Step[] {
  const [standard, own] = [costs.get("standard")!, costs.get(tier) ?? new Map<number, Costs>()];
  const thresholds = [...new Set([...standard.keys(), ...own.keys()])].sort((a, b) => b - a);
  return thresholds.map((above) => ({ above, rates: ratesOf(own, standard, above) }));
}

function costFrom(model: string, member: string, value: unknown): bigint {
  const parts = typeof value === "string" ? /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(value) : null;
  if (parts === null) {
    throw new InvalidPrices("it must be a number", model, member);
  }
  const [, sign, whole = "", fraction = "", exponent = "0"] = parts;
  const all = (whole + fraction).replace(/^0+/, "");
  const digits = all.replace(/0+$/, "");
  if (digits === "") {
    return 0n;
  }
  if (sign === "-") {
    throw new InvalidPrices("it must not be negative", model, member);
  }
  const shift = all.length - digits.length - fraction.length + Number(exponent) + decimals;
  if (shift < 0) {
    throw new InvalidPrices(`it must have at most ${decimals} decimals`, model, member);
  }
  const cost = digits.length + shift > mostDigits ? undefined : BigInt(digits) * 10n ** BigInt(shift);
  if (cost === undefined || cost > 10n ** BigInt(decimals)) {
    throw new InvalidPrices("it must be at most 1 USD per token", model, member);
  }
  return cost;
}

// ratesOf returns the rates of a tier for prompts of more tokens. A part of input or output without a price in the tier costs what it
// costs in the standard one, or what input or output costs in this tier if that is dearer.
function ratesOf(own: CostsAbove, standard: CostsAbove, above: number): Rates {
  const [input, output] = [costAt(own, standard, "input", above)!, costAt(own, standard, "output", above)!];
  const part = (kind: Kind, whole: Kind, costOfWhole: bigint) => {
    const cost = costAt(own, standard, kind, above) ?? costOfWhole;
    const isDerived = lastOf(own, kind, above) === undefined && lastOf(own, whole, above) !== undefined;
    return isDerived && costOfWhole > cost ? costOfWhole : cost;
  };
  return {
    input, output,
    cachedInput: part("cachedInput", "input", input),
    cacheCreationInput: part("cacheCreationInput", "input", input),
    hourCacheCreationInput: part("hourCacheCreationInput", "input", input),
    reasoning: part("reasoning", "output", output),
  };
}

// costAt returns a price in a tier: the standard one where the tier has none, and above a threshold that only the standard price has
// if it is dearer.
function costAt(own: CostsAbove, standard: CostsAbove, kind: Kind, above: number): bigint | undefined {
  const [mine, other] = [lastOf(own, kind, above), lastOf(standard, kind, above)];
  if (mine === undefined || other === undefined) {
    return (mine ?? other)?.cost;
  }
  return other.above > mine.above && other.cost > mine.cost ? other.cost : mine.cost;
}

// lastOf returns the price of the highest threshold up to this one.
function lastOf(costs: CostsAbove, kind: Kind, most: number): { readonly above: number; readonly cost: bigint } | undefined {
  const [above, given] = [...costs].filter(([above, given]) => above <= most && given[kind] !== undefined).sort(([a], [b]) => b - a)[0] ?? [];
  return above === undefined ? undefined : { above, cost: given![kind]! };
}

// tokensFrom returns a number of tokens. LiteLLM writes some limits as a text for people, which is no limit.
function tokensFrom(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined;
}
