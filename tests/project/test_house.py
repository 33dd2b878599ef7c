"""The rules of the house: one meaning per name, rooms that name their modules, and functions that can be read."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "streamsift"
LAYERS = ("runtime", "physical", "spark")
OPEN_ROOMS = ("arrays", "expressions", "events")  # others may import their modules, not only their door
MAX_FILES, MAX_LINES, MAX_PARAMETERS = 20, 60, 8
# The public keyword API, and functions whose parameters are the options of a command.
MANY_PARAMETERS = {"api/query.py", "api/many.py", "command/main.py"}

MODULES = sorted(SOURCE.rglob("*.py"))
ROOMS = sorted(path.parent for path in MODULES if path.name == "__init__.py" and path.parent != SOURCE)


@cache
def trees() -> dict[str, ast.Module]:
    """Parse each module once, and only in a process that runs these tests."""
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def functions() -> Iterator[tuple[str, ast.FunctionDef, bool]]:
    """All functions, with their module and whether Numba compiles them."""
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield module, node, any("njit" in ast.unparse(decorator) for decorator in node.decorator_list)


def lines_of_code(node: ast.FunctionDef) -> int:
    """The length of a function without its docstring: those of the public API are its reference manual."""
    first = node.body[0]
    docstring = (first.end_lineno or 0) - first.lineno if ast.get_docstring(node) else 0
    return (node.end_lineno or 0) - node.lineno - docstring


def test_a_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_names_say_what_they_hold() -> None:
    vague = re.compile(r"(^|_)(found|known|told|asked|held|letters|hushed|benches|exits|steady|circle)(_|$)")
    names = defaultdict(set)
    for module, tree in trees().items():
        for node in ast.walk(tree):
            for attribute in ("id", "attr", "arg", "name"):
                if isinstance(name := getattr(node, attribute, None), str) and vague.search(name):
                    names[name].add(module)
    assert dict(names) == {"mark_circle": {"view/aggregates.py", "view/rankings.py", "view/timeline.py"}}  # Altair's


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(SOURCE).as_posix())
def test_a_room_describes_its_modules(room: Path) -> None:
    described = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    modules = [path.stem for path in room.glob("*.py") if path.stem != "__init__"]
    rooms = [path.name for path in room.iterdir() if (path / "__init__.py").exists()]
    assert [name for name in (*modules, *rooms) if f"`{name}`" not in described] == []


def test_no_folder_is_crowded() -> None:
    folders = [path for path in (SOURCE, *SOURCE.rglob("*")) if path.is_dir() and path.name != "__pycache__"]
    assert [path for path in folders if len(list(path.glob("*.py"))) > MAX_FILES] == []


def test_functions_are_short_but_for_kernels_with_a_reason() -> None:
    long = [
        f"{module}: {node.name}"
        for module, node, is_kernel in functions()
        if lines_of_code(node) >= MAX_LINES
        and not (is_kernel and re.search(r"[Oo]ne (long )?(function|loop)", ast.get_docstring(node) or ""))
    ]
    assert long == []


def test_functions_have_few_parameters() -> None:
    def count(node: ast.FunctionDef) -> int:
        given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        return len([each for each in given if each.arg not in ("self", "cls")])

    assert [
        f"{module}: {node.name}"
        for module, node, is_kernel in functions()
        if count(node) > MAX_PARAMETERS and not is_kernel and module not in MANY_PARAMETERS
    ] == []


def test_other_rooms_import_a_rooms_door() -> None:
    inside = []
    for module, tree in trees().items():
        own = module.split("/")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("streamsift."):
                layer, *rest = node.module.split(".")[1:]
                if layer in LAYERS and len(rest) > 1 and rest[0] not in OPEN_ROOMS and own[:2] != [layer, rest[0]]:
                    inside.append(f"{module}: {node.module}")
    assert inside == []
