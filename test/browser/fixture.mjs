// An organization with something on every page.
import { agent, call, charge, must, organization, session } from "./service.mjs";

// How many characters a text may have.
const most = { name: 200, description: 1000, reason: 500, type: 200, data: 10_000 };

// fixture creates one. All texts that people choose come from text(plain, most), so a test may choose hostile ones of at most
// that many characters.
export async function fixture(text = (plain) => plain) {
  const keys = await organization(text("acme", most.name));
  await must("PUT", "/v1/budget", keys.admin, { max_value_usd: 5000, period: "month" });
  const planner = await agent(keys, text("planner", most.name), { description: text("plans what the others do", most.description), metadata: { team: text("growth", most.data) } });
  const worker = await agent(keys, text("researcher", most.name), { scopes: ["sessions:delegate"], limits: { max_value_usd_per_day: 50, max_actions_per_minute: 6000, max_open_sessions: 100 } });
  const idle = await agent(keys, text("paused one", most.name));
  await must("POST", `/v1/agents/${idle.id}/suspend`, keys.admin, { reason: text("it looped at night", most.reason) });

  const revoked = await agent(keys, text("retired", most.name));
  await must("POST", `/v1/agents/${revoked.id}/revoke`, keys.admin);

  const near = await session(keys, planner, { max_actions: 20, max_value_usd: 1, metadata: { ticket: text("T-7", most.data) } });
  for (let i = 0; i < 9; i++) await charge(planner, near, 0.1, text(`tool.call ${i % 3}`, most.type));
  const committed = await transaction(planner, near, 0.02, text);
  await must("POST", `/v1/transactions/${committed.id}/commit`, planner.token, { value_usd: 0.01, post_state: { after: text("booked", most.data) } });
  const pending = await transaction(planner, near, 0.03, text);
  await must("POST", `/v1/sessions/${near.id}/requests`, planner.token, { add_value_usd: 2, add_actions: 5, reason: text("two more invoices to read", most.reason) });
  await must("POST", `/v1/sessions/${near.id}/keys`, keys.admin, { name: text("editor", most.name) });
  await call("POST", `/v1/sessions/${near.id}/actions`, planner.token, { value_usd: 5 }); // refused

  const parent = await session(keys, worker, { max_actions: 500, max_value_usd: 40 });
  const child = await session(keys, planner, { parent_session_id: parent.id, max_actions: 50, max_value_usd: 4, expires_in_seconds: 1800 });
  await session(keys, planner, { parent_session_id: child.id, max_actions: 5, max_value_usd: 0.5, expires_in_seconds: 900 });
  await charge(worker, parent, 1.234567, text("llm.call", most.type));
  const ended = await session(keys, worker);
  await must("POST", `/v1/sessions/${ended.id}/end`, keys.admin);
  const paused = await session(keys, worker);
  await must("POST", `/v1/sessions/${paused.id}/suspend`, keys.admin, { reason: text("checking a complaint", most.reason) });

  const hook = await must("POST", "/v1/webhooks", keys.admin, { url: "https://localhost/remit", description: text("the on-call channel", most.reason) });
  await call("POST", `/v1/webhooks/${hook.id}/test`, keys.admin);
  await must("POST", "/v1/api-keys", keys.admin, { name: text("expires soon", most.name), role: "viewer", expires_in_seconds: 3600 });
  return { keys, planner, worker, idle, revoked, near, parent, child, ended, paused, committed, pending, hook };
}

const transaction = (agent, session, value_usd, text) =>
  must("POST", "/v1/transactions", agent.token, { session_id: session.id, action_type: text("refund", most.type), value_usd, pre_state: { balance: 10, note: text("before", most.data) }, expires_in_seconds: 3600 });
