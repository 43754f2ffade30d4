// The keys of a session.

import { fromBase64 } from "./base64.js";
import { keyed, type Call, type Caller, type WriteOptions } from "./call.js";
import { Credential, forHeader } from "./credential.js";
import { UnusableCredential } from "./errors.js";
import { array, maybe, object, text, time, write } from "./json.js";
import { known } from "./options.js";
import { sessionKeyPath, sessionKeysPath } from "./paths.js";

/** A new session key. */
export interface SessionKeyParams {
  readonly name?: string; // up to 200 characters, for people
}

/** A key of a session. */
export interface SessionKeyInfo {
  readonly id: string;
  readonly sessionId: string;
  readonly name: string | undefined;
  readonly createdAt: Date;
}

/** A new session key. Only this response has it. */
export interface CreatedSessionKey extends SessionKeyInfo {
  readonly key: Credential;
}

export function createSessionKey(caller: Caller, session: string, params: SessionKeyParams, options: WriteOptions): Promise<CreatedSessionKey> {
  const { name } = known("a session key", params, { name: true });
  return caller.do(keyed(caller.service, sessionKeysPath(session), write({ name }), options, createdFrom), options.signal);
}

export function listSessionKeys(session: string): Call<SessionKeyInfo[]> {
  return { method: "GET", path: sessionKeysPath(session), semantics: "safe", read: (answer) => array(answer, sessionKeyFrom) };
}

export function deleteSessionKey(session: string, id: string): Call<void> {
  return { method: "DELETE", path: sessionKeyPath(session, id), semantics: "idempotent", gone: true, read: () => undefined };
}

function sessionKeyFrom(value: unknown): SessionKeyInfo {
  const answer = object(value);
  return {
    id: text(answer, "id"), sessionId: text(answer, "session_id"), name: maybe(answer, "name", text), createdAt: time(answer, "created_at"),
  };
}

function createdFrom(value: unknown): CreatedSessionKey {
  return { ...sessionKeyFrom(value), key: new Credential(text(object(value), "key")) };
}

/** Returns which agent and session a key names, which the service alone verifies. Throws UnusableCredential for what is no such key. */
export function namedBy(key: string | Credential): readonly [agent: string, session: string] {
  const given = forHeader(key);
  let raw: Uint8Array = new Uint8Array();
  try {
    raw = fromBase64(given.replace(/^rmsk_/, ""));
  } catch {
    // the first error would quote it
  }
  if (!given.startsWith("rmsk_") || raw.length !== 100) { // the name of a key, 4 ids, and an HMAC of 32
    throw new UnusableCredential("session key", "it is no session key");
  }
  const id = (at: number) =>
    Array.from(raw.subarray(at, at + 16), (byte) => byte.toString(16).padStart(2, "0")).join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  return [id(36), id(20)];
}
