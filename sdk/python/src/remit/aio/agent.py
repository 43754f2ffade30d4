"""The calls that an agent makes, for asyncio."""

from __future__ import annotations

from ..agent import Agent, OneAgent
from .described import awaited, awaited_as, listed
from .session import AsyncSession
from .transactions import AsyncTransaction


class AsyncAgent(OneAgent):
    """Calls the service as one agent, from asyncio. AsyncRemit.agent makes one. Its methods take the arguments of Agent's. Keep
    one AsyncAgent for the lifetime of the event loop: its tasks share one exchange or refresh, which goes on when the task that
    started it is cancelled."""

    _concurrent = True
    _transaction = AsyncTransaction

    token = awaited(Agent.token)
    refresh = awaited(Agent.refresh)
    prove = awaited(Agent.prove)
    delegate = awaited(Agent.delegate)

    def session(self, id: str) -> AsyncSession:
        """Returns the agent's session with this id. Sends nothing."""
        return AsyncSession(self._caller, self.id, id)

    sessions = listed(Agent.sessions)
    charge_many = awaited(Agent.charge_many)
    begin = awaited_as(Agent.begin, AsyncTransaction)

    def transaction(self, id: str) -> AsyncTransaction:
        """Returns the agent's transaction with this id, in any state. Sends nothing."""
        return AsyncTransaction(self._caller, id)

    transactions = listed(Agent.transactions)
    events = listed(Agent.events)
