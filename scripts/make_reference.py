"""Write the generated parts of the reference: the Python API, the commands and the planner options.

A page in docs/ marks such a part with `<!-- generated: name -->` and `<!-- end of generated -->`.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import typer

import streamsift
from streamsift.api.building import Buildable
from streamsift.command.exit_codes import EXIT_CODES
from streamsift.command.main import app
from streamsift.physical.plan import option_table

DOCS = Path(__file__).resolve().parent.parent / "docs"
PART = re.compile(r"(<!-- generated: (?P<name>[\w ]+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)
SECTION = re.compile(r"^(?P<title>Args|Returns|Raises|Yields|Examples?):$")
INTERNAL = {"plan", "sketch"}  # methods of Query that only Streamsift itself calls
BUILD = "Build a query"
FUNCTIONS = {
    "Queries": ("query", "Query"),
    BUILD: ("event", "seq", "all_of", "any_of"),
    "Many queries": ("run_many", "explain_many"),
    "Streams in process": ("Stream", "StreamMetrics", "open_many", "resume"),
    "Charts": ("show", "plot"),
}


# --- Python API ------------------------------------------------------------------------------------------------------


def python_api() -> Iterator[str]:
    exported = {name: getattr(streamsift, name) for name in streamsift.__all__}
    errors = {name: value for name, value in exported.items() if _is_error(value)}
    grouped = {name for names in FUNCTIONS.values() for name in names}
    others = tuple(name for name in exported if name not in grouped and name not in errors)
    for title, names in {**FUNCTIONS, "Spark": others}.items():
        yield f"\n## {title}\n"
        for name in names:
            yield f"### streamsift.{name}\n"
            yield from _text(exported[name]) if isinstance(exported[name], type) else _described(name, exported[name])
            yield from _methods(exported[name]) if isinstance(exported[name], type) else ()
        yield from _methods(Buildable) if title == BUILD else ()
    yield "\n## Errors and warnings\n"
    yield "| class | base class | raised or issued |"
    yield "| --- | --- | --- |"
    for name, error in errors.items():
        yield f"| `{name}` | `{error.__bases__[0].__name__}` | {_cell(_paragraphs(error)[0])} |"


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def _methods(owner: type) -> Iterator[str]:
    """Yield the public methods and properties that a class defines itself, in the order of its source."""
    for name, member in vars(owner).items():
        if name.startswith("_") or name in INTERNAL or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        yield f"### {owner.__name__ if owner is not Buildable else 'Query'}.{name}\n"
        yield from _described(name, member) if inspect.isfunction(member) else _text(member)


def _described(name: str, function: Callable[..., Any]) -> Iterator[str]:
    yield "```py"
    yield _signature(name, function)
    yield "```\n"
    yield from _text(function)


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    parts = [_parameter(each) for each in parameters]
    kinds = [each.kind for each in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returns = f" -> {_annotation(signature.return_annotation)}"
    line = f"{name}({', '.join(parts)}){returns}"
    return line if len(line) <= 76 else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{stars}{parameter.name}: {_annotation(parameter.annotation)}{default}"


def _annotation(annotation: Any) -> str:
    return re.sub(r"^Unpack\[(\w+)\]$", r"\1", str(annotation)).replace("Self", "Query")


def _paragraphs(value: Any) -> list[str]:
    text = re.sub(r" *# doctest: [^\n]+", "", inspect.getdoc(value) or "")
    return re.split(r"\n\n+", text)


def _text(value: Any) -> Iterator[str]:
    """Yield a docstring as Markdown: sections as lists, doctests as code."""
    for paragraph in _paragraphs(value):
        first, _, rest = paragraph.partition("\n")
        if paragraph.startswith(">>>"):
            yield f"```pycon\n{paragraph}\n```\n"
        elif section := SECTION.match(first):
            yield from _section(section["title"], textwrap.dedent(rest))
        else:
            yield f"{paragraph}\n"


def _section(title: str, body: str) -> Iterator[str]:
    if title.startswith("Example"):
        yield f"```pycon\n{body}\n```\n" if body.startswith(">>>") else f"```py\n{body}\n```\n"
        return
    items = [" ".join(item.split()) for item in re.split(r"\n(?=\S)", body)]
    if title in ("Returns", "Yields"):
        yield f"**{title}:** {' '.join(items)}\n"
        return
    yield f"**{'Parameters' if title == 'Args' else title}:**\n"
    for item in items:
        name, colon, meaning = item.partition(": ")
        yield f"- `{name}`: {meaning}" if colon else f"- {item}"
    yield ""


# --- command line ----------------------------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    group: Any = typer.main.get_command(app)
    for info in app.registered_commands:
        assert info.callback is not None
        name = info.name or info.callback.__name__.replace("_", "-")
        yield f"\n## streamsift {name}\n"
        yield from _command(name, group.commands[name], _types(info.callback))


def exit_codes() -> Iterator[str]:
    yield "\n| code | meaning |"
    yield "| --- | --- |"
    yield from (f"| {code} | {meaning} |" for code, meaning in re.findall(r"^ +(\d+) +(.+)$", EXIT_CODES, re.MULTILINE))


def _types(callback: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a command's parameters, without what Typer's annotations add."""
    annotations = {
        each.name: each.annotation for each in inspect.signature(callback, eval_str=True).parameters.values()
    }
    return {name: get_args(annotation)[0] for name, annotation in annotations.items()}


def _command(name: str, command: Any, types: dict[str, Any]) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join(["streamsift", name, *(each.metavar or each.name.upper() for each in arguments)])
    yield f"{inspect.cleandoc(command.help)}\n"
    yield f"Usage: `{usage} [OPTIONS]`\n"
    examples = re.findall(r"streamsift [^\n]+", command.epilog or "")
    yield "\n".join(["```console", *(f"$ {example}" for example in examples), "```\n"]) if examples else ""
    yield from (f"- `{each.metavar or each.name.upper()}`: {each.help}" for each in arguments)
    panels: dict[str, list[str]] = {}
    for option in command.params:
        if option.param_type_name == "option" and option.name in types and not option.hidden:
            rows = panels.setdefault(option.rich_help_panel or "Options", [])
            required = " (required)" if option.required else ""
            names = ", ".join(f"`{each}`" for each in option.opts)
            rows.append(f"| {names}{required} | {_values(types[option.name], option.default)} | {_cell(option.help)} |")
    for panel, rows in panels.items():
        yield f"\n**{panel}**\n" if len(panels) > 1 else ""
        yield from ("| option | values | meaning |", "| --- | --- | --- |", *rows)


def _values(annotation: Any, default: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        members = [str(member.value) for member in annotation]
        chosen = getattr(default, "value", default)
        return ", ".join(f"`{member}` (default)" if member == chosen else f"`{member}`" for member in members)
    if annotation is bool:
        return "flag"
    kind = {int: "integer", float: "number", Path: "path"}.get(annotation, "text")
    return kind if default is None else f"{kind} (default `{default}`)"


# --- planner options -------------------------------------------------------------------------------------------------


def planner_options() -> Iterator[str]:
    yield "\n| option | values | controls | applies to |"
    yield "| --- | --- | --- | --- |"
    for option in option_table():
        values = _values(option.type, option.default)
        yield f"| [`{option.name}`](#{_anchor(option.name)}) | {values} | {_cell(option.help)} | {option.applies_to} |"
    yield ""


def _anchor(name: str) -> str:
    return "rank-and-schedule" if name in ("rank", "schedule") else name


def _cell(text: str) -> str:
    return re.sub(r" Values: [^|]*$", "", " ".join(text.split())).replace("|", "\\|")


# --- pages -----------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "python api": python_api,
    "commands": commands,
    "exit codes": exit_codes,
    "planner options": planner_options,
}
PAGES = ("python-api.md", "command-line.md", "options.md")


def render(page: Path) -> str:
    """Return the text of a page with its generated parts as they should be now."""

    def part(match: re.Match[str]) -> str:
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(PARTS[match["name"]]()))
        return f"{match[1]}{body.rstrip()}\n\n{match[3]}"

    return PART.sub(part, page.read_text(encoding="utf-8"))


def main() -> None:
    for name in PAGES:
        page = DOCS / name
        page.write_text(render(page), encoding="utf-8")


if __name__ == "__main__":
    main()
