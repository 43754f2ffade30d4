"""Text that must not be printed."""

from __future__ import annotations

import re
from typing import Any, Callable, NoReturn, Union

_REDACTED = "[credential]"
_MALFORMED = "a credential is a text of visible ASCII characters"
_VISIBLE = re.compile(r"[!-~]+( [!-~]+)?")  # of ASCII; with the one space of "Bearer …" at most


class Credential:
    """An API key, an agent's secret or a token. It prints as [credential]; reveal() is the text itself, without the white
    space that it may have had around it, such as the end of the line in a file.

    It is neither a str nor written as JSON or by pickle, where it would be either leaked or lost.
    """

    __slots__ = ("_reveal",)

    _reveal: Callable[[], str]  # printers show where a function lies, not what it returns

    def __init__(self, text: str) -> None:
        text = text.strip() if isinstance(text, str) else ""
        if not _VISIBLE.fullmatch(text):
            del text
            raise ValueError(_MALFORMED)
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
    """Credentials are taken as text, too. Of a text that is none it is NONE, and no exception: that would lead tools which
    print variables to all frames that hold the text. Who took it puts this in its place, and then calls valid."""
    try:
        return text if isinstance(text, Credential) else Credential(text)
    except ValueError:
        return NONE


def valid(given: Credential) -> Credential:
    if given is NONE:
        raise ValueError(_MALFORMED)
    return given


NONE = Credential("none")


class Sealed:
    """The bytes of a request or an answer, which may hold a credential. It prints as [sealed]."""

    __slots__ = ("open",)

    open: Callable[[], bytes]

    def __init__(self, content: bytes) -> None:
        self.open = lambda: content

    def __repr__(self) -> str:
        return "[sealed]"
