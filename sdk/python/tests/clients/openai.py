"""A stand-in for the client of OpenAI, which answers without a provider. The page's program imports it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Iterator

USAGE = SimpleNamespace(prompt_tokens=20, completion_tokens=5, prompt_tokens_details=None, completion_tokens_details=None)


class OpenAI:
    def __init__(self, *, max_retries: int) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(self, *, stream: bool = False, **request: Any) -> Any:
        return self._streamed() if stream else SimpleNamespace(object="chat.completion", choices=[_choice("message", "stop")], usage=USAGE)

    def _streamed(self) -> Iterator[Any]:
        for choices, usage in (([_choice("delta", None)], None), ([_choice("delta", "stop")], None), ([], USAGE)):
            yield SimpleNamespace(object="chat.completion.chunk", choices=choices, usage=usage)


def _choice(of: str, finish_reason: Any) -> Any:
    return SimpleNamespace(index=0, finish_reason=finish_reason, **{of: SimpleNamespace(role="assistant", content="Snowy owls")})
