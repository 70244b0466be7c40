"""The syntax tree of CEL and its parser. Macros become nodes of their own here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moorage.cel.lexer import Token, syntax_error, tokens
from moorage.cel.types import DYN, Overload, Type
from moorage.cel.values import INT_MAX, CelCompileError

# The reference allows 250. A level takes up to four Python frames, the caller has frames of
# its own, and Python stops at 1,000.
MAX_DEPTH = 120


@dataclass(slots=True, kw_only=True)
class SyntaxNode:
    """Part of an expression. The checker sets `type`."""

    position: int
    type: Type = DYN
    depth: int = 1


@dataclass(slots=True)
class Literal(SyntaxNode):
    """A constant."""

    value: Any


@dataclass(slots=True)
class Ident(SyntaxNode):
    """A variable, or the name of a type. The checker sets `slot` or `constant`."""

    name: str
    slot: int = -1
    constant: Any = None


@dataclass(slots=True)
class Select(SyntaxNode):
    """`operand.name`; `operand.?name`; `has(operand.name)`."""

    operand: SyntaxNode
    name: str
    optional: bool = False
    test: bool = False
    constant: Any = None


@dataclass(slots=True)
class Index(SyntaxNode):
    """`operand[key]`; `operand[?key]`."""

    operand: SyntaxNode
    key: SyntaxNode
    optional: bool = False


@dataclass(slots=True)
class Call(SyntaxNode):
    """A function, method or operator. The checker sets `overloads`."""

    function: str
    target: SyntaxNode | None
    args: list[SyntaxNode]
    overloads: list[Overload] = field(default_factory=list)


@dataclass(slots=True)
class Logical(SyntaxNode):
    """`&&` or `||` of two or more terms."""

    operator: str
    terms: list[SyntaxNode]


@dataclass(slots=True)
class Conditional(SyntaxNode):
    """`test ? then : other`."""

    test: SyntaxNode
    then: SyntaxNode
    other: SyntaxNode


@dataclass(slots=True)
class ListLiteral(SyntaxNode):
    """`[a, ?b]`: pairs of element and whether it is optional."""

    items: list[tuple[SyntaxNode, bool]]


@dataclass(slots=True)
class MapLiteral(SyntaxNode):
    """`{key: value, ?key: value}`: key, value and whether the value is optional."""

    entries: list[tuple[SyntaxNode, SyntaxNode, bool]]


@dataclass(slots=True)
class Comprehension(SyntaxNode):
    """A macro that binds variables: over the elements of `operand`, or once (bind, optMap).

    The checker sets `slots`, one per variable.
    """

    macro: str
    operand: SyntaxNode
    variables: list[str]
    where: SyntaxNode | None
    body: SyntaxNode
    slots: list[int] = field(default_factory=list)


_METHODS = {
    Literal: "_literal",
    Ident: "_ident",
    Select: "_select",
    Index: "_index",
    Call: "_call",
    Logical: "_logical",
    Conditional: "_conditional",
    ListLiteral: "_list",
    MapLiteral: "_map",
    Comprehension: "_comprehension",
}


def rules_of(visitor: object) -> dict[type, Callable[[Any], Any]]:
    """The method of a visitor for each type of node: `_literal` for a Literal, and so on."""
    return {kind: getattr(visitor, method) for kind, method in _METHODS.items()}


_N = TypeVar("_N", bound=SyntaxNode)

# Macros with variables: (name, arguments) to (number of variables, whether there is a filter).
_MACROS = {
    ("all", 2): (1, False),
    ("exists", 2): (1, False),
    ("exists_one", 2): (1, False),
    ("existsOne", 2): (1, False),
    ("filter", 2): (1, False),
    ("map", 2): (1, False),
    ("map", 3): (1, True),
    ("sortBy", 2): (1, False),
    ("optMap", 2): (1, False),
    ("optFlatMap", 2): (1, False),
    ("all", 3): (2, False),
    ("exists", 3): (2, False),
    ("exists_one", 3): (2, False),
    ("existsOne", 3): (2, False),
    ("transformList", 3): (2, False),
    ("transformList", 4): (2, True),
    ("transformMap", 3): (2, False),
    ("transformMap", 4): (2, True),
    ("transformMapEntry", 3): (2, False),
    ("transformMapEntry", 4): (2, True),
}
RESERVED = frozenset(
    (
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "package",
        "return",
        "var",
        "void",
        "while",
    )
)
CONSTANTS = {"true": True, "false": False, "null": None}
_LEVELS = (("||",), ("&&",), ("<", "<=", ">", ">=", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))
_PRECEDENCE = {operator: level for level, group in enumerate(_LEVELS) for operator in group}


# What an operand may begin with, as the reference lists it.
_OPERANDS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT,"
    " STRING, BYTES, IDENTIFIER}"
)


def parse(text: str) -> SyntaxNode:
    """The syntax tree of an expression; raises CelCompileError."""
    parser = _Parser(tokens(text))
    tree = parser.expression()
    parser.expect("<EOF>")
    return tree


class _Parser:
    def __init__(self, stream: list[Token]) -> None:
        self.stream = stream
        self.at = 0
        self.nesting = 0

    @property
    def token(self) -> Token:
        return self.stream[self.at]

    def accept(self, *texts: str) -> Token | None:
        token = self.stream[self.at]
        if token.text not in texts or token.kind == "literal":
            return None
        self.at += 1
        return token

    def expect(self, text: str) -> Token:
        token = self.accept(text)
        if token is None:
            found = self.token
            what = f"mismatched input '{found.text[:40]}' expecting '{text}'"
            if found.kind == "end":
                what = f"missing '{text}' at '<EOF>'"
            raise syntax_error(found.position, f"Syntax error: {what}")
        return token

    def name(self) -> Token:
        token = self.token
        if token.kind != "name" or token.text in CONSTANTS or token.text == "in":
            raise syntax_error(token.position, f"Syntax error: unexpected '{token.text[:40]}'")
        self.at += 1
        return token

    def expression(self) -> SyntaxNode:
        test = self.binary(0)
        if question := self.accept("?"):
            then = self.binary(0)
            self.expect(":")
            other = self.expression()
            node = Conditional(test, then, other, position=question.position)
            return _deep(node, test, then, other)
        return test

    def binary(self, minimum: int) -> SyntaxNode:
        """Operands and operators of at least a precedence."""
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise _too_deep()
        left = self.unary()
        while (level := self.precedence()) >= minimum:
            operator = self.token
            self.at += 1
            left = _operation(operator, left, self.binary(level + 1))
        self.nesting -= 1
        return left

    def precedence(self) -> int:
        token = self.token
        return _PRECEDENCE.get(token.text, -1) if token.kind != "literal" else -1

    def unary(self) -> SyntaxNode:
        signs: list[Token] = []
        while sign := self.accept("!", "-"):
            if signs and signs[-1].text != sign.text:
                raise syntax_error(sign.position, f"Syntax error: unexpected '{sign.text}'")
            signs.append(sign)
        literal = self.token
        if signs and signs[-1].text == "-" and type(literal.value) in (int, float):
            signs.pop()
            self.at += 1
            node = self.suffixes(Literal(-literal.value, position=literal.position))
        else:
            node = self.suffixes(self.primary())
        # An even number of signs cancels out.
        if len(signs) % 2:
            call = Call(f"{signs[0].text}_", None, [node], position=signs[0].position)
            node = _deep(call, node)
        return node

    def primary(self) -> SyntaxNode:
        token = self.token
        position = token.position
        if token.kind == "literal":
            if type(token.value) is int and token.value > INT_MAX:
                raise syntax_error(position, "invalid int literal")
            self.at += 1
            return Literal(token.value, position=position)
        if self.accept("("):
            node = self.expression()
            self.expect(")")
            return node
        if self.accept("[", "[?"):
            return self.list_literal(token)
        if self.accept("{"):
            return self.map_literal(position)
        if token.kind == "name" and token.text in CONSTANTS:
            self.at += 1
            return Literal(CONSTANTS[token.text], position=position)
        leading = self.accept(".")  # An absolute name; there is no container.
        if not leading and (token.kind != "name" or token.text == "in"):
            what = f"mismatched input '{token.text[:40]}' expecting {_OPERANDS}"
            raise syntax_error(position, f"Syntax error: {what}")
        name = self.name()
        if name.text in RESERVED:
            raise syntax_error(position, f"reserved identifier: {name.text}")
        if opening := self.accept("("):
            return self.call(name, None, opening)
        return Ident(name.text, position=position)

    def suffixes(self, node: SyntaxNode) -> SyntaxNode:
        while True:
            position = self.token.position
            if self.accept(".?"):
                node = _deep(Select(node, self.name().text, optional=True, position=position), node)
            elif self.accept("."):
                name = self.name()
                if opening := self.accept("("):
                    node = self.call(name, node, opening)
                else:
                    node = _deep(Select(node, name.text, position=position), node)
            elif opening := self.accept("[", "[?"):
                key = self.expression()
                self.expect("]")
                optional = opening.text == "[?"
                node = _deep(Index(node, key, optional, position=position), node, key)
            elif self.token.text == "{" and isinstance(node, Ident | Select):
                raise syntax_error(position, "undeclared reference to a message type")
            else:
                return node

    def list_literal(self, opening: Token) -> SyntaxNode:
        items: list[tuple[SyntaxNode, bool]] = []
        optional = opening.text == "[?"
        while optional or not self.accept("]"):
            optional = optional or self.accept("?") is not None
            items.append((self.expression(), optional))
            optional = False
            if not self.accept(","):
                self.expect("]")
                break
        nodes = [item for item, _ in items]
        return _deep(ListLiteral(items, position=opening.position), *nodes)

    def map_literal(self, position: int) -> SyntaxNode:
        entries: list[tuple[SyntaxNode, SyntaxNode, bool]] = []
        while not self.accept("}"):
            optional = self.accept("?") is not None
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
            if not self.accept(","):
                self.expect("}")
                break
        nodes = [node for key, value, _ in entries for node in (key, value)]
        return _deep(MapLiteral(entries, position=position), *nodes)

    def call(self, name: Token, target: SyntaxNode | None, opening: Token) -> SyntaxNode:
        """A call or macro; its position is that of the parenthesis, as in the reference."""
        args: list[SyntaxNode] = []
        while not self.accept(")"):
            if args:
                self.expect(",")
            args.append(self.expression())
        macro = _expand(name.text, target, args, opening.position)
        return macro or _deep(
            Call(name.text, target, args, position=opening.position),
            *([target] if target else []),
            *args,
        )


def _operation(operator: Token, left: SyntaxNode, right: SyntaxNode) -> SyntaxNode:
    if operator.text not in ("&&", "||"):
        call = Call(operator.text, None, [left, right], position=operator.position)
        return _deep(call, left, right)
    # A long chain is one node, so that it is not nested deeply.
    if isinstance(left, Logical) and left.operator == operator.text:
        left.terms.append(right)
        left.depth = max(left.depth, 1 + right.depth)
        return left
    node = Logical(operator.text, [left, right], position=operator.position)
    return _deep(node, left, right)


def _expand(
    name: str, target: SyntaxNode | None, args: list[SyntaxNode], position: int
) -> SyntaxNode | None:
    if target is None:
        if name != "has" or len(args) != 1:
            return None
        select = args[0]
        if not isinstance(select, Select) or select.optional:
            raise syntax_error(position, "invalid argument to has() macro")
        select.test = True
        select.position = position
        return select
    if isinstance(target, Ident) and target.name == "cel" and name == "bind" and len(args) == 3:
        names = _variables(args[:1])
        node = Comprehension("bind", args[1], names, None, args[2], position=position)
        return _deep(node, *args)
    shape = _MACROS.get((name, len(args)))
    if shape is None:
        return None
    count, filtered = shape
    names = _variables(args[:count])
    where = args[count] if filtered else None
    node = Comprehension(name, target, names, where, args[-1], position=position)
    return _deep(node, target, *args)


def _variables(args: list[SyntaxNode]) -> list[str]:
    names = []
    for arg in args:
        if not isinstance(arg, Ident):
            raise syntax_error(arg.position, "argument must be a simple name")
        names.append(arg.name)
    if len(set(names)) < len(names):
        raise syntax_error(args[0].position, "iteration variables must be distinct")
    return names


def _deep(node: _N, *children: SyntaxNode) -> _N:
    node.depth = 1 + max((child.depth for child in children), default=0)
    if node.depth > MAX_DEPTH:
        raise _too_deep()
    return node


def _too_deep() -> CelCompileError:
    return CelCompileError(
        f"compilation failed: expression is nested deeper than {MAX_DEPTH} levels"
    )
