"""The service for tests of your agents: it runs in memory, for as long as a test or a test run.

    with remit.testing.start_remit() as service:
        session = service.new_session(max_value=5)

It needs the program `remit`, on the PATH or named by REMIT_BINARY, and a POSIX shell.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
import weakref
from types import TracebackType
from typing import IO, Any, Dict, Iterable, Optional, Tuple, Type

from .agent import Agent
from .aio.client import AsyncRemit
from .aio.session import AsyncSession
from .client import Client
from .credential import Credential
from .organization import Organization
from .sessions import Session

_START_LIMIT, _STOP_LIMIT = 20.0, 20.0  # seconds
_LISTENING = re.compile(rb"msg=listening url=(http://127\.0\.0\.1:[0-9]+)\s")

# The shell ends the service when its own standard input ends: when it is closed, or this process has ended, even if it was killed.
# Without redis-server in the PATH the service keeps everything in memory.
_GUARD = """
service=$(command -v "$1") || { echo "$1 is not installed: set REMIT_BINARY, or pass binary"; exit 127; }
exec 3<&0
PATH=/nonexistent "$service" serve </dev/null 3<&- & service=$!
{ while read -r _; do :; done; kill "$service"; } <&3 & reader=$!
exec 3<&-
wait "$service"; code=$?
kill "$reader" 2>/dev/null
exit "$code"
"""


class RunningRemit:
    """A running service with one organization. start_remit makes it. It stops at the end of its `with` block, by stop, and when
    this process ends, however that comes."""

    url: str
    client: Client
    organization: Organization

    def __init__(self, binary: str) -> None:
        self._log = tempfile.TemporaryFile()
        environment = {
            "PATH": os.environ.get("PATH", ""), "TMPDIR": tempfile.gettempdir(), "REMIT_LISTEN": "127.0.0.1:0", "REMIT_CONSOLE": "off",
            "REMIT_DATA_DIR": os.devnull,  # nothing is written beside the tests
        }
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", binary], env=environment, stdin=subprocess.PIPE, stdout=self._log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
        self._stop = weakref.finalize(self, _end, self._process, self._log)
        try:
            self.url = self._await_url()
            self.client = Client(self.url)
            made = self.client.create_organization("test")
            assert made.api_key is not None
            self.organization = self.client.organization(made.api_key)
            self._api_key = made.api_key
        except BaseException:
            self._stop()
            raise

    def new_session(self, scopes: Iterable[str] = ("admin",), **limits: Any) -> Session:
        """Returns a session of a new agent with these scopes. The limits are the arguments of Organization.create_session."""
        agent, secret, session = self._new(scopes, limits)
        return self.client.agent(agent, secret).session(session)

    def new_async_session(self, client: AsyncRemit, scopes: Iterable[str] = ("admin",), **limits: Any) -> AsyncSession:
        """Like new_session, for asyncio: the client is one of AsyncRemit(service.url)."""
        agent, secret, session = self._new(scopes, limits)
        return client.agent(agent, secret).session(session)

    def new_agent(self, scopes: Iterable[str] = ("admin",)) -> Agent:
        """Returns a new agent."""
        made = self.organization.create_agent("test", scopes)
        return self.client.agent(made.id, made.secret)

    def new_environment(self, scopes: Iterable[str] = ("admin",), **limits: Any) -> Dict[str, str]:
        """Returns the variables that Session.from_env reads, for a program that is tested as a whole, or for mock.patch.dict."""
        agent, secret, session = self._new(scopes, limits)
        return {"REMIT_ADDR": self.url, "REMIT_AGENT": agent, "REMIT_SECRET": secret.reveal(), "REMIT_SESSION": session}

    def stop(self) -> None:
        """Stops the service. Idempotent."""
        self.client.close()
        self._stop()

    def __enter__(self) -> RunningRemit:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.stop()

    def _new(self, scopes: Iterable[str], limits: Dict[str, Any]) -> Tuple[str, Credential, str]:
        made = self.organization.create_agent("test", scopes)
        assert made.secret is not None
        return made.id, made.secret, self.organization.create_session(made.id, **limits).id

    def _await_url(self) -> str:
        end = time.monotonic() + _START_LIMIT
        while time.monotonic() < end:
            has_ended = self._process.poll() is not None
            said = os.pread(self._log.fileno(), 1 << 20, 0)
            found = _LISTENING.search(said)
            if found:
                return found[1].decode()
            if has_ended:
                raise RuntimeError(f"remit did not start: {said.decode(errors='replace')}")
            time.sleep(0.002)
        raise RuntimeError(f"remit is not ready after {_START_LIMIT:.0f} seconds")


def start_remit(binary: Optional[str] = None) -> RunningRemit:
    """Starts the service in memory on a free port of this machine, and returns when it is ready. binary is the program; the default
    is REMIT_BINARY, or remit on the PATH. Raises RuntimeError with what the program said if it does not start."""
    return RunningRemit(binary or os.environ.get("REMIT_BINARY") or "remit")


def _end(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_STOP_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    log.close()
