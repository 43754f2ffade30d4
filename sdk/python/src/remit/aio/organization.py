"""The calls that an organization makes, for asyncio."""

from __future__ import annotations

from ..organization import OneOrganization, Organization
from .described import awaited, listed
from .transactions import AsyncTransaction


class AsyncOrganization(OneOrganization):
    """Calls the service with an API key, from asyncio. AsyncRemit.organization makes one. Its methods take the arguments of
    Organization's."""

    _concurrent = True

    info = awaited(Organization.info)
    rotate_key = awaited(Organization.rotate_key)
    create_api_key = awaited(Organization.create_api_key)
    api_keys = awaited(Organization.api_keys)
    rotate_api_key = awaited(Organization.rotate_api_key)
    delete_api_key = awaited(Organization.delete_api_key)
    create_session_key = awaited(Organization.create_session_key)
    session_keys = awaited(Organization.session_keys)
    delete_session_key = awaited(Organization.delete_session_key)
    usage = awaited(Organization.usage)
    usage_csv = awaited(Organization.usage_csv)
    session_usage = awaited(Organization.session_usage)
    create_agent = awaited(Organization.create_agent)
    get_agent = awaited(Organization.get_agent)
    agents = listed(Organization.agents)
    update_agent = awaited(Organization.update_agent)
    suspend_agent = awaited(Organization.suspend_agent)
    resume_agent = awaited(Organization.resume_agent)
    suspend_all_agents = awaited(Organization.suspend_all_agents)
    resume_all_agents = awaited(Organization.resume_all_agents)
    revoke_agent = awaited(Organization.revoke_agent)
    rotate_agent_secret = awaited(Organization.rotate_agent_secret)
    families = listed(Organization.families)
    revoke_family = awaited(Organization.revoke_family)
    create_session = awaited(Organization.create_session)
    update_session = awaited(Organization.update_session)
    get_session = awaited(Organization.get_session)
    sessions = listed(Organization.sessions)
    end_session = awaited(Organization.end_session)
    session_tree = awaited(Organization.session_tree)
    suspend_session = awaited(Organization.suspend_session)
    resume_session = awaited(Organization.resume_session)
    requests = awaited(Organization.requests)
    get_request = awaited(Organization.get_request)
    approve_request = awaited(Organization.approve_request)
    deny_request = awaited(Organization.deny_request)
    set_budget = awaited(Organization.set_budget)
    get_budget = awaited(Organization.get_budget)
    delete_budget = awaited(Organization.delete_budget)
    charge_many = awaited(Organization.charge_many)
    transactions = listed(Organization.transactions)

    def transaction(self, id: str) -> AsyncTransaction:
        """Returns the transaction with this id. Sends nothing. An organization can read it and roll it back, but not commit
        it."""
        return AsyncTransaction(self._caller, id)

    events = listed(Organization.events)
    all_events = listed(Organization.all_events)
    checkpoint = awaited(Organization.checkpoint)
    create_webhook = awaited(Organization.create_webhook)
    webhooks = awaited(Organization.webhooks)
    get_webhook = awaited(Organization.get_webhook)
    update_webhook = awaited(Organization.update_webhook)
    delete_webhook = awaited(Organization.delete_webhook)
    rotate_webhook_secret = awaited(Organization.rotate_webhook_secret)
    test_webhook = awaited(Organization.test_webhook)
    deliveries = listed(Organization.deliveries)
    retry_delivery = awaited(Organization.retry_delivery)
    create_trusted_issuer = awaited(Organization.create_trusted_issuer)
    trusted_issuers = awaited(Organization.trusted_issuers)
    get_trusted_issuer = awaited(Organization.get_trusted_issuer)
    update_trusted_issuer = awaited(Organization.update_trusted_issuer)
    delete_trusted_issuer = awaited(Organization.delete_trusted_issuer)
    introspect = awaited(Organization.introspect)
