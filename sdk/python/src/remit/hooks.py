"""Bounds agents that already run, through the hooks of their frameworks: LangChain's callback handlers and the run hooks of OpenAI's
Agents SDK. The classes have the shape that the frameworks document, and import neither.

Before each call of a model, they hold the most that it can cost by a price table; a hold that does not fit raises LimitReached, and
the call is not made. When it ends they commit what it cost. A call that fails is rolled back, unless it may have happened: what was
streamed, or a request that was sent and never answered, is paid. With tools, calls of tools are held and charged as well.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Dict, Generic, Hashable, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from .aio.session import AsyncSession
from .aio.transactions import AsyncTransaction
from .errors import RemitError
from .holds import Holds
from .metering import ModelCall, Settlement, Terms, ToolPrices, member, size
from .modelcalls import Answered, agents_answered, agents_call, contents, langchain_answered, langchain_call
from .modelerrors import UnpricedTool, UsageMissing
from .prices import Prices, Usage
from .runtime import Runtime
from .sessions import Session
from .transactions import Transaction
from .wire import usd

__all__ = ["AsyncRemitCallbackHandler", "RemitCallbackHandler", "RemitRunHooks"]

MOST_OPEN = 10_000  # calls at once; those whose hold has expired are forgotten first

S = TypeVar("S", Session, AsyncSession)


@dataclass
class _Batch:
    """The prompts of one request."""

    key: Tuple[Any, str, int]
    begun: int = 0
    credits: int = 0  # how many have not ended, of which one has said the usage of all
    has_failed: bool = False


@dataclass
class _Open:
    """A call that has begun."""

    transaction: Union[Transaction, AsyncTransaction]
    terms: Optional[Terms]  # None: of a tool
    subject: Any  # by whose identity it is found again
    since: float = field(default_factory=time.monotonic)
    streamed: int = 0  # bytes of its answer so far
    batch: Optional[_Batch] = None  # None: it is alone


class _Hooks(Holds, Generic[S]):
    """What all hooks have in common."""

    def __init__(
        self,
        session: S,
        prices: Prices,
        *,
        models: Optional[Mapping[str, str]] = None,
        tools: Optional[ToolPrices] = None,
        on_limit: Optional[str] = None,
        reason: Optional[str] = None,
        action_type: str = "llm.call",
        expires_in: float = 600,
    ) -> None:
        """The options are those of Session.model_call. tools, if given, has the price of a call of each tool, 0 included; a tool without
        one raises UnpricedTool."""
        super().__init__(session, prices, models, on_limit, reason, action_type, expires_in)
        self._tools = None if tools is None else {name: usd(price) for name, price in tools.items()}
        self._open: Dict[Hashable, _Open] = {}
        self._batches: Dict[Tuple[Any, str, int], _Batch] = {}  # requests of which not all prompts have begun

    async def _hold_call(self, key: Hashable, call: ModelCall, subject: Any = None) -> None:
        held = self._terms(call)
        await self._make_room(key)
        self._open[key] = _Open(await self._begin_call(call, held), held, subject)

    async def _hold_tool(self, key: Hashable, name: str, subject: Any = None) -> None:
        if self._tools is None:
            return
        if name not in self._tools:
            raise UnpricedTool._of(name)
        await self._make_room(key)
        self._open[key] = _Open(await self._begin(name, self._tools[name], {"tool": name}, None), None, subject)

    async def _make_room(self, key: Hashable) -> None:
        """Settles a call with this key that never ended. Forgets calls whose hold has expired when there are too many calls; until
        then they may still end, and are paid."""
        await self._fail(key, None)
        if len(self._open) < MOST_OPEN:
            return
        expired = time.monotonic() - self._expires_in
        for old, call in list(self._open.items()):
            if call.since < expired:
                self._open.pop(old, None)
        if len(self._open) >= MOST_OPEN:
            raise RemitError(f"{MOST_OPEN} calls have begun and not ended: pass the same hooks to all events of a call")

    async def _end_tool(self, key: Hashable) -> None:
        """Settles a call of a tool that has ended."""
        if self._tools is not None:
            await self._settle(self._ended(key).transaction, None)

    async def _end_call(self, key: Hashable, answered: Answered) -> None:
        """Settles a call of a model that has ended. Raises UsageMissing."""
        call = self._ended(key)
        assert call.terms is not None
        if answered.is_cached:
            await self._settle(call.transaction, Settlement(None, "answered from a cache"))
            return
        usage = self._usage_in_batch(call, answered)
        await self._settle(call.transaction, call.terms.ended(usage, answered.tier))
        if usage is None:
            raise UsageMissing._of(call.terms.model)

    def _usage_in_batch(self, call: _Open, answered: Answered) -> Optional[Usage]:
        return answered.usage

    def _ended(self, key: Hashable) -> _Open:
        """Takes a call that has ended. One that did not begin was never held: it must not pass as if it cost nothing."""
        call = self._open.pop(key, None)
        if call is None:
            raise RemitError("a call has ended that did not begin here, or whose hold has expired: pass the same hooks to all its events")
        return call

    async def _fail(self, key: Hashable, error: Optional[BaseException]) -> None:
        """Settles a call that has failed."""
        call = self._open.pop(key, None)
        if call is not None:
            failed = Settlement(None, "the tool failed") if call.terms is None else call.terms.failed(error, call.streamed)
            await self._settle(call.transaction, failed)


class _CallbackHandler(_Hooks[S]):
    """What handlers for LangChain have in common: the attributes that it looks at, and how it tells of calls."""

    name = "remit"
    raise_error = True  # or a refusal would be a warning
    run_inline = True  # before the call, and before other handlers
    ignore_llm = ignore_chat_model = ignore_agent = False  # LangChain tells of tools as of agents
    ignore_chain = ignore_retriever = ignore_retry = ignore_custom_event = True

    async def _start(self, serialized: Any, prompt: Any, content: Any, run_id: Hashable, given: Mapping[str, Any]) -> None:
        call = langchain_call(serialized, prompt, content, given)
        size = given.get("batch_size")
        key = (given.get("parent_run_id"), call.model, size) if type(size) is int and size > 1 else None
        try:
            await self._hold_call(("model", run_id), call)
        except BaseException:
            if key is not None:
                self._batches.pop(key, None)  # the request is not made
            raise
        if key is not None:
            self._open["model", run_id].batch = self._batch(key)

    def _batch(self, key: Tuple[Any, str, int]) -> _Batch:
        """Returns the request of a prompt that begins: the one of this key that lacks prompts, or else a new one."""
        if len(self._batches) >= MOST_OPEN:
            self._batches.clear()  # of which prompts never began
        batch = self._batches.setdefault(key, _Batch(key))
        batch.begun += 1
        if batch.begun == key[-1]:
            del self._batches[key]
        return batch

    async def _fail(self, key: Hashable, error: Optional[BaseException]) -> None:
        call = self._open.get(key)
        if call is not None and call.batch is not None:
            call.batch.has_failed, call.batch.credits = True, 0
            self._batches.pop(call.batch.key, None)
        await super()._fail(key, error)

    async def _start_tool(self, serialized: Any, run_id: Hashable, given: Mapping[str, Any]) -> None:
        await self._hold_tool(("tool", run_id), str(given.get("name") or member(serialized, "name") or ""))

    async def _end_model(self, response: Any, run_id: Hashable) -> None:
        await self._end_call(("model", run_id), langchain_answered(response))

    def _usage_in_batch(self, call: _Open, answered: Answered) -> Optional[Usage]:
        """Of the prompts of one request, the first to end has the usage of all, and the others an empty one. A prompt that begins later is
        of another request, and so is one after a failure."""
        batch = call.batch
        if batch is None:
            return answered.usage
        if answered.usage is not None:
            self._batches.pop(batch.key, None)
            batch.credits = 0 if batch.has_failed else batch.begun - 1
        elif answered.is_later and batch.credits > 0:
            batch.credits -= 1
            return Usage()
        return answered.usage

    def _streamed(self, token: Any, run_id: Hashable, given: Mapping[str, Any]) -> None:
        call = self._open.get(("model", run_id))
        if call is not None:
            chunk = given.get("chunk")
            call.streamed += size(token if chunk is None else chunk)


class RemitCallbackHandler(_CallbackHandler[Session]):
    """A callback handler for LangChain: model.invoke(…, config={"callbacks": [RemitCallbackHandler(session, prices)]}).

    Where LangChain wants an instance of its own class: class Budget(RemitCallbackHandler, BaseCallbackHandler).
    """

    def on_llm_start(self, serialized: Any, prompts: List[str], *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._start(serialized, prompts, None, run_id, given))

    def on_chat_model_start(self, serialized: Any, messages: List[List[Any]], *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._start(serialized, messages, contents(messages), run_id, given))

    def on_llm_new_token(self, token: Any, *, run_id: Hashable, **given: Any) -> None:
        self._streamed(token, run_id, given)

    def on_llm_end(self, response: Any, *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._end_model(response, run_id))

    def on_llm_error(self, error: BaseException, *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._fail(("model", run_id), error))

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._start_tool(serialized, run_id, given))

    def on_tool_end(self, output: Any, *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._end_tool(("tool", run_id)))

    def on_tool_error(self, error: BaseException, *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._fail(("tool", run_id), error))

    def on_agent_action(self, action: Any, **given: Any) -> None:
        """Does nothing."""

    def on_agent_finish(self, finish: Any, **given: Any) -> None:
        """Does nothing."""

    def on_text(self, text: str, **given: Any) -> None:
        """Does nothing."""


class AsyncRemitCallbackHandler(_CallbackHandler[AsyncSession]):
    """The same for LangChain's asynchronous calls: await model.ainvoke(…, config={"callbacks": […]})."""

    async def on_llm_start(self, serialized: Any, prompts: List[str], *, run_id: Hashable, **given: Any) -> None:
        await self._start(serialized, prompts, None, run_id, given)

    async def on_chat_model_start(self, serialized: Any, messages: List[List[Any]], *, run_id: Hashable, **given: Any) -> None:
        await self._start(serialized, messages, contents(messages), run_id, given)

    async def on_llm_new_token(self, token: Any, *, run_id: Hashable, **given: Any) -> None:
        self._streamed(token, run_id, given)

    async def on_llm_end(self, response: Any, *, run_id: Hashable, **given: Any) -> None:
        await self._end_model(response, run_id)

    async def on_llm_error(self, error: BaseException, *, run_id: Hashable, **given: Any) -> None:
        await self._fail(("model", run_id), error)

    async def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Hashable, **given: Any) -> None:
        await self._start_tool(serialized, run_id, given)

    async def on_tool_end(self, output: Any, *, run_id: Hashable, **given: Any) -> None:
        await self._end_tool(("tool", run_id))

    async def on_tool_error(self, error: BaseException, *, run_id: Hashable, **given: Any) -> None:
        await self._fail(("tool", run_id), error)

    async def on_agent_action(self, action: Any, **given: Any) -> None:
        """Does nothing."""

    async def on_agent_finish(self, finish: Any, **given: Any) -> None:
        """Does nothing."""

    async def on_text(self, text: str, **given: Any) -> None:
        """Does nothing."""


class RemitRunHooks(_Hooks[AsyncSession]):
    """Run hooks for OpenAI's Agents SDK:

        class Budget(RemitRunHooks, RunHooks): ...

        async with Budget(session, prices) as hooks:
            await Runner.run(agent, "…", hooks=hooks)

    The SDK tells no hook of a call that failed: the end of the block settles it, or its hold expires. Hooks do not see what a run
    overrides (RunConfig), nor what the provider remembers: with previous_response_id or a conversation pass remembers=True, which
    holds the most input that the model takes. model is that of agents which name none.
    """

    def __init__(
        self, session: AsyncSession, prices: Prices, *, model: str = "", remembers: bool = False, **options: Any
    ) -> None:
        super().__init__(session, prices, **options)
        self._model = model
        self._remembers = remembers

    async def __aenter__(self: R) -> R:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        async def settle() -> None:
            for key in list(self._open):
                await self._fail(key, error)

        await self._session._caller.service.runtime.to_end(settle)

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Optional[str], input_items: List[Any]) -> None:
        call = agents_call(agent, system_prompt, input_items, self._model, self._remembers)
        await self._hold_call((id(context), id(agent)), call, (context, agent))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        await self._end_call((id(context), id(agent)), agents_answered(response))

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        await self._hold_tool(_tool_key(context, tool), str(member(tool, "name", "")), (context, tool))

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        await self._end_tool(_tool_key(context, tool))

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Does nothing."""

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        """Does nothing."""

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Does nothing."""


R = TypeVar("R", bound=RemitRunHooks)


def _tool_key(context: Any, tool: Any) -> Hashable:
    return member(context, "tool_call_id") or id(context), id(tool)
