"""What leases have to know about their process: forks and exits."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from time import monotonic
from typing import TYPE_CHECKING

from .errors import RemitError

if TYPE_CHECKING:
    from .spender import Spender

_EXIT_LIMIT = 5.0  # seconds for all settlements at exit

forks = 0  # of this process and its ancestors; a child does not spend what its parent has leased
lock = threading.Lock()
_open: weakref.WeakSet[Spender] = weakref.WeakSet()  # that have something to settle


def note_open(spender: Spender) -> None:
    with lock:
        _open.add(spender)


def note_settled(spender: Spender) -> None:
    with lock:
        _open.discard(spender)


def _forked() -> None:
    global forks, lock, _open
    forks += 1
    lock = threading.Lock()  # a thread that the child does not have may have held it
    _open = weakref.WeakSet()


def _settle_all() -> None:
    end = monotonic() + _EXIT_LIMIT
    with lock:
        spenders = list(_open)
    for spender in spenders:
        try:
            spender.give_back(end)
        except RemitError:  # what is not settled counts as spent
            pass


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
atexit.register(_settle_all)
