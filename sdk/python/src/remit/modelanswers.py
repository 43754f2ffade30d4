"""Reads answers of models, whole or streamed, as the clients of OpenAI and Anthropic return them: chat completions, responses and
messages."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Set

from .errors import RemitError
from .metering import member, members, openai_usage, size, usage_of_totals
from .prices import Usage
from .pricetable import MOST_TOKENS

_MESSAGE_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class ClientAnswer:
    """What the answer of one call has said so far."""

    def __init__(self, answers: int) -> None:
        """answers is how many the request asks for."""
        self.is_complete = False  # its usage is final
        self.usage: Optional[Usage] = None  # None: nothing that can be believed
        self.tier: Optional[str] = None  # service_tier; None: it does not say
        self.streamed = 0  # bytes
        self._is_in_doubt = False  # what was read does not say what the call cost
        self._answers = answers
        self._whole: Any = None
        self._has_output = False
        self._choices: Set[Any] = set()  # of a stream
        self._finished: Set[Any] = set()
        self._told: Any = None  # the last usage of a stream of chat completions
        self._message: Dict[str, Any] = {}  # counts of a stream of messages

    def read(self, said: Any) -> None:
        """Takes an answer, or an event of a stream. Raises TypeError for anything else, and RemitError for a second answer: both mean
        that what the call cost is not known."""
        if self._is_in_doubt or said is not None and said is self._whole:
            return
        kind, form, choices = (member(said, name) for name in ("type", "object", "choices"))
        for of in (said, member(said, "response"), member(said, "message")):
            for tier in (member(of, "service_tier"), member(member(of, "usage"), "service_tier")):
                self.tier = tier if isinstance(tier, str) and tier else self.tier
        if isinstance(choices, (list, tuple)) or form == "chat.completion.chunk":
            self._chat(said, form, choices or ())
        elif form == "response":
            usage, has_output = member(said, "usage"), bool(member(said, "output"))
            self._end(said, has_output, openai_usage(usage, "input_tokens", "output_tokens", has_output))
        elif kind == "message":
            has_output = bool(member(said, "content"))
            self._tell_message(member(said, "usage"), *_MESSAGE_INPUT, "output_tokens")
            self._end(said, has_output, self._message_usage(has_output))
        elif isinstance(kind, str) and kind.startswith("response."):
            self._response_event(said, kind)
        elif isinstance(kind, str):
            self._message_event(said, kind)
        else:
            self._doubt()
            raise TypeError(f"read takes an answer, or each event of a stream, and no {type(said).__name__}")

    def _chat(self, said: Any, form: Any, choices: Any) -> None:
        usage = member(said, "usage")
        if form == "chat.completion" or any(member(choice, "message") is not None for choice in choices):
            has_output = _has_output(choices, "message")
            self._end(said, has_output, openai_usage(usage, "prompt_tokens", "completion_tokens", has_output))
            return
        self._event(said, _has_output(choices, "delta"))
        for choice in choices:
            self._choices.add(member(choice, "index"))
            if member(choice, "finish_reason"):
                self._finished.add(member(choice, "index"))
        self._told = self._told if usage is None else usage
        self.usage = openai_usage(self._told, "prompt_tokens", "completion_tokens", self._has_output)
        # Some servers give fewer answers than the request asks for, and some tell the usage so far with each chunk.
        is_last = len(self._finished) >= self._answers or not choices and usage is not None and self._finished == self._choices
        self.is_complete = self.is_complete or is_last

    def _response_event(self, said: Any, kind: str) -> None:
        response = member(said, "response")
        usage = member(response, "usage")
        self._event(said, kind.endswith(".delta") or bool(member(response, "output")))
        if kind in ("response.completed", "response.incomplete", "response.failed", "response.cancelled"):
            self.usage = openai_usage(usage, "input_tokens", "output_tokens", self._has_output)
            self.is_complete = self.usage is not None or kind in ("response.completed", "response.incomplete")

    def _message_event(self, said: Any, kind: str) -> None:
        self._event(said, kind in ("content_block_start", "content_block_delta"))
        if kind == "message_start":
            self._tell_message(member(member(said, "message"), "usage"), *_MESSAGE_INPUT)  # it knows nothing of the output
        elif kind == "message_delta":  # its counts are of the whole message; those that it omits stay
            self._tell_message(member(said, "usage"), *_MESSAGE_INPUT, "output_tokens")
            self.usage = self._message_usage(self._has_output)
        has_stopped = kind == "message_delta" and isinstance(member(member(said, "delta"), "stop_reason"), str)
        self.is_complete = self.is_complete or has_stopped or kind == "message_stop"

    def _tell_message(self, usage: Any, *names: str) -> None:
        self._message.update({name: member(usage, name) for name in names if member(usage, name) is not None})

    def _message_usage(self, has_output: bool) -> Optional[Usage]:
        """Returns the usage of messages, whose three counts of input exclude each other."""
        counts = [self._message.get(name, 0) for name in _MESSAGE_INPUT]
        if "input_tokens" not in self._message or any(type(count) is not int for count in counts):
            return None
        return usage_of_totals(sum(counts), counts[1], counts[2], self._message.get("output_tokens"), 0, has_output)

    def _event(self, said: Any, has_output: bool) -> None:
        """Takes an event of a stream."""
        if self._whole is not None or self.is_complete and has_output:
            self._refuse_second()
        self._has_output = self._has_output or has_output
        try:
            self.streamed += size(said)
        except ValueError:  # nested too deeply: no less than all output
            self.streamed = MOST_TOKENS

    def _end(self, said: Any, has_output: bool, usage: Optional[Usage]) -> None:
        """Takes a whole answer."""
        if self.is_complete or self.streamed:
            self._refuse_second()
        self._whole, self._has_output, self.usage, self.is_complete = said, has_output, usage, True

    def _refuse_second(self) -> None:
        self._doubt()
        raise RemitError("a block holds what one call costs, and has read its answer: make each call in a block of its own")

    def _doubt(self) -> None:
        self._is_in_doubt, self.is_complete, self.usage = True, True, None


def _has_output(choices: Any, of: str) -> bool:
    """Returns whether a message, or the delta of one, has anything but its role."""
    messages = [member(choice, of) for choice in choices]
    parts = [one if isinstance(one, Mapping) else members(one) or {} for one in messages]
    return any(bool(value) for part in parts for name, value in part.items() if name != "role")
