"""A stand-in for the client of Anthropic, which answers without a provider. The page's program imports it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class AsyncAnthropic:
    def __init__(self, *, max_retries: int) -> None:
        self.messages = self

    async def create(self, **request: Any) -> Any:
        usage = SimpleNamespace(input_tokens=20, cache_read_input_tokens=0, cache_creation_input_tokens=0, output_tokens=5)
        return SimpleNamespace(type="message", content=[SimpleNamespace(type="text", text="Barn owls")], usage=usage)
