// Calls the operations of the API with the TypeScript SDK. The API page shows its parts, and a test runs it.
import { Client, generateKey, usd } from "@remit/sdk";

const client = Client.fromEnv();

// sample: createOrganization
const made = await client.createOrganization({ name: "acme" });
let org = client.organization(made.apiKey!); // keep made.apiKey.reveal(): it is shown only once
// end

// sample: getOrganization
const info = await org.info(made.id);
console.log(info.name, info.usage["agents"], "agents");
// end

// sample: rotateApiKey
const rotated = await org.rotateKey(made.id); // the current key stays valid for 5 minutes
org = client.organization(rotated.apiKey);
// end

// sample: createAgent
const scout = await org.createAgent({ name: "scout", scopes: ["read", "transactions:rollback"] });
let agent = client.agent(scout.id, scout.secret); // keep scout.secret.reveal(): it is shown only once
// end

// sample: listAgents
for await (const a of org.agents({ status: "active" })) console.log(a.id, a.name);
// end

// sample: getAgent
const shown = await org.getAgent(agent.id);
console.log(shown.name, shown.scopes);
// end

// sample: rotateAgentSecret
// The current secret stays valid for a minute. If it was stolen, pass revokeFamilies: true to end its tokens too.
const secret = await org.rotateAgentSecret(agent.id, { graceSeconds: 60 });
agent = client.agent(agent.id, secret.secret);
// end

// sample: exchangeSecret
// An Agent exchanges its secret and refreshes its tokens by itself. For your own HTTP calls:
const token = await agent.token();
// end

// sample: introspectToken
const about = await org.introspect(token);
if (about.active) console.log(about.agentId, about.scopes);
// end

// sample: listFamilies
const families = [];
for await (const family of org.families(agent.id)) families.push(family);
// end

// sample: revokeFamily
await org.revokeFamily(agent.id, families[0]!.id);
// end

// sample: createTrustedIssuer
// Jobs of this repository's main branch become the agent, without a secret: client.agent(id, { assertionFile: … })
const trusted = await org.createTrustedIssuer({
  issuer: "https://token.actions.githubusercontent.com",
  jwksUri: "https://token.actions.githubusercontent.com/.well-known/jwks",
  rules: [{ agentId: agent.id, claims: { sub: "repo:acme/shop:ref:refs/heads/main" } }],
});
// end

// sample: listTrustedIssuers
console.log((await org.trustedIssuers()).length, "trusted issuers");
// end

// sample: getTrustedIssuer
const issuer = await org.getTrustedIssuer(trusted.id);
console.log(issuer.issuer, issuer.rules);
// end

// sample: changeTrustedIssuer
const rules = [{ agentId: agent.id, claims: { sub: "repo:acme/shop:*", environment: "production" } }];
console.log((await org.updateTrustedIssuer(trusted.id, { rules })).rules);
// end

// sample: deleteTrustedIssuer
await org.deleteTrustedIssuer(trusted.id);
// end

// sample: oauthToken
// An agent with a private key instead of a secret. Its tokens are for one server, and bound to a second key (DPoP).
const key = await generateKey("EdDSA");
const deployer = await org.createAgent({ name: "deployer", secret: false, jwks: key.jwks });
const bound = client.agent(deployer.id, { key, resource: ["https://deploy.example.com/"], dpop: true });
const forDeploy = await bound.token();
// end
const bindings = await org.introspect(forDeploy);
if (!bindings.active || !bindings.thumbprint) throw new Error("the token is not bound");

// sample: createSession
const budget = await org.createSession({ agentId: agent.id, maxActions: 20, maxValue: usd("0.5"), expiresInSeconds: 3600 });
const session = agent.session(budget.id);
// end

// sample: listSessions
for await (const s of org.sessions({ status: "active" })) console.log(s.id, s.actionCount, s.maxActions);
// end

// sample: getSession
const now = await session.get();
console.log(now.status, now.valueUsed);
// end

// sample: changeLimits
const changed = await org.updateSession(budget.id, { addActions: 10, addValue: usd("5") });
console.log(changed.maxValue);
// end

// sample: charge
const left = await session.charge({ actionType: "llm.call", value: usd("0.37") }); // LimitReached charged nothing
console.log(left.remainingActions, left.remainingValue);
// end

// sample: chargeBatch
for (const result of await session.chargeMany([{ value: usd("0.02") }, { value: usd("0.03") }])) console.log(result);
// end

// sample: beginTransaction
const tx = await session.begin({ actionType: "refund", value: usd("2") });
// end

// sample: listTransactions
for await (const t of org.transactions({ status: "pending" })) console.log(t.id, t.valueHeld);
// end

// sample: getTransaction
const pending = await tx.get();
console.log(pending.status, pending.expiresAt);
// end

// sample: changeHold
await tx.update({ value: usd("2.5"), expiresInSeconds: 3600 });
// end

// sample: commitTransaction
await tx.commit({ value: usd("1.25") });
// end

// sample: rollbackTransaction
await org.transaction(tx.id).reverse("wrong customer");
// end

// sample: requestMore
// A charge with onLimit: "ask" does this by itself, and waits.
let asked = await session.requestMore({ addValue: usd("5"), reason: "12 of 40 invoices are left" });
// end

// sample: listRequests
for (const r of await org.requests(budget.id, { status: "pending" })) console.log(r.reason, r.addValue);
// end

// sample: approveRequest
const approved = await org.approveRequest(budget.id, asked.id, { addValue: usd("2.5"), comment: "half for now" });
console.log(approved.status, approved.grantedValue);
// end

// sample: getRequest
const decided = await session.awaitRequest(asked.id); // returns when a person has decided, or the session has ended
console.log(decided.status, decided.comment);
// end

asked = await session.requestMore({ addActions: 10, reason: "one more page" });
// sample: denyRequest
await org.denyRequest(budget.id, asked.id, "the report is long enough");
// end

// sample: setBudget
const ofAll = await org.setBudget({ maxValue: usd("500"), period: "month" });
console.log(ofAll.remaining);
// end

// sample: getBudget
const { valueUsed, valueReserved, remaining } = await org.getBudget();
console.log(valueUsed, valueReserved, remaining);
// end

// sample: deleteBudget
await org.deleteBudget();
// end

// sample: getSessionTree
for (const child of (await org.sessionTree(budget.id)).children) console.log(child.agentId, child.valueUsed, child.maxValue);
// end

// sample: changeAgent
const limited = await org.updateAgent(agent.id, { limits: { maxActionsPerMinute: 600 } });
console.log(limited.limits?.maxActionsPerMinute);
// end

// sample: suspendAgent
const stopped = await org.suspendAgent(agent.id, "it loops");
console.log(stopped.suspendedAt);
// end

// sample: resumeAgent
await org.resumeAgent(agent.id);
// end

// sample: suspendAgents
console.log(await org.suspendAllAgents("an incident"), "agents are suspended");
// end

// sample: resumeAgents
console.log(await org.resumeAllAgents(), "agents go on");
// end

// sample: createSessionKey
const sessionKey = await org.createSessionKey(budget.id, { name: "editor" });
const keyed = client.sessionWithKey(sessionKey.key); // in the program that has the key
console.log((await keyed.charge()).remainingActions);
// end

// sample: listSessionKeys
for (const { id, name } of await org.sessionKeys(budget.id)) {
  console.log(id, name);
}
// end

// sample: deleteSessionKey
await org.deleteSessionKey(budget.id, sessionKey.id);
// end

// sample: suspendSession
await org.suspendSession(budget.id, "to be checked");
// end

// sample: resumeSession
await org.resumeSession(budget.id, "checked");
// end

// sample: listEvents
for await (const event of org.events(agent.id, { wait: false })) console.log(event.occurredAt, event.type);
// end

// sample: endSession
await org.endSession(budget.id);
// end

// sample: revokeAgent
await org.revokeAgent(agent.id);
// end

console.log("done");
