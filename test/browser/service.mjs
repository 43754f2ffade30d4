// The service that the Go test started, and its API.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";

export const origin = process.env.REMIT_ADDR;

// call sends a request of an API client, and returns the status and the decoded body.
export async function call(method, path, credential, body) {
  const headers = {};
  if (credential?.startsWith("rmk_")) headers["X-API-Key"] = credential;
  else if (credential) headers.Authorization = `Bearer ${credential}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(origin + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

// must is call for what has to succeed. It returns the body.
export async function must(method, path, credential, body) {
  const answer = await call(method, path, credential, body);
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

// organization creates one, and returns its id and a key of each role.
export async function organization(name = "acme") {
  const { id, api_key: admin } = await must("POST", "/v1/organizations", undefined, { name });
  const key = async (role) => (await must("POST", "/v1/api-keys", admin, { name: `a ${role}`, role })).api_key;
  return { id, admin, operator: await key("operator"), viewer: await key("viewer") };
}

// agent creates one, and returns it with an access token.
export async function agent(keys, name = "planner", more = {}) {
  const made = await must("POST", "/v1/agents", keys.admin, { name, scopes: ["tool:search", "transactions:rollback"], ...more });
  return { ...made, token: await tokenOf(made) };
}

// tokenOf exchanges an agent's secret for an access token.
export async function tokenOf({ id, secret }) {
  return (await must("POST", "/v1/auth/token", undefined, { agent_id: id, secret })).access_token;
}

export const session = (keys, agent, limits = {}) =>
  must("POST", "/v1/sessions", keys.admin, { agent_id: agent.id, max_actions: 1000, max_value_usd: 10, expires_in_seconds: 3600, ...limits });

// charge sends one charge, and returns the status and the body.
export const charge = (agent, session, value_usd = 0.01, action_type = "llm.call") =>
  call("POST", `/v1/sessions/${session.id}/actions`, agent.token, { action_type, value_usd });

// LoadTest is the project's load test, which charges a session until it is stopped.
export class LoadTest {
  #process;
  #report = "";
  #progress = "";
  #end;

  constructor(agent, session, rate = 40) {
    const env = { PATH: process.env.PATH, REMIT_AGENT: agent.id, REMIT_SECRET: agent.secret };
    this.#process = spawn(process.env.LOADTEST, ["-addr", origin, "-session", session.id, "-rate", rate, "-duration", "10m"], { env });
    this.#process.stdout.on("data", (text) => { this.#report += text; });
    this.#process.stderr.on("data", (text) => { this.#progress += text; });
    this.#end = new Promise((resolve) => this.#process.on("close", resolve));
  }

  // second returns what the load test says of the last second: the charges that were answered, and how many of them were refused.
  get second() {
    const told = [...this.#progress.matchAll(/([0-9]+)\/s .*refused ([0-9]+)  errors ([0-9]+)/g)].at(-1);
    return told && { at: told.index, answered: Number(told[1]), refused: Number(told[2]), errors: Number(told[3]) };
  }

  // awaitSecond waits for a second that ends after now and is like this.
  async awaitSecond(what, isLike) {
    const now = this.second?.at;
    const isNew = () => this.second !== undefined && this.second.at !== now;
    return eventually(`the load test has a second with ${what}`, () => isNew() && isLike(this.second), 20_000);
  }

  // refused waits until every charge is refused, and charged until none is.
  refused() { return this.awaitSecond("refusals only", (s) => s.answered > 0 && s.refused === s.answered); }

  charged() { return this.awaitSecond("charges only", (s) => s.answered > 0 && s.refused === 0 && s.errors === 0); }

  // stop ends the load test, and returns its exit code and its report.
  async stop() {
    this.#process.kill("SIGINT");
    return { code: await this.#end, report: this.#report, progress: this.#progress };
  }
}

// eventually waits until the condition returns something true, and returns that.
export async function eventually(what, condition, limit = 10_000) {
  for (const end = Date.now() + limit; ; ) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < end, `${what} did not happen in ${limit} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
