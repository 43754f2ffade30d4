// The events of an organization: one ordered, numbered list over all of its agents.

import { sleep } from "./abort.js";
import type { Call, Caller, CallOptions } from "./call.js";
import { eventFrom, waitSeconds, type Event } from "./events.js";
import type { EventType } from "./eventtypes.js";
import { array, object, text, whole } from "./json.js";
import { patiently, pollPause } from "./more.js";
import { known, typesOf } from "./options.js";
import { nextPage, perPage } from "./pages.js";
import { withQuery } from "./paths.js";

/** An event of one of the organization's agents, with its place among all of them. */
export interface OrganizationEvent extends Event {
  readonly sequence: number; // from 1, without gaps
  readonly previousHash: string; // SHA-256 of the JSON of the event before, in hex
}

/** Where to start, what to yield, and when to end. */
export interface AllEventsOptions extends CallOptions {
  readonly after?: number; // the sequence of an event; by default it starts at the oldest event that the service keeps
  readonly types?: readonly EventType[]; // only events of these types; by default all
  readonly wait?: boolean; // false ends with the last event or the first error; by default it waits for new events
}

export function allEvents(caller: Caller, options: AllEventsOptions): AsyncGenerator<OrganizationEvent, void, undefined> {
  const all = known("the options of events", options, { signal: true, after: true, types: true, wait: true });
  return follow(caller, { ...all, types: typesOf(all.types) ?? [] });
}

async function* follow(caller: Caller, options: AllEventsOptions): AsyncGenerator<OrganizationEvent, void, undefined> {
  const waits = options.wait !== false;
  for (let after = options.after ?? 0; ; ) {
    const once = () => caller.do(pageAfter(after, options.types ?? [], waits ? waitSeconds : 0), options.signal);
    const begun = performance.now();
    const page = await (waits ? patiently(options.signal, once) : once());
    for (const event of page.events) {
      yield event;
      after = Math.max(after, event.sequence);
    }
    if (page.events.length === 0 && page.next <= after) {
      if (!waits) return;
      await sleep(Math.max(begun + pollPause - performance.now(), 0), options.signal);
    }
    after = Math.max(after, page.next);
  }
}

// With types, next is the number of the last event that the service looked at, if there may be more. A page may then be empty.
interface Page {
  readonly events: readonly OrganizationEvent[];
  readonly next: number;
}

function pageAfter(after: number, types: readonly EventType[], seconds: number): Call<Page> {
  const path = withQuery("/v1/events", { after: String(after), limit: perPage, types: types.join(","), wait: String(seconds) });
  const read = (answer: unknown, headers: Headers) => ({
    events: array(answer, organizationEventFrom),
    next: Number(nextPage(headers, "after") ?? 0),
  });
  return { method: "GET", path, semantics: "safe", wait: seconds * 1000, read };
}

function organizationEventFrom(value: unknown): OrganizationEvent {
  const answer = object(value);
  return { ...eventFrom(value), sequence: whole(answer, "seq"), previousHash: text(answer, "previous_hash") };
}

export function checkpoint(): Call<string> {
  return { method: "GET", path: "/v1/events/checkpoint", semantics: "safe", verbatim: true, read: String };
}
