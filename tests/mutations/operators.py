"""
Mutation operators: the small faults that a node of a syntax tree can have.

Each function yields the faults of one kind for a node, and nothing for nodes that cannot have them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Final, NamedTuple


class Fault(NamedTuple):
    """
    A replacement of the source text of *node*.
    """

    node: ast.AST
    text: str


Returns = ast.expr | None
"""The annotation of the result of the function around a node."""

_COMPARISONS: Final[Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}

_ARITHMETIC: Final[Mapping[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}

_EXTREMES: Final = {"min": "max", "max": "min"}

_DEFAULTS: Final = {
    "int": "0",
    "float": "0.0",
    "str": '""',
    "bytes": 'b""',
    "list": "[]",
    "Sequence": "[]",
    "Iterable": "[]",
    "tuple": "()",
    "dict": "{}",
    "Mapping": "{}",
    "set": "set()",
    "frozenset": "frozenset()",
}
"""The value that a function returns instead, by the type of its result."""


def comparison(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in _COMPARISONS[type(op)]:
                yield _changed(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])


def condition(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    if not isinstance(node, ast.If | ast.IfExp):
        return
    # A comparison has its own faults, and so has `not`.
    if not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield Fault(node.test, f"(not {_nested(node.test)})")


def connective(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    if isinstance(node, ast.BoolOp):
        yield _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def operand(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    """
    One side of ``and`` and ``or`` is missing.
    """
    if isinstance(node, ast.BoolOp):
        for i in range(len(node.values)):
            rest = [*node.values[:i], *node.values[i + 1 :]]
            yield _changed(node, values=rest) if len(rest) > 1 else Fault(node, _nested(rest[0]))


def negation(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Fault(node, _nested(node.operand))


def arithmetic(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    match node:
        case ast.BinOp(op=op, left=left, right=right):
            operands = [left, right]
        case ast.AugAssign(op=op, value=value):
            operands = [value]
        case _:
            return
    # Texts are added, too, but not subtracted.
    if type(op) in _ARITHMETIC and not any(map(_is_text, operands)):
        yield _changed(node, op=_ARITHMETIC[type(op)]())


def constant(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    match node:
        case ast.Constant(value=bool() as value):
            yield Fault(node, str(not value))
        case ast.Constant(value=int() as value):
            yield Fault(node, str(value + 1))
            yield Fault(node, f"({value - 1})" if value < 1 else str(value - 1))


def extreme(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _EXTREMES:
            yield Fault(node.func, _EXTREMES[name])


def result(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    """
    A function returns another value: the opposite, or the empty one of its type.
    """
    if not isinstance(node, ast.Return) or node.value is None or returns is None:
        return
    if isinstance(returns, ast.Name) and returns.id == "bool":
        if not isinstance(node.value, ast.Constant | ast.Compare | ast.UnaryOp):
            yield Fault(node.value, f"(not {_nested(node.value)})")
        return
    default = _default(returns)
    if default is not None and ast.unparse(node.value) not in (default, default.replace('"', "'")):
        yield Fault(node.value, default)


def call(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield Fault(node, "pass")


def assignment(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    """
    An attribute keeps its old value.
    """
    match node:
        case ast.Assign(targets=[ast.Attribute()]) | ast.AugAssign(target=ast.Attribute()):
            yield Fault(node, "pass")


def arguments(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    """
    The first two arguments of a call are swapped.
    """
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return
    first, second, *rest = node.args
    if any(isinstance(argument, ast.Starred) for argument in (first, second)):
        return
    if isinstance(node.func, ast.Name) and node.func.id in (*_EXTREMES, "isinstance", "cast"):
        return
    if ast.unparse(first) != ast.unparse(second):
        yield _changed(node, args=[second, first, *rest])


def jump(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    if isinstance(node, ast.Break):
        yield Fault(node, "continue")
    elif isinstance(node, ast.Continue):
        yield Fault(node, "break")


def exception(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    """
    An exception is not raised.
    """
    if isinstance(node, ast.Raise):
        yield Fault(node, "pass")


def handler(node: ast.AST, returns: Returns) -> Iterator[Fault]:
    """
    An exception is not handled.
    """
    if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[0], ast.Raise):
        yield Fault(node.body[0], "raise")


Operator = Callable[[ast.AST, Returns], Iterator[Fault]]

OPERATORS: Final[Mapping[str, Operator]] = {
    operator.__name__: operator
    for operator in (
        comparison,
        condition,
        connective,
        operand,
        negation,
        arithmetic,
        constant,
        extreme,
        result,
        call,
        assignment,
        arguments,
        jump,
        exception,
        handler,
    )
}


def _changed(node: ast.AST, **fields: object) -> Fault:
    other = copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return Fault(node, _nested(other) if isinstance(other, ast.expr) else ast.unparse(other))


def _nested(node: ast.AST) -> str:
    return f"({ast.unparse(node)})"


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr() | ast.Constant(value=str() | bytes()):
            return True
        case _:
            return False


def _default(returns: ast.expr) -> str | None:
    match returns:
        case ast.BinOp(op=ast.BitOr(), right=ast.Constant(value=None)):
            return "None"
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return _DEFAULTS.get(name)
        case _:
            return None
