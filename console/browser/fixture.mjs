// An organization with something on every page.
import { agent, call, charge, must, organization, session } from "./service.mjs";

// fixture creates one. All texts that people choose come from text(), so a test may choose hostile ones.
export async function fixture(text = (plain) => plain) {
  const keys = await organization(text("acme"));
  await must("PUT", "/v1/budget", keys.admin, { max_value_usd: 5000, period: "month" });
  const planner = await agent(keys, text("planner"), { description: text("plans what the others do"), metadata: { team: text("growth") } });
  const worker = await agent(keys, text("researcher"), { scopes: ["sessions:delegate"], limits: { max_value_usd_per_day: 50, max_actions_per_minute: 6000, max_open_sessions: 100 } });
  const idle = await agent(keys, text("paused one"));
  await must("POST", `/v1/agents/${idle.id}/suspend`, keys.admin, { reason: text("it looped at night") });

  const near = await session(keys, planner, { max_actions: 20, max_value_usd: 1, metadata: { ticket: text("T-7") } });
  for (let i = 0; i < 9; i++) await charge(planner, near, 0.1, text(`tool.call ${i % 3}`));
  const committed = await transaction(planner, near, 0.02, text);
  await must("POST", `/v1/transactions/${committed.id}/commit`, planner.token, { value_usd: 0.01, post_state: { after: text("booked") } });
  const pending = await transaction(planner, near, 0.03, text);
  await must("POST", `/v1/sessions/${near.id}/requests`, planner.token, { add_value_usd: 2, add_actions: 5, reason: text("two more invoices to read") });
  await call("POST", `/v1/sessions/${near.id}/actions`, planner.token, { value_usd: 5 }); // refused

  const parent = await session(keys, worker, { max_actions: 500, max_value_usd: 40 });
  const child = await session(keys, planner, { parent_session_id: parent.id, max_actions: 50, max_value_usd: 4, expires_in_seconds: 1800 });
  await session(keys, planner, { parent_session_id: child.id, max_actions: 5, max_value_usd: 0.5, expires_in_seconds: 900 });
  await charge(worker, parent, 1.234567, text("llm.call"));
  const ended = await session(keys, worker);
  await must("POST", `/v1/sessions/${ended.id}/end`, keys.admin);
  const paused = await session(keys, worker);
  await must("POST", `/v1/sessions/${paused.id}/suspend`, keys.admin, { reason: text("checking a complaint") });

  const hook = await must("POST", "/v1/webhooks", keys.admin, { url: "https://localhost/remit", description: text("the on-call channel") });
  await call("POST", `/v1/webhooks/${hook.id}/test`, keys.admin);
  await must("POST", "/v1/api-keys", keys.admin, { name: text("expires soon"), role: "viewer", expires_in_seconds: 3600 });
  return { keys, planner, worker, idle, near, parent, child, committed, pending };
}

const transaction = (agent, session, value_usd, text) =>
  must("POST", "/v1/transactions", agent.token, { session_id: session.id, action_type: text("refund"), value_usd, pre_state: { balance: 10, note: text("before") }, expires_in_seconds: 3600 });
