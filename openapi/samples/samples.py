"""Calls the operations of the API with the Python SDK. The API page shows its parts, and a test runs it."""

import remit

client = remit.Client.from_env()

# sample: createOrganization
made = client.create_organization("acme")
org = client.organization(made.api_key)  # keep made.api_key.reveal(): it is shown only once
# end

# sample: getOrganization
info = org.info(made.id)
print(info.name, info.usage["agents"], "agents")
# end

# sample: rotateApiKey
rotated = org.rotate_key(made.id)  # the current key stays valid for 5 minutes
org = client.organization(rotated.api_key)
# end

# sample: createAgent
scout = org.create_agent("scout", ["read", "transactions:rollback"])
agent = client.agent(scout.id, scout.secret)  # keep scout.secret.reveal(): it is shown only once
# end

# sample: listAgents
for a in org.agents(status="active"):
    print(a.id, a.name)
# end

# sample: getAgent
shown = org.get_agent(agent.id)
print(shown.name, shown.scopes)
# end

# sample: rotateAgentSecret
# The current secret stays valid for a minute. If it was stolen, pass revoke_families=True to end its tokens too.
secret = org.rotate_agent_secret(agent.id, grace=60)
agent = client.agent(agent.id, secret.secret)
# end

# sample: exchangeSecret
# An Agent exchanges its secret and refreshes its tokens by itself. For your own HTTP calls:
token = agent.token()
# end

# sample: introspectToken
about = org.introspect(token)
print(about.active, about.agent_id)
# end

# sample: listFamilies
families = list(org.families(agent.id))
# end

# sample: revokeFamily
org.revoke_family(agent.id, families[0].id)
# end

# sample: createTrustedIssuer
# Jobs of this repository's main branch become the agent, without a secret: client.agent(id, assertion_file=…)
trusted = org.create_trusted_issuer(
    "https://token.actions.githubusercontent.com",
    [remit.TrustRule(agent.id, {"sub": "repo:acme/shop:ref:refs/heads/main"})],
    jwks_uri="https://token.actions.githubusercontent.com/.well-known/jwks",
)
# end

# sample: listTrustedIssuers
print(len(org.trusted_issuers()), "trusted issuers")
# end

# sample: getTrustedIssuer
issuer = org.get_trusted_issuer(trusted.id)
print(issuer.issuer, issuer.rules)
# end

# sample: changeTrustedIssuer
rules = [remit.TrustRule(agent.id, {"sub": "repo:acme/shop:*", "environment": "production"})]
print(org.update_trusted_issuer(trusted.id, rules=rules).rules)
# end

# sample: deleteTrustedIssuer
org.delete_trusted_issuer(trusted.id)
# end

# sample: oauthToken
# An agent with a private key instead of a secret. Its tokens are for one server, and bound to a second key (DPoP).
key = remit.generate_key("EdDSA")
deployer = org.create_agent("deployer", [], secret=False, jwks=key.jwks)
bound = client.agent(deployer.id, key=key.text.reveal(), resource=["https://deploy.example.com/"], dpop=True)
for_deploy = bound.token()
# end
assert org.introspect(for_deploy).thumbprint

# sample: createSession
budget = org.create_session(agent.id, max_actions=20, max_value="0.5", expires_in=3600)
session = agent.session(budget.id)
# end

# sample: listSessions
for s in org.sessions(status="active"):
    print(s.id, s.action_count, s.max_actions)
# end

# sample: getSession
now = session.get()
print(now.status, now.value_used)
# end

# sample: changeLimits
changed = org.update_session(budget.id, add_actions=10, add_value=5)
print(changed.max_value)
# end

# sample: charge
left = session.charge("llm.call", "0.37")  # remit.LimitReached charged nothing
print(left.remaining_actions, left.remaining_value)
# end

# sample: chargeBatch
for result in session.charge_many([remit.Charge(value="0.02"), remit.Charge(value="0.03")]):
    print(result.usage, result.error)
# end

# sample: beginTransaction
tx = session.begin("refund", value=2)
# end

# sample: listTransactions
for t in org.transactions(status="pending"):
    print(t.id, t.value_held)
# end

# sample: getTransaction
pending = tx.get()
print(pending.status, pending.expires_at)
# end

# sample: changeHold
tx.update(value="2.5", expires_in=3600)
# end

# sample: commitTransaction
tx.commit(value="1.25")
# end

# sample: rollbackTransaction
org.transaction(tx.id).reverse("wrong customer")
# end

# sample: requestMore
# A charge with on_limit="ask" does this by itself, and waits.
asked = session.request_more("12 of 40 invoices are left", add_value=5)
# end

# sample: listRequests
for request in org.requests(budget.id, status="pending"):
    print(request.reason, request.add_value)
# end

# sample: approveRequest
approved = org.approve_request(budget.id, asked.id, add_value="2.5", comment="half for now")
print(approved.status, approved.granted_value)
# end

# sample: getRequest
decided = session.await_request(asked.id)  # returns when a person has decided, or the session has ended
print(decided.status, decided.comment)
# end

asked = session.request_more("one more page", add_actions=10)
# sample: denyRequest
org.deny_request(budget.id, asked.id, "the report is long enough")
# end

# sample: setBudget
of_all = org.set_budget(500, "month")
print(of_all.remaining)
# end

# sample: getBudget
of_all = org.get_budget()
print(of_all.value_used, of_all.value_reserved, of_all.remaining)
# end

# sample: deleteBudget
org.delete_budget()
# end

# sample: getSessionTree
for child in org.session_tree(budget.id).children:
    print(child.agent_id, child.value_used, child.max_value)
# end

# sample: changeAgent
limited = org.update_agent(agent.id, limits=remit.AgentLimits(max_actions_per_minute=600))
print(limited.limits)
# end

# sample: suspendAgent
stopped = org.suspend_agent(agent.id, "it loops")
print(stopped.suspended_at)
# end

# sample: resumeAgent
org.resume_agent(agent.id)
# end

# sample: suspendAgents
print(org.suspend_all_agents("an incident"), "agents are suspended")
# end

# sample: resumeAgents
print(org.resume_all_agents(), "agents go on")
# end

# sample: createSessionKey
session_key = org.create_session_key(budget.id, "editor")
keyed = client.session_with_key(session_key.key)  # in the program that has the key
print(keyed.charge().remaining_actions)
# end

# sample: listSessionKeys
for listed in org.session_keys(budget.id):
    print(listed.id, listed.name)
# end

# sample: deleteSessionKey
org.delete_session_key(budget.id, session_key.id)
# end

# sample: suspendSession
org.suspend_session(budget.id, "to be checked")
# end

# sample: resumeSession
org.resume_session(budget.id, "checked")
# end

# sample: listEvents
for event in org.events(agent.id, wait=False):
    print(event.occurred_at, event.type)
# end

# sample: endSession
org.end_session(budget.id)
# end

# sample: revokeAgent
org.revoke_agent(agent.id)
# end

print("done")
