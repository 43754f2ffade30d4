"""Every call of the Python SDK; see main.go."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from datetime import date, datetime, timedelta
from typing import List, Optional, Tuple, Type

import identity
import remit
from remit.hooks import RemitCallbackHandler
from remit.prices import Prices, Usage
from steps import add, answered, count, done, refused


def organizations(client: remit.Client) -> Tuple[remit.Organization, str]:
    made = client.create_organization("acme", metadata={"tier": 1})
    add("create an organization", made.name, made.api_key is not None)
    assert made.api_key
    key = client.organization(made.api_key).rotate_key(made.id).api_key
    add("rotate its API key", key.reveal() != made.api_key.reveal())
    o = client.organization(key)
    info = o.info(made.id)
    add("read an organization", info.name, info.metadata, info.api_key is None)
    scout = o.create_agent("scout", ["read", "pay", "transactions:rollback"])
    add("create an agent", scout.name, scout.status, scout.scopes)
    add("read an agent", o.get_agent(scout.id).name)
    add("list agents", count(o.agents(status="active")))
    assert scout.secret
    secret = o.rotate_agent_secret(scout.id).secret
    add("rotate an agent's secret", secret.reveal() != scout.secret.reveal())
    os.environ.update(REMIT_API_KEY=key.reveal(), REMIT_AGENT=scout.id, REMIT_SECRET=secret.reveal())
    return o, scout.id


def sessions(o: remit.Organization, scout: str) -> remit.Session:
    made = o.create_session(scout, max_actions=10, max_value=5, scopes=["read", "transactions:rollback"])
    add("create a session", made.max_actions, made.max_value, made.scopes, made.status)
    add("read a session", o.get_session(made.id).max_actions)
    add("list sessions", count(o.sessions(agent_id=scout, status="active")))
    changed = o.update_session(made.id, max_actions=20)
    add("change a session's limits", changed.max_actions, changed.max_value)
    os.environ["REMIT_SESSION"] = made.id
    session, agent, own = remit.Session.from_env(), remit.Agent.from_env(), remit.Organization.from_env()
    add("settings from the environment", session.id == made.id, agent.id == scout, count(own.agents()))
    return session


def shown(u: remit.Usage) -> str:
    return f"{u.action_count} of {u.max_actions}, {u.value_used} of {u.max_value}, {u.value_held} held"


def lease(o: remit.Organization, session: remit.Session) -> None:
    add("allow leases", o.update_session(session.id, max_lease=60).max_lease_seconds)
    leased = session.lease()
    add("lease", True)
    leased.charge("llm.call", "0.25")
    add("charge a lease", True)
    leased.close()
    leased.close()
    info = session.get()
    add("close a lease", info.action_count, info.value_used)
    refused(remit.LeaseClosed, leased.charge)
    add("a lease was closed", True)


def charges(o: remit.Organization, session: remit.Session) -> None:
    add("charge", shown(session.charge("llm.call", "0.37", count=2, scope="read")))
    first, second = session.charge_many([remit.Charge(value=1), remit.Charge(value=9)])
    assert first.usage and isinstance(second.error, remit.LimitReached)
    add("charge many", shown(first.usage) + ";", second.error.limit)
    lease(o, session)
    limit = refused(remit.LimitReached, lambda: session.charge(value=9))
    add("a limit is reached", limit.limit, limit.usage.remaining_value, limit.needed_actions, limit.needed_value, answered(limit))
    below = refused(remit.LimitBelowUsage, lambda: o.update_session(session.id, max_actions=1))
    add("limits below what is used", below.limit, answered(below))


def transactions(o: remit.Organization, session: remit.Session) -> None:
    tx = session.begin("payment", pre_state={"balance": 7}, value=1)
    add("begin", tx.info.status, tx.info.value_held, tx.info.pre_state)
    tx.commit(value="0.75")
    add("commit", tx.info.status, tx.info.value)
    refused(remit.TransactionDone, tx.commit)
    add("a transaction was settled here", True)
    opened = o.transaction(tx.id)
    add("open a transaction by its id", opened.get().status)
    opened.reverse("wrong account")
    add("reverse", opened.info.status, opened.info.reason)

    bare = session.begin("edit")
    o.transaction(bare.id).rollback("never mind")
    add("roll back", bare.get().status, bare.info.pre_state)
    elsewhere = refused(remit.TransactionNotPending, bare.commit)
    add("a transaction was settled elsewhere", elsewhere.transaction_status)
    final = session.begin("mail", reversible=False)
    final.commit()
    irreversible = refused(remit.TransactionNotReversible, o.transaction(final.id).reverse)
    add("a transaction is irreversible", irreversible.transaction_status)

    with session.begin("payment", value="0.5") as ended:
        pass
    add("a block that ends normally", ended.get().status, ended.info.value, True)
    try:
        with session.begin("payment", value="0.5") as failed:
            raise ValueError("the act failed")
    except ValueError as error:
        add("a block that an error ends", failed.get().status, failed.info.reason, str(error) == "the act failed")
    add("list transactions", count(o.transactions(session_id=session.id)))


def tokens(client: remit.Client, o: remit.Organization, scout: str) -> None:
    agent = remit.Agent.from_env()
    first = agent.token().reveal()
    add("an access token", first.startswith("eyJ"))
    agent.refresh()
    add("renew it", agent.token().reveal() != first)
    pair = client.exchange(scout, os.environ["REMIT_SECRET"])
    add("exchange a secret", pair.refresh_token is not None, pair.expires_in)
    verified = client.verify(pair.access_token, scope="read")
    add("verify a token", verified.agent_id == scout, verified.scopes)
    introspection = o.introspect(pair.access_token)
    add("introspect a token", introspection.active, introspection.agent_id == scout, introspection.scopes)


def refusals(client: remit.Client, o: remit.Organization, session: remit.Session) -> None:
    lacks = refused(remit.InsufficientScope, lambda: session.charge(scope="pay"))
    add("a scope is lacking", lacks.required_scope)
    refused(remit.Unauthorized, lambda: client.verify("nonsense"))
    add("a credential is wrong", True)
    refused(remit.NotFound, lambda: o.get_session("00000000-0000-4000-8000-000000000000"))
    add("nothing is there", True)
    session.charge(idempotency_key="own")
    refused(remit.IdempotencyKeyReused, lambda: session.charge(count=2, idempotency_key="own"))
    add("a key was used for another request", True)
    invalid = refused(remit.RemitError, lambda: o.create_session("nobody"))
    add("a field is invalid", invalid.fields[0].field + ":", answered(invalid))


def ends(o: remit.Organization, scout: str, session: remit.Session) -> None:
    session.end()
    o.end_session(session.id)
    add("end a session", session.get().status)
    over = refused(remit.SessionNotActive, session.charge)
    add("a session has ended", over.session_status)
    for event in o.events(scout):
        add("follow an audit trail", event.type, event.actor.type)
        break
    trail = []
    for event in o.events(scout, wait=False):
        trail.append(event.type)
        if event.type == "lease.settled":
            add("an event of a lease", event.lease_id != "")
    add("read an audit trail to its end", trail[0], trail[-1])
    o.revoke_agent(scout)
    add("revoke an agent", o.get_agent(scout).status)


def contract(client: remit.Client) -> None:
    o = client.organization("rmk_1")
    for family in o.families("a1"):
        add("list families", family.id, int(family.expires_at.timestamp()), family.last_used_at is None)
    o.revoke_family("a1", "f/1")
    add("revoke a family", True)
    add("rotate its API key", o.rotate_key("o1", grace=0).api_key.reveal())
    stolen = o.rotate_agent_secret("a1", grace=timedelta(seconds=1.5), revoke_families=True)
    add("rotate a stolen secret", stolen.secret.reveal())
    limited = o.create_session("a1", max_committed=20)
    add("limit what is ever committed", limited.value_committed, "of", limited.max_committed)
    add("top up", o.update_session("s1", add_actions=5, add_value="0.25").max_actions)
    info = o.info("o1")
    add("quotas and usage", info.quotas["agents"], info.usage["agents"], len(info.quotas))

    tx = client.agent("a1", "rms_1").transaction("t1")
    add("change a transaction", tx.update(value=0, expires_in=60).value_held)
    add("commit after it expired", tx.commit(idempotency_key="own").late)

    once = remit.Client.from_env(max_attempts=1).organization("rmk_1")
    quota = refused(remit.QuotaExceeded, lambda: once.create_agent("quota_exceeded"))
    add("a quota is exceeded", quota.quota, quota.used, quota.max, answered(quota))
    others: List[Tuple[str, str, Type[remit.RemitError]]] = [
        ("the organization is suspended", "organization_suspended", remit.OrganizationSuspended),
        ("requests come too fast", "rate_limited", remit.RateLimited),
        ("the service is unavailable", "unavailable", remit.Unavailable),
        ("a write may have happened", "outcome_unknown", remit.OutcomeUnknown),
    ]
    for name, code, kind in others:
        refused(kind, lambda: once.create_agent(code))
        add(name, True)
    for n in itertools.count():
        try:
            o.get_session(f"refused-{n}")
            break
        except remit.RemitError as error:
            found = re.search(r"\d{3} .*", str(error))
            add("what an error says", found and found[0])


def fleet(client: remit.Client) -> None:
    """Makes the calls that suspend, limit and divide."""
    o, session = client.organization("rmk_1"), client.agent("a1", "rms_1").session("s1")
    suspensions(o)
    agent_limits(o)
    trials(session)
    requests(o, session)
    asking(client.agent("a1", "rms_1").session("s2"))
    trees(o, session)
    fleet_refusals()


def suspensions(o: remit.Organization) -> None:
    add("suspend an agent", o.suspend_agent("a1", "leak").suspension_reason)
    add("resume an agent", o.resume_agent("a1").id)
    add("suspend all agents", o.suspend_all_agents("leak"))
    add("resume all agents", o.resume_all_agents())
    add("suspend a session", o.suspend_session("s1", "odd").suspended_at is None)
    add("resume a session", o.resume_session("s1", "fixed").id)


def agent_limits(o: remit.Organization) -> None:
    limits = remit.AgentLimits(max_value_per_day="0.5", max_actions_per_minute=remit.NO_LIMIT)
    changed = o.update_agent("a1", name="spy", description="", metadata={"tier": 2}, scopes=["read"], limits=limits)
    add("change an agent", changed.id)
    assert changed.limits and changed.usage and changed.usage.resets_at
    now, used = changed.limits, changed.usage
    add("limits of an agent", now.max_value_per_day, now.max_actions_per_minute is None, now.max_open_sessions)
    add("usage of an agent", used.value_used_today, seconds(used.resets_at), used.open_sessions)
    o.create_agent("limited", limits=remit.AgentLimits(max_open_sessions=3))
    o.update_session("s1", max_value_per_action=remit.NO_LIMIT)
    add("remove a limit", True)
    observing = o.create_session("a1", max_value_per_action=1, enforcement="observe")
    add("limit each action", observing.max_value_per_action)
    add("look before enforcing", observing.enforcement, observing.observed_refusals)


def trials(session: remit.Session) -> None:
    add("try a charge", session.dry_run_charge(value=1, count=2).would_refuse)
    add("try a transaction", session.dry_run_begin("pay", value=1).would_refuse)


def requests(o: remit.Organization, session: remit.Session) -> None:
    asked = session.request_more("more pages", add_actions=2, add_value="0.000001")
    add("ask for more", asked.status, asked.add_value)
    decided = session.await_request(asked.id)
    add("wait for the decision", decided.status, decided.granted_actions, decided.granted_value, decided.comment)
    session.get_request(asked.id)
    add("read a request for more", o.get_request("s1", asked.id).reason)
    session.requests()
    add("list requests for more", len(o.requests("s1", status="approved")))
    add("approve a request for more", o.approve_request("s1", "r1", add_actions=1, add_value=0, comment="ok").status)
    add("deny a request for more", o.deny_request("s1", "r1", "too dear").status)


def asking(session: remit.Session) -> None:
    charged = session.charge(value=1, on_limit="ask", reason="more pages", idempotency_key="own")
    add("ask when a limit is reached", charged.action_count)
    denied = refused(
        remit.RequestNotApproved,
        lambda: session.charge(value=1, on_limit="ask", reason="more pages", idempotency_key="denied"),
    )
    assert denied.request
    add("more is not approved", denied.limit, denied.request.status, denied.request.comment)


def trees(o: remit.Organization, session: remit.Session) -> None:
    session.create_child(max_value=1)
    o.create_session("a2", parent_session_id="s1")
    add("create a child session", True)
    o.session_tree("s1")
    tree = session.tree()
    child = tree.children[0]
    add("read a tree", tree.value_delegated, tree.actions_delegated, child.parent_session_id, child.children[0].id)
    add("a tree that is not complete", child.children[0].children_truncated)
    made = o.set_budget(100, "month")
    add("set a budget", made.max_value, made.period)
    budget = o.get_budget()
    assert budget.resets_at
    add("read a budget", budget.value_reserved, budget.value_used, budget.remaining, seconds(budget.resets_at))
    o.delete_budget()
    add("delete a budget", True)


def fleet_refusals() -> None:
    once = remit.Client.from_env(max_attempts=1).organization("rmk_1")
    agent = refused(remit.AgentLimitReached, lambda: once.create_agent("agent_limit_reached"))
    add("a limit of the agent is reached", agent.limit, seconds(agent.resets_at), answered(agent))
    budget = refused(remit.BudgetExhausted, lambda: once.create_agent("budget_exhausted"))
    add("the budget is exhausted", budget.remaining, seconds(budget.resets_at), answered(budget))
    stopped = refused(remit.AgentSuspended, lambda: once.create_agent("agent_suspended"))
    add("the agent is suspended", seconds(stopped.suspended_at))
    paused = refused(remit.SessionSuspended, lambda: once.create_agent("session_suspended"))
    add("the session is suspended", seconds(paused.suspended_at))
    refused(remit.RequestDecided, lambda: once.create_agent("request_decided"))
    add("a request was decided otherwise", True)
    add("the gateway holds a transaction", refused(remit.HeldByGateway, lambda: once.create_agent("held_by_gateway")) is not None)


def served(client: remit.Client, o: remit.Organization) -> None:
    """Makes to the service those calls of fleet that need no state which a test cannot create."""
    made = o.create_agent("planner", ["sessions:delegate"])
    assert made.secret
    agent = client.agent(made.id, made.secret)
    served_suspensions(o, agent)
    served_limits(o, agent)
    served_trials(o, agent)
    served_keys(client, o, agent)
    served_requests(o, agent)
    served_trees(o, agent)
    for event in o.events(agent.id, wait=False):
        if event.type == "session.more_requested":
            add("an event of a request for more", event.session_request_id != "")
        elif event.type == "session.key_deleted":
            add("an event of a session key", event.session_key_id != "")
        elif event.type == "session.delegated":
            add("an event of a child session", event.child_session_id != "")


def served_suspensions(o: remit.Organization, agent: remit.Agent) -> None:
    session = agent.session(o.create_session(agent.id).id)
    add("suspend an agent", o.suspend_agent(agent.id, "leak").suspension_reason)
    add("the agent is suspended", refused(remit.AgentSuspended, session.charge).suspended_at is not None)
    add("resume an agent", o.resume_agent(agent.id).suspended_at is None)
    add("suspend all agents", o.suspend_all_agents())
    add("resume all agents", o.resume_all_agents())
    add("suspend a session", o.suspend_session(session.id, "odd").suspension_reason)
    add("the session is suspended", refused(remit.SessionSuspended, session.charge).suspended_at is not None)
    add("resume a session", o.resume_session(session.id).suspended_at is None)


def served_limits(o: remit.Organization, agent: remit.Agent) -> None:
    limits = remit.AgentLimits(max_value_per_day=1, max_actions_per_minute=3, max_open_sessions=2)
    changed = o.update_agent(agent.id, description="limited", limits=limits)
    add("change an agent", changed.description)
    assert changed.limits
    now = changed.limits
    add("limits of an agent", now.max_value_per_day, now.max_actions_per_minute, now.max_open_sessions)
    session = agent.session(o.create_session(agent.id, max_value_per_action="0.75").id)
    add("limit each action", refused(remit.LimitReached, lambda: session.charge(value="0.8")).limit)
    session.charge(value="0.75")
    spent = refused(remit.AgentLimitReached, lambda: session.charge(value="0.5"))
    add("a limit of the agent is reached", spent.limit, spent.resets_at is not None, spent.needed_actions, spent.needed_value)
    used = o.get_agent(agent.id).usage
    assert used
    add("usage of an agent", used.value_used_today, used.open_sessions)
    fast = session.charge_many([remit.Charge(count=2), remit.Charge(count=3)])[1].error
    assert fast
    add("when to send an item again", isinstance(fast, remit.RateLimited), fast.retry_after > 0)
    none = remit.AgentLimits(remit.NO_LIMIT, remit.NO_LIMIT, remit.NO_LIMIT)
    unlimited = o.update_agent(agent.id, limits=none).limits
    assert unlimited
    add("remove a limit", unlimited.max_value_per_day is None)


def served_trials(o: remit.Organization, agent: remit.Agent) -> None:
    session = agent.session(o.create_session(agent.id, max_actions=1, enforcement="observe").id)
    add("try a charge", session.dry_run_charge(count=2).would_refuse)
    add("try a transaction", not session.dry_run_begin("pay").would_refuse)
    session.charge(count=2)
    info = o.get_session(session.id)
    add("look before enforcing", info.enforcement, info.observed_refusals)


def served_keys(client: remit.Client, o: remit.Organization, agent: remit.Agent) -> None:
    session = agent.session(o.create_session(agent.id).id)
    made = o.create_session_key(session.id, "editor")
    add("create a session key", made.name, made.session_id == session.id)
    assert made.key
    keyed = client.session_with_key(made.key)
    add("a session key names its session", keyed.id == session.id)
    add("charge with a session key", keyed.charge().action_count)
    add("a session key reaches its session alone", refused(remit.SessionKeyOnly, keyed.end) is not None)
    listed = o.session_keys(session.id)
    add("list session keys", len(listed), listed[0].id == made.id)
    while len(o.session_keys(session.id)) < 8:
        o.create_session_key(session.id)
    add("too many session keys", refused(remit.TooManySessionKeys, lambda: o.create_session_key(session.id)) is not None)
    o.delete_session_key(session.id, made.id)
    add("delete a session key", refused(remit.Unauthorized, keyed.get) is not None)


def served_requests(o: remit.Organization, agent: remit.Agent) -> None:
    session = agent.session(o.create_session(agent.id, max_actions=1).id)
    # The key is that of a charge with the key "two", which asks for the same.
    asked = session.request_more("more pages", add_actions=1, idempotency_key="two-ask-1")
    add("ask for more", asked.status, asked.add_actions)
    add("list requests for more", len(o.requests(session.id, status="pending")))
    add("deny a request for more", o.deny_request(session.id, asked.id, "too dear").status)
    add("read a request for more", o.get_request(session.id, asked.id).comment)
    denied = refused(
        remit.RequestNotApproved,
        lambda: session.charge(count=2, on_limit="ask", reason="more pages", idempotency_key="two"),
    )
    assert denied.request
    add("more is not approved", denied.request.status, denied.request.comment)
    refused(remit.RequestDecided, lambda: o.approve_request(session.id, asked.id))
    add("a request was decided otherwise", True)
    asked = session.request_more("more pages", add_actions=1)
    add("approve a request for more", o.approve_request(session.id, asked.id).granted_actions)
    add("wait for the decision", session.await_request(asked.id).status)
    add("ask when a limit is reached", session.charge(count=2, on_limit="ask", reason="more pages").max_actions)


def served_trees(o: remit.Organization, agent: remit.Agent) -> None:
    made = o.set_budget(3, "month")
    add("set a budget", made.max_value, made.period)
    parent = agent.session(o.create_session(agent.id, max_actions=10, max_value=2).id)
    child = parent.create_child(max_actions=4, max_value=1)
    add("create a child session", child.parent_session_id == parent.id)
    tree = o.session_tree(parent.id)
    add("read a tree", tree.value_delegated, tree.actions_delegated, len(tree.children))
    add("a tree that is not complete", tree.children_truncated)
    beyond = refused(remit.LimitReached, lambda: parent.create_child(max_actions=4, max_value=2))
    add("a limit is reached", beyond.limit, beyond.parent_session_id == parent.id)
    agent.session(child.id).charge(value="0.25")
    agent.session(child.id).end()
    add("read a session", o.get_session(parent.id).value_used)
    exhausted = refused(remit.BudgetExhausted, lambda: o.create_session(agent.id, max_value=2))
    add("the budget is exhausted", exhausted.remaining, exhausted.resets_at is not None, exhausted.needed_value)
    budget = o.get_budget()
    add("read a budget", budget.value_reserved, budget.value_used, budget.remaining)
    o.delete_budget()
    refused(remit.NotFound, o.get_budget)
    add("delete a budget", True)


# A service refuses to connect to this URL, as it is not public: the calls cause no traffic.
RECEIVER = "https://127.0.0.1/remit"


def told(client: remit.Client, o: remit.Organization) -> None:
    """Makes to the service the calls about what happened, who may know and who is told."""
    made = o.create_agent("clerk")
    assert made.secret
    told_keys(client, o)
    told_usage(o, client.agent(made.id, made.secret))
    told_events(o)
    told_webhooks(o)


def told_keys(client: remit.Client, o: remit.Organization) -> None:
    made = o.create_api_key("dashboard", "viewer", expires_in=3600)
    assert made.api_key and made.expires_at
    life = made.expires_at - made.created_at
    add("create an API key", made.name, made.role, True, "1h0m0s" if life == timedelta(hours=1) else life)
    viewer = client.organization(made.api_key)
    add("a role is lacking", refused(remit.InsufficientRole, lambda: viewer.create_agent("scout")).required_role)
    keys = viewer.api_keys()
    own, first = keys
    hinted = own.hint != "" and made.api_key.reveal().endswith(own.hint)
    add("list API keys", len(keys), own.name, first.role, first.expires_at is None, hinted)
    refused(remit.LastAdminKey, lambda: o.delete_api_key(first.id))
    add("the last admin key is deleted", True)
    add("rotate any API key", o.rotate_api_key(made.id, grace=60).api_key.reveal() != made.api_key.reveal())
    o.delete_api_key(made.id)
    refused(remit.Unauthorized, viewer.api_keys)
    add("delete an API key", True)


def told_usage(o: remit.Organization, agent: remit.Agent) -> None:
    session = agent.session(o.create_session(agent.id, thresholds=[50]).id)
    told_of = o.update_session(session.id, thresholds=(25, 75)).thresholds
    assert told_of
    add("choose thresholds", len(told_of), *told_of)
    session.charge("llm.call", "0.25", count=2)
    session.charge(value=1)
    session.usage()
    calls, rest = o.session_usage(session.id)
    add("usage of a session", calls.action_type, calls.action_count, f"{calls.value};", rest.action_type is None, rest.value)
    lines = o.usage(group_by=["agent", "action_type"], agent_id=agent.id)
    add("usage of the organization", len(lines), lines[0].agent_id == agent.id, lines[0].value + lines[1].value)
    add("usage as a table", tuple(o.usage_csv(group_by=["action_type"], agent_id=agent.id).split("\r\n")))


def told_events(o: remit.Organization) -> None:
    wanted = remit.EventType.SESSION_SUSPENDED
    for event in o.all_events(types=[wanted]):
        add("the types of events", event.type == wanted)
        add("follow all events", event.type, event.sequence > 1, len(event.previous_hash))
        break
    add("read all events to the end", count(o.all_events(types=["session.suspended"], wait=False)))
    add("a signed checkpoint", len(o.checkpoint().split(".")))


def told_webhooks(o: remit.Organization) -> None:
    made = o.create_webhook(RECEIVER, types=["agent.suspended"], description="on call")
    assert made.secret
    add("create a webhook", made.url, made.types, made.secret.reveal().startswith("whsec_"))
    add("list webhooks", len(o.webhooks()), o.webhooks()[0].description)
    add("read a webhook", o.get_webhook(made.id).missed_events, o.get_webhook(made.id).secret is None)
    changed = o.update_webhook(made.id, types=["agent.revoked"], description="")
    add("change a webhook", changed.types, f"{changed.description}.")
    add("rotate a webhook's secret", o.rotate_webhook_secret(made.id, grace=60).secret.reveal() != made.secret.reveal())
    sent = o.test_webhook(made.id)
    add("test a webhook", sent.type, sent.event_sequence or 0)
    add("list deliveries", sent.id in [one.id for one in o.deliveries(made.id)])  # beside the test that the service sends by itself
    add("retry a delivery", o.retry_delivery(made.id, sent.id).id == sent.id, sent.status)
    o.delete_webhook(made.id)
    refused(remit.NotFound, lambda: o.get_webhook(made.id))
    add("delete a webhook", True)


def priced(session: remit.Session) -> None:
    """Computes what calls of models cost, and makes two of which that cannot be known."""
    table = Prices.parse('''{"small": {
        "max_input_tokens": 100, "input_cost_per_token": 1.5e-06, "cache_read_input_token_cost": 1e-07, "output_cost_per_token": 6e-06, "output_cost_per_reasoning_token": "9e-06"
    }}''')
    add("read prices of models", True)
    add("what a call costs", table.cost("small", Usage(input=101, cached_input=7, output=3, reasoning=2)))
    add("the most that a call costs", table.worst("small", 1000, 10))
    add("a model has no price", refused(remit.UnknownModel, lambda: table.cost("large", Usage())).model)
    invalid = refused(remit.InvalidPrices, lambda: Prices.parse('{"small": {"input_cost_per_token": -1}}'))
    add("prices are invalid", invalid.model, invalid.member)
    hooks = RemitCallbackHandler(session, table)
    prompts = ["hello " * 100]
    refused(remit.UnboundedCall, lambda: hooks.on_llm_start({}, prompts, run_id=1, invocation_params={"model": "small"}))
    add("nothing bounds a call", True)
    hooks.on_llm_start({}, prompts, run_id=2, invocation_params={"model": "small", "max_tokens": 10})
    add("an answer has no usage", refused(remit.UsageMissing, lambda: hooks.on_llm_end({}, run_id=2)).model)


def contract_told(o: remit.Organization) -> None:
    """Makes those calls whose answers a test cannot bring about."""
    back, large = o.usage(first_day=date(2026, 11, 1), last_day=date(2026, 11, 2), group_by=["day", "session"])
    add("usage of the organization", back.day, back.session_id is None, f"{back.value};", large.value)
    (key,) = o.api_keys()
    add("list API keys", key.hint, seconds(key.last_used_at))
    for sent in o.deliveries("w1", status="pending"):
        add("list deliveries", sent.event_sequence, sent.status, sent.attempt_count, sent.response_status, sent.error, sent.duration_ms)
        add("list deliveries", seconds(sent.next_attempt_at), sent.last_attempt_at is None)
    failing = o.get_webhook("w1")
    add("read a webhook", failing.missed_events, seconds(failing.failing_since), seconds(failing.confirmed_at))
    for event in o.all_events(40, wait=False):
        add("read all events to the end", event.sequence, f"{event.agent_id}.", event.actor.type, event.previous_hash)
    o.delete_webhook("w2")
    add("delete a webhook", True)


def seconds(moment: Optional[datetime]) -> int:
    assert moment
    return int(moment.timestamp())


with remit.Client.from_env() as service:
    if sys.argv[1] == "identity":
        identity.service(service)
    elif sys.argv[1] == "identity-contract":
        identity.contract(service)
    elif sys.argv[1] == "contract":
        contract(service)
        fleet(service)
        contract_told(service.organization("rmk_1"))
    else:
        organization, agent_id = organizations(service)
        budget = sessions(organization, agent_id)
        charges(organization, budget)
        transactions(organization, budget)
        tokens(service, organization, agent_id)
        refusals(service, organization, budget)
        served(service, organization)
        told(service, organization)
        priced(budget)
        ends(organization, agent_id, budget)
print(json.dumps(done))
