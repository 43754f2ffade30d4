"""For type checkers: the parameters of a function that another one takes over. Before Python 3.10 they are not in typing, and no
program needs them when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Concatenate as Concatenate
    from typing_extensions import ParamSpec

    P = ParamSpec("P")
