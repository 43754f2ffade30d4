"""Runs same.py with the asyncio clients of the Python SDK in the place of the synchronous ones: it awaits what each call returns."""

from __future__ import annotations

import asyncio
import inspect
import math
import runpy
import sys
from pathlib import Path
from typing import Any, AsyncIterator, Iterator

import remit

PAIRS = {
    "Client": remit.AsyncRemit, "Organization": remit.AsyncOrganization, "Agent": remit.AsyncAgent, "Session": remit.AsyncSession,
    "Transaction": remit.AsyncTransaction,
}
synchronous = remit.Client
loop = asyncio.new_event_loop()


class Awaited:
    """An object of an asyncio class, or the class itself, whose calls block."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        if name == "lease":  # which only the synchronous class has
            return self._session().lease
        return awaited(getattr(self._of, name))

    def __enter__(self) -> Any:
        return awaited(self._of.__aenter__())

    def __exit__(self, *error: Any) -> None:
        awaited(self._of.__aexit__(*error))

    def _session(self) -> remit.Session:
        token = awaited(self._of._caller._tokens.get(math.inf))
        return synchronous.from_env().agent_with_token(token).session(self._of.id)


def awaited(given: Any) -> Any:
    if inspect.iscoroutine(given):
        return awaited(loop.run_until_complete(given))
    if inspect.isasyncgen(given):
        return each(given)
    if inspect.ismethod(given):
        return lambda *args, **kwargs: awaited(given(*args, **kwargs))
    return Awaited(given) if isinstance(given, tuple(PAIRS.values())) else given


def each(elements: AsyncIterator[Any]) -> Iterator[Any]:
    try:
        while True:
            yield loop.run_until_complete(elements.__anext__())
    except StopAsyncIteration:
        return


for name, kind in PAIRS.items():
    setattr(remit, name, Awaited(kind))
sys.argv[0] = str(Path(__file__).with_name("same.py"))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
