"""Reads calls of models: what bounds one before it is made, as the clients of OpenAI and Anthropic take it or LangChain and OpenAI's
Agents SDK tell it; and what it used, as the frameworks tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple

from .metering import (
    TOOL_PROMPT, ModelCall, answers, asks_to_reason, is_text, member, members, openai_usage, size, sources, tier, unpriced,
    usage_of_totals, values,
)
from .modelerrors import UnboundedCall, UnknownModel
from .prices import Usage

_ENVELOPE = 512  # bytes of a request around what is known of it, such as the names of its members
_MAXIMA = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample")
_REFERENCES = ("previous_response_id", "conversation", "prompt", "container", "mcp_servers", "web_search_options", "plugins")
_OF_CLIENTS = ("extra_headers", "extra_query", "timeout")  # that are no part of the request's body
_OMITTED = ("NotGiven", "Omit")  # the clients' types of what is not given
_DEEPEST = 60
_PROMPTS = ("tools", "input", "messages")  # that a body adds to what the Agents SDK tells of


@dataclass(frozen=True)
class Answered:
    """What an answer says that a call used."""

    usage: Optional[Usage]  # None: nothing that can be believed
    tier: Optional[str] = None  # service_tier; None: it does not say
    is_cached: bool = False  # it comes from the framework's own cache
    is_later: bool = False  # it may be one of several, of which the first has the usage of all


def contents(messages: List[List[Any]]) -> List[Any]:
    return [member(message, "content") for prompt in messages for message in prompt]


def langchain_call(serialized: Any, prompt: Any, content: Any, given: Mapping[str, Any]) -> ModelCall:
    parameters, metadata = given.get("invocation_params") or {}, given.get("metadata") or {}
    made_with = member(serialized, "kwargs") or {}
    names = [*(member(of, name) for of in (parameters, made_with) for name in ("model", "model_name")), member(metadata, "ls_model_name")]
    model = next((name for name in names if isinstance(name, str) and name), "")
    if not model:
        raise UnknownModel._of(model)
    if not isinstance(parameters, Mapping):
        raise UnboundedCall._unread(model, "parameters")
    of = sources(model, parameters)
    tools = _tools(model, of)
    maxima = [*values(of, *_MAXIMA), ("max_tokens", member(metadata, "ls_max_tokens"))]
    return _call(model, of, maxima, [prompt, parameters], content, bool(tools), _are_hosted(tools))


def langchain_answered(response: Any) -> Answered:
    """Reads a result. LangChain marks one from its own cache by a cost of 0."""
    generations = [one for several in member(response, "generations") or [] for one in several]
    messages = [member(one, "message") for one in generations]
    of_all = member(response, "llm_output") or {}
    metadata = [member(message, "response_metadata") for message in messages]
    tiers = [member(of, "service_tier") for one in metadata for of in (one, member(one, "usage"))] + [member(of_all, "service_tier")]
    served = next((one for one in tiers if isinstance(one, str) and one), None)
    has_output = any(bool(member(one, "text")) for one in generations)
    has_output = has_output or any(bool(member(message, name)) for message in messages for name in ("content", "tool_calls"))
    for told in (member(message, "usage_metadata") for message in messages):
        if told:
            of_input, of_output = member(told, "input_token_details") or {}, member(told, "output_token_details") or {}
            own = next((name for name in ("priority", "flex") if member(of_input, name) is not None), None)
            prefix = f"{own}_" if own else ""  # which the details of these tiers have
            usage = usage_of_totals(
                member(told, "input_tokens"), member(of_input, prefix + "cache_read"), member(of_input, "cache_creation"),
                member(told, "output_tokens"), member(of_output, prefix + "reasoning"), has_output,
            )
            return Answered(usage, served or own, member(told, "total_cost") == 0)
    told = member(of_all, "token_usage")
    return Answered(openai_usage(told, "prompt_tokens", "completion_tokens", has_output), served, is_later=told == {})


def agents_call(agent: Any, system_prompt: Any, items: Any, otherwise: str, remembers: bool) -> ModelCall:
    model = member(agent, "model")
    name = otherwise if not model else model if isinstance(model, str) else member(model, "model")
    if not isinstance(name, str) or not name:
        raise UnknownModel._of("")
    settings = member(agent, "model_settings")
    own = {one: member(settings, one) for one in ("max_tokens", "reasoning", "service_tier")}
    of = sources(name, own, member(settings, "extra_args"), member(settings, "extra_body"))
    tools = _listed(name, member(agent, "tools") or [])
    schemas = [[member(tool, one) for one in ("name", "description", "params_json_schema")] for tool in tools]
    is_hosted = any(member(tool, "params_json_schema") is None for tool in tools) or bool(member(agent, "mcp_servers"))
    hidden = [member(agent, one) for one in ("handoffs", "output_type", "prompt")]
    refers = remembers or is_hosted or any(hidden) or bool(values(of, *_PROMPTS))
    return _call(name, of, values(of, *_MAXIMA), [system_prompt, items, schemas, name, settings], items, bool(tools), refers)


def agents_answered(response: Any) -> Answered:
    """Reads a response. The SDK reports 0 tokens of input if the provider reports nothing, and no service tier."""
    has_output = bool(member(response, "output"))
    return Answered(openai_usage(member(response, "usage"), "input_tokens", "output_tokens", has_output))


def client_call(request: Mapping[str, Any]) -> ModelCall:
    """Reads the arguments of chat.completions.create, responses.create or messages.create."""
    model = request.get("model")
    if not isinstance(model, str) or not model:
        raise UnknownModel._of("" if model is None else str(model))
    body = {
        name: _as_json(model, name, value, _DEEPEST)
        for name, value in request.items() if name not in _OF_CLIENTS and type(value).__name__ not in _OMITTED
    }
    of = sources(model, body)
    has_messages = bool(values(of, "messages")) and not values(of, "input")
    names = ("max_tokens", "max_completion_tokens") if has_messages else ("max_output_tokens",)
    maxima, tools = values(of, *names), _tools(model, of)
    for name, count in maxima:
        if type(count) is not int or count < 1:
            raise UnboundedCall._unread(model, name)
    content = [value for _, value in values(of, "messages", "input", "system")]
    return _call(model, of, maxima, body, content, bool(tools), _are_hosted(tools), names[0])


def _as_json(model: str, name: str, value: Any, depth: int) -> Any:
    """Returns a parameter as the clients send it. Raises UnboundedCall for what cannot be read, or only once, such as an iterator."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "model_dump") and not isinstance(value, type):
        value = members(value)
    if depth > 0 and isinstance(value, Mapping):
        return {
            key: _as_json(model, name, one, depth - 1) for key, one in value.items() if type(one).__name__ not in _OMITTED
        }
    if depth > 0 and isinstance(value, (list, tuple)):
        return [_as_json(model, name, one, depth - 1) for one in value]
    raise UnboundedCall._unread(model, name)


def _call(
    model: str, of: List[Mapping[str, Any]], maxima: List[Tuple[str, Any]], sent: Any, content: Any, has_tools: bool, refers: bool,
    limit_name: str = "max_tokens",
) -> ModelCall:
    """Returns the call with these parameters. sent is what its request has, content what its prompt is of."""
    limit, limit_name = _highest(maxima, limit_name)
    return ModelCall(
        model, _ENVELOPE + size(sent) + (TOOL_PROMPT if has_tools else 0),
        refers or bool(values(of, *_REFERENCES)) or not is_text(content), limit, limit_name, answers(model, of),
        next((odd for odd in (unpriced(one, content) for one in of) if odd), ""), tier(model, of), asks_to_reason(of),
    )


def _highest(maxima: List[Tuple[str, Any]], otherwise: str) -> Tuple[Optional[int], str]:
    """Returns the highest maximum of output, and its name. None: there is none, and the name is the one to use."""
    counts: List[Tuple[int, str]] = [(count, name) for name, count in maxima if type(count) is int and count > 0]
    return max(counts) if counts else (None, otherwise)


def _tools(model: str, of: List[Mapping[str, Any]]) -> List[Any]:
    return [tool for _, one in values(of, "tools") for tool in _listed(model, one)]


def _listed(model: str, tools: Any) -> List[Any]:
    if not isinstance(tools, (list, tuple)):
        raise UnboundedCall._unread(model, "tools")
    return list(tools)


def _are_hosted(tools: List[Any]) -> bool:
    """Returns whether one of the tools is run by the provider."""
    return any((member(tool, "type") or "function") not in ("function", "custom") for tool in tools)
