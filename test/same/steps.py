"""The steps of the programs, and their outcomes as the Go program prints them."""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Iterable, List, Tuple, Type, TypeVar

import remit

E = TypeVar("E", bound=BaseException)
done: List[Tuple[str, str]] = []


def add(name: str, *values: Any) -> None:
    done.append((name, " ".join(text(v) for v in values)))


def text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):  # as Go quotes a list
        return "[" + " ".join(f'"{v}"' for v in value) + "]"
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else str(value)


def count(elements: Iterable[Any]) -> int:
    return len(list(elements))


def answered(error: remit.RemitError) -> str:
    found = re.search(r"\d{3} [^(]*", str(error))
    assert found
    return found[0]


def refused(kind: Type[E], call: Callable[[], object]) -> E:
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"it is not refused with {kind}")
