"""Bounds agents that already run, through the hooks of their frameworks: LangChain's callback handlers and the run hooks of OpenAI's
Agents SDK. The classes have the shape that the frameworks document, and import neither.

Before each call of a model, they hold the most that it can cost by a price table; a hold that does not fit raises LimitReached, and
the call is not made. When it ends they commit what it cost. A call that fails is rolled back, unless it may have happened: what was
streamed, or a request that was sent and never answered, is paid. With tools, calls of tools are held and charged as well.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Dict, Generic, Hashable, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from .aio.session import AsyncSession
from .aio.transactions import AsyncTransaction
from .errors import RemitError
from .metering import (
    TOOL_PROMPT, ModelCall, Settlement, Terms, ToolPrices, is_text, member, size, terms, unpriced, usage_missing, usage_of_totals,
)
from .modelerrors import UnknownModel, UnpricedTool
from .prices import Prices, Usage
from .runtime import Runtime, now
from .sessions import Session
from .transactions import Transaction
from .wire import usd

__all__ = ["AsyncRemitCallbackHandler", "RemitCallbackHandler", "RemitRunHooks"]

MOST_OPEN = 10_000  # calls at once; those whose hold has expired are forgotten first
_SETTLE_LIMIT = 10.0  # seconds
_ENVELOPE = 512  # bytes of a request around what the frameworks tell of it, such as the names of its members
_MAXIMA = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample")
_REFERENCES = ("previous_response_id", "conversation", "prompt", "container", "mcp_servers", "web_search_options")

_log = logging.getLogger("remit")

S = TypeVar("S", Session, AsyncSession)


@dataclass
class _Open:
    """A call that has begun."""

    transaction: Union[Transaction, AsyncTransaction]
    terms: Optional[Terms]  # None: of a tool
    subject: Any  # by whose identity it is found again
    since: float = field(default_factory=time.monotonic)
    streamed: int = 0  # bytes of its answer so far


class _Hooks(Generic[S]):
    """What all hooks have in common. Its steps are coroutines: synchronous hooks run them to their end."""

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
        """prices are those of the models, and models maps the names in requests to those in the table. tools, if given, has the price
        of a call of each tool, 0 included; a tool without one raises UnpricedTool. on_limit and reason are those of Session.begin.
        expires_in is after how many seconds a hold expires if this process ends; a call may last longer."""
        self._session: Any = session
        self._prices = prices
        self._models = dict(models or {})
        self._tools = None if tools is None else {name: usd(price) for name, price in tools.items()}
        self._asks: Dict[str, Any] = {} if on_limit is None else {"on_limit": on_limit, "reason": reason}
        self._action_type = action_type
        self._expires_in = expires_in
        self._open: Dict[Hashable, _Open] = {}

    async def _hold_call(self, key: Hashable, call: ModelCall, subject: Any = None) -> None:
        held = terms(self._prices, self._models, call)
        await self._hold(key, held, subject, self._action_type, held.value, {"model": call.model})

    async def _hold_tool(self, key: Hashable, name: str, subject: Any = None) -> None:
        if self._tools is None:
            return
        if name not in self._tools:
            raise UnpricedTool._of(name)
        await self._hold(key, None, subject, name, self._tools[name], {"tool": name})

    async def _hold(
        self, key: Hashable, held: Optional[Terms], subject: Any, action_type: str, value: Any, metadata: Mapping[str, Any]
    ) -> None:
        await self._fail(key, None)  # one with the same key never ended
        self._make_room()
        transaction: Any = await now(self._session.begin(
            action_type, value=value, expires_in=self._expires_in, reversible=False, metadata=metadata, **self._asks
        ))
        self._open[key] = _Open(transaction, held, subject)

    def _make_room(self) -> None:
        """Forgets calls whose hold has expired when there are too many calls; until then they may still end, and are paid."""
        if len(self._open) < MOST_OPEN:
            return
        expired = time.monotonic() - self._expires_in
        for key, call in list(self._open.items()):
            if call.since < expired:
                self._open.pop(key, None)
        if len(self._open) >= MOST_OPEN:
            raise RemitError(f"{MOST_OPEN} calls have begun and not ended: pass the same hooks to all events of a call")

    async def _end(self, key: Hashable, usage: Optional[Usage] = None, is_cached: bool = False) -> None:
        """Settles a call that has ended. Raises UsageMissing."""
        call = self._open.pop(key, None)
        if call is None:
            return
        if call.terms is None:
            await self._settle(call, None)
            return
        settlement = Settlement(None, "answered from a cache") if is_cached else call.terms.ended(usage)
        await self._settle(call, settlement)
        missing = None if is_cached else usage_missing(settlement, call.terms.model)
        if missing is not None:
            raise missing

    async def _fail(self, key: Hashable, error: Optional[BaseException]) -> None:
        """Settles a call that has failed."""
        call = self._open.pop(key, None)
        if call is not None:
            failed = Settlement(None, "the tool failed") if call.terms is None else call.terms.failed(error, call.streamed)
            await self._settle(call, failed)

    async def _settle(self, call: _Open, settlement: Optional[Settlement]) -> None:
        """Commits or rolls back; None commits what is held. The answer is delivered even if that fails: then the hold expires."""
        transaction: Any = call.transaction
        try:
            if settlement is None:
                await now(transaction.commit(timeout=_SETTLE_LIMIT))
            elif settlement.value is None:
                await now(transaction.rollback(settlement.reason, timeout=_SETTLE_LIMIT))
            else:
                await now(transaction.commit(value=settlement.value, timeout=_SETTLE_LIMIT))
        except RemitError as e:
            _log.warning("transaction %s could not be settled and is left to expire: %s", transaction.id, e)


class _CallbackHandler(_Hooks[S]):
    """What handlers for LangChain have in common: the attributes that it looks at, and how it tells of calls."""

    name = "remit"
    raise_error = True  # or a refusal would be a warning
    run_inline = True  # before the call, and before other handlers
    ignore_llm = ignore_chat_model = ignore_agent = False  # LangChain tells of tools as of agents
    ignore_chain = ignore_retriever = ignore_retry = ignore_custom_event = True

    async def _start(self, serialized: Any, prompt: Any, content: Any, run_id: Hashable, given: Mapping[str, Any]) -> None:
        await self._hold_call(("model", run_id), _langchain_call(serialized, prompt, content, given))

    async def _start_tool(self, serialized: Any, run_id: Hashable, given: Mapping[str, Any]) -> None:
        await self._hold_tool(("tool", run_id), str(given.get("name") or member(serialized, "name") or ""))

    async def _end_model(self, response: Any, run_id: Hashable) -> None:
        usage, is_cached = _langchain_usage(response)
        await self._end(("model", run_id), usage, is_cached)

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
        Runtime().run(self._start(serialized, messages, _contents(messages), run_id, given))

    def on_llm_new_token(self, token: Any, *, run_id: Hashable, **given: Any) -> None:
        self._streamed(token, run_id, given)

    def on_llm_end(self, response: Any, *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._end_model(response, run_id))

    def on_llm_error(self, error: BaseException, *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._fail(("model", run_id), error))

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._start_tool(serialized, run_id, given))

    def on_tool_end(self, output: Any, *, run_id: Hashable, **given: Any) -> None:
        Runtime().run(self._end(("tool", run_id)))

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
        await self._start(serialized, messages, _contents(messages), run_id, given)

    async def on_llm_new_token(self, token: Any, *, run_id: Hashable, **given: Any) -> None:
        self._streamed(token, run_id, given)

    async def on_llm_end(self, response: Any, *, run_id: Hashable, **given: Any) -> None:
        await self._end_model(response, run_id)

    async def on_llm_error(self, error: BaseException, *, run_id: Hashable, **given: Any) -> None:
        await self._fail(("model", run_id), error)

    async def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Hashable, **given: Any) -> None:
        await self._start_tool(serialized, run_id, given)

    async def on_tool_end(self, output: Any, *, run_id: Hashable, **given: Any) -> None:
        await self._end(("tool", run_id))

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
        call = _agents_call(agent, system_prompt, input_items, self._model, self._remembers)
        await self._hold_call((id(context), id(agent)), call, (context, agent))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        await self._end((id(context), id(agent)), _agents_usage(member(response, "usage")))

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        await self._hold_tool(_tool_key(context, tool), str(member(tool, "name", "")), (context, tool))

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        await self._end(_tool_key(context, tool))

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Does nothing."""

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        """Does nothing."""

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Does nothing."""


R = TypeVar("R", bound=RemitRunHooks)


def _contents(messages: List[List[Any]]) -> List[Any]:
    return [member(message, "content") for prompt in messages for message in prompt]


def _langchain_call(serialized: Any, prompt: Any, content: Any, given: Mapping[str, Any]) -> ModelCall:
    parameters, metadata = given.get("invocation_params") or {}, given.get("metadata") or {}
    made_with = member(serialized, "kwargs") or {}
    names = [*(member(of, name) for of in (parameters, made_with) for name in ("model", "model_name")), metadata.get("ls_model_name")]
    model = next((name for name in names if isinstance(name, str) and name), "")
    if not model:
        raise UnknownModel._of(model)
    maxima = [*(parameters.get(name) for name in _MAXIMA), metadata.get("ls_max_tokens")]
    most = [one for one in maxima if type(one) is int and one > 0]
    tools = parameters.get("tools") or []
    is_hosted = any(member(tool, "type", "function") not in ("function", "custom") for tool in tools)
    refers = is_hosted or any(parameters.get(name) is not None for name in _REFERENCES) or not is_text(content)
    answers = parameters.get("n")
    bytes_sent = _ENVELOPE + size([prompt, parameters]) + (TOOL_PROMPT if tools else 0)
    return ModelCall(
        model, bytes_sent, refers, max(most) if most else None,
        answers if type(answers) is int and answers > 0 else 1, unpriced(parameters, content),
    )


def _langchain_usage(response: Any) -> Tuple[Optional[Usage], bool]:
    """Returns the usage of a result, and whether it comes from LangChain's own cache, which it marks by a cost of 0."""
    messages = [member(one, "message") for several in member(response, "generations") or [] for one in several]
    for told in (member(message, "usage_metadata") for message in messages):
        if told:
            of_input, of_output = member(told, "input_token_details") or {}, member(told, "output_token_details") or {}
            usage = usage_of_totals(
                member(told, "input_tokens"), member(of_input, "cache_read"), member(of_input, "cache_creation"),
                member(told, "output_tokens"), member(of_output, "reasoning"),
            )
            return usage, member(told, "total_cost") == 0
    told = member(member(response, "llm_output") or {}, "token_usage")
    if told == {}:  # of the second and later prompts of one request: the first has the usage of all
        return Usage(), False
    cached, reasoning = member(told, "prompt_tokens_details"), member(told, "completion_tokens_details")
    return usage_of_totals(
        member(told, "prompt_tokens"), member(cached, "cached_tokens"), 0, member(told, "completion_tokens"),
        member(reasoning, "reasoning_tokens"),
    ), False


def _agents_call(agent: Any, system_prompt: Any, items: Any, otherwise: str, remembers: bool) -> ModelCall:
    model = member(agent, "model")
    name = model if isinstance(model, str) else member(model, "model") or otherwise
    if not name:
        raise UnknownModel._of("")
    settings = member(agent, "model_settings")
    most = member(settings, "max_tokens")
    extras = [member(settings, name) for name in ("extra_args", "extra_body")]
    extra = {name: value for of in extras if isinstance(of, Mapping) for name, value in of.items()}
    tools = list(member(agent, "tools") or [])
    schemas = [[member(tool, name) for name in ("name", "description", "params_json_schema")] for tool in tools]
    is_hosted = any(member(tool, "params_json_schema") is None for tool in tools) or bool(member(agent, "mcp_servers"))
    hidden = [member(agent, name) for name in ("handoffs", "output_type", "prompt")]
    refers = remembers or is_hosted or any(hidden) or not is_text(items)
    bytes_sent = _ENVELOPE + size([system_prompt, items, schemas, name, settings]) + (TOOL_PROMPT if tools else 0)
    return ModelCall(
        str(name), bytes_sent, refers, most if type(most) is int else None, unpriced=unpriced(extra, items),
    )


def _agents_usage(told: Any) -> Optional[Usage]:
    """Returns the usage of a response. The SDK reports 0 tokens of input if the provider reports nothing."""
    if not member(told, "input_tokens"):
        return None
    of_input, of_output = member(told, "input_tokens_details"), member(told, "output_tokens_details")
    return usage_of_totals(
        member(told, "input_tokens"), member(of_input, "cached_tokens"), 0, member(told, "output_tokens"),
        member(of_output, "reasoning_tokens"),
    )


def _tool_key(context: Any, tool: Any) -> Hashable:
    return member(context, "tool_call_id") or id(context), id(tool)
