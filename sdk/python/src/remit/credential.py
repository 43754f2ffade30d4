"""Text that must not be printed."""

from __future__ import annotations

import re
from typing import Any, Callable, NoReturn, Union

_REDACTED = "[credential]"
_VISIBLE = re.compile(r"[!-~]+( [!-~]+)?")  # of ASCII; with the one space of "Bearer …" at most


class Credential:
    """An API key, an agent's secret or a token. It prints as [credential]; reveal() is the text itself.

    It is neither a str nor written as JSON or by pickle, where it would be either leaked or lost.
    """

    __slots__ = ("_reveal",)

    _reveal: Callable[[], str]  # printers show where a function lies, not what it returns

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not _VISIBLE.fullmatch(text):
            del text
            raise ValueError("a credential is a text of visible ASCII characters")
        self._reveal = lambda: text

    def reveal(self) -> str:
        return self._reveal()

    def __repr__(self) -> str:
        return _REDACTED

    def __format__(self, spec: str) -> str:
        return _REDACTED

    def __copy__(self) -> Credential:
        return self

    def __deepcopy__(self, memo: Any) -> Credential:  # for dataclasses.asdict
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Credential is not pickled: reveal() it to store it")


def credential(text: Union[str, Credential]) -> Credential:
    """Credentials are taken as text, too."""
    return text if isinstance(text, Credential) else Credential(text)


class Sealed:
    """The bytes of a request or an answer, which may hold a credential. It prints as [sealed]."""

    __slots__ = ("open",)

    open: Callable[[], bytes]

    def __init__(self, content: bytes) -> None:
        self.open = lambda: content

    def __repr__(self) -> str:
        return "[sealed]"
