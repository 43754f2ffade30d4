// The API keys of an organization.

import { keyed, type Call, type Caller, type WriteOptions } from "./call.js";
import { Credential } from "./credential.js";
import { array, maybe, object, text, time, write } from "./json.js";
import { known } from "./options.js";
import { apiKeyPath, apiKeysPath } from "./paths.js";
import { seconds } from "./seconds.js";

/**
 * What an API key may do. A viewer reads everything that contains no credential. An operator also creates, changes and ends
 * sessions, suspends, resumes, revokes and rolls back. An admin may do everything.
 */
export type Role = "viewer" | "operator" | "admin";

/** A new API key. */
export interface ApiKeyParams {
  readonly name: string; // 1 to 200 characters
  readonly role: Role;
  readonly expiresInSeconds?: number; // up to 10 years; by default it never expires
}

/** One of an organization's API keys. The key that came with the organization has the organization's id. */
export interface ApiKeyInfo {
  readonly id: string;
  readonly name: string;
  readonly role: string; // viewer, operator or admin
  readonly hint: string; // its last four characters
  readonly createdAt: Date;
  readonly expiresAt: Date | undefined; // undefined: never
  readonly lastUsedAt: Date | undefined; // to the minute; undefined: it has not been used
}

/** A new API key. Only this response has it. */
export interface CreatedApiKey extends ApiKeyInfo {
  readonly apiKey: Credential;
}

/** A new API key. The previous one ends at previousExpiresAt, or has ended. */
export interface RotatedKey {
  readonly apiKey: Credential;
  readonly previousExpiresAt: Date;
}

/** Options of an API key rotation. */
export interface RotateKeyParams {
  /**
   * How long the old key stays valid; the service's default is 5 minutes. 0 ends it at once: if the response is then lost for
   * good, the organization is locked out.
   */
  readonly graceSeconds?: number;
}

export function createApiKey(caller: Caller, params: ApiKeyParams, options: WriteOptions): Promise<CreatedApiKey> {
  const names = { name: true, role: true, expiresInSeconds: true } as const;
  const { name, role, expiresInSeconds } = known("an API key", params, names);
  const body = write({ name, role, expires_in_seconds: seconds(expiresInSeconds) });
  return caller.do(keyed(caller.service, apiKeysPath, body, options, createdFrom), options.signal);
}

export function listApiKeys(): Call<ApiKeyInfo[]> {
  return { method: "GET", path: apiKeysPath, semantics: "safe", read: (answer) => array(answer, apiKeyFrom) };
}

export function deleteApiKey(id: string): Call<void> {
  return { method: "DELETE", path: apiKeyPath(id), semantics: "idempotent", gone: true, read: () => undefined };
}

/** Rotates the key that the path names. */
export function rotateKey(caller: Caller, path: string, params: RotateKeyParams, options: WriteOptions): Promise<RotatedKey> {
  const { graceSeconds } = known("a rotation of a key", params, { graceSeconds: true });
  const body = write({ grace_seconds: seconds(graceSeconds) });
  return caller.do(keyed(caller.service, path, body, options, rotatedFrom), options.signal);
}

function apiKeyFrom(value: unknown): ApiKeyInfo {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    name: text(answer, "name"),
    role: text(answer, "role"),
    hint: text(answer, "hint"),
    createdAt: time(answer, "created_at"),
    expiresAt: maybe(answer, "expires_at", time),
    lastUsedAt: maybe(answer, "last_used_at", time),
  };
}

function createdFrom(value: unknown): CreatedApiKey {
  return { ...apiKeyFrom(value), apiKey: new Credential(text(object(value), "api_key")) };
}

function rotatedFrom(value: unknown): RotatedKey {
  const answer = object(value);
  return { apiKey: new Credential(text(answer, "api_key")), previousExpiresAt: time(answer, "previous_expires_at") };
}
