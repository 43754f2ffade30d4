"""What bounds a call of a model before it is made, and what it cost when it has ended. Decides only; holds.py sends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .errors import RemitError
from .modelerrors import UnboundedCall
from .money import Amount
from .prices import Prices, Usage
from .pricetable import MOST_TOKENS

# The price of a call of each tool, by its name.
ToolPrices = Mapping[str, Amount]

# Content that its own bytes bound. Images, files and references to what the provider keeps may be more tokens than bytes.
_TEXT = {
    None, "text", "input_text", "output_text", "refusal", "message", "tool_use", "tool_result", "tool_call", "function_call",
    "function_call_output", "custom_tool_call", "custom_tool_call_output", "thinking", "redacted_thinking", "reasoning",
    "reasoning_text", "summary_text",
}
# The values of parameters with which tokens cost what the price table says.
_STANDARD: Dict[str, Tuple[Any, ...]] = {
    "speed": ("standard",), "inference_geo": ("global",),
    "background": (False,), "modalities": (["text"], ("text",)), "audio": (), "models": (), "fallbacks": (),
}
_TIERS = (None, "auto", "default", "flex", "standard_only", "priority")
_REASONING = ("reasoning", "reasoning_effort", "reasoning_config", "thinking", "thinking_config")
_DEEPEST = 64
# The most tokens of the prompt that a provider puts before a request with tools. Anthropic's has a few hundred, by its pages on
# tool use.
TOOL_PROMPT = 1000
# Errors by which a request that was sent got no complete answer, by the names that HTTP clients give them.
_LOST = {
    "APIError",  # in the middle of a stream; the others of this kind have a status or a cause
    "APIConnectionError", "APITimeoutError", "ReadTimeout", "WriteTimeout", "ReadError", "WriteError", "RemoteProtocolError",
    "ServerDisconnectedError", "ClientPayloadError", "IncompleteRead", "ChunkedEncodingError", "ProtocolError",
}
_CLIENTS = {"openai", "anthropic"}  # packages
_NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ClientConnectorError", "ConnectionRefusedError", "gaierror"}


@dataclass(frozen=True)
class ModelCall:
    """What bounds a call before it is made."""

    model: str  # as it is in the request
    input_bytes: int  # of the request, and TOOL_PROMPT: each token is at least a byte
    refers_elsewhere: bool  # whether the prompt has content that these bytes do not bound
    max_output_tokens: Optional[int]  # of each answer; None: the request does not say
    limit_name: str = "max_tokens"  # of the parameter that limits it
    answers: int = 1
    unpriced: str = ""  # what makes its tokens cost something else than the price table says; empty: nothing
    tier: Optional[str] = None  # service_tier; None: the request has none
    reasons: Optional[bool] = None  # whether it asks the model to reason; None: it does not say


@dataclass(frozen=True)
class Settlement:
    """How a hold is settled."""

    value: Optional[Decimal]  # None: it is rolled back
    reason: str = ""  # of the rollback


@dataclass(frozen=True)
class Terms:
    """What is held for a call, and how it is settled."""

    prices: Prices
    model: str  # whose price it is
    input: int  # tokens at most
    output: int
    value: Decimal
    tier: Optional[str] = None  # that the request asks for
    reasons: bool = False  # it may have output that is not sent
    needs: str = ""  # what a refusal says

    def ended(self, usage: Optional[Usage], served_tier: Optional[str] = None) -> Settlement:
        """Settles a call with a complete answer. Without a usable usage, and with one that has no cost because it is beyond all
        budgets, it is paid with the hold."""
        try:
            if usage is not None:
                return Settlement(self.prices.cost(self.model, usage, requested_tier=self.tier, served_tier=served_tier))
        except ValueError:
            pass
        return Settlement(self.value)

    def failed(self, error: Optional[BaseException], streamed_bytes: int, in_doubt: bool = False) -> Settlement:
        """Settles a call that broke off. What may have happened is paid: all that was streamed, and all output of one that can reason;
        or the hold if the request was sent and no answer came. An HTTP error and a refused connection cost nothing. in_doubt is whether
        the hold is paid after an error that says neither."""
        if streamed_bytes:
            output = self.output if self.reasons else min(streamed_bytes, self.output)
            most = self.prices.worst(self.model, self.input, output, requested_tier=self.tier)
            return Settlement(min(most, self.value))
        return Settlement(self.value) if _may_have_happened(error, in_doubt) else Settlement(None, "the call failed")


def terms(prices: Prices, models: Mapping[str, str], call: ModelCall) -> Terms:
    """Returns what the call can cost at most. Raises UnknownModel and UnboundedCall."""
    model = models.get(call.model, call.model)
    limits = prices.limits(model)
    if call.unpriced:
        raise UnboundedCall._unpriced(call.model, call.unpriced)
    most = limits.max_input_tokens
    input = most if call.refers_elsewhere else call.input_bytes if most is None else min(call.input_bytes, most)
    if input is None:
        raise UnboundedCall._of(call.model, "input")
    each = limits.max_output_tokens if call.max_output_tokens is None else call.max_output_tokens
    if each is None:
        raise UnboundedCall._of(call.model, "output")
    if call.tier == "priority" and not prices.has_tier(model, call.tier):
        raise UnboundedCall._unpriced(call.model, "service_tier")
    output = each * call.answers
    try:
        value = prices.worst(model, input, output, requested_tier=call.tier)
    except ValueError:
        raise UnboundedCall._of(call.model, "output") from None
    reasons = prices.reasons(model) if call.reasons is None else call.reasons
    return Terms(prices, model, input, output, value, call.tier, reasons, _needs(call, value, output))


def _needs(call: ModelCall, value: Decimal, output: int) -> str:
    how = f"set {call.limit_name}" if call.max_output_tokens is None else f"lower {call.limit_name}, or send less"
    return f"the call may cost up to {value:f} USD ({output:,} tokens of output): {how}"


def usage_of_totals(
    input: Any, cached: Any, created: Any, output: Any, reasoning: Any, has_output: bool = False
) -> Optional[Usage]:
    """Returns the usage of counts of which the first contains the next two, and the fourth the last. None: they are none, or cannot
    be those of an answer: every call has input, and all output has tokens."""
    counts = [input, output, *(count or 0 for count in (cached, created, reasoning))]
    if any(type(count) is not int or not 0 <= count <= MOST_TOKENS for count in counts):
        return None
    input, output, cached, created, reasoning = counts
    if cached + created > input or reasoning > output or input == 0 or has_output and output == 0:
        return None
    return Usage(input - cached - created, cached, created, output - reasoning, reasoning)


def openai_usage(told: Any, input: str, output: str, has_output: bool) -> Optional[Usage]:
    """Returns the usage that an API of OpenAI tells, in counts of these names. Audio has no price. A total of more than input and
    output counts reasoning that the output does not: xAI's, Google's."""
    of_input, of_output = member(told, input + "_details"), member(told, output + "_details")
    if member(of_input, "audio_tokens") or member(of_output, "audio_tokens"):
        return None
    counts = [member(told, input), member(told, output), member(of_output, "reasoning_tokens") or 0, member(told, "total_tokens") or 0]
    if any(type(count) is not int for count in counts):
        return None
    all_input, all_output, reasoning, total = counts
    beside = max(total - all_input - all_output, 0)
    reasoned = reasoning if beside == reasoning else reasoning + beside  # equal: the details are of all that is beside, or nothing is
    cached, written = member(of_input, "cached_tokens"), member(of_input, "cache_write_tokens")
    return usage_of_totals(all_input, cached, written, all_output + beside, reasoned, has_output)


def member(of: Any, name: str, default: Any = None) -> Any:
    """Returns a member of an object or a mapping."""
    if isinstance(of, Mapping):
        return of.get(name, default)
    return getattr(of, name, default)


def members(of: Any) -> Optional[Dict[str, Any]]:
    """Returns the members of an object; None: it has none."""
    dump = getattr(of, "model_dump", None)
    if callable(dump) and not isinstance(of, type):
        dumped: Dict[str, Any] = dump()
        return dumped
    return vars(of) if hasattr(of, "__dict__") and not callable(of) else None


def size(value: Any, depth: int = _DEEPEST) -> int:
    """Returns at least the bytes that a value takes in a request."""
    if value is None or isinstance(value, (bool, int, float, Decimal)):
        return len(str(value))
    if isinstance(value, str):
        return len(value.encode("utf-8", "replace")) + 2
    if isinstance(value, (bytes, bytearray)):
        return 2 * len(value)
    if depth == 0:
        raise ValueError("a prompt is nested too deeply, or contains itself")
    if isinstance(value, Mapping):
        return 2 + sum(size(name, depth - 1) + size(one, depth - 1) + 2 for name, one in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return 2 + sum(size(one, depth - 1) + 1 for one in value)
    found = members(value)
    return len(str(value)) if found is None else size(found, depth - 1)


def is_text(content: Any, depth: int = _DEEPEST) -> bool:
    """Returns whether the bytes of a content bound its tokens."""
    if content is None or isinstance(content, str):
        return True
    if depth == 0:
        return False
    if isinstance(content, (list, tuple)):
        return all(is_text(one, depth - 1) for one in content)
    part = content if isinstance(content, Mapping) else members(content)
    if part is None or part.get("type") not in _TEXT or part.get("audio") is not None:
        return False
    if all(part.get(name) is None for name in ("type", "role", "content", "text")):
        return False  # the id of an item that the provider keeps
    return all(is_text(part.get(name), depth - 1) for name in ("content", "output", "summary") if name in part)


def sources(model: str, given: Mapping[str, Any], *more: Any) -> List[Mapping[str, Any]]:
    """Returns parameters, and those that are within them or beside them for the body of the request. Raises UnboundedCall for what it
    cannot read, and for another model there."""
    found = [given]
    for one in (*more, *(given.get(name) for name in ("extra_body", "extra_args", "model_kwargs"))):
        if one is None:
            continue
        if not isinstance(one, Mapping):
            raise UnboundedCall._unread(model, "parameters")
        if one.get("model", model) != model:
            raise UnboundedCall._unpriced(model, "other model")
        found.append(one)
    return found


def values(of: List[Mapping[str, Any]], *names: str) -> List[Tuple[str, Any]]:
    """Returns the parameters of these names that are given."""
    return [(name, one[name]) for name in names for one in of if one.get(name) is not None]


def answers(model: str, of: List[Mapping[str, Any]]) -> int:
    """Returns how many answers a request gets. Raises UnboundedCall for a number that is none."""
    numbers = [number for _, number in values(of, "n", "best_of")]
    if any(type(number) is not int or number < 1 for number in numbers):
        raise UnboundedCall._unread(model, "number of answers")
    return max(numbers, default=1)


def tier(model: str, of: List[Mapping[str, Any]]) -> Optional[str]:
    """Returns the service_tier of a request. Raises UnboundedCall for one whose price no table has."""
    found = [value for _, value in values(of, "service_tier")]
    if any(value not in _TIERS for value in found) or any(value != found[0] for value in found):
        raise UnboundedCall._unpriced(model, "service_tier")
    return found[0] if found else None


def asks_to_reason(of: List[Mapping[str, Any]]) -> Optional[bool]:
    """Returns whether a request asks the model to reason, or turns it off. None: it says neither."""
    levels: List[Any] = []
    for _, value in values(of, *_REASONING):
        parts = value if isinstance(value, Mapping) else None if isinstance(value, (str, bool)) else members(value)
        # A level, or an object of it. What else an object has, such as max_tokens, asks too.
        levels += [value] if parts is None else [one if name in ("effort", "type") else True for name, one in parts.items() if one is not None]
    return any(level not in ("none", "disabled", False) for level in levels) if levels else None


def unpriced(parameters: Mapping[str, Any], content: Any) -> str:
    """Returns what in a request makes its tokens cost something else than the price table says; empty: nothing."""
    for name, standard in _STANDARD.items():
        if parameters.get(name) is not None and parameters[name] not in standard:
            return name
    if _compacts(parameters.get("context_management")):
        return "context_management"
    return _unpriced_content([parameters, content], _DEEPEST)


def _compacts(management: Any) -> bool:
    """Returns whether the provider may have the model rewrite the prompt before it answers: Anthropic's edits, OpenAI's list. It can
    cost as much again, and no count of the usage has it."""
    edits = management.get("edits") if isinstance(management, Mapping) else management
    if edits is None:
        return False
    kinds = [member(edit, "type") for edit in edits] if isinstance(edits, (list, tuple)) else [None]
    return any(not isinstance(kind, str) or kind.startswith("compact") for kind in kinds)


def _unpriced_content(content: Any, depth: int) -> str:
    """Looks for audio, and for caches that cost more than the ones of 5 minutes."""
    if depth == 0:
        return "depth"
    if isinstance(content, (list, tuple)):
        return next((found for found in (_unpriced_content(one, depth - 1) for one in content) if found), "")
    if not isinstance(content, Mapping):
        return ""
    if content.get("type") in ("input_audio", "audio"):
        return "audio"
    if member(content.get("cache_control"), "ttl") not in (None, "5m"):
        return "cache_control.ttl"
    return _unpriced_content(list(content.values()), depth - 1)


def _may_have_happened(error: Optional[BaseException], in_doubt: bool) -> bool:
    """Returns whether a call that failed with this error may have been made. None: unknown. In doubt, another program than the provider
    may have caused the error, so only one that the provider's client raised says that nothing happened."""
    if in_doubt:
        error = _of_client(error)
    if error is None:
        return True
    was_sent = False
    for _ in range(_DEEPEST):
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & _NOT_SENT or _is_http_error(error):
            return False
        gave_up = isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, TimeoutError, ConnectionError))
        was_sent = was_sent or gave_up or bool(names & _LOST) or "TimeoutError" in names
        # Without a cause, the error that was being handled may be of an earlier request.
        cause = error.__cause__ or (None if was_sent or in_doubt else error.__context__)
        if cause is None:
            break
        error = cause
    return was_sent or in_doubt


def _of_client(error: Optional[BaseException]) -> Optional[BaseException]:
    """Returns the error, or the one that caused it, that a provider's client raised. None: there is none."""
    for _ in range(_DEEPEST):
        if error is None or any(kind.__module__.partition(".")[0] in _CLIENTS for kind in type(error).__mro__):
            return error
        error = error.__cause__
    return None


def _is_http_error(error: BaseException) -> bool:
    """Returns whether a provider has answered with an error. One of this SDK says nothing of the provider."""
    statuses = [member(of, name) for of in (error, member(error, "response")) for name in ("status_code", "status", "code")]
    return not isinstance(error, RemitError) and any(type(status) is int and status >= 400 for status in statuses)
