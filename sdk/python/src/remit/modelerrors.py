"""The errors of what bounds the calls of models and tools. Each says what to do. Only UsageMissing means that something was
charged."""

from __future__ import annotations

import json

from .errors import RemitError


class UnknownModel(RemitError):
    """The price table has no prices for the model. Nothing was sent."""

    model: str

    @classmethod
    def _of(cls, model: str) -> UnknownModel:
        error = cls(
            f"no prices for model {_quoted(model)}: "
            "add an entry of this name to the price table, or map the model to an entry"
        )
        error.model = model
        return error


class InvalidPrices(RemitError):
    """The price table cannot be used."""

    model: str  # empty: the table as a whole
    member: str  # empty: the entry as a whole

    @classmethod
    def _of(cls, model: str, member: str, why: str) -> InvalidPrices:
        where = f"prices of model {_quoted(model)}" if model else "the price table"
        error = cls(f"{where}{': ' + member if member else ''} {why}; correct the price table")
        error.model, error.member = model, member
        return error


class UnboundedCall(RemitError):
    """Nothing bounds what a call of a model can cost. It was not held, and is not to be made."""

    model: str

    @classmethod
    def _of(cls, model: str, of: str) -> UnboundedCall:
        error = cls(
            f"nothing bounds the {of} of a call of model {_quoted(model)}: "
            f"limit it in the call, or add max_{of}_tokens to the price table"
        )
        error.model = model
        return error

    @classmethod
    def _unread(cls, model: str, what: str) -> UnboundedCall:
        error = cls(f"the {what} of a call of model {_quoted(model)} cannot be read, so nothing bounds it")
        error.model = model
        return error

    @classmethod
    def _unpriced(cls, model: str, what: str) -> UnboundedCall:
        error = cls(f"with its {what} a call of model {_quoted(model)} can cost more than its tokens by the price table: leave it out")
        error.model = model
        return error


class UsageMissing(RemitError):
    """A call of a model ended without saying what it used. What was held for it is its price."""

    model: str

    @classmethod
    def _of(cls, model: str) -> UsageMissing:
        error = cls(
            f"the answer of model {_quoted(model)} does not say what it used, so it costs what was held: "
            "let the provider report usage, in streams too"
        )
        error.model = model
        return error


class UnpricedTool(RemitError):
    """A tool has no price. It was not charged, and is not to be run."""

    tool: str

    @classmethod
    def _of(cls, tool: str) -> UnpricedTool:
        error = cls(f"no price for tool {_quoted(tool)}: give it one, which may be 0")
        error.tool = tool
        return error


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
