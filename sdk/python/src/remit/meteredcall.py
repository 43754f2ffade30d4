"""The block of a call of a model that a program makes with the client of its provider. It settles as the hooks do, but a call that
may have been made is always paid: the block sees its errors, and not its request."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Mapping, Optional, Type, TypeVar

from .errors import RemitError
from .holds import Holds
from .metering import Settlement, Terms
from .modelanswers import ClientAnswer
from .modelcalls import client_call
from .modelerrors import UsageMissing
from .prices import Prices

T = TypeVar("T")


class OneMeteredCall(Holds):
    """What MeteredCall and AsyncMeteredCall have in common."""

    def __init__(self, session: Any, prices: Prices, request: Mapping[str, Any], *how: Any) -> None:
        super().__init__(session, prices, *how)
        self._request = request
        self._held: Optional[Terms] = None  # before the block
        self._transaction: Any = None  # while it lasts
        self._answer = ClientAnswer(1)
        self._skipped: Optional[str] = None
        self._lacks_usage = False

    def read(self, said: T) -> T:
        """Takes what the client returned and returns it: an answer, or each event of a stream, as its object or as a mapping. Raises
        RemitError for the answer of a second call, and TypeError for what is no answer; the call then costs what is held."""
        if self._transaction is None:
            raise RemitError("read the answer within the block of its call")
        self._answer.read(said)
        return said

    def skip(self, reason: str = "not made") -> None:
        """Says that the call is not made: the end of the block rolls it back. It has no effect once something was read."""
        self._skipped = reason

    async def _enter(self) -> None:
        if self._held is not None:
            raise RemitError("a block is entered once: make each call in a block of its own")
        call = client_call(self._request)
        held = self._terms(call)
        self._transaction = await self._begin_call(call, held)
        self._held, self._answer = held, ClientAnswer(call.answers)

    async def _exit(self, error: Optional[BaseException]) -> None:
        """Settles. Commits and rollbacks go on when the block is cancelled meanwhile."""
        assert self._held is not None
        transaction, self._transaction = self._transaction, None
        await self._settle(transaction, self._settlement(self._held, error))
        if self._lacks_usage and error is None:
            raise UsageMissing._of(self._held.model)

    def _settlement(self, held: Terms, error: Optional[BaseException]) -> Settlement:
        answer = self._answer
        was_read = answer.is_complete or answer.streamed > 0
        if self._skipped is not None and not was_read:
            return Settlement(None, self._skipped)
        if answer.is_complete or not was_read and error is None:
            self._lacks_usage = answer.usage is None
            return held.ended(answer.usage, answer.tier)
        return held.failed(error, answer.streamed, in_doubt=True)


class MeteredCall(OneMeteredCall):
    """A call of a model, held before its block and paid at its end. Session.model_call makes one.

    The end of the block settles the call, once:

    - An answer, or a stream read to its end: at what its usage costs, also if the code after it raised. Without a usage that can be
      believed, or if nothing was read: at what is held, and it raises UsageMissing.
    - A stream that was left, or broke off: at the most that can have come so far; at what is held if the model can reason.
    - An HTTP error or a refused connection that the client openai or anthropic reports: rolled back. So is a call that was skipped.
    - Any other error, of other programs too, such as a timeout, a lost connection, cancellation and Ctrl-C: at what is held, because it may have happened.
    """

    def __enter__(self) -> MeteredCall:
        self._session._caller.run(self._enter())
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._session._caller.run(self._exit(error))


class AsyncMeteredCall(OneMeteredCall):
    """The same for asyncio. If the block is cancelled, it is settled first, within 10 seconds."""

    async def __aenter__(self) -> AsyncMeteredCall:
        await self._enter()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self._exit(error)
