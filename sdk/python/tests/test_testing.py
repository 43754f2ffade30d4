from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import unittest
from decimal import Decimal
from pathlib import Path
from unittest import mock

import remit
from remit import testing

SOURCE = Path(__file__).resolve().parent.parent / "src"


def answers(url: str) -> bool:
    client = remit.Client(url, max_attempts=1)
    try:
        client.create_organization("acme")
    except remit.Unavailable:
        return False
    except remit.OutcomeUnknown:  # a service that stops may accept a connection and reset it
        return True
    finally:
        client.close()
    return True


class Started(unittest.TestCase):
    service: testing.RunningRemit

    @classmethod
    def setUpClass(cls) -> None:
        cls.service = testing.start_remit()
        cls.addClassCleanup(cls.service.stop)

    def test_a_session_takes_one_call(self) -> None:
        session = self.service.new_session(max_value=5)
        self.assertEqual(session.charge("llm.call", "0.5").remaining_value, Decimal("4.5"))
        self.assertEqual(self.service.organization.get_session(session.id).value_used, Decimal("0.5"))
        self.assertEqual(list(self.service.new_agent(["read"]).sessions()), [])

    def test_an_async_session_takes_one_call(self) -> None:
        async def main() -> Decimal:
            async with remit.AsyncRemit(self.service.url) as client:
                return (await self.service.new_async_session(client, max_value=5).charge("llm.call", 1)).remaining_value

        self.assertEqual(asyncio.run(main()), 4)

    def test_a_program_can_be_tested_as_a_whole(self) -> None:
        with mock.patch.dict(os.environ, self.service.new_environment(max_actions=1)):
            session = remit.Session.from_env()
            session.charge()
            with self.assertRaises(remit.LimitReached):
                session.charge()

    def test_it_ends_with_its_block_also_when_the_test_fails(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            with testing.start_remit() as service:
                self.assertTrue(answers(service.url))
                self.assertFalse(os.path.exists("data"), "it writes beside the tests")
                raise ZeroDivisionError
        self.assertFalse(answers(service.url))
        service.stop()

    def test_it_ends_with_its_process_even_if_that_is_killed(self) -> None:
        program = "import remit.testing, time; s = remit.testing.start_remit(); print(s.url, flush=True); time.sleep(60)"
        run = subprocess.Popen(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE, text=True
        )
        with run:
            assert run.stdout is not None
            url = run.stdout.readline().strip()
            self.assertTrue(answers(url))
            run.send_signal(signal.SIGKILL)
        end = time.monotonic() + 10
        while answers(url):
            self.assertLess(time.monotonic(), end)

    def test_what_is_no_remit_is_told(self) -> None:
        for binary, said in (("no-such-program", "REMIT_BINARY"), ("false", "did not start")):
            with self.subTest(binary), self.assertRaisesRegex(RuntimeError, said):
                testing.start_remit(binary)
