import { sleep } from "./abort.js";
import type { Call, Caller, CallOptions } from "./call.js";
import { array, maybe, object, text, time, withAmounts, type Answer, type JSONObject } from "./json.js";
import type { EventType } from "./eventtypes.js";
import { patiently, pollPause } from "./more.js";
import { known } from "./options.js";
import { perPage } from "./pages.js";
import { agentPath, withQuery } from "./paths.js";

export const waitSeconds = 30; // how long the service waits for an event at most

/** One entry of an agent's audit trail. */
export interface Event {
  readonly id: string;
  readonly type: EventType;
  readonly occurredAt: Date;
  readonly agentId: string; // empty: of the organization itself
  readonly actor: { readonly type: string; readonly id: string }; // api_key, agent, session_key; without an id time, when something expired or a period ended, and gateway
  readonly requestId: string | undefined;
  readonly sessionId: string | undefined;
  readonly transactionId: string | undefined;
  readonly familyId: string | undefined; // the refresh-token family
  readonly leaseId: string | undefined;
  readonly sessionRequestId: string | undefined; // the request for more
  readonly sessionKeyId: string | undefined; // that was created or deleted
  readonly childSessionId: string | undefined; // that became or was a part of the session
  readonly data: JSONObject | undefined; // amounts, whose names end in _usd, are MicroUSD
}

/** Where to start in a trail, and when to end. */
export interface EventOptions extends CallOptions {
  readonly after?: string | undefined; // the id of an event; by default the trail starts at the oldest event that the service keeps
  readonly wait?: boolean; // false ends with the last event; by default the trail waits for new events
}

export function events(caller: Caller, agent: string, options: EventOptions): AsyncGenerator<Event, void, undefined> {
  return follow(caller, agent, known("the options of events", options, { signal: true, after: true, wait: true }));
}

async function* follow(caller: Caller, agent: string, options: EventOptions): AsyncGenerator<Event, void, undefined> {
  const seconds = options.wait === false ? 0 : waitSeconds;
  for (let after = options.after; ; ) {
    const path = withQuery(`${agentPath(agent)}/events`, { after, limit: perPage, wait: String(seconds) });
    const read = (answer: unknown) => array(answer, eventFrom);
    const call: Call<Event[]> = { method: "GET", path, semantics: "safe", wait: seconds * 1000, read };
    const once = () => caller.do(call, options.signal);
    const begun = performance.now();
    const page = await (seconds === 0 ? once() : patiently(options.signal, once));
    for (const event of page) {
      yield event;
      after = event.id;
    }
    if (page.length === 0) {
      if (seconds === 0) return;
      await sleep(Math.max(begun + pollPause - performance.now(), 0), options.signal);
    }
  }
}

export function eventFrom(value: unknown): Event {
  const answer = object(value);
  const actor = object(answer["actor"]);
  return {
    id: text(answer, "id"),
    type: text(answer, "type"),
    occurredAt: time(answer, "occurred_at"),
    agentId: maybe(answer, "agent_id", text) ?? "",
    actor: { type: text(actor, "type"), id: maybe(actor, "id", text) ?? "" },
    requestId: maybe(answer, "request_id", text),
    sessionId: maybe(answer, "session_id", text),
    transactionId: maybe(answer, "transaction_id", text),
    familyId: maybe(answer, "family_id", text),
    leaseId: maybe(answer, "lease_id", text),
    sessionRequestId: maybe(answer, "session_request_id", text),
    sessionKeyId: maybe(answer, "session_key_id", text),
    childSessionId: maybe(answer, "child_session_id", text),
    data: maybe(answer, "data", (from: Answer, name) => object(withAmounts(from[name]))),
  };
}
