// Webhooks, which send an organization's events to a URL as Standard Webhooks describes.

import { keyed, type Call, type Caller, type WriteOptions } from "./call.js";
import { Credential } from "./credential.js";
import type { EventType } from "./eventtypes.js";
import { array, maybe, object, text, texts, time, whole, write } from "./json.js";
import { known, typesOf } from "./options.js";
import { list } from "./pages.js";
import { deliveriesPath, deliveryPath, webhookPath, webhooksPath } from "./paths.js";
import { seconds } from "./seconds.js";

/** A new webhook. */
export interface WebhookParams {
  readonly url: string; // https, with a public address
  readonly types?: readonly EventType[]; // of events; by default all
  readonly description?: string;
}

/** Changes of a webhook. What is omitted stays. */
export interface WebhookChanges {
  readonly url?: string;
  readonly types?: readonly EventType[]; // empty: all
  readonly description?: string;
}

/** A webhook as the service shows it. */
export interface WebhookInfo {
  readonly id: string;
  readonly url: string; // whole only for an admin's key; others see scheme and host: https://receiver.example/…
  readonly types: readonly EventType[]; // empty: all
  readonly description: string;
  readonly missedEvents: number; // that the service no longer kept when it came to them
  readonly confirmedAt: Date | undefined; // when the receiver at this URL first accepted a test; undefined: it has yet to, and gets tests only
  readonly failingSince: Date | undefined; // undefined: the last attempt succeeded
  readonly createdAt: Date;
}

/** A new webhook. Only this response has its secret, with which a library of Standard Webhooks verifies what arrives. */
export interface CreatedWebhook extends WebhookInfo {
  readonly secret: Credential;
}

/** Options of a rotation of a webhook's secret. */
export interface RotateWebhookParams {
  readonly graceSeconds?: number; // how long requests are signed by the old secret too; the service's default is a day
}

/** A new secret of a webhook. Until previousExpiresAt requests carry signatures by both. */
export interface RotatedWebhookSecret {
  readonly secret: Credential;
  readonly previousExpiresAt: Date;
}

/** One event on its way to a webhook's receiver. */
export interface Delivery {
  readonly id: string; // the webhook-id that the receiver sees
  readonly webhookId: string;
  readonly eventSequence: number | undefined; // undefined: a test
  readonly type: EventType; // of the event; "webhook.test" of a test
  readonly status: string; // pending, delivered or dead
  readonly attemptCount: number;
  readonly responseStatus: number | undefined; // of the last attempt; undefined: there was no response
  readonly error: string; // why the last attempt failed; empty: it did not
  readonly durationMs: number | undefined; // of the last attempt
  readonly createdAt: Date;
  readonly lastAttemptAt: Date | undefined;
  readonly nextAttemptAt: Date | undefined;
}

/** Filters a list of deliveries. */
export interface DeliveryFilter {
  readonly status?: "pending" | "delivered" | "dead";
}

const settings = { url: true, types: true, description: true } as const;

export function createWebhook(caller: Caller, params: WebhookParams, options: WriteOptions): Promise<CreatedWebhook> {
  const { url, types, description } = known("a webhook", params, settings);
  const body = write({ url, types: typesOf(types), description });
  return caller.do(keyed(caller.service, webhooksPath, body, options, createdFrom), options.signal);
}

export function listWebhooks(): Call<WebhookInfo[]> {
  return { method: "GET", path: webhooksPath, semantics: "safe", read: (answer) => array(answer, webhookFrom) };
}

export function getWebhook(id: string): Call<WebhookInfo> {
  return { method: "GET", path: webhookPath(id), semantics: "safe", read: webhookFrom };
}

export function updateWebhook(id: string, changes: WebhookChanges): Call<WebhookInfo> {
  const { url, types, description } = known("changes of a webhook", changes, settings);
  const body = write({ url, types: typesOf(types), description });
  return { method: "PATCH", path: webhookPath(id), body, semantics: "idempotent", read: webhookFrom };
}

export function deleteWebhook(id: string): Call<void> {
  return { method: "DELETE", path: webhookPath(id), semantics: "idempotent", gone: true, read: () => undefined };
}

export function rotateWebhookSecret(
  caller: Caller,
  id: string,
  params: RotateWebhookParams,
  options: WriteOptions,
): Promise<RotatedWebhookSecret> {
  const { graceSeconds } = known("a rotation of a webhook's secret", params, { graceSeconds: true });
  const body = write({ grace_seconds: seconds(graceSeconds) });
  return caller.do(keyed(caller.service, `${webhookPath(id)}/rotate`, body, options, rotatedFrom), options.signal);
}

export function testWebhook(caller: Caller, id: string, options: WriteOptions): Promise<Delivery> {
  return caller.do(keyed(caller.service, `${webhookPath(id)}/test`, write({}), options, deliveryFrom), options.signal);
}

export function listDeliveries(caller: Caller, webhook: string, filter: DeliveryFilter, signal: AbortSignal | undefined) {
  const { status } = known("a filter of deliveries", filter, { status: true });
  return list(caller, deliveriesPath(webhook), { status }, deliveryFrom, signal);
}

export function retryDelivery(webhook: string, id: string): Call<Delivery> {
  return { method: "POST", path: `${deliveryPath(webhook, id)}/retry`, semantics: "idempotent", read: deliveryFrom };
}

function webhookFrom(value: unknown): WebhookInfo {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    url: text(answer, "url"),
    types: texts(answer, "types"),
    description: maybe(answer, "description", text) ?? "",
    missedEvents: maybe(answer, "missed_events", whole) ?? 0,
    confirmedAt: maybe(answer, "confirmed_at", time),
    failingSince: maybe(answer, "failing_since", time),
    createdAt: time(answer, "created_at"),
  };
}

function createdFrom(value: unknown): CreatedWebhook {
  return { ...webhookFrom(value), secret: new Credential(text(object(value), "secret")) };
}

function rotatedFrom(value: unknown): RotatedWebhookSecret {
  const answer = object(value);
  return { secret: new Credential(text(answer, "secret")), previousExpiresAt: time(answer, "previous_expires_at") };
}

function deliveryFrom(value: unknown): Delivery {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    webhookId: text(answer, "webhook_id"),
    eventSequence: maybe(answer, "event_seq", whole),
    type: text(answer, "type"),
    status: text(answer, "status"),
    attemptCount: whole(answer, "attempt_count"),
    responseStatus: maybe(answer, "response_status", whole),
    error: maybe(answer, "error", text) ?? "",
    durationMs: maybe(answer, "duration_ms", whole),
    createdAt: time(answer, "created_at"),
    lastAttemptAt: maybe(answer, "last_attempt_at", time),
    nextAttemptAt: maybe(answer, "next_attempt_at", time),
  };
}
