"""Python sources, read and not run: the modules below a folder, and what code imports, in whichever words it says so."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Package:
    """The modules below a folder, which is a package of this name."""

    name: str
    folder: Path

    @cached_property
    def modules(self) -> dict[str, Path]:
        """The files by the names that they are imported by, in the order of their paths."""
        found = {}
        for path in sorted(self.folder.rglob("*.py")):
            parts = path.relative_to(self.folder).with_suffix("").parts
            found[".".join([self.name, *(parts[:-1] if parts[-1] == "__init__" else parts)])] = path
        return found

    def code(self, module: str) -> ast.Module:
        """A module's code."""
        return ast.parse(self.modules[module].read_text())

    def imports(self, module: str, others: Collection[str] = ()) -> frozenset[str]:
        """What a module imports, of itself or of others; ``others`` are modules of other packages that may be meant."""
        own = module if self.modules[module].name == "__init__.py" else module.rpartition(".")[0]
        return imported(self.code(module), own, {*self.modules, *others})


def imported(code: ast.AST, package: str, known: Collection[str]) -> frozenset[str]:
    """Every module that code which stands in a package imports, by its full name, also for type checkers alone and within functions.

    ``from a import b`` imports ``a.b`` where that is a module that is known, and else ``a``.
    """
    return frozenset(_imported(code, package, known))


def _imported(code: ast.AST, package: str, known: Collection[str]) -> Iterator[str]:
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{module}.{alias.name}"
                yield full if full in known else module


def circles(imports: dict[str, frozenset[str]]) -> list[str]:
    """The ways on which an import comes back to where it began, one for each module that closes one."""
    found: list[str] = []
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        if module in way:
            found.append(" -> ".join([*way[way.index(module) :], module]))
        elif module not in done:
            for name in sorted(imports.get(module, ())):
                visit(name, (*way, module))
            done.add(module)

    for module in imports:
        visit(module, ())
    return found
