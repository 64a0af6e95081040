"""
Mutations of a module: where they are, what they are called, and the text of the mutated module.

Code without effect on behaviour has none: annotations, docstrings, decorators, log lines,
assertions, texts, and the methods in ``UNSEEN``.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutations.operators import OPERATORS

UNSEEN: Final = frozenset({"__repr__", "__str__", "__hash__", "__del__"})

_LOGGERS: Final = frozenset({"logger", "log"})
_LEVELS: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutation:
    """
    One fault in one module.

    Attributes:
        name: the same for as long as the function that holds it does not change.
        path: the module, relative to the root of the repository.
        lines: the lines of the replaced text, or of the statement around it.
        at_import: whether the lines run when the module is imported.
        start: where the replaced text begins, in bytes from the beginning of the module.
    """

    name: str
    path: str
    operator: str
    lines: range
    statement: range
    at_import: bool
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def find_mutations(path: str, root: Path) -> list[Mutation]:
    source = (root / path).read_bytes()
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return finder.found


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: bytes) -> None:
        self.found: list[Mutation] = []
        self._path = path
        self._line_starts = [0]
        for line in source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._scope: list[str] = []
        self._functions: list[_Function] = []
        self._statement = range(0)
        self._names: Counter[str] = Counter()

    def visit(self, node: ast.AST) -> None:
        outer = self._statement
        if isinstance(node, ast.stmt):
            self._statement = _lines(node)
        if not _has_no_effect(node):
            self._add(node)
            super().visit(node)
        self._statement = outer

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all(node.name, node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def _visit_function(self, node: _Function) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self._functions.append(node)
        self._visit_all(node.name, node.body)
        self._functions.pop()

    def _visit_all(self, name: str, body: list[ast.stmt]) -> None:
        self._scope.append(name)
        for statement in body:
            self.visit(statement)
        self._scope.pop()

    def _add(self, node: ast.AST) -> None:
        returns = self._functions[-1].returns if self._functions else None
        is_init = self._scope[-1:] == ["__init__"]
        for name, operator in OPERATORS.items():
            # An object without one of its attributes fails at once.
            if name == "assignment" and is_init:
                continue
            for fault in operator(node, returns):
                self._found(name, fault.node, fault.text)

    def _found(self, operator: str, node: ast.AST, text: str) -> None:
        assert isinstance(node, ast.expr | ast.stmt)
        function = ".".join(self._scope) or "module"
        before = " ".join(ast.unparse(node).split())
        name = f"{self._path}::{function}::{operator}::{before} -> {' '.join(text.split())}"
        self._names[name] += 1
        if self._names[name] > 1:
            name = f"{name} #{self._names[name]}"
        self.found.append(
            Mutation(
                name,
                self._path,
                operator,
                _lines(node),
                self._statement,
                not self._functions,
                self._offset(node.lineno, node.col_offset),
                self._offset(node.end_lineno, node.end_col_offset),
                text,
            )
        )

    def _offset(self, line: int | None, column: int | None) -> int:
        assert line is not None
        assert column is not None
        return self._line_starts[line - 1] + column


def _lines(node: ast.expr | ast.stmt) -> range:
    assert node.end_lineno is not None
    return range(node.lineno, node.end_lineno + 1)


def _has_no_effect(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.JoinedStr():
            return True
        case ast.FunctionDef(name=name):
            return name in UNSEEN
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=level))):
            return name in _LOGGERS and level in _LEVELS
        case _:
            return False
