"""A transaction for asyncio."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type

from ..transactions import OneTransaction, Transaction, TransactionInfo
from .described import awaited


class AsyncTransaction(OneTransaction):
    """A pending transaction, for asyncio. It ends as a Transaction does.

        async with session.transaction("payment", value="12.5") as tx:
            ...  # act
            await tx.commit(value=spent)

    Cancellation leaves exact totals. If the block is cancelled, the transaction is rolled back. A begin, commit or rollback that
    is under way is finished first, within 10 seconds, and a transaction that was begun then is rolled back. Only after that the
    CancelledError goes on.
    """

    @property
    def info(self) -> TransactionInfo:
        """Returns the state in the service's last response. There is one after begin and get."""
        if self._info is None:
            raise RuntimeError("nothing is known of the transaction yet: await get() first")
        return self._info

    async def __aenter__(self) -> AsyncTransaction:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self._ended(error)

    commit = awaited(Transaction.commit)
    update = awaited(Transaction.update)
    rollback = awaited(Transaction.rollback)
    reverse = awaited(Transaction.reverse)
    get = awaited(Transaction.get)
