"""The mutants of a file: every small change of a statement inside a function.

A mutant is known by its content, not by its line: file, function, the changed lines before and
after. So a sample stays the same when code elsewhere changes, and so does `equivalent_mutants.py`.
"""

import ast
import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hand_made_bugs import BUGS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "moorage"
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
SWAPPED_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CONDITIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)  # Others have operators to swap.


@dataclass(frozen=True)
class Mutant:
    """A part of a file, and what it is replaced by."""

    path: str  # Below src/moorage.
    function: str  # Its qualified name.
    before: str  # The changed lines, with single spaces.
    after: str
    copy: int  # 1 for the second of two that are equal in all of the above.
    line: int  # Of the statement.
    text: str  # The whole file with the change.
    bug: str = ""  # What a hand-made bug does.

    def __str__(self) -> str:
        return (
            self.bug or f"{self.path}:{self.line} {self.function}:  {self.before}  ->  {self.after}"
        )

    def rank(self, seed: int) -> str:
        """Decides on the place in a sample."""
        known = (seed, self.path, self.function, self.before, self.after, self.copy)
        return hashlib.sha256(repr(known).encode()).hexdigest()


def mutants_of(path: str) -> Iterator[Mutant]:
    """All mutants of a file."""
    text = (SOURCE / path).read_text()
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    copies: Counter[tuple[str, str, str]] = Counter()
    for function, statement, node in _parts(ast.parse(text)):
        for after in _changed(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            whole = text.encode()
            mutated = whole[:start] + after.encode() + whole[end:]
            first, last = starts[node.lineno - 1], starts[node.end_lineno]
            lines = whole[first:last], mutated[first : last + len(mutated) - len(whole)]
            old, new = (" ".join(each.decode().split()) for each in lines)
            key = (function, old, new)
            yield Mutant(path, *key, copies[key], statement.lineno, mutated.decode())
            copies[key] += 1


def sample(paths: Iterable[str], count: int, seed: int) -> list[Mutant]:
    """Some mutants of several files. A change of the code changes few of them."""
    found = [mutant for path in paths for mutant in mutants_of(path)]
    return sorted(found, key=lambda mutant: mutant.rank(seed))[:count]


def hand_made() -> Iterator[Mutant]:
    """The bugs of hand_made_bugs.py."""
    for bug in BUGS:
        text = (SOURCE / bug.path).read_text()
        if text.count(bug.before) != 1:
            sys.exit(f"{bug.path} has not one place of {bug.before!r}")
        mutated = text.replace(bug.before, bug.after)
        yield Mutant(bug.path, "", bug.before, bug.after, 0, 0, mutated, bug.name)


def _parts(tree: ast.AST) -> Iterator[tuple[str, ast.stmt, ast.AST]]:
    """Everything inside of functions, with the name of the function and the statement."""

    def walk(node: ast.AST, names: str, function: str, statement: ast.stmt | None):
        if isinstance(node, ast.stmt):
            statement = node
        if function and statement is not None and hasattr(node, "end_lineno"):
            yield function, statement, node
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            node.test.is_condition = True
        ignored = {id(part) for part in _ignored(node)}
        is_function = isinstance(node, FUNCTIONS)
        if is_function or isinstance(node, ast.ClassDef):
            names = f"{names}.{node.name}" if names else node.name
        for child in ast.iter_child_nodes(node):
            if id(child) not in ignored:
                inside = is_function and isinstance(child, ast.stmt)
                yield from walk(child, names, names if inside else function, statement)

    return walk(tree, "", "", None)


def _ignored(node: ast.AST) -> Iterator[ast.AST]:
    """Parts whose change means nothing: annotations, docstrings, texts of errors, asserts."""
    if isinstance(node, FUNCTIONS):
        yield from (*node.decorator_list, node.args)
        if node.name in ("__repr__", "check"):
            yield from node.body
    for name in ("annotation", "returns"):
        if getattr(node, name, None) is not None:
            yield getattr(node, name)
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        yield from ast.iter_child_nodes(node)


def _changed(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in SWAPPED:
            yield ast.unparse(ast.Compare(left, [SWAPPED[type(operator)]()], [right]))
        case ast.BoolOp(operator, values):
            yield f"({ast.unparse(ast.BoolOp(SWAPPED[type(operator)](), values))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield f"({ast.unparse(operand)})"
        case ast.BinOp(left, operator, right) if type(operator) in SWAPPED:
            yield f"({ast.unparse(ast.BinOp(left, SWAPPED[type(operator)](), right))})"
        case ast.Constant(value) if value is True or value is False:
            yield str(not value)
        case ast.Constant(int(value)):
            yield str(value + 1)
        case ast.Call(ast.Name(name), arguments, keywords) if name in SWAPPED_CALLS:
            yield ast.unparse(ast.Call(ast.Name(SWAPPED_CALLS[name]), arguments, keywords))
        case ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete():
            yield "pass"
        case ast.Break() | ast.Continue():
            yield "pass"
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield "pass"
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return None"
    if getattr(node, "is_condition", False) and isinstance(node, CONDITIONS):
        yield f"not {ast.unparse(node)}"
