"""One expression over `self`, and over `oldSelf`: the value before an update.

Rules of CustomResourceDefinitions are such expressions. See `selector` for those over devices.
"""

from typing import Any

from moorage.cel import schemas, syntax
from moorage.cel.checker import Checker, Environment
from moorage.cel.compiler import Compiler
from moorage.cel.cost_estimate import CostEstimator
from moorage.cel.lexer import CelSyntaxError
from moorage.cel.schemas import Declaration
from moorage.cel.types import Type
from moorage.cel.values import (
    COST_LIMIT,
    CelCompileError,
    CelRuntimeError,
    CostLimitExceeded,
)

# What only device selectors have.
_WITHOUT = frozenset(("bind", "includes"))


class Rule:
    """A compiled expression. `max_cost` is an estimate for the largest values allowed."""

    def __init__(
        self, text: str, declaration: Declaration, *, result: Type, optional_old_self: bool = False
    ) -> None:
        """Compile; raises CelCompileError with the API server's text."""
        self.text = text
        old = Type("optional_type", (declaration.type,)) if optional_old_self else declaration.type
        checker = Checker(
            Environment(
                {"self": declaration.type, "oldSelf": old},
                schemas.fields_of(declaration),
                without=_WITHOUT,
            )
        )
        try:
            tree = syntax.parse(text)
            self.type = checker.check_all(tree)
            compiler = Compiler()
            self._run = compiler.emit(tree)
        except CelSyntaxError as error:
            errors = sorted(checker.errors or [error], key=lambda each: each.position)
            shown = "\n".join(each.located(text) for each in errors)
            raise CelCompileError(f"compilation failed: {shown}") from None
        except RecursionError:
            raise CelCompileError("compilation failed: expression is nested too deeply") from None
        if self.type != result:
            raise CelCompileError(f"must evaluate to a {result}")
        self._locals: list[Any] = [None] * (checker.frame_size - 3)
        self._fixed_cost = compiler.cost
        self.uses_old_self = "oldSelf" in checker.used
        self.max_cost = CostEstimator(declaration).cost(tree)

    def evaluate(self, value: Any, old: Any, limit: int = COST_LIMIT) -> tuple[Any, int]:
        """The result, or the CelRuntimeError, and the cost; it is above the limit if stopped."""
        frame = [limit - self._fixed_cost, value, old, *self._locals]
        result: Any
        try:
            if frame[0] < 0:
                raise CostLimitExceeded
            result = self._run(frame)
        except CelRuntimeError as error:
            result = error
        except RecursionError:
            result = CelRuntimeError("expression is nested too deeply")
        return result, limit - frame[0]
