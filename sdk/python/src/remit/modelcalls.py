"""Reads what LangChain and OpenAI's Agents SDK tell of calls of models: what bounds one before it is made, and what it used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple

from .metering import (
    TOOL_PROMPT, ModelCall, answers, asks_to_reason, is_text, member, size, sources, tier, unpriced, usage_of_totals, values,
)
from .modelerrors import UnboundedCall, UnknownModel
from .prices import Usage

_ENVELOPE = 512  # bytes of a request around what the frameworks tell of it, such as the names of its members
_MAXIMA = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample")
_REFERENCES = ("previous_response_id", "conversation", "prompt", "container", "mcp_servers", "web_search_options", "plugins")
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
    limit, limit_name = _highest([*values(of, *_MAXIMA), ("max_tokens", member(metadata, "ls_max_tokens"))])
    tools = _tools(model, [one for _, one in values(of, "tools")])
    is_hosted = any(member(tool, "type", "function") not in ("function", "custom") for tool in tools)
    refers = is_hosted or bool(values(of, *_REFERENCES)) or not is_text(content)
    bytes_sent = _ENVELOPE + size([prompt, parameters]) + (TOOL_PROMPT if tools else 0)
    return ModelCall(
        model, bytes_sent, refers, limit, limit_name, answers(model, of),
        next((odd for odd in (unpriced(one, content) for one in of) if odd), ""), tier(model, of), asks_to_reason(of),
    )


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
    cached, reasoning = member(told, "prompt_tokens_details"), member(told, "completion_tokens_details")
    usage = usage_of_totals(
        member(told, "prompt_tokens"), member(cached, "cached_tokens"), 0, member(told, "completion_tokens"),
        member(reasoning, "reasoning_tokens"), has_output,
    )
    return Answered(usage, served, is_later=told == {})


def agents_call(agent: Any, system_prompt: Any, items: Any, otherwise: str, remembers: bool) -> ModelCall:
    model = member(agent, "model")
    name = otherwise if not model else model if isinstance(model, str) else member(model, "model")
    if not isinstance(name, str) or not name:
        raise UnknownModel._of("")
    settings = member(agent, "model_settings")
    own = {one: member(settings, one) for one in ("max_tokens", "reasoning", "service_tier")}
    of = sources(name, own, member(settings, "extra_args"), member(settings, "extra_body"))
    limit, limit_name = _highest(values(of, *_MAXIMA))
    tools = _tools(name, [member(agent, "tools") or []])
    schemas = [[member(tool, one) for one in ("name", "description", "params_json_schema")] for tool in tools]
    is_hosted = any(member(tool, "params_json_schema") is None for tool in tools) or bool(member(agent, "mcp_servers"))
    hidden = [member(agent, one) for one in ("handoffs", "output_type", "prompt")]
    refers = remembers or is_hosted or any(hidden) or bool(values(of, *_REFERENCES, *_PROMPTS)) or not is_text(items)
    bytes_sent = _ENVELOPE + size([system_prompt, items, schemas, name, settings]) + (TOOL_PROMPT if tools else 0)
    return ModelCall(
        name, bytes_sent, refers, limit, limit_name, answers(name, of),
        next((odd for odd in (unpriced(one, items) for one in of) if odd), ""), tier(name, of), asks_to_reason(of),
    )


def agents_answered(response: Any) -> Answered:
    """Reads a response. The SDK reports 0 tokens of input if the provider reports nothing, and no service tier."""
    told = member(response, "usage")
    of_input, of_output = member(told, "input_tokens_details"), member(told, "output_tokens_details")
    return Answered(usage_of_totals(
        member(told, "input_tokens"), member(of_input, "cached_tokens"), 0, member(told, "output_tokens"),
        member(of_output, "reasoning_tokens"), bool(member(response, "output")),
    ))


def _highest(maxima: List[Tuple[str, Any]]) -> Tuple[Optional[int], str]:
    """Returns the highest maximum of output, and its name. None: there is none, and the name is the one to use."""
    counts: List[Tuple[int, str]] = [(count, name) for name, count in maxima if type(count) is int and count > 0]
    return max(counts) if counts else (None, "max_tokens")


def _tools(model: str, lists: List[Any]) -> List[Any]:
    if any(not isinstance(one, (list, tuple)) for one in lists):
        raise UnboundedCall._unread(model, "tools")
    return [tool for one in lists for tool in one]
