"""The calls about keys, audiences and delegation, with the Python SDK; see identity.go."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, List

import remit
from steps import add, refused

TOOLS = "https://tools.example/mcp"  # a resource


def service(client: remit.Client) -> None:
    """Makes the calls to the service."""
    made = client.create_organization("acme")
    assert made.api_key
    o = client.organization(made.api_key)
    own, proofs = remit.generate_key("EdDSA"), remit.generate_key()
    add("make a key", len(own.thumbprint), own.thumbprint != proofs.thumbprint)
    keys = remit.public_jwks(own.text)
    add("the public part of a key", keys == own.jwks)
    scout = o.create_agent("scout", ["read", "pay", "sessions:delegate"], secret=False, jwks=keys, audiences=[TOOLS])
    add("register an agent's keys", scout.secret is None, scout.has_secret)
    add("limit an agent's audiences", scout.audiences)

    agent = client.agent(scout.id, key=own.text)
    add("an agent by other credentials", agent.id == scout.id)
    session = agent.session(o.create_session(scout.id, max_actions=10, max_value=5).id)
    add("an agent by its private key", session.charge().action_count)
    tokens(client, o, scout.id, own, proofs)
    delegation(client, o, session, agent)
    suspended(client, o, session, agent)
    bound(client, o, scout.id, own, proofs, session)
    trusted_issuers(o, scout.id, own)


def tokens(client: remit.Client, o: remit.Organization, id: str, own: remit.Key, proofs: remit.Key) -> None:
    access = client.agent(id, key=own.text, resource=[TOOLS], scopes=["read"]).token()
    verified = client.verify(access, audience=TOOLS)
    add("verify for an audience", verified.agent_id == id)
    add("tokens with fewer scopes", verified.scopes)
    refused(remit.Unauthorized, lambda: client.verify(access))
    add("tokens for resources", True, o.introspect(access).audience)
    elsewhere = client.agent(id, key=own.text, resource=["https://elsewhere.example/"])
    add("a resource is not allowed", refused(remit.InvalidTarget, elsewhere.token).code)
    pair = client.exchange(id, key=own.text, dpop=proofs)
    add("exchange another credential", pair.token_type, pair.expires_in, pair.refresh_token is not None)
    add("remove a field of an agent", o.update_agent(id, audiences=remit.REMOVE).audiences is None)


def delegation(client: remit.Client, o: remit.Organization, parent: remit.Session, agent: remit.Agent) -> None:
    helper = o.create_agent("helper", ["read"])
    child = parent.create_child(agent_id=helper.id, max_actions=2, max_value=1)
    token = agent.delegate(child.id, scopes=["read"])
    add("delegate to a child session", token.agent_id == helper.id, token.session_id == child.id, token.token_type, token.scopes)
    alone = client.agent_with_token(token.access_token)
    add("an agent by a token alone", alone.id == helper.id, alone.session(child.id).charge().action_count)
    refused(remit.DelegatedTokenRefused, lambda: list(alone.events(wait=False)))
    add("a delegated token may not", True)


def bound(
    client: remit.Client, o: remit.Organization, id: str, own: remit.Key, proofs: remit.Key, session: remit.Session
) -> None:
    add("demand proofs of an agent", o.update_agent(id, dpop_required=True).dpop_required)
    refused(remit.DPoPRequired, client.agent(id, key=own.text).token)
    add("an agent must prove its key", True)
    agent = client.agent(id, key=own.text, dpop=proofs)
    charged = agent.session(session.id).charge()
    info = o.introspect(agent.token())
    add("tokens bound to a key", charged.action_count, info.thumbprint == proofs.thumbprint, info.token_type)
    agent.refresh()
    add("tokens bound to a key", agent.session(session.id).charge().action_count)


def suspended(client: remit.Client, o: remit.Organization, parent: remit.Session, agent: remit.Agent) -> None:
    """Asks the token endpoint for what a suspended agent does not get."""
    key = remit.generate_key("EdDSA")
    made = o.create_agent("courier", secret=False, jwks=key.jwks)
    add("suspend an agent", o.suspend_agent(made.id, "leak").id == made.id)
    stopped = refused(remit.AgentSuspended, client.agent(made.id, key=key.text).token)
    add("the agent is suspended", stopped.suspended_at is not None, stopped.code)
    refused(remit.NotFound, lambda: agent.delegate(parent.id))
    add("delegate to a child session", True)


def trusted_issuers(o: remit.Organization, id: str, own: remit.Key) -> None:
    rule = remit.TrustRule(id, {"sub": "repo:acme/agent:*", "environment": "production"})
    made = o.create_trusted_issuer("https://ci.example", [rule], jwks=own.jwks, description="CI")
    add("create a trusted issuer", made.issuer, made.rules[0].claims["sub"], made.description)
    refused(remit.IssuerExists, lambda: o.create_trusted_issuer("https://ci.example", [rule], jwks=own.jwks))
    add("an issuer is trusted already", True)
    add("list trusted issuers", len(o.trusted_issuers()))
    add("read a trusted issuer", o.get_trusted_issuer(made.id).rules[0].agent_id == id)
    changed = o.update_trusted_issuer(made.id, description="builds")
    add("change a trusted issuer", changed.description, len(changed.rules))
    o.delete_trusted_issuer(made.id)
    refused(remit.NotFound, lambda: o.get_trusted_issuer(made.id))
    add("delete a trusted issuer", True)


def contract(client: remit.Client) -> None:
    """Makes those calls whose answers a test cannot bring about."""
    with tempfile.TemporaryDirectory() as folder:
        files(client, Path(folder))
    nonce = client.agent("nonce", "rms_1", dpop=remit.generate_key())
    add("tokens bound to a key", nonce.token().reveal())
    proof = refused(remit.InvalidProof, client.agent("skewed", "rms_1", dpop=True).token)
    add("a proof is refused", proof.code, proof.clock_skew > 86_400)

    headers = nonce.prove("PUT", TOOLS + "?q=1")
    add("prove a request elsewhere", headers["Authorization"], headers["DPoP"] != "")
    verified = client.verify("t", "read", audience=TOOLS, proof="p", method="PUT", url=TOOLS + "?q=1")
    add("verify a proof", verified.agent_id, verified.actor_id, verified.scopes, verified.thumbprint)
    resource = remit.ProtectedResource(TOOLS, ["https://remit.example"], scopes=["read"])
    document = resource.metadata()
    add("describe a protected resource", len(document), document["resource"], resource.metadata_url)
    add("describe a protected resource", resource.challenge())
    add("describe a protected resource", resource.challenge(refused(remit.RemitError, lambda: client.verify("t", "pay"))))
    registered(client.organization("rmk_1"))


def files(client: remit.Client, folder: Path) -> None:
    key, token, absent = folder / "key", folder / "token", folder / "absent"
    key.write_text(remit.generate_key().text.reveal())
    token.write_text("e30.e30.c2ln\n")
    add("an agent by its private key", client.agent("a1", key_file=key).token().reveal())
    workload = client.agent("a1", assertion=token.read_text, resource=[TOOLS, "urn:b"], scopes=["read", "pay"])
    add("an agent by its workload's token", workload.token().reveal())
    unusable = refused(remit.UnusableCredential, client.agent("a1", assertion_file=absent).token)
    add("a key or token file is unusable", unusable.source == str(absent))


def registered(o: remit.Organization) -> None:
    for token in ("delegated", "plain", "nonsense"):
        of = o.introspect(token)
        add("introspect a token", of.active, of.audience, f"{of.thumbprint}.", f"{of.session_id}.", of.actors)
    made = o.create_agent("keys", jwks_uri="https://keys.example/jwks")
    add("register an agent's keys", made.jwks_uri, made.dpop_required)
    rules = [remit.TrustRule("a1", {"sub": "x"}), remit.TrustRule("a2", {"aud": "y"})]
    issuer = o.create_trusted_issuer("https://ci.example", rules[:1], jwks_uri="https://ci.example/jwks")
    add("create a trusted issuer", issuer.jwks_uri, int(issuer.created_at.timestamp()))
    changed = o.update_trusted_issuer("i1", jwks_uri="https://ci.example/new", rules=rules)
    add("change a trusted issuer", changed.jwks_uri)
    changes: List[Any] = [
        {"jwks_uri": "https://keys.example/new", "audiences": []}, {"jwks": remit.REMOVE, "jwks_uri": remit.REMOVE},
        {"dpop_required": False},
    ]
    for change in changes:
        add("remove a field of an agent", o.update_agent("a1", **change).id == "a1")
