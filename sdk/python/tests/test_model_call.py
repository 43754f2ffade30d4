from __future__ import annotations

import asyncio
import json
import unittest
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

import remit
from network import LOSE, PASS, Reaction, Request
from remit import metering, modelcalls
from remit.modelanswers import ClientAnswer
from remit.prices import Prices, Usage
from test_aio import AsyncTest

HERE = Path(__file__).resolve().parent
PRICES = Prices.read(HERE / "recorded" / "prices.json")
VECTORS = json.loads((HERE.parent.parent / "testdata" / "metering" / "requests.json").read_text())
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")
# What the clients do not send, what bounds a call only as the text of JSON, and what is held at more here.
NOT_OF_CLIENTS = {
    "an exponent", "a fraction of zero", "a model that is a number", "stream of 1", 'stream of "true"', "stream of []",
    "a stream without usage", "stream options that are none", "n in an API without choices",
    "two counts of one name", "two models, one written with an escape", "two members of one name within others",
}

REQUEST: Dict[str, Any] = {"model": "gpt-4.1", "max_tokens": 100, "messages": [{"role": "user", "content": "Which owls?"}]}
HOLD = metering.terms(PRICES, {}, modelcalls.client_call(REQUEST)).value


class Model:
    """As the clients' objects are: members, and model_dump."""

    def __init__(self, **members: Any) -> None:
        vars(self).update({name: of_client(one) for name, one in members.items()})

    def model_dump(self) -> Dict[str, Any]:
        return {name: dumped(one) for name, one in vars(self).items()}


class NotGiven:
    """As the clients' type of what is not given."""


def of_client(said: Any) -> Any:
    """Returns what the client makes of JSON."""
    if isinstance(said, dict):
        return Model(**said)
    return [of_client(one) for one in said] if isinstance(said, list) else said


def dumped(said: Any) -> Any:
    if isinstance(said, Model):
        return said.model_dump()
    return [dumped(one) for one in said] if isinstance(said, list) else said


class Bounds(unittest.TestCase):
    def held(self, request: Dict[str, Any], prices: Prices = PRICES) -> metering.Terms:
        return metering.terms(prices, {}, modelcalls.client_call(request))

    def test_requests_are_bounded_as_in_every_language(self) -> None:
        prices, checked = Prices.parse(json.dumps(VECTORS["prices"])), 0
        for row in VECTORS["requests"]:
            try:
                request = json.loads(row["body"])
            except ValueError:
                continue
            if row["path"] not in PATHS or "headers" in row or row["name"] in NOT_OF_CLIENTS or not isinstance(request, dict):
                continue
            checked += 1
            request.setdefault("input" if row["path"] == "/v1/responses" else "messages", [])
            with self.subTest(row["name"]):
                if "error" in row:
                    self.assertRaises(getattr(remit, row["error"]), self.held, request, prices)
                    continue
                held = self.held(request, prices)
                self.assertEqual(held.output, row["output"])
                self.assertGreaterEqual(held.input, row["input"] or len(row["body"]))
                if row["input"] is None and "open" not in row["body"]:
                    self.assertLess(held.input, 1000)
        self.assertGreater(checked, 90)

    def test_what_the_clients_take(self) -> None:
        text: Dict[str, Any] = {"model": "tiny", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        kept = Model(role="assistant", content="Hello", refusal=None, audio=None, tool_calls=None)
        no_limits = {**text, "model": "no-limits"}
        # A request, and the tokens of output and of input that it is held at; None: its own bytes.
        cases: List[Tuple[Dict[str, Any], int, Optional[int]]] = [
            ({**no_limits, "max_completion_tokens": NotGiven(), "tools": NotGiven(), "timeout": object(), "extra_headers": {"a": "b"}}, 9, None),
            ({**no_limits, "messages": [*text["messages"], kept]}, 9, None),
            ({**no_limits, "system": [{"type": "text", "text": "Be brief"}]}, 9, None),
            ({**no_limits, "extra_body": {"max_tokens": 50}}, 50, None),
            ({**no_limits, "n": 3}, 27, None),
            ({**text, "messages": [*text["messages"], Model(role="assistant", content=None, audio=Model(id="a1"))]}, 9, 244),
            ({**text, "system": [{"type": "document"}]}, 9, 244),
            ({**text, "extra_body": {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}}, 9, 244),
            ({**text, "tools": [{"type": "computer_20250124"}]}, 9, 244),
            ({"model": "tiny", "prompt": {"id": "p1"}, "max_output_tokens": 5}, 5, 244),
            ({"model": "tiny", "input": "Hi", "max_tokens": 5}, 100, 244),  # which responses do not heed
            ({"model": "tiny", "input": "Hi", "max_output_tokens": 5, "extra_body": {"messages": []}, "max_tokens": 9}, 5, 244),
        ]
        for request, output, input in cases:
            with self.subTest(request):
                held = self.held(request)
                self.assertEqual(held.output, output)
                self.assertIn(held.input, range(500, 1000) if input is None else [input])
        self.assertGreater(self.held({**no_limits, "tools": [{"name": "a", "input_schema": {}}]}).input, 1500)

    def test_what_cannot_be_read_or_priced_is_refused(self) -> None:
        deep: List[Any] = []
        for _ in range(80):
            deep = [deep]
        refused: List[Dict[str, Any]] = [
            {"messages": iter(REQUEST["messages"])}, {"messages": [{"role": "user", "content": object()}]}, {"messages": {"a", "b"}},
            {"messages": deep}, {"max_tokens": "9"}, {"max_completion_tokens": 0}, {"max_tokens": True}, {"n": "2"}, {"tools": "search"},
            {"response_format": Model}, {"extra_body": {"model": "tiny"}}, {"extra_body": "x"}, {"extra_body": {"max_tokens": 0}},
            {"messages": [Model(role="user", content=[Model(type="input_audio", input_audio=Model(data="AA=="))])]},
            {"system": [Model(type="text", text="a", cache_control=Model(type="ephemeral", ttl="1h"))]},
            {"modalities": ["audio"]}, {"service_tier": "priority"}, {"extra_body": {"background": True}},
        ]
        for more in refused:
            with self.subTest(more):
                self.assertRaises(remit.UnboundedCall, self.held, {**REQUEST, **more})
        self.assertRaises(remit.UnboundedCall, self.held, {"model": "no-limits", "messages": []})
        unknown: List[Dict[str, Any]] = [{}, {"model": None}, {"model": ""}, {"model": "gpt-5"}, {"model": 1}]
        for request in unknown:
            self.assertRaises(remit.UnknownModel, self.held, {"messages": [], "max_tokens": 1, **request})


def chat(usage: Any, content: Optional[str] = "Snowy owls", **more: Any) -> Dict[str, Any]:
    message = {"role": "assistant", "content": content, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4.1", "choices": [choice], "usage": usage, **more}


def chunk(delta: Any, finish: Optional[str] = None, index: int = 0, **more: Any) -> Dict[str, Any]:
    choices = [] if delta is None else [{"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1", "choices": choices, **more}


def response(usage: Any, status: str = "completed", output: bool = True, **more: Any) -> Dict[str, Any]:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Snowy owls", "annotations": []}]}
    return {"id": "resp_1", "object": "response", "status": status, "error": None, "output": [item] if output else [], "usage": usage, **more}


def event(kind: str, **more: Any) -> Dict[str, Any]:
    return {"type": kind, **more}


def message(usage: Any, content: str = "Snowy owls") -> Dict[str, Any]:
    blocks = [{"type": "text", "text": content}] if content else []
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn", "usage": usage}


CHAT: Dict[str, Any] = {
    "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 1, "audio_tokens": 0},
}
RESPONSES: Dict[str, Any] = {
    "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cached_tokens": 3},
    "output_tokens_details": {"reasoning_tokens": 1},
}
MESSAGES: Dict[str, Any] = {"input_tokens": 7, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 5}
OPENAI = Usage(7, 3, 0, 4, 1)
ANTHROPIC = Usage(7, 3, 2, 5)
CHAT_STREAM = [
    chunk({"role": "assistant", "content": ""}, usage=None), chunk({"content": "Snowy owls"}, usage=None), chunk({}, "stop", usage=None),
]
RESPONSE_STREAM = [
    event("response.created", response=response(None, "in_progress", False, service_tier="auto")),
    event("response.output_item.added", output_index=0, item={"type": "message", "content": []}),
    event("response.output_text.delta", delta="Snowy owls"),
]
MESSAGE_STREAM = [
    event("message_start", message=message({**MESSAGES, "output_tokens": 1, "service_tier": "standard"}, "")), event("ping"),
    event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Snowy owls"}), event("content_block_stop", index=0),
]
STOPPED = {"stop_reason": "end_turn", "stop_sequence": None}


class Answers(unittest.TestCase):
    def check(self, said: List[Any], usage: Optional[Usage], complete: bool = True, tier: Optional[str] = None, answers: int = 1) -> None:
        for made in (lambda one: one, of_client):
            answer = ClientAnswer(answers)
            for one in said:
                answer.read(made(one))
            with self.subTest(said=said, made=made):
                self.assertEqual((answer.is_complete, answer.usage if complete else None, answer.tier), (complete, usage, tier))

    def test_whole_answers(self) -> None:
        self.check([chat(CHAT, service_tier="flex")], OPENAI, tier="flex")
        self.check([chat({**CHAT, "prompt_tokens_details": None, "completion_tokens_details": {"reasoning_tokens": None}})], Usage(10, output=5))
        self.check([chat({"prompt_tokens": 10, "completion_tokens": 0}, "")], Usage(10))
        self.check([chat(CHAT, choices=[])], OPENAI)
        self.check([chat({**CHAT, "completion_tokens": 4, "total_tokens": 15})], OPENAI)  # reasoning beside the output
        self.check([chat({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 15})], Usage(10, output=4, reasoning=1))
        self.check([chat({**CHAT, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2}})], Usage(5, 3, 2, 4, 1))
        self.check([response(RESPONSES, service_tier="priority")], OPENAI, tier="priority")
        self.check([response({"input_tokens": 10, "output_tokens": 0}, "incomplete", False)], Usage(10))
        self.check([message({**MESSAGES, "service_tier": "standard"})], ANTHROPIC, tier="standard")
        self.check([message({"input_tokens": 0, "cache_read_input_tokens": 3, "output_tokens": 5})], Usage(0, 3, output=5))
        self.check([message({"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": None})], Usage(7, output=5))
        self.check([message({"input_tokens": 7, "output_tokens": 0}, "")], Usage(7))

    def test_whole_answers_without_a_usage_that_can_be(self) -> None:
        usages: List[Any] = [
            None, {}, {"prompt_tokens": 10}, {**CHAT, "completion_tokens": -5}, {**CHAT, "prompt_tokens": 1.5}, {**CHAT, "prompt_tokens": "10"},
            {**CHAT, "prompt_tokens": 2**53}, {**CHAT, "prompt_tokens": 2}, {**CHAT, "completion_tokens": 0},
            {"prompt_tokens": 0, "completion_tokens": 5}, {"prompt_tokens": 10, "completion_tokens": 0},
            {**CHAT, "completion_tokens_details": {"audio_tokens": 1}}, {**CHAT, "total_tokens": "15"},
        ]
        for usage in usages:
            self.check([chat(usage)], None)
        self.check([response(None)], None)
        self.check([response({"input_tokens": 10, "output_tokens": 0})], None)
        usages = [
            None, {}, {"input_tokens": 7}, {"output_tokens": 5}, {**MESSAGES, "cache_creation_input_tokens": -2}, {**MESSAGES, "output_tokens": 0},
        ]
        for usage in usages:
            self.check([message(usage)], None)

    def test_streams_of_chat_completions(self) -> None:
        last = chunk(None, usage=CHAT)
        self.check([*CHAT_STREAM, last], OPENAI)
        self.check([chunk({"content": "Snowy owls"}, service_tier="default"), chunk({}, "stop"), last], OPENAI, tier="default")
        self.check(CHAT_STREAM, None)  # it was not asked for its usage
        self.check([*CHAT_STREAM, chunk(None, usage={})], None)
        self.check([*CHAT_STREAM, chunk(None, usage={"prompt_tokens": 10, "completion_tokens": 0})], None)
        self.check(CHAT_STREAM[:2], None, complete=False)
        so_far = [chunk({"content": "Snowy"}, usage={**CHAT, "completion_tokens": 2}), chunk({"content": " owls"}, usage=CHAT)]
        self.check(so_far, None, complete=False)
        self.check([*so_far, chunk({}, "stop", usage=CHAT)], OPENAI)
        self.check([chunk({"content": "a"}), chunk({}, "stop"), chunk({"content": "b"}, index=1)], None, complete=False, answers=2)
        self.check([chunk({"content": "a"}, "stop"), chunk({"content": "b"}, index=1), last], None, complete=False, answers=3)
        two = [chunk({"content": "a"}), chunk({}, "stop"), chunk({"content": "b"}, index=1), chunk({}, "length", 1), last]
        self.check(two, OPENAI, answers=2)
        self.check([*CHAT_STREAM, last], OPENAI, answers=2)  # a server that gives one
        self.check([chunk(None, prompt_filter_results=[]), *CHAT_STREAM, last], OPENAI)
        self.check([chunk({"content": "a"}, ""), chunk({"content": "b"}, ""), chunk({}, "stop"), last], OPENAI)

    def test_streams_of_responses(self) -> None:
        self.check([*RESPONSE_STREAM, event("response.completed", response=response(RESPONSES, service_tier="flex"))], OPENAI, tier="flex")
        self.check([*RESPONSE_STREAM, event("response.incomplete", response=response(RESPONSES, "incomplete"))], OPENAI, tier="auto")
        self.check([*RESPONSE_STREAM, event("response.completed", response=response(None))], None, tier="auto")
        self.check([*RESPONSE_STREAM, event("response.failed", response=response(RESPONSES, "failed"))], OPENAI, tier="auto")
        self.check([*RESPONSE_STREAM, event("response.failed", response=response(None, "failed"))], None, complete=False, tier="auto")
        self.check([*RESPONSE_STREAM, event("error", message="the model failed")], None, complete=False, tier="auto")

    def test_streams_of_messages(self) -> None:
        def ends(usage: Any) -> List[Dict[str, Any]]:
            return [*MESSAGE_STREAM, event("message_delta", delta=STOPPED, usage=usage), event("message_stop")]

        self.check(ends({"output_tokens": 5}), ANTHROPIC, tier="standard")
        self.check(ends({"output_tokens": 5})[:-1], ANTHROPIC, tier="standard")
        self.check(ends({"input_tokens": 8, "cache_read_input_tokens": None, "output_tokens": 5}), Usage(8, 3, 2, 5), tier="standard")
        usages: List[Any] = [None, {}, {"input_tokens": 8}, {"output_tokens": 0}, {"cache_read_input_tokens": -4, "output_tokens": 5}]
        for usage in usages:
            self.check(ends(usage), None, tier="standard")
        self.check([*MESSAGE_STREAM, event("message_delta", delta={}, usage={"output_tokens": 5})], None, complete=False, tier="standard")

    def test_the_bytes_of_a_stream_are_counted(self) -> None:
        answer = ClientAnswer(1)
        for one in CHAT_STREAM:
            answer.read(one)
        self.assertGreaterEqual(answer.streamed, sum(len(json.dumps(one, separators=(",", ":"))) for one in CHAT_STREAM))
        deep: List[Any] = []
        for _ in range(80):
            deep = [deep]
        answer.read(chunk({}, later=deep))
        self.assertGreater(answer.streamed, 10**9)


class OtherError(Exception):
    """As a tool reports it, or a client of something else than the provider."""

    def __init__(self, **members: Any) -> None:
        vars(self).update(members)


class HTTPError(OtherError):
    __module__ = "anthropic"


class APIConnectionError(Exception):
    """As the clients report what happened on the way."""

    __module__ = "openai._exceptions"


class ConnectError(Exception):
    """As httpx does."""


class ReadTimeout(Exception):
    """As httpx does."""


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def while_handling(error: BaseException, handled: BaseException) -> BaseException:
    error.__context__ = handled
    return error


Act = Callable[[Any], None]


def reads(*said: Any) -> Act:
    def act(call: Any) -> None:
        for one in said:
            assert call.read(one) is one

    return act


def raises(error: BaseException, *said: Any) -> Act:
    def act(call: Any) -> None:
        reads(*said)(call)
        raise error

    return act


class Blocks(AsyncTest):
    def settles(self, act: Act, used: Decimal, error: Optional[Type[BaseException]] = None, request: Dict[str, Any] = REQUEST) -> None:
        """Does it in both kinds of blocks, and checks what the session has used and what the block raises."""
        session = self.new_session()
        self.ends(error, self.does(session, act, request))
        self.check(session.get(), used)

        async def steps(client: remit.AsyncRemit) -> None:
            async_session = self.async_session(client)

            async def block() -> None:
                async with async_session.model_call(PRICES, request) as call:
                    act(call)

            try:
                await block()
            except BaseException as e:
                self.ends(error, e)
            else:
                self.ends(error, None)
            self.check(await async_session.get(), used)

        if error is not KeyboardInterrupt:  # which ends event loops
            self.run_async(steps)

    def does(self, session: remit.Session, act: Act, request: Dict[str, Any]) -> Optional[BaseException]:
        try:
            with session.model_call(PRICES, request) as call:
                self.assertGreater(session.get().value_held, 0)
                act(call)
        except BaseException as e:
            return e
        return None

    def ends(self, error: Optional[Type[BaseException]], raised: Optional[BaseException]) -> None:
        self.assertIs(None if raised is None else type(raised), error)

    def check(self, info: remit.SessionInfo, used: Decimal) -> None:
        self.assertEqual((info.value_used, info.value_held, info.action_count), (used, 0, 1))

    def test_a_usage_is_paid(self) -> None:
        cost = PRICES.cost("gpt-4.1", OPENAI)
        self.settles(reads(chat(CHAT)), cost)
        self.settles(raises(ValueError(), chat(CHAT)), cost, ValueError)
        self.settles(raises(asyncio.CancelledError(), chat(CHAT)), cost, asyncio.CancelledError)
        self.settles(reads(*CHAT_STREAM, chunk(None, usage=CHAT)), cost)
        self.settles(raises(HTTPError(status_code=500), *CHAT_STREAM, chunk(None, usage=CHAT)), cost, HTTPError)
        claude = {**REQUEST, "model": "claude-sonnet-4", "max_tokens": 50}
        self.settles(reads(message(MESSAGES)), PRICES.cost("claude-sonnet-4", ANTHROPIC), request=claude)

    def test_an_answer_without_usage_costs_the_hold(self) -> None:
        self.settles(reads(chat(None)), HOLD, remit.UsageMissing)
        self.settles(reads(*CHAT_STREAM), HOLD, remit.UsageMissing)
        self.settles(reads(), HOLD, remit.UsageMissing)
        self.settles(raises(ValueError(), chat(None)), HOLD, ValueError)

    def test_a_stream_that_was_left_costs_the_most_that_can_have_come(self) -> None:
        request: Dict[str, Any] = {**REQUEST, "max_tokens": 30_000}
        held = metering.terms(PRICES, {}, modelcalls.client_call(request))
        streamed = sum(metering.size(one) for one in CHAT_STREAM[:2])
        most = PRICES.worst("gpt-4.1", held.input, streamed)
        self.assertLess(most, held.value)
        for act, error in (
            (reads(*CHAT_STREAM[:2]), None),
            (raises(caused(APIConnectionError(), ReadTimeout()), *CHAT_STREAM[:2]), APIConnectionError),
            (raises(HTTPError(status_code=500), *CHAT_STREAM[:2]), HTTPError),
            (raises(asyncio.CancelledError(), *CHAT_STREAM[:2]), asyncio.CancelledError),
        ):
            self.settles(act, most, error, request)
        reasons = {**request, "reasoning_effort": "low"}
        self.settles(reads(*CHAT_STREAM[:2]), metering.terms(PRICES, {}, modelcalls.client_call(reasons)).value, None, reasons)

    def test_what_may_have_happened_costs_the_hold(self) -> None:
        for error in (
            caused(APIConnectionError(), ReadTimeout()), TimeoutError(), ConnectionResetError(), asyncio.CancelledError(), KeyboardInterrupt(),
            ValueError(), remit.RemitError("of another call"), while_handling(ValueError(), HTTPError(status_code=429)),
            while_handling(APIConnectionError(), HTTPError(status_code=429)), HTTPError(status_code=200),
            OtherError(status_code=400), ConnectionRefusedError(), ConnectError(), caused(ValueError(), OtherError(code=500)),
        ):
            with self.subTest(error=error):
                self.settles(raises(error), HOLD, type(error))

    def test_what_did_not_happen_costs_nothing(self) -> None:
        for error in (
            HTTPError(status_code=429), HTTPError(code=500), HTTPError(response=SimpleNamespace(status_code=401)),
            caused(ValueError(), HTTPError(status_code=400)), caused(APIConnectionError(), caused(ConnectError(), OSError())),
        ):
            with self.subTest(error=error):
                self.settles(raises(error), Decimal(0), type(error))

    def test_a_call_that_is_skipped_costs_nothing(self) -> None:
        def is_skipped(call: Any) -> None:
            call.skip()

        self.settles(is_skipped, Decimal(0))
        session = self.new_session()
        with session.model_call(PRICES, REQUEST) as call:
            call.skip("answered from a cache")
        (listed,) = self.agent.transactions(session_id=session.id)
        self.assertEqual((listed.status, listed.reason), ("rolled_back", "answered from a cache"))

        def fails(call: Any) -> None:
            call.skip()
            raise ValueError

        self.settles(fails, Decimal(0), ValueError)

        def was_made(call: Any) -> None:
            call.read(chat(CHAT))
            call.skip()

        self.settles(was_made, PRICES.cost("gpt-4.1", OPENAI))

    def test_a_block_is_of_one_call(self) -> None:
        answer, cost = chat(CHAT), PRICES.cost("gpt-4.1", OPENAI)
        self.settles(reads(answer, answer), cost)
        stream = [*CHAT_STREAM, chunk(None, usage=CHAT)]
        for said in (
            (answer, chat(CHAT)), (answer, chunk({"content": "a"})), (*stream, answer), (*stream, *stream), (stream[0], answer),
        ):
            self.settles(reads(*said), HOLD, remit.RemitError)

    def test_what_is_no_answer_costs_the_hold(self) -> None:
        for said in (iter([answer for answer in [chat(CHAT)]]), "Snowy owls", None, SimpleNamespace(text="a"), {"error": {"message": "no"}}):
            self.settles(reads(said), HOLD, TypeError)

        def swallowed(call: Any) -> None:
            with self.assertRaises(TypeError):
                call.read("Snowy owls")
            call.read(chat(CHAT))

        self.settles(swallowed, HOLD, remit.UsageMissing)

    def test_an_answer_is_read_within_the_block(self) -> None:
        session = self.new_session()
        block = session.model_call(PRICES, REQUEST)
        self.assertRaises(remit.RemitError, block.read, chat(CHAT))
        with block as call:
            call.read(chat(CHAT))
        self.assertRaises(remit.RemitError, block.read, chat(CHAT))
        with self.assertRaises(remit.RemitError), block:
            self.fail("it is entered once")
        self.check(session.get(), PRICES.cost("gpt-4.1", OPENAI))

    def test_a_block_within_another(self) -> None:
        session = self.new_session(max_value=HOLD + PRICES.cost("gpt-4.1", OPENAI))
        with self.assertRaises(remit.LimitReached):
            with session.model_call(PRICES, REQUEST):
                with session.model_call(PRICES, REQUEST):
                    self.fail("there is no room for both")
        self.assertEqual((session.get().value_used, session.get().value_held), (HOLD, 0))
        session = self.new_session()
        with session.model_call(PRICES, REQUEST) as outer:
            with session.model_call(PRICES, REQUEST) as inner:
                inner.read(chat(CHAT))
            outer.read(chat(CHAT))
        self.assertEqual(session.get().value_used, 2 * PRICES.cost("gpt-4.1", OPENAI))

    def test_a_refused_call_is_not_made(self) -> None:
        session = self.new_session(max_value="0.0001")
        with self.assertRaisesRegex(remit.LimitReached, r"; the call may cost up to 0\.\d+ USD \(100 tokens of output\): lower max_tokens, or send less"):
            with session.model_call(PRICES, REQUEST):
                self.fail("it is entered")
        with self.assertRaisesRegex(remit.LimitReached, r"\(32,768 tokens of output\): set max_output_tokens"):
            with session.model_call(PRICES, {"model": "gpt-4.1", "input": "Which owls?"}):
                self.fail("it is entered")
        refused: List[Tuple[Type[remit.RemitError], Dict[str, Any]]] = [
            (remit.UnknownModel, {"model": "gpt-5"}), (remit.UnboundedCall, {"n": 0}),
        ]
        for error, more in refused:
            with self.assertRaises(error), session.model_call(PRICES, {**REQUEST, **more}):
                self.fail("it is entered")
        self.assertEqual(session.get().action_count, 0)

    def test_the_hold_is_as_the_options_say(self) -> None:
        session = self.new_session()
        with session.model_call(PRICES, {**REQUEST, "model": "mine"}, models={"mine": "tiny"}, action_type="model", expires_in=60) as call:
            (listed,) = self.agent.transactions(session_id=session.id)
            held = self.agent.transaction(listed.id).get()
            call.read(chat(CHAT))
        self.assertEqual((held.action_type, held.metadata, held.reversible, held.on_expiry), ("model", {"model": "mine"}, False, "commit"))
        self.assertEqual((held.expires_at - held.created_at).total_seconds(), 60)
        self.assertEqual(session.get().value_used, PRICES.cost("tiny", OPENAI))

    def test_a_call_beyond_the_limit_asks(self) -> None:
        session = self.new_session(max_value="0.0001")
        with self.assertRaisesRegex(TypeError, "reason"):
            with session.model_call(PRICES, REQUEST, on_limit="ask"):
                self.fail("it asks for no reason")

    def test_a_call_costs_the_tier_that_served_it(self) -> None:
        prices = Prices.parse("""{"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6,
            "input_cost_per_token_priority": 1e-3, "output_cost_per_token_priority": 1e-3}}""")
        for tier, used in (("default", "0.000015"), ("priority", "0.015"), (None, "0.015")):
            session = self.new_session()
            with session.model_call(prices, {**REQUEST, "model": "m"}) as call:
                call.read(chat({"prompt_tokens": 10, "completion_tokens": 5}, service_tier=tier))
            self.assertEqual(session.get().value_used, Decimal(used))

    def test_a_lost_answer_settles_once(self) -> None:
        def react(request: Request, n: int) -> Reaction:
            return LOSE if request.path.startswith("/v1/transactions") and n == 1 else PASS

        client, _ = self.proxied(react)
        session = self.new_session(client)
        with session.model_call(PRICES, REQUEST) as call:
            call.read(chat(CHAT))
        self.check(session.get(), PRICES.cost("gpt-4.1", OPENAI))

    def test_a_task_that_is_cancelled_pays_for_what_it_sent(self) -> None:
        async def steps(client: remit.AsyncRemit) -> None:
            session, sent = self.async_session(client), asyncio.Event()

            async def ask() -> None:
                async with session.model_call(PRICES, REQUEST):
                    sent.set()
                    await asyncio.sleep(60)

            task = asyncio.create_task(ask())
            await sent.wait()
            task.cancel()
            await asyncio.wait({task})
            self.assertTrue(task.cancelled())
            self.check(await session.get(), HOLD)

        self.run_async(steps)

    def test_a_task_that_is_cancelled_at_the_end_of_its_block_settles_it(self) -> None:
        settled: List[str] = []

        def react(request: Request, n: int) -> Reaction:
            if request.path.endswith("/commit"):
                settled.append(request.path)
            return PASS

        async def steps(client: remit.AsyncRemit) -> None:
            session = self.async_session(client)

            async def ask() -> None:
                async with session.model_call(PRICES, REQUEST) as call:
                    call.read(chat(CHAT))
                    asyncio.get_running_loop().call_soon(task.cancel)  # which finds the block at its end

            task = asyncio.create_task(ask())
            await asyncio.wait({task})
            self.assertTrue(task.cancelled())
            self.check(await session.get(), PRICES.cost("gpt-4.1", OPENAI))
            self.assertEqual(len(settled), 1)

        self.run_async(steps, self.proxy(react).url)


if __name__ == "__main__":
    unittest.main()
