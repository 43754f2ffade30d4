// A service of one session with an exact ledger, in this process. It follows docs/api.md where leases and charges are concerned.
import assert from "node:assert/strict";
import { Client, formatUSD, usd, type Lease, type Session } from "@remit/sdk";

/** A lease at the service. */
export interface Leased {
  readonly id: string;
  readonly maxActions: number;
  readonly maxValue: bigint;
  readonly createdAt: number;
  readonly expiresAt: number;
  status: "open" | "settled" | "expired";
  actions: number;
  value: bigint;
  late: boolean;
  settlement: string; // the numbers
  answer: string; // to it
  forgotten: boolean;
}

/** What becomes of a request. "lose": it is done, and its answer is lost. "down": it is refused as unavailable. */
export type Fate = "pass" | "lose" | "down" | "drop" | "suspended" | Promise<void>;

interface Request {
  readonly place: string; // such as POST leases
  readonly key: string | undefined;
  readonly body: any;
  readonly text: string;
  readonly nth: number; // counts the requests with the same place, from 1
}

interface Limits {
  maxActions?: number;
  maxValue?: bigint;
  maxLeaseSeconds?: number;
}

const agent = "a1";

export class Ledger {
  maxActions: number;
  maxValue: bigint;
  maxLeaseSeconds: number;
  status = "active";
  actions = 0; // with all that is leased
  value = 0n; // with all that is leased
  leased = 0n; // the value of open leases
  readonly leases = new Map<string, Leased>();
  readonly seen: Request[] = [];
  fate: (request: Request) => Fate = () => "pass";
  now: () => number = () => Date.now();
  #granted = 0; // actions, by the last approval
  readonly #answers = new Map<string, [text: string, answer: Response]>();

  constructor({ maxActions = 1_000_000_000, maxValue = 1_000_000_000_000_000n, maxLeaseSeconds = 60 }: Limits = {}) {
    this.maxActions = maxActions;
    this.maxValue = maxValue;
    this.maxLeaseSeconds = maxLeaseSeconds;
  }

  /** The session, through an SDK of its own. */
  session(options: { idempotencyKeys?: boolean; maxAttempts?: number } = {}): Session {
    const client = new Client("http://127.0.0.1:1", { fetch: (url, init) => this.#fetch(String(url), init!), ...options });
    return client.agent(agent, "rms_1").session("s1");
  }

  count(place: string): number {
    return this.seen.filter((request) => request.place === place).length;
  }

  open(): Leased[] {
    this.#expire();
    return [...this.leases.values()].filter((lease) => lease.status === "open");
  }

  /** Checks that the books show exactly what was charged, and that nothing is leased any more. */
  balances(actions: number, value: bigint): void {
    assert.deepEqual([this.open().length, this.leased], [0, 0n]);
    assert.deepEqual([this.actions, formatUSD(this.value)], [actions, formatUSD(value)]);
    this.withinLimits();
  }

  withinLimits(): void {
    assert.ok(this.actions <= this.maxActions && this.value <= this.maxValue, "more is charged than the session allows");
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    const path = url.replace(/^.*\/v1\//, "").replace(/\?.*$/, "").replace(/^sessions\/s1$/, "session").replace(/^(sessions|leases)\/[^/]*\//, "");
    const headers = init.headers as Record<string, string>;
    const text = (init.body as string | undefined) ?? "";
    const place = `${init.method} ${path}`;
    const request = { place, key: headers["Idempotency-Key"], body: text && JSON.parse(text), text, nth: this.count(place) + 1 };
    this.seen.push(request);
    const fate = place === "POST auth/token" ? "pass" : this.fate(request);
    if (fate instanceof Promise) {
      await fate;
    }
    await new Promise((resolve) => setImmediate(resolve));
    init.signal?.throwIfAborted();
    if (fate === "drop") {
      throw new TypeError("fetch failed"); // before the service has seen it
    }
    if (fate === "suspended") {
      return problem(403, "organization_suspended");
    }
    const answer = fate === "down" ? problem(503, "unavailable") : this.#once(request, url);
    if (fate === "lose") {
      throw new TypeError("fetch failed");
    }
    return answer;
  }

  // #once answers a request with a key as it did the first time.
  #once(request: Request, url: string): Response {
    if (request.key === undefined) {
      return this.#answer(request, url);
    }
    const known = this.#answers.get(request.key);
    if (known !== undefined) {
      return known[0] === request.text ? known[1].clone() : problem(422, "idempotency_key_reused");
    }
    const answer = this.#answer(request, url);
    this.#answers.set(request.key, [request.text, answer.clone()]);
    return answer;
  }

  #answer({ place, key, body }: Request, url: string): Response {
    this.#expire();
    switch (place) {
      case "POST auth/token":
        return json(200, `{"access_token":"t","refresh_token":"r","token_type":"bearer","expires_in":3600}`);
      case "GET session":
        return json(200, this.#session());
      case "POST actions":
        return body.value_usd < 0 ? problem(400, "invalid_request") : this.#charge(body.count ?? 1, amount(body.value_usd));
      case "POST requests": // they are approved at once
        this.maxActions += body.add_actions;
        this.#granted = body.add_actions;
        return json(201, moreShown("pending", body.add_actions));
      case "GET requests/r1":
        return json(200, moreShown("approved", this.#granted));
      case "POST leases": {
        const made = this.#grant(body);
        return "limit" in made ? this.#refusal(made) : json(201, shown(made));
      }
      case "POST settle":
        assert.equal(key, undefined, "a settlement needs no key");
        return this.#settle(/leases\/([^/]+)/.exec(url)![1]!, body);
    }
    throw new Error(`there is no ${place}`);
  }

  #charge(count: number, value: bigint): Response {
    const limit = this.actions + count > this.maxActions ? "max_actions" : this.value + value > this.maxValue ? "max_value_usd" : "";
    if (this.status !== "active" || limit !== "") {
      return this.#refusal({ limit });
    }
    this.actions += count;
    this.value += value;
    return json(200, this.#usage());
  }

  #grant(body: any): Leased | { limit: string } {
    assert.deepEqual(Object.keys(body), ["max_actions", "max_value_usd", "expires_in_seconds", "partial"]);
    const [actions, value, seconds] = [body.max_actions, amount(body.max_value_usd), body.expires_in_seconds];
    const fits = { actions: Math.min(actions, this.maxActions - this.actions), value: min(value, this.maxValue - this.value) };
    if (this.status !== "active" || this.maxLeaseSeconds === 0) {
      return { limit: "max_lease_seconds" };
    }
    if ((actions > 0 && fits.actions === 0) || (value > 0n && fits.value === 0n)) {
      return { limit: fits.actions === 0 ? "max_actions" : "max_value_usd" };
    }
    const createdAt = this.now();
    const lease: Leased = {
      id: `l-${this.leases.size + 1}`, maxActions: fits.actions, maxValue: fits.value, createdAt,
      expiresAt: createdAt + Math.min(seconds, this.maxLeaseSeconds) * 1000, status: "open", actions: 0, value: 0n, late: false, settlement: "", answer: "", forgotten: false,
    };
    this.actions += lease.maxActions;
    this.value += lease.maxValue;
    this.leased += lease.maxValue;
    this.leases.set(lease.id, lease);
    return lease;
  }

  #settle(id: string, body: any): Response {
    const lease = this.leases.get(id)!;
    const value = amount(body.value_used_usd);
    const types = Object.entries<any>(body.by_action_type ?? {});
    assert.ok(types.length <= 64);
    assert.equal(types.reduce((sum, [, type]) => sum + type.action_count, 0), body.action_count);
    assert.equal(types.reduce((sum, [, type]) => sum + amount(type.value_usd), 0n), value);
    const settlement = `${body.action_count} ${value}`;
    if (lease.status === "settled") {
      if (lease.forgotten) return problem(404, "not_found");
      return lease.settlement === settlement ? json(200, lease.answer) : problem(409, "lease_settled");
    }
    assert.ok(body.action_count <= lease.maxActions && value <= lease.maxValue, "more was spent than was leased");
    lease.late = lease.status === "expired";
    if (!lease.late) {
      this.leased -= lease.maxValue;
    }
    Object.assign(lease, { status: "settled", settlement, actions: body.action_count, value });
    this.actions -= lease.maxActions - lease.actions;
    this.value -= lease.maxValue - lease.value;
    const made = body.renew && this.#grant(body.renew);
    const renewed = made === undefined || "limit" in made ? "null" : shown(made);
    const refusal = made === undefined || !("limit" in made) ? "null" : `{"code":"session_limit_reached","limit":"${made.limit}","detail":"words"}`;
    lease.answer = `{"id":"${id}","status":"settled","late":${lease.late},"renewed":${renewed},"refusal":${refusal}}`;
    return json(200, lease.answer);
  }

  // #expire lets leases expire. What they hold is spent in full.
  #expire(): void {
    for (const lease of this.leases.values()) {
      if (lease.status === "open" && this.now() >= lease.expiresAt) {
        lease.status = "expired";
        this.leased -= lease.maxValue;
      }
    }
  }

  #refusal({ limit }: { limit: string }): Response {
    if (this.status !== "active") {
      return problem(403, "session_not_active", `,"session_status":"${this.status}"`);
    }
    return problem(403, "session_limit_reached", `,"limit":"${limit}",${this.#usage().slice(1, -1)}`);
  }

  #usage(): string {
    const left = this.maxValue - this.value;
    return `{"action_count":${this.actions},"max_actions":${this.maxActions},"remaining_actions":${this.maxActions - this.actions},` +
      `"value_used_usd":${formatUSD(this.value - this.leased)},"max_value_usd":${formatUSD(this.maxValue)},` +
      `"value_held_usd":${formatUSD(this.leased)},"remaining_value_usd":${formatUSD(left)},"expires_at":"2100-01-01T00:00:00Z"}`;
  }

  #session(): string {
    const more = `"id":"s1","agent_id":"a1","status":"${this.status}","max_lease_seconds":${this.maxLeaseSeconds}`;
    return `{${more},"scopes":[],"metadata":{},"created_at":"2026-01-01T00:00:00Z",${this.#usage().slice(1)}`;
  }
}

/** Counts what a lease charges, as the caller sees it. */
export class Charged {
  actions = 0;
  value = 0n;

  async charge(lease: Lease, value = 0n, actionType?: string, count = 1): Promise<void> {
    await lease.charge({ value, count, ...(actionType === undefined ? {} : { actionType }) });
    this.actions += count;
    this.value += value;
  }
}

function json(status: number, text: string): Response {
  return new Response(text, { status });
}

function problem(status: number, code: string, more = ""): Response {
  return json(status, `{"status":${status},"code":"${code}","detail":"words","request_id":"r-1"${more}}`);
}

function moreShown(status: string, actions: number): string {
  return `{"id":"r1","session_id":"s1","agent_id":"a1","status":"${status}","add_actions":${actions},"reason":"words",` +
    `"granted_actions":${actions},"created_at":"2026-01-01T00:00:00Z"}`;
}

function shown(lease: Leased): string {
  const [created, expires] = [lease.createdAt, lease.expiresAt].map((t) => new Date(t).toISOString());
  return `{"id":"${lease.id}","session_id":"s1","status":"open","max_actions":${lease.maxActions},` +
    `"max_value_usd":${formatUSD(lease.maxValue)},"created_at":"${created}","expires_at":"${expires}"}`;
}

function amount(number: number | undefined): bigint {
  return usd(String(number ?? 0)); // exact: the tests' amounts have few digits
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
