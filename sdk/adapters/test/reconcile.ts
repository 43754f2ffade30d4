// Makes many calls against the fake provider, and compares the session's books with the provider's ledger.
import assert from "node:assert/strict";
import test from "node:test";
import { Client, LimitReached, USD, type Session, type Transaction, type TransactionParams } from "@remit/sdk";
import { Prices, type TokenUsage } from "@remit/sdk/prices";

const { REMIT_ADDR, REMIT_FAKE_PROVIDER, REMIT_CALLS = "20" } = process.env;
if (REMIT_ADDR === undefined || REMIT_FAKE_PROVIDER === undefined) {
  throw new Error("REMIT_ADDR and REMIT_FAKE_PROVIDER must say where the service and the provider are");
}
export const provider: string = REMIT_FAKE_PROVIDER;
export const serviceURL: string = REMIT_ADDR;
export const baseURL = `${provider}/v1`;
const calls = Number(REMIT_CALLS); // of each adapter in each format
const atOnce = 20;

const client = new Client(serviceURL);
const { apiKey } = await client.createOrganization({ name: "adapters" });
export const organization = client.organization(apiKey!);

/** Returns a session of a new agent, and what a program needs to act as the agent. */
export async function newAgentAndSession(maxValue: bigint, scopes: string[] = []): Promise<{ agent: string; secret: string; session: Session }> {
  const { id, secret } = await organization.createAgent({ name: "adapter", scopes });
  const session = client.agent(id, secret).session((await organization.createSession({ agentId: id, maxValue, maxActions: 1_000_000 })).id);
  return { agent: id, secret: secret.reveal(), session };
}

/** Returns a session of a new agent. */
export async function newSession(maxValue = 1000n * USD, scopes: string[] = []): Promise<Session> {
  return (await newAgentAndSession(maxValue, scopes)).session;
}

export const priceTable = `{"priced": {
  "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_read_input_token_cost": 3e-07,
  "cache_creation_input_token_cost": 3.75e-06, "output_cost_per_reasoning_token": 6e-05,
  "max_input_tokens": 100000, "max_output_tokens": 200
}}`;
export const prices = Prices.parse(priceTable);

/** A call, and what the provider makes of it. */
export interface Call {
  readonly index: number;
  readonly model: string; // unique
  readonly fake: string; // X-Fake
  readonly streamed: boolean;
  readonly parts: number; // of a stream, after which it is cancelled; Infinity: never
  readonly how: "abort" | "break";
}

const fates = [
  "", "chunks=odd", "tools=1", "reasoning=1,cached=1", "chunks=odd,cached=1", "usage=missing", "usage=negative", "error=midway", "error=429",
  "error=500", "error=400", "cut=midway", "cut=midway,chunks=odd", "tools=1,chunks=odd", "reasoning=1",
];
const fakes = new Map<string, string>();
const run = Math.random().toString(36).slice(2); // the provider counts for all test files
let planned = 0;

function plan(count: number): Call[] {
  return Array.from({ length: count }, (_, index) => {
    const model = `call-${run}-${planned++}`;
    const isCancelled = index % 7 === 6;
    const fake = [`seed=${index}`, isCancelled ? "pace=1" : fates[index % fates.length]].join(",");
    fakes.set(model, fake);
    return { index, model, fake, streamed: index % 2 === 0, parts: isCancelled ? index % 5 : Infinity, how: index % 3 === 0 ? "break" : "abort" };
  });
}

/** The price of every model of a plan. */
export const models: Readonly<Record<string, string>> = new Proxy({}, {
  get: () => "priced",
  getOwnPropertyDescriptor: () => ({ value: "priced", configurable: true, enumerable: true }),
});

/** Sends a request with what its call wants of the provider. */
export async function fakedFetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const { model } = JSON.parse(String(init.body)) as { model: string };
  const headers = new Headers(init.headers);
  headers.set("X-Fake", fakes.get(model)!);
  headers.set("X-Call", model);
  return fetch(input, { ...init, headers });
}

/** What the provider has counted for a request. */
export interface Counted {
  readonly id: string;
  readonly ended: boolean;
  readonly status: number;
  readonly usage: Readonly<Record<"input" | "cached_input" | "cache_creation_input" | "output" | "reasoning", number>>;
}

/** Returns what the provider has counted, by the model. */
export async function ledger(): Promise<Map<string, Counted[]>> {
  const all = (await (await fetch(`${provider}/ledger`)).json()) as Counted[];
  const byModel = new Map<string, Counted[]>();
  for (const record of all) {
    byModel.set(record.id, [...(byModel.get(record.id) ?? []), record]);
  }
  return byModel;
}

/** Waits until the provider has counted all calls that were not cancelled: it counts after the last byte of an answer. */
async function ledgerOf(calls: readonly Call[], begun: Map<string, Transaction[]>): Promise<Map<string, Counted[]>> {
  for (const end = Date.now() + 10_000; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const counted = await ledger();
    const missing = calls.find(({ model, parts }) => parts === Infinity && (counted.get(model) ?? []).length < (begun.get(model) ?? []).length);
    if (missing === undefined) {
      return counted;
    }
    assert.ok(Date.now() < end, `the provider has not counted ${missing.model}`);
  }
}

export function costOf({ usage }: Counted): bigint {
  const { cached_input: cachedInput, cache_creation_input: cacheCreationInput, input, output, reasoning } = usage;
  return prices.cost("priced", { input, cachedInput, cacheCreationInput, output, reasoning } satisfies TokenUsage);
}

/** Observes the transactions of a session, by the model. */
export function observed(session: Session): { readonly session: Session; readonly begun: Map<string, Transaction[]> } {
  const begun = new Map<string, Transaction[]>();
  const begin = async (params: TransactionParams, options?: object) => {
    const transaction = await session.begin(params, options);
    const { model } = params.metadata as { model: string };
    begun.set(model, [...(begun.get(model) ?? []), transaction]);
    return transaction;
  };
  return { session: new Proxy(session, { get: (target, name) => (name === "begin" ? begin : Reflect.get(target, name, target)) }), begun };
}

/** Makes the calls, some of them at once, and returns how many were refused by the budget. */
async function makeAll(plan: readonly Call[], make: (call: Call) => Promise<void>): Promise<number> {
  let refused = 0;
  const left = [...plan];
  const work = async () => {
    for (let call = left.shift(); call !== undefined; call = left.shift()) {
      await make(call).catch((error: unknown) => {
        refused += Number(isLimitReached(error));
      });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return refused;
}

export function isLimitReached(error: unknown): boolean {
  return error instanceof LimitReached || (error instanceof Error && error.cause !== undefined && isLimitReached(error.cause));
}

/** Waits until nothing of the session is held. */
export async function settled(session: Session): Promise<void> {
  for (const end = Date.now() + 20_000; (await session.get()).valueHeld !== 0n; await new Promise((resolve) => setTimeout(resolve, 20))) {
    assert.ok(Date.now() < end, "a hold is left");
  }
}

/** Returns how a transaction ended. */
async function outcomeOf(transaction: Transaction): Promise<{ status: string; value: bigint; overage: bigint; held: bigint }> {
  const { status, value, overage } = transaction.info!.status === "pending" ? await transaction.get() : transaction.info!;
  return { status, value: status === "committed" ? value : 0n, overage, held: 0n };
}

/** Calls are made with an adapter in one way. */
export interface Adapter {
  readonly name: string;
  /** Makes a call with the adapter of a session. */
  readonly make: (session: Session, call: Call) => Promise<void>;
  /** Tells the calls that the framework itself breaks off, which are like cancelled ones. */
  readonly breaksOff?: (call: Call, records: readonly Counted[]) => boolean;
}

/**
 * Adds the tests that calls with adapters cost what the provider counted, and stay within the budget. A file calls it before it adds
 * another: from its first test on, node:test follows each promise of the process, which doubles the time of very many calls.
 */
export async function testCalls(adapters: readonly Adapter[]): Promise<void> {
  const made: [Adapter, () => void][] = [];
  for (const adapter of adapters) {
    made.push([adapter, await reconcile(adapter).then(() => () => {}, (error: unknown) => () => { throw error; })]);
  }
  for (const [{ name, make }, check] of made) {
    test(`the calls of ${name} cost what the provider counted`, check);
    test(`the calls of ${name} stay within the budget`, () => exhaust(make));
  }
}

/** Makes calls and reconciles them: each that ended cost what the provider counted, nothing is left held, and none cost more than its hold. */
async function reconcile({ make, breaksOff = () => false }: Adapter): Promise<void> {
  const session = await newSession();
  const watch = observed(session);
  const all = plan(calls);
  await makeAll(all, (call) => make(watch.session, call));
  await settled(session);
  const counted = await ledgerOf(all, watch.begun);
  let used = 0n;
  for (const call of all) {
    const ends = await Promise.all((watch.begun.get(call.model) ?? []).map(outcomeOf));
    const records = counted.get(call.model) ?? [];
    used += ends.reduce((sum, { value }) => sum + value, 0n);
    check(breaksOff(call, records) ? { ...call, parts: 0 } : call, ends, records);
  }
  assert.equal((await session.get()).valueUsed, used);
}

type Outcome = Awaited<ReturnType<typeof outcomeOf>>;

function check(call: Call, ends: readonly Outcome[], records: readonly Counted[]): void {
  const about = `${JSON.stringify(call)}: ${ends.map(({ status, value }) => `${status} ${value}`)}; ledger: ${JSON.stringify(records)}`;
  assert.ok(ends.length >= records.length, about);
  assert.ok(ends.every(({ overage }) => overage === 0n), about);
  if (call.parts !== Infinity) {
    return; // how much of it the provider had sent is chance
  }
  assert.ok(ends.length > 0, about);
  const costs = ends.map(({ value }) => value).sort(ascending);
  if (call.fake.includes("usage=")) {
    assert.ok(ends.every(({ status }) => status === "committed"), about); // at their holds
    records.map(costOf).sort(ascending).forEach((cost, i) => assert.ok(costs[i]! >= cost, about));
  } else if (/error=(4|5)/.test(call.fake) || (call.fake.includes("error=midway") && !call.streamed)) {
    assert.ok(ends.every(({ status }) => status === "rolled_back"), about);
  } else if (/midway/.test(call.fake)) {
    records.map(costOf).sort(ascending).forEach((cost, i) => assert.ok(costs[i]! >= cost, about));
  } else {
    assert.ok(records.every(({ ended, status }) => ended && status === 200), about);
    assert.deepEqual(costs, records.map(costOf).sort(ascending), about);
  }
}

function ascending(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b);
}

/** Makes calls with little money, and checks that the budget holds: what is refused is not sent. */
async function exhaust(make: Adapter["make"]): Promise<void> {
  const limit = 10_000n;
  const session = await newSession(limit);
  const watch = observed(session);
  const all = plan(20).map((call) => (fakes.set(call.model, "seed=1"), { ...call, parts: Infinity }));
  const refused = await makeAll(all, (call) => make(watch.session, call));
  await settled(session);
  const counted = await ledgerOf(all, watch.begun);
  const sent = all.flatMap(({ model }) => counted.get(model) ?? []);
  const { valueUsed } = await session.get();
  assert.ok(valueUsed <= limit && refused > 0, `${valueUsed} of ${limit} used, ${refused} refused`);
  assert.equal(sent.reduce((sum, record) => sum + costOf(record), 0n), valueUsed);
  assert.equal(all.filter(({ model }) => watch.begun.has(model)).length, all.length - refused);
}
