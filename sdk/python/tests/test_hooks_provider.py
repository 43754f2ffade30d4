from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest
import urllib.request
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, AsyncIterator, Dict, List, Optional, Tuple
from urllib.parse import urlsplit

import remit
from network import URL
from remit import hooks
from remit.prices import Prices, Usage
from test_aio import SOURCE, AsyncTest

PROVIDER = os.environ["REMIT_FAKE_PROVIDER"]
LONG = bool(os.environ.get("REMIT_LONG"))
CALLS, AT_ONCE, KILLED = (5_000, 50, 10) if LONG else (120, 40, 2)
PRICES = Prices.read(Path(__file__).resolve().parent / "recorded" / "prices.json")
MODEL, MOST_OUTPUT = "gpt-4.1", 64
QUESTION = "What is a remittance? Ünïcode 世界."

# What happens to calls, of each framework. What is streamed ends with its usage, if the provider tells it.
FAKES = (
    "", "chunks=odd", "cached=1,reasoning=1", "tools=1", "error=429", "error=500", "error=400", "error=midway", "cut=midway", "usage=missing",
    "usage=negative", "pace=3",
)
CANCELLED = "pace=40"  # and so are these calls, after a while

KILLED_WHILE_IT_CALLS = """
import sys, time, remit
from remit import hooks
from remit.prices import Prices

handler = hooks.RemitCallbackHandler(remit.Session.from_env(), Prices.read(sys.argv[1]), expires_in=1)
handler.on_llm_start({}, ["What is a remittance?"], run_id="r1", invocation_params={"model": "gpt-4.1", "max_tokens": 100})
print("held", flush=True)
time.sleep(60)
"""


class Refused(Exception):
    """As the provider's client reports an HTTP error."""

    __module__ = "openai"

    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class RemoteProtocolError(Exception):
    """As it reports an answer that ends too early."""


class APIError(Exception):
    """As the clients of OpenAI and Anthropic report an error in a stream."""


def body(api: str, is_streamed: bool) -> Dict[str, Any]:
    """Returns the request of a call by an API."""
    question = [{"role": "user", "content": QUESTION}]
    if api == "responses":
        return {"model": MODEL, "input": question, "max_output_tokens": MOST_OUTPUT, "stream": is_streamed}
    asked = {"stream_options": {"include_usage": True}} if is_streamed and api == "chat/completions" else {}
    return {"model": MODEL, "messages": question, "max_tokens": MOST_OUTPUT, "stream": is_streamed, **asked}


async def request(call: int, fake: str, is_streamed: bool, api: str = "chat/completions") -> AsyncIterator[Dict[str, Any]]:
    """Asks the provider, and yields each chunk of its answer, or the whole."""
    where = urlsplit(PROVIDER)
    sent = json.dumps(body(api, is_streamed), ensure_ascii=False).encode()
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write((
            f"POST /v1/{api} HTTP/1.0\r\nHost: {where.netloc}\r\nX-Call: {call}\r\nX-Fake: seed={call},{fake}\r\n"
            f"Content-Length: {len(sent)}\r\n\r\n"
        ).encode() + sent)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except (asyncio.IncompleteReadError, ConnectionError):
            raise RemoteProtocolError from None
        status = int(head.split(" ")[1])
        if status != 200:
            raise Refused(status)
        async for chunk in streamed(reader) if is_streamed else whole(reader):
            yield chunk
    finally:
        writer.transport.abort()


async def whole(reader: asyncio.StreamReader) -> AsyncIterator[Dict[str, Any]]:
    try:
        yield json.loads(await reader.read())
    except (ValueError, ConnectionError):
        raise RemoteProtocolError from None


async def streamed(reader: asyncio.StreamReader) -> AsyncIterator[Dict[str, Any]]:
    while True:
        try:
            line = (await reader.readuntil(b"\n")).decode().strip()
        except (asyncio.IncompleteReadError, ConnectionError):
            raise RemoteProtocolError from None
        if line == "data: [DONE]":
            return
        if line.startswith("data: "):
            chunk: Dict[str, Any] = json.loads(line[6:])
            if "error" in chunk or chunk.get("type") == "error":
                raise APIError
            yield chunk
            if chunk.get("type") in ("message_stop", "response.completed", "response.incomplete"):
                return


class Framework:
    """Makes a call of a model as a framework does, and tells its hooks."""

    transaction = ""  # the hold of the call

    def __init__(self, session: Any) -> None:
        self._session = session

    @staticmethod
    def session(test: AsyncTest, client: remit.AsyncRemit, **limits: Any) -> Any:
        return test.async_session(client, **limits)

    async def call(self, call: int, fake: str) -> None:
        raise NotImplementedError


class LangChain(Framework):
    async def call(self, call: int, fake: str) -> None:
        handler, run = hooks.AsyncRemitCallbackHandler(self._session, PRICES), {"run_id": f"r{call}"}
        is_streamed = call % 2 == 0
        parameters = {"model": MODEL, "max_tokens": MOST_OUTPUT, "stream": is_streamed}
        message = SimpleNamespace(type="human", content=QUESTION)
        await handler.on_chat_model_start({"name": "ChatOpenAI"}, [[message]], invocation_params=parameters, **run)
        (opened,) = handler._open.values()
        self.transaction = opened.transaction.id
        told: Optional[Dict[str, Any]] = None
        try:
            async for chunk in request(call, fake, is_streamed):
                told = chunk.get("usage") or told
                if is_streamed and chunk["choices"]:
                    delta = chunk["choices"][0]["delta"]
                    await handler.on_llm_new_token(delta.get("content") or "", chunk=SimpleNamespace(message=delta), **run)
        except BaseException as e:
            await handler.on_llm_error(e, **run)
            raise
        await handler.on_llm_end({"generations": [[{"message": {"usage_metadata": self.usage(told)}}]], "llm_output": None}, **run)

    def usage(self, told: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
        return told and {
            "input_tokens": told["prompt_tokens"], "output_tokens": told["completion_tokens"], "total_tokens": told["total_tokens"],
            "input_token_details": {"cache_read": told["prompt_tokens_details"]["cached_tokens"]},
            "output_token_details": {"reasoning": told["completion_tokens_details"]["reasoning_tokens"]},
        }


class Agents(Framework):
    async def call(self, call: int, fake: str) -> None:
        context = SimpleNamespace()
        agent = SimpleNamespace(model=MODEL, model_settings=SimpleNamespace(max_tokens=MOST_OUTPUT), tools=[], handoffs=[])
        async with hooks.RemitRunHooks(self._session, PRICES) as run:
            await run.on_llm_start(context, agent, None, [{"role": "user", "content": QUESTION}])
            (opened,) = run._open.values()
            self.transaction = opened.transaction.id
            told: Optional[Dict[str, Any]] = None
            async for chunk in request(call, fake, call % 2 == 0):
                told = chunk.get("usage") or told
            await run.on_llm_end(context, agent, SimpleNamespace(usage=self.usage(told)))

    def usage(self, told: Optional[Dict[str, Any]]) -> SimpleNamespace:
        if told is None:
            return SimpleNamespace(input_tokens=0, output_tokens=0)
        return SimpleNamespace(
            input_tokens=told["prompt_tokens"], output_tokens=told["completion_tokens"],
            input_tokens_details=SimpleNamespace(cached_tokens=told["prompt_tokens_details"]["cached_tokens"]),
            output_tokens_details=SimpleNamespace(reasoning_tokens=told["completion_tokens_details"]["reasoning_tokens"]),
        )


class Block(Framework):
    """A program that calls the provider itself, by each of its APIs."""

    APIS = ("chat/completions", "responses", "messages")

    async def call(self, call: int, fake: str) -> None:
        api, is_streamed = self.APIS[call % 3], call % 2 == 0
        async with self._session.model_call(PRICES, body(api, is_streamed)) as block:
            await self.read(block, call, fake, is_streamed, api)

    async def read(self, block: Any, call: int, fake: str, is_streamed: bool, api: str) -> None:
        self.transaction = block._transaction.id
        async for chunk in request(call, fake, is_streamed, api):
            block.read(chunk)


class SyncBlock(Block):
    @staticmethod
    def session(test: AsyncTest, client: remit.AsyncRemit, **limits: Any) -> Any:
        return test.new_session(**limits)

    async def call(self, call: int, fake: str) -> None:
        api, is_streamed = self.APIS[call % 3], call % 2 == 0
        with self._session.model_call(PRICES, body(api, is_streamed)) as block:
            await self.read(block, call, fake, is_streamed, api)


class Reconciled(AsyncTest):
    def test_the_books_agree_with_what_the_provider_has_counted(self) -> None:
        first = 1
        for framework in (LangChain, Agents, Block, SyncBlock):
            with self.subTest(framework.__name__):
                calls = range(first, first + CALLS)
                first += CALLS
                self.reconcile(framework, calls)

    def reconcile(self, framework: Any, calls: range) -> None:
        outcomes: Dict[int, Tuple[str, str]] = {}  # the transaction of each call, and the error by which it ended

        async def steps(client: remit.AsyncRemit) -> None:
            session, waiting = framework.session(self, client, max_actions=2 * len(calls), max_value=1_000), iter(calls)

            async def some() -> None:
                for call in waiting:
                    made, fake = framework(session), random.Random(call).choice((*FAKES, CANCELLED))
                    task = asyncio.create_task(made.call(call, fake))
                    if fake == CANCELLED:
                        await asyncio.wait({task}, timeout=random.Random(call).uniform(0, 0.1))
                        task.cancel()
                    await asyncio.wait({task})
                    error = asyncio.CancelledError() if task.cancelled() else task.exception()
                    outcomes[call] = made.transaction, "" if error is None else type(error).__name__

            await asyncio.gather(*(some() for _ in range(AT_ONCE)))

        self.run_async(steps)
        held = {t.id: t for t in self.organization.transactions()}
        ledger = self.ledger(outcomes)
        self.assertEqual({t.status for t in held.values()}, {"committed", "rolled_back"})
        for call, (transaction, error) in outcomes.items():
            if transaction:
                with self.subTest(call, error=error):
                    self.check(held.pop(transaction), error, ledger.get(str(call)))
        for left in held.values():  # its call was cancelled before it knew of it
            self.assertEqual(left.status, "rolled_back")
        (session,) = self.organization.sessions()
        books = self.organization.get_session(session.id)
        self.assertEqual(books.value_held, 0)
        self.assertEqual({error for _, error in outcomes.values()}, {
            "", "Refused", "RemoteProtocolError", "UsageMissing", "APIError", "CancelledError",
        })

    def check(self, held: remit.TransactionInfo, error: str, counted: Optional[Dict[str, Any]]) -> None:
        cost = Decimal(0)
        if counted is not None:
            cost = PRICES.cost(MODEL, Usage(**counted["usage"]))
        if error == "":
            self.assertEqual((held.status, held.value), ("committed", cost))
        elif error == "Refused":
            self.assertEqual(held.status, "rolled_back")
        elif error == "UsageMissing":
            self.assertEqual(held.status, "committed")
            self.assertGreaterEqual(held.value, cost)
        elif held.status == "committed":
            self.assertGreaterEqual(held.value, cost)
        else:
            self.assertEqual(cost, 0)
        self.assertEqual(held.overage, 0)

    def ledger(self, outcomes: Dict[int, Tuple[str, str]]) -> Dict[str, Dict[str, Any]]:
        """Returns the provider's records by call. It counts a call that was cancelled a little later."""
        while True:
            with urllib.request.urlopen(f"{PROVIDER}/ledger") as said:
                records = {record["id"]: record for record in json.load(said)}
            if all(str(call) in records for call, (_, error) in outcomes.items() if error not in ("CancelledError",)):
                return records

    def test_what_killed_processes_held_is_spent(self) -> None:
        session = self.new_session()
        secret = self.organization.rotate_agent_secret(self.agent.id).secret
        settings = {
            "REMIT_ADDR": URL, "REMIT_AGENT": self.agent.id, "REMIT_SECRET": secret.reveal(), "REMIT_SESSION": session.id,
            "PYTHONPATH": str(SOURCE),
        }
        command = [sys.executable, "-c", KILLED_WHILE_IT_CALLS, str(Path(__file__).resolve().parent / "recorded" / "prices.json")]
        running = [
            subprocess.Popen(command, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True) for _ in range(KILLED)
        ]
        for run in running:
            with run:
                assert run.stdout is not None
                self.assertEqual(run.stdout.readline(), "held\n")
                run.send_signal(signal.SIGKILL)
        while self.organization.get_session(session.id).value_held:  # for a second
            time.sleep(0.01)
        spent = list(self.organization.transactions(settled_by="expiry"))
        self.assertEqual([t.status for t in spent], ["committed"] * KILLED)
        self.assertEqual(self.organization.get_session(session.id).value_used, sum(t.value for t in spent))


if __name__ == "__main__":
    unittest.main()
