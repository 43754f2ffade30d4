"""One Remit service, for asyncio. AsyncOrganization and AsyncAgent are the two ways to call it."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type

from ..client import Client, OneClient
from .agent import AsyncAgent
from .described import awaited, made_as
from .organization import AsyncOrganization
from .session import AsyncSession


class AsyncRemit(OneClient):
    """One Remit service at its base URL, for asyncio. Its arguments and methods are those of Client. The tasks of an event loop
    share one; in another event loop, and in a forked child, it opens connections of their own. It starts no thread, but asyncio
    resolves host names on one of its own.

        async with remit.AsyncRemit.from_env() as client:
            agent = client.agent(id, secret)
    """

    _concurrent = True
    _organization, _agent, _session = AsyncOrganization, AsyncAgent, AsyncSession

    organization = made_as(Client.organization, AsyncOrganization)
    agent = made_as(Client.agent, AsyncAgent)
    agent_with_token = made_as(Client.agent_with_token, AsyncAgent)
    session_with_key = made_as(Client.session_with_key, AsyncSession)
    exchange = awaited(Client.exchange)
    create_organization = awaited(Client.create_organization)
    verify = awaited(Client.verify)
    close = awaited(Client.close)

    async def __aenter__(self) -> AsyncRemit:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()
