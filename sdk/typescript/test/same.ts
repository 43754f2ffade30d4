// The calls of docs/sdks.md with the TypeScript SDK; see test/same/main.go.
import {
  InsufficientRole, LastAdminKey,
  Agent, AgentLimitReached, AgentSuspended, BudgetExhausted, RequestDecided, RequestNotApproved, SessionSuspended, Client, formatUSD, HeldByGateway, IdempotencyKeyReused, InsufficientScope, LeaseClosed, LimitBelowUsage, LimitReached, NotFound,
  Organization, OrganizationSuspended, OutcomeUnknown, QuotaExceeded, RateLimited, RemitError, Session, SessionKeyOnly, SessionNotActive, TooManySessionKeys, TransactionDone,
  TransactionNotPending, TransactionNotReversible, Unauthorized, Unavailable, USD, type AgentLimits, type AskingCharge, type EventType, type SessionParams,
  type Transaction, type Usage,
} from "@remit/sdk";
import { meteredFetch, UnboundedCall, UsageMissing } from "@remit/sdk/fetch";
import { InvalidPrices, Prices, UnknownModel } from "@remit/sdk/prices";
import { contractIdentity, identity } from "./sameidentity.js";
import { add, answered, count, done, refused } from "./steps.js";

async function organizations(client: Client): Promise<[Organization, string]> {
  const made = await client.createOrganization({ name: "acme", metadata: { tier: 1 } });
  add("create an organization", made.name, made.apiKey !== undefined);
  const key = (await client.organization(made.apiKey!).rotateKey(made.id)).apiKey;
  add("rotate its API key", key.reveal() !== made.apiKey!.reveal());
  const o = client.organization(key);
  const info = await o.info(made.id);
  add("read an organization", info.name, info.metadata, info.apiKey === undefined);
  const scout = await o.createAgent({ name: "scout", scopes: ["read", "pay", "transactions:rollback"] });
  add("create an agent", scout.name, scout.status, scout.scopes);
  add("read an agent", (await o.getAgent(scout.id)).name);
  add("list agents", await count(o.agents({ status: "active" })));
  const { secret } = await o.rotateAgentSecret(scout.id);
  add("rotate an agent's secret", secret.reveal() !== scout.secret.reveal());
  Object.assign(process.env, { REMIT_API_KEY: key.reveal(), REMIT_AGENT: scout.id, REMIT_SECRET: secret.reveal() });
  return [o, scout.id];
}

async function sessions(o: Organization, scout: string): Promise<Session> {
  const scopes = ["read", "transactions:rollback"];
  const made = await o.createSession({ agentId: scout, maxActions: 10, maxValue: 5n * USD, scopes });
  add("create a session", made.maxActions, made.maxValue, made.scopes, made.status);
  add("read a session", (await o.getSession(made.id)).maxActions);
  add("list sessions", await count(o.sessions({ agentId: scout, status: "active" })));
  const changed = await o.updateSession(made.id, { maxActions: 20 });
  add("change a session's limits", changed.maxActions, changed.maxValue);
  process.env["REMIT_SESSION"] = made.id;
  const [session, agent, own] = [Session.fromEnv(), Agent.fromEnv(), Organization.fromEnv()];
  add("settings from the environment", session.id === made.id, agent.id === scout, await count(own.agents()));
  return session;
}

function shown(u: Usage): string {
  const value = `${formatUSD(u.valueUsed)} of ${formatUSD(u.maxValue)}, ${formatUSD(u.valueHeld)} held`;
  return `${u.actionCount} of ${u.maxActions}, ${value}`;
}

async function charges(o: Organization, session: Session): Promise<void> {
  add("charge", shown(await session.charge({ actionType: "llm.call", value: 370_000n, count: 2, scope: "read" })));
  const [first, second] = await session.chargeMany([{ value: USD }, { value: 9n * USD }]);
  if (!first?.ok || second?.ok !== false || !(second.error instanceof LimitReached)) {
    throw new Error("the batch has other results");
  }
  add("charge many", `${shown(first.usage)};`, second.error.limit);
  await lease(o, session);
  const limit = await refused(LimitReached, () => session.charge({ value: 9n * USD }));
  add("a limit is reached", limit.limit, limit.usage.remainingValue, limit.needed.actions, limit.needed.value, answered(limit));
  const below = await refused(LimitBelowUsage, () => o.updateSession(session.id, { maxActions: 1 }));
  add("limits below what is used", below.limit, answered(below));
}

async function lease(o: Organization, session: Session): Promise<void> {
  add("allow leases", (await o.updateSession(session.id, { maxLeaseSeconds: 60 })).maxLeaseSeconds);
  const leased = await session.lease();
  add("lease", true);
  await leased.charge({ actionType: "llm.call", value: USD / 4n });
  add("charge a lease", true);
  await leased.close();
  await leased.close();
  const { actionCount, valueUsed } = await session.get();
  add("close a lease", actionCount, valueUsed);
  await refused(LeaseClosed, async () => leased.charge());
  add("a lease was closed", true);
}

async function transactions(o: Organization, session: Session): Promise<void> {
  const tx = await session.begin({ actionType: "payment", preState: { balance: 7 }, value: USD });
  add("begin", tx.info?.status, tx.info?.valueHeld, tx.info?.preState);
  await tx.commit({ value: 750_000n });
  add("commit", tx.info?.status, tx.info?.value);
  await refused(TransactionDone, () => tx.commit());
  add("a transaction was settled here", true);
  const opened = o.transaction(tx.id);
  add("open a transaction by its id", (await opened.get()).status);
  await opened.reverse("wrong account");
  add("reverse", opened.info?.status, opened.info?.reason);

  const bare = await session.begin({ actionType: "edit" });
  await o.transaction(bare.id).rollback("never mind");
  add("roll back", (await bare.get()).status, bare.info?.preState);
  const elsewhere = await refused(TransactionNotPending, () => bare.commit());
  add("a transaction was settled elsewhere", elsewhere.transactionStatus);
  const final = await session.begin({ actionType: "mail", reversible: false });
  await final.commit();
  const irreversible = await refused(TransactionNotReversible, () => o.transaction(final.id).reverse());
  add("a transaction is irreversible", irreversible.transactionStatus);

  const payment = { actionType: "payment", value: USD / 2n };
  const ended = await session.begin(payment, async (inside) => inside);
  add("a block that ends normally", (await ended.get()).status, ended.info?.value, true);
  let failed: Transaction | undefined;
  const failure = new Error("the act failed");
  const error = await refused(Error, () => session.begin(payment, async (inside) => { failed = inside; throw failure; }));
  add("a block that an error ends", (await failed!.get()).status, failed!.info?.reason, error === failure);
  add("list transactions", await count(o.transactions({ sessionId: session.id })));
}

async function tokens(client: Client, o: Organization, scout: string): Promise<void> {
  const agent = Agent.fromEnv();
  const first = await agent.token();
  add("an access token", first.startsWith("eyJ"));
  await agent.refresh();
  add("renew it", (await agent.token()) !== first);
  const pair = await client.exchange(scout, process.env["REMIT_SECRET"]!);
  add("exchange a secret", pair.refreshToken!.reveal() !== "", pair.expiresIn);
  const verified = await client.verify(pair.accessToken, "read");
  add("verify a token", verified.agentId === scout, verified.scopes);
  const introspection = await o.introspect(pair.accessToken);
  add("introspect a token", introspection.active, introspection.active && introspection.agentId === scout, introspection.active && introspection.scopes);
}

async function refusals(client: Client, o: Organization, session: Session): Promise<void> {
  const lacks = await refused(InsufficientScope, () => session.charge({ scope: "pay" }));
  add("a scope is lacking", lacks.requiredScope);
  await refused(Unauthorized, () => client.verify("nonsense"));
  add("a credential is wrong", true);
  await refused(NotFound, () => o.getSession("00000000-0000-4000-8000-000000000000"));
  add("nothing is there", true);
  await session.charge({}, { idempotencyKey: "own" });
  await refused(IdempotencyKeyReused, () => session.charge({ count: 2 }, { idempotencyKey: "own" }));
  add("a key was used for another request", true);
  const invalid = await refused(RemitError, () => o.createSession({ agentId: "nobody" }));
  add("a field is invalid", `${invalid.fields[0]?.field}:`, answered(invalid));
}

async function ends(o: Organization, scout: string, session: Session): Promise<void> {
  await session.end();
  await o.endSession(session.id);
  add("end a session", (await session.get()).status);
  const over = await refused(SessionNotActive, () => session.charge());
  add("a session has ended", over.sessionStatus);
  for await (const event of o.events(scout)) {
    add("follow an audit trail", event.type, event.actor.type);
    break;
  }
  const trail: string[] = [];
  for await (const event of o.events(scout, { wait: false })) {
    trail.push(event.type);
    if (event.type === "lease.settled") add("an event of a lease", event.leaseId !== undefined);
  }
  add("read an audit trail to its end", trail[0], trail[trail.length - 1]);
  await o.revokeAgent(scout);
  add("revoke an agent", (await o.getAgent(scout)).status);
}

async function contract(client: Client): Promise<void> {
  const o = client.organization("rmk_1");
  for await (const family of o.families("a1")) {
    add("list families", family.id, Math.floor(family.expiresAt.getTime() / 1000), family.lastUsedAt === undefined);
  }
  await o.revokeFamily("a1", "f/1");
  add("revoke a family", true);
  add("rotate its API key", (await o.rotateKey("o1", { graceSeconds: 0 })).apiKey.reveal());
  add("rotate a stolen secret", (await o.rotateAgentSecret("a1", { graceSeconds: 1.5, revokeFamilies: true })).secret.reveal());
  const limited = await o.createSession({ agentId: "a1", maxCommitted: 20n * USD });
  add("limit what is ever committed", limited.valueCommitted, "of", limited.maxCommitted);
  add("top up", (await o.updateSession("s1", { addActions: 5, addValue: USD / 4n })).maxActions);
  const info = await o.info("o1");
  add("quotas and usage", info.quotas["agents"], info.usage["agents"], Object.keys(info.quotas).length);

  const tx = client.agent("a1", "rms_1").transaction("t1");
  add("change a transaction", (await tx.update({ value: 0n, expiresInSeconds: 60 })).valueHeld);
  add("commit after it expired", (await tx.commit({}, { idempotencyKey: "own" })).late);

  const once = Client.fromEnv({ maxAttempts: 1 }).organization("rmk_1");
  const quota = await refused(QuotaExceeded, () => once.createAgent({ name: "quota_exceeded" }));
  add("a quota is exceeded", quota.quota, quota.used, quota.max, answered(quota));
  for (const [name, code, kind] of [
    ["the organization is suspended", "organization_suspended", OrganizationSuspended],
    ["requests come too fast", "rate_limited", RateLimited],
    ["the service is unavailable", "unavailable", Unavailable],
    ["a write may have happened", "outcome_unknown", OutcomeUnknown],
  ] as const) {
    await refused<RemitError>(kind, () => once.createAgent({ name: code }));
    add(name, true);
  }
  for (let n = 0; ; n++) {
    const error = await o.getSession(`refused-${n}`).then(() => undefined, (e: RemitError) => e);
    if (error === undefined) break;
    add("what an error says", /\d{3} .*/.exec(error.message)?.[0]);
  }
}

// fleet makes the calls that suspend, limit and divide.
async function fleet(client: Client): Promise<void> {
  const o = client.organization("rmk_1");
  const session = client.agent("a1", "rms_1").session("s1");
  await suspensions(o);
  await agentLimits(o);
  await trials(session);
  await requests(o, session);
  await asking(client.agent("a1", "rms_1").session("s2"));
  await trees(o, session);
  await fleetRefusals();
}

async function suspensions(o: Organization): Promise<void> {
  add("suspend an agent", (await o.suspendAgent("a1", "leak")).suspensionReason);
  add("resume an agent", (await o.resumeAgent("a1")).id);
  add("suspend all agents", await o.suspendAllAgents("leak"));
  add("resume all agents", await o.resumeAllAgents());
  add("suspend a session", (await o.suspendSession("s1", "odd")).suspendedAt === undefined);
  add("resume a session", (await o.resumeSession("s1", "fixed")).id);
}

async function agentLimits(o: Organization): Promise<void> {
  const limits: AgentLimits = { maxValuePerDay: USD / 2n, maxActionsPerMinute: null };
  const changed = await o.updateAgent("a1", { name: "spy", description: "", metadata: { tier: 2 }, scopes: ["read"], limits });
  add("change an agent", changed.id);
  const [now, used] = [changed.limits!, changed.usage!];
  add("limits of an agent", now.maxValuePerDay, now.maxActionsPerMinute === undefined, now.maxOpenSessions);
  add("usage of an agent", used.valueUsedToday, seconds(used.resetsAt), used.openSessions);
  await o.createAgent({ name: "limited", limits: { maxOpenSessions: 3 } });
  await o.updateSession("s1", { maxValuePerAction: null });
  add("remove a limit", true);
  const observing = await o.createSession({ agentId: "a1", maxValuePerAction: USD, enforcement: "observe" });
  add("limit each action", observing.maxValuePerAction);
  add("look before enforcing", observing.enforcement, observing.observedRefusals);
}

async function trials(session: Session): Promise<void> {
  add("try a charge", (await session.dryRunCharge({ value: USD, count: 2 })).wouldRefuse);
  add("try a transaction", (await session.dryRunBegin({ actionType: "pay", value: USD })).wouldRefuse);
}

async function requests(o: Organization, session: Session): Promise<void> {
  const asked = await session.requestMore({ addActions: 2, addValue: 1n, reason: "more pages" });
  add("ask for more", asked.status, asked.addValue);
  const decided = await session.awaitRequest(asked.id);
  add("wait for the decision", decided.status, decided.grantedActions, decided.grantedValue, decided.comment);
  await session.getRequest(asked.id);
  add("read a request for more", (await o.getRequest("s1", asked.id)).reason);
  await session.requests();
  add("list requests for more", (await o.requests("s1", { status: "approved" })).length);
  const part = { addActions: 1, addValue: 0n, comment: "ok" };
  add("approve a request for more", (await o.approveRequest("s1", "r1", part)).status);
  add("deny a request for more", (await o.denyRequest("s1", "r1", "too dear")).status);
}

async function asking(session: Session): Promise<void> {
  const charge: AskingCharge = { value: USD, onLimit: "ask", reason: "more pages" };
  add("ask when a limit is reached", (await session.charge(charge, { idempotencyKey: "own" })).actionCount);
  const denied = await refused(RequestNotApproved, () => session.charge(charge, { idempotencyKey: "denied" }));
  add("more is not approved", denied.limit, denied.request?.status, denied.request?.comment);
}

async function trees(o: Organization, session: Session): Promise<void> {
  await session.createChild({ maxValue: USD });
  await o.createSession({ agentId: "a2", parentSessionId: "s1" });
  add("create a child session", true);
  await o.sessionTree("s1");
  const tree = await session.tree();
  const [child] = tree.children;
  add("read a tree", tree.valueDelegated, tree.actionsDelegated, child?.parentSessionId, child?.children[0]?.id);
  add("a tree that is not complete", child?.children[0]?.childrenTruncated);
  const made = await o.setBudget({ maxValue: 100n * USD, period: "month" });
  add("set a budget", made.maxValue, made.period);
  const budget = await o.getBudget();
  add("read a budget", budget.valueReserved, budget.valueUsed, budget.remaining, seconds(budget.resetsAt));
  await o.deleteBudget();
  add("delete a budget", true);
}

async function fleetRefusals(): Promise<void> {
  const once = Client.fromEnv({ maxAttempts: 1 }).organization("rmk_1");
  const agent = await refused(AgentLimitReached, () => once.createAgent({ name: "agent_limit_reached" }));
  add("a limit of the agent is reached", agent.limit, seconds(agent.resetsAt), answered(agent));
  const budget = await refused(BudgetExhausted, () => once.createAgent({ name: "budget_exhausted" }));
  add("the budget is exhausted", budget.remaining, seconds(budget.resetsAt), answered(budget));
  const stopped = await refused(AgentSuspended, () => once.createAgent({ name: "agent_suspended" }));
  add("the agent is suspended", seconds(stopped.suspendedAt));
  const paused = await refused(SessionSuspended, () => once.createAgent({ name: "session_suspended" }));
  add("the session is suspended", seconds(paused.suspendedAt));
  await refused(RequestDecided, () => once.createAgent({ name: "request_decided" }));
  add("a request was decided otherwise", true);
  add("the gateway holds a transaction", (await refused(HeldByGateway, () => once.createAgent({ name: "held_by_gateway" }))).status === 403);
}

// served makes to the service those calls of fleet that need no state which a test cannot create.
async function served(client: Client, o: Organization): Promise<void> {
  const made = await o.createAgent({ name: "planner", scopes: ["sessions:delegate"] });
  const agent = client.agent(made.id, made.secret);
  await servedSuspensions(o, agent);
  await servedLimits(o, agent);
  await servedTrials(o, agent);
  await servedKeys(client, o, agent);
  await servedRequests(o, agent);
  await servedTrees(o, agent);
  for await (const event of o.events(agent.id, { wait: false })) {
    if (event.type === "session.more_requested") add("an event of a request for more", event.sessionRequestId !== undefined);
    if (event.type === "session.key_deleted") add("an event of a session key", event.sessionKeyId !== undefined);
    if (event.type === "session.delegated") add("an event of a child session", event.childSessionId !== undefined);
  }
}

// sessionFor creates a session of the agent.
async function sessionFor(o: Organization, agent: Agent, params: Omit<SessionParams, "agentId">): Promise<Session> {
  return agent.session((await o.createSession({ agentId: agent.id, ...params })).id);
}

async function servedSuspensions(o: Organization, agent: Agent): Promise<void> {
  const session = await sessionFor(o, agent, {});
  add("suspend an agent", (await o.suspendAgent(agent.id, "leak")).suspensionReason);
  add("the agent is suspended", (await refused(AgentSuspended, () => session.charge())).suspendedAt !== undefined);
  add("resume an agent", (await o.resumeAgent(agent.id)).suspendedAt === undefined);
  add("suspend all agents", await o.suspendAllAgents());
  add("resume all agents", await o.resumeAllAgents());
  add("suspend a session", (await o.suspendSession(session.id, "odd")).suspensionReason);
  add("the session is suspended", (await refused(SessionSuspended, () => session.charge())).suspendedAt !== undefined);
  add("resume a session", (await o.resumeSession(session.id)).suspendedAt === undefined);
}

async function servedKeys(client: Client, o: Organization, agent: Agent): Promise<void> {
  const session = await sessionFor(o, agent, {});
  const made = await o.createSessionKey(session.id, { name: "editor" });
  add("create a session key", made.name, made.sessionId === session.id);
  const keyed = client.sessionWithKey(made.key);
  add("a session key names its session", keyed.id === session.id);
  add("charge with a session key", (await keyed.charge()).actionCount);
  add("a session key reaches its session alone", (await refused(SessionKeyOnly, () => keyed.end())) !== undefined);
  const listed = await o.sessionKeys(session.id);
  add("list session keys", listed.length, listed[0]!.id === made.id);
  while ((await o.sessionKeys(session.id)).length < 8) {
    await o.createSessionKey(session.id);
  }
  add("too many session keys", (await refused(TooManySessionKeys, () => o.createSessionKey(session.id))) !== undefined);
  await o.deleteSessionKey(session.id, made.id);
  add("delete a session key", (await refused(Unauthorized, () => keyed.get())) !== undefined);
}

async function servedLimits(o: Organization, agent: Agent): Promise<void> {
  const limits = { maxValuePerDay: USD, maxActionsPerMinute: 3, maxOpenSessions: 2 };
  const changed = await o.updateAgent(agent.id, { description: "limited", limits });
  add("change an agent", changed.description);
  const now = changed.limits!;
  add("limits of an agent", now.maxValuePerDay, now.maxActionsPerMinute, now.maxOpenSessions);
  const session = await sessionFor(o, agent, { maxValuePerAction: 750_000n });
  add("limit each action", (await refused(LimitReached, () => session.charge({ value: 800_000n }))).limit);
  await session.charge({ value: 750_000n });
  const spent = await refused(AgentLimitReached, () => session.charge({ value: USD / 2n }));
  add("a limit of the agent is reached", spent.limit, spent.resetsAt !== undefined, spent.needed.actions, spent.needed.value);
  const used = (await o.getAgent(agent.id)).usage!;
  add("usage of an agent", used.valueUsedToday, used.openSessions);
  const [, fast] = await session.chargeMany([{ count: 2 }, { count: 3 }]);
  if (fast?.ok !== false) {
    throw new Error("the batch has other results");
  }
  add("when to send an item again", fast.error instanceof RateLimited, (fast.error.retryAfter ?? 0) > 0);
  const none = { maxValuePerDay: null, maxActionsPerMinute: null, maxOpenSessions: null };
  add("remove a limit", (await o.updateAgent(agent.id, { limits: none })).limits!.maxValuePerDay === undefined);
}

async function servedTrials(o: Organization, agent: Agent): Promise<void> {
  const session = await sessionFor(o, agent, { maxActions: 1, enforcement: "observe" });
  add("try a charge", (await session.dryRunCharge({ count: 2 })).wouldRefuse);
  add("try a transaction", (await session.dryRunBegin({ actionType: "pay" })).wouldRefuse === undefined);
  await session.charge({ count: 2 });
  const info = await o.getSession(session.id);
  add("look before enforcing", info.enforcement, info.observedRefusals);
}

async function servedRequests(o: Organization, agent: Agent): Promise<void> {
  const session = await sessionFor(o, agent, { maxActions: 1 });
  const more = { addActions: 1, reason: "more pages" };
  // The key is that of a charge with the key "two", which asks for the same.
  let asked = await session.requestMore(more, { idempotencyKey: "two-ask-1" });
  add("ask for more", asked.status, asked.addActions);
  add("list requests for more", (await o.requests(session.id, { status: "pending" })).length);
  add("deny a request for more", (await o.denyRequest(session.id, asked.id, "too dear")).status);
  add("read a request for more", (await o.getRequest(session.id, asked.id)).comment);
  const charge: AskingCharge = { count: 2, onLimit: "ask", reason: "more pages" };
  const denied = await refused(RequestNotApproved, () => session.charge(charge, { idempotencyKey: "two" }));
  add("more is not approved", denied.request?.status, denied.request?.comment);
  await refused(RequestDecided, () => o.approveRequest(session.id, asked.id));
  add("a request was decided otherwise", true);
  asked = await session.requestMore(more);
  add("approve a request for more", (await o.approveRequest(session.id, asked.id)).grantedActions);
  add("wait for the decision", (await session.awaitRequest(asked.id)).status);
  add("ask when a limit is reached", (await session.charge(charge)).maxActions);
}

async function servedTrees(o: Organization, agent: Agent): Promise<void> {
  const set = await o.setBudget({ maxValue: 3n * USD, period: "month" });
  add("set a budget", set.maxValue, set.period);
  const parent = await sessionFor(o, agent, { maxActions: 10, maxValue: 2n * USD });
  const child = await parent.createChild({ maxActions: 4, maxValue: USD });
  add("create a child session", child.parentSessionId === parent.id);
  const tree = await o.sessionTree(parent.id);
  add("read a tree", tree.valueDelegated, tree.actionsDelegated, tree.children.length);
  add("a tree that is not complete", tree.childrenTruncated);
  const beyond = await refused(LimitReached, () => parent.createChild({ maxActions: 4, maxValue: 2n * USD }));
  add("a limit is reached", beyond.limit, beyond.parentSessionId === parent.id);
  await agent.session(child.id).charge({ value: USD / 4n });
  await agent.session(child.id).end();
  add("read a session", (await o.getSession(parent.id)).valueUsed);
  const exhausted = await refused(BudgetExhausted, () => o.createSession({ agentId: agent.id, maxValue: 2n * USD }));
  add("the budget is exhausted", exhausted.remaining, exhausted.resetsAt !== undefined, exhausted.needed.value);
  const budget = await o.getBudget();
  add("read a budget", budget.valueReserved, budget.valueUsed, budget.remaining);
  await o.deleteBudget();
  await refused(NotFound, () => o.getBudget());
  add("delete a budget", true);
}

// A service refuses to connect to this URL, as it is not public: the calls cause no traffic.
const receiver = "https://127.0.0.1/remit";

// told makes to the service the calls about what happened, who may know and who is told.
async function told(client: Client, o: Organization): Promise<void> {
  const made = await o.createAgent({ name: "clerk" });
  await toldKeys(client, o);
  await toldUsage(o, client.agent(made.id, made.secret));
  await toldEvents(o);
  await toldWebhooks(o);
}

async function toldKeys(client: Client, o: Organization): Promise<void> {
  const made = await o.createApiKey({ name: "dashboard", role: "viewer", expiresInSeconds: 3600 });
  const life = made.expiresAt!.getTime() - made.createdAt.getTime();
  add("create an API key", made.name, made.role, made.apiKey.reveal() !== "", life === 3_600_000 ? "1h0m0s" : life);
  const viewer = client.organization(made.apiKey);
  add("a role is lacking", (await refused(InsufficientRole, () => viewer.createAgent({ name: "scout" }))).requiredRole);
  const keys = await viewer.apiKeys();
  const [own, first] = [keys[0]!, keys[1]!];
  add("list API keys", keys.length, own.name, first.role, first.expiresAt === undefined, made.apiKey.reveal().endsWith(own.hint));
  await refused(LastAdminKey, () => o.deleteApiKey(first.id));
  add("the last admin key is deleted", true);
  add("rotate any API key", (await o.rotateApiKey(made.id, { graceSeconds: 60 })).apiKey.reveal() !== made.apiKey.reveal());
  await o.deleteApiKey(made.id);
  await refused(Unauthorized, () => viewer.apiKeys());
  add("delete an API key", true);
}

async function toldUsage(o: Organization, agent: Agent): Promise<void> {
  const session = await sessionFor(o, agent, { thresholds: [50] });
  const { thresholds } = await o.updateSession(session.id, { thresholds: [25, 75] });
  add("choose thresholds", thresholds?.length, thresholds?.[0], thresholds?.[1]);
  await session.charge({ actionType: "llm.call", value: USD / 4n, count: 2 });
  await session.charge({ value: USD });
  await session.usage();
  const [calls, rest] = await o.sessionUsage(session.id);
  add("usage of a session", calls?.actionType, calls?.actionCount, `${formatUSD(calls!.value)};`, rest?.actionType === undefined, rest?.value);
  const lines = await o.usage({ groupBy: ["agent", "action_type"], agentId: agent.id });
  add("usage of the organization", lines.length, lines[0]?.agentId === agent.id, lines[0]!.value + lines[1]!.value);
  add("usage as a table", (await o.usageCsv({ groupBy: ["action_type"], agentId: agent.id })).split("\r\n"));
}

async function toldEvents(o: Organization): Promise<void> {
  const wanted: EventType = "session.suspended";
  for await (const event of o.allEvents({ types: [wanted] })) {
    add("the types of events", event.type === wanted);
    add("follow all events", event.type, event.sequence > 1, event.previousHash.length);
    break;
  }
  add("read all events to the end", await count(o.allEvents({ types: ["session.suspended"], wait: false })));
  add("a signed checkpoint", (await o.checkpoint()).split(".").length);
}

async function toldWebhooks(o: Organization): Promise<void> {
  const made = await o.createWebhook({ url: receiver, types: ["agent.suspended"], description: "on call" });
  add("create a webhook", made.url, made.types, made.secret.reveal().startsWith("whsec_"));
  add("list webhooks", (await o.webhooks()).length, (await o.webhooks())[0]?.description);
  add("read a webhook", (await o.getWebhook(made.id)).missedEvents, !("secret" in (await o.getWebhook(made.id))));
  const changed = await o.updateWebhook(made.id, { types: ["agent.revoked"], description: "" });
  add("change a webhook", changed.types, `${changed.description}.`);
  const rotated = await o.rotateWebhookSecret(made.id, { graceSeconds: 60 });
  add("rotate a webhook's secret", rotated.secret.reveal() !== made.secret.reveal());
  const sent = await o.testWebhook(made.id);
  add("test a webhook", sent.type, sent.eventSequence ?? 0);
  let listed = false; // beside the test that the service sends by itself
  for await (const one of o.deliveries(made.id)) listed ||= one.id === sent.id;
  add("list deliveries", listed);
  add("retry a delivery", (await o.retryDelivery(made.id, sent.id)).id === sent.id, sent.status);
  await o.deleteWebhook(made.id);
  await refused(NotFound, () => o.getWebhook(made.id));
  add("delete a webhook", true);
}

// contractTold makes those calls whose answers a test cannot bring about.
async function contractTold(o: Organization): Promise<void> {
  const [back, large] = await o.usage({ firstDay: "2026-11-01", lastDay: "2026-11-02", groupBy: ["day", "session"] });
  add("usage of the organization", back?.day, back?.sessionId === undefined, `${formatUSD(back!.value)};`, large?.value);
  const [key] = await o.apiKeys();
  add("list API keys", key?.hint ?? "", seconds(key?.lastUsedAt));
  for await (const sent of o.deliveries("w1", { status: "pending" })) {
    add("list deliveries", sent.eventSequence, sent.status, sent.attemptCount, sent.responseStatus, sent.error, sent.durationMs);
    add("list deliveries", seconds(sent.nextAttemptAt), sent.lastAttemptAt === undefined);
  }
  const failing = await o.getWebhook("w1");
  add("read a webhook", failing.missedEvents, seconds(failing.failingSince), seconds(failing.confirmedAt));
  for await (const event of o.allEvents({ after: 40, wait: false })) {
    add("read all events to the end", event.sequence, `${event.agentId}.`, event.actor.type, event.previousHash);
  }
  await o.deleteWebhook("w2");
  add("delete a webhook", true);
}

const seconds = (moment: Date | undefined) => Math.floor(moment!.getTime() / 1000);

// priced computes what calls of models cost, and makes two of which that cannot be known.
async function priced(session: Session): Promise<void> {
  const table = Prices.parse(`{"small": {
    "max_input_tokens": 100, "input_cost_per_token": 1.5e-06, "cache_read_input_token_cost": 1e-07, "output_cost_per_token": 6e-06, "output_cost_per_reasoning_token": "9e-06"
  }}`);
  add("read prices of models", true);
  const nothing = { input: 0, cachedInput: 0, cacheCreationInput: 0, output: 0, reasoning: 0 };
  add("what a call costs", table.cost("small", { ...nothing, input: 101, cachedInput: 7, output: 3, reasoning: 2 }));
  add("the most that a call costs", table.worst("small", 1000, 10));
  const unknown = await refused(UnknownModel, async () => table.cost("large", nothing));
  add("a model has no price", unknown.model);
  const invalid = await refused(InvalidPrices, async () => Prices.parse('{"small": {"input_cost_per_token": -1}}'));
  add("prices are invalid", invalid.model, invalid.member);
  const metered = meteredFetch(session, table, { fetch: async () => Response.json({}) });
  const call = async (bound: object) => {
    const body = JSON.stringify({ model: "small", ...bound, messages: [{ role: "user", content: "hello ".repeat(100) }] });
    await (await metered("http://127.0.0.1:9/v1/chat/completions", { method: "POST", body })).text();
  };
  await refused(UnboundedCall, () => call({}));
  add("nothing bounds a call", true);
  add("an answer has no usage", (await refused(UsageMissing, () => call({ max_tokens: 10 }))).model);
}

const service = Client.fromEnv();
if (process.argv[2] === "identity") {
  await identity(service);
} else if (process.argv[2] === "identity-contract") {
  await contractIdentity(service);
} else if (process.argv[2] === "contract") {
  await contract(service);
  await fleet(service);
  await contractTold(service.organization("rmk_1"));
} else {
  const [organization, scout] = await organizations(service);
  const budget = await sessions(organization, scout);
  await charges(organization, budget);
  await transactions(organization, budget);
  await tokens(service, organization, scout);
  await refusals(service, organization, budget);
  await served(service, organization);
  await told(service, organization);
  await priced(budget);
  await ends(organization, scout, budget);
}
console.log(JSON.stringify(done));
