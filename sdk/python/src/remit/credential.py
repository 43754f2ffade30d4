"""Text that must never be printed."""

from __future__ import annotations

import re
from typing import Any, Callable, NoReturn, Union

_REDACTED = "[credential]"
_MALFORMED = "a credential is a text of visible ASCII characters"
_VISIBLE = re.compile(r"[!-~]+( [!-~]+)?")  # visible ASCII, with at most the one space of "Bearer …"


class Credential:
    """An API key, an agent's secret or a token. It prints as [credential]. reveal() returns the text, without surrounding
    white space such as the newline at the end of a file.

    It is not a str, and json and pickle refuse it, because they would leak or lose it.
    """

    __slots__ = ("_reveal",)

    _reveal: Callable[[], str]  # a function, because debuggers and loggers do not print what a function returns

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
    """Returns the Credential of a text, or NONE if the text is malformed. It raises nothing, because tools that print the
    variables of a traceback would print the text. Callers first replace their text with the result, then call valid."""
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
    """The bytes of a request or a response, which may contain a credential. It prints as [sealed]."""

    __slots__ = ("open",)

    open: Callable[[], bytes]

    def __init__(self, content: bytes) -> None:
        self.open = lambda: content

    def __repr__(self) -> str:
        return "[sealed]"
