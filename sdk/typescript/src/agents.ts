import type { Caller, CallOptions } from "./call.js";
import { Credential } from "./credential.js";
import { events, type Event, type EventOptions } from "./events.js";
import { maybe, object, own, text, texts, time, write, type JSONObject } from "./json.js";
import { agentsPerPage, list } from "./pages.js";
import { agentPath } from "./paths.js";
import { seconds } from "./seconds.js";

/** What a new agent is. */
export interface AgentParams {
  readonly name: string; // 1 to 200 characters
  readonly scopes?: readonly string[]; // at most 64; none: it may do nothing that asks for a scope
  readonly description?: string;
  readonly metadata?: object; // at most 16 KiB
}

/** An agent as the service shows it. */
export interface AgentInfo {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly status: string; // active or revoked
  readonly description: string;
  readonly metadata: JSONObject;
  readonly createdAt: Date;
  readonly revokedAt: Date | undefined;
}

/** A new agent. Its secret is in this answer only. */
export interface CreatedAgent extends AgentInfo {
  readonly secret: Credential;
}

/** A new secret. The one before it ends at previousExpiresAt, or has ended. */
export interface RotatedSecret {
  readonly secret: Credential;
  readonly previousExpiresAt: Date;
}

/** Narrows a list of agents. */
export interface AgentFilter {
  readonly status?: "active" | "revoked";
}

/** The agents of an organization. */
export class Agents {
  readonly #caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Creates an agent. Its secret is in this answer only. */
  async create(params: AgentParams, options: CallOptions = {}): Promise<CreatedAgent> {
    const { name, scopes = [], description, metadata } = params;
    const body = write({ name, scopes, description, metadata });
    return this.#caller.do({ method: "POST", path: "/v1/agents", body, effect: "once", read: createdFrom }, options.signal);
  }

  /** Reads an agent. */
  async get(id: string, options: CallOptions = {}): Promise<AgentInfo> {
    return this.#caller.do({ method: "GET", path: agentPath(id), effect: "reads", read: agentFrom }, options.signal);
  }

  /** The organization's agents, newest first. */
  list(filter: AgentFilter = {}, options: CallOptions = {}): AsyncGenerator<AgentInfo, void, undefined> {
    return list(this.#caller, "/v1/agents", { status: filter.status, limit: agentsPerPage }, agentFrom, options.signal);
  }

  /** Ends an agent at once: its secret, its tokens and its open sessions. To revoke it again changes nothing. */
  async revoke(id: string, options: CallOptions = {}): Promise<void> {
    const path = `${agentPath(id)}/revoke`;
    await this.#caller.do({ method: "POST", path, effect: "repeats", read: object }, options.signal);
  }

  /**
   * Gives an agent a new secret; the present one stays valid for the grace time. If the answer is lost, so is the new
   * secret: rotate again.
   */
  async rotateSecret(id: string, graceSeconds = 0, options: CallOptions = {}): Promise<RotatedSecret> {
    const path = `${agentPath(id)}/secret/rotate`;
    const body = write({ grace_seconds: seconds(graceSeconds) });
    return this.#caller.do({ method: "POST", path, body, effect: "once", read: rotatedFrom }, options.signal);
  }

  /** An agent's audit trail, as `Agent.events` yields it. */
  events(id: string, options: EventOptions = {}): AsyncGenerator<Event, void, undefined> {
    return events(this.#caller, id, options);
  }
}

function agentFrom(value: unknown): AgentInfo {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    organizationId: text(answer, "org_id"),
    name: text(answer, "name"),
    scopes: texts(answer, "scopes"),
    status: text(answer, "status"),
    description: maybe(answer, "description", text) ?? "",
    metadata: own(answer, "metadata"),
    createdAt: time(answer, "created_at"),
    revokedAt: maybe(answer, "revoked_at", time),
  };
}

function createdFrom(value: unknown): CreatedAgent {
  return { ...agentFrom(value), secret: new Credential(text(object(value), "secret")) };
}

function rotatedFrom(value: unknown): RotatedSecret {
  const answer = object(value);
  return {
    secret: new Credential(text(answer, "secret")),
    previousExpiresAt: time(answer, "previous_expires_at"),
  };
}
