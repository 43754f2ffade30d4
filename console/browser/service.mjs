// The service that the Go test started, and its API.
import assert from "node:assert/strict";

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

// fleet charges a session, one charge after the other, until it is stopped. The first charge that is refused is in refusal.
export class Fleet {
  charged = 0;
  refused = 0;
  refusal = undefined;
  #running = true;
  #done;

  constructor(agent, session, pause = 20) {
    this.#done = this.#run(agent, session, pause);
  }

  async #run(agent, session, pause) {
    while (this.#running) {
      const { status, body } = await charge(agent, session);
      if (status < 300) this.charged++;
      else {
        this.refused++;
        this.refusal ??= body;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  stop() {
    this.#running = false;
    return this.#done;
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
