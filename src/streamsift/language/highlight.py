"""Highlight queries with Pygments, in documents, notebooks and terminals.

The lexer is registered as the entry points `streamsift` and `query`. It knows the places where a word is a keyword:
clauses only outside brackets, nothing after a dot. So `Return` in `SEQ(Return r, Update u)` is a class name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import RegexLexer, bygroups, include
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from streamsift.language import keywords as k


def one_of(words: Iterable[str]) -> str:
    """Return a regular expression for one of the words, the longest first."""
    return rf"(?:{'|'.join(sorted(words, key=lambda word: (-len(word), word)))})\b"


_WORD, _QUOTED = r"[^\W\d]\w*", r"`(?:[^`\n]|``)+`"
_NAME = rf"(?:{_QUOTED}|{_WORD})"
_QUANTIFIER = r"(\s*)(\+|\*|\[\s*\d+\s*\])"
NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?"
_NO_VARIABLE = one_of(k.EVERYWHERE_WORDS)  # names that cannot follow a class as its variable
_NO_VARIABLE_OUTSIDE = one_of(k.CLAUSE_WORDS | k.EVERYWHERE_WORDS | {"SEQ"})


def _variable_rules(excluded: str) -> list[Any]:
    """Return the rules for `class quantifier variable`, whose variable is not one of the excluded keywords."""
    variable = rf"((?!{excluded}){_NAME})(?!\s*\.)"
    return [
        (rf"(?!{excluded})({_NAME}){_QUANTIFIER}(\s*){variable}", _QUANTIFIED),
        (rf"(?!{excluded})({_NAME})(\s+){variable}", bygroups(Name.Class, Whitespace, Name.Variable)),
        (rf"(?!{excluded}){_NAME}", Name.Class),
    ]


_QUANTIFIED = bygroups(Name.Class, Whitespace, Operator, Whitespace, Name.Variable)


class QueryLexer(RegexLexer):
    """Pygments lexer of the query language.

    States: `root` is a pattern, `clause` a clause after it; `pattern` and `value` are brackets inside them.
    """

    name = "Streamsift"
    aliases: ClassVar[list[str]] = ["streamsift", "query"]
    filenames: ClassVar[list[str]] = ["*.streamsift"]
    mimetypes: ClassVar[list[str]] = ["text/x-streamsift"]
    flags = re.IGNORECASE

    tokens: ClassVar[dict[str, list[Any]]] = {
        "blank": [(r"\s+", Whitespace), (r"--[^\n]*", Comment.Single)],
        "literals": [
            (r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", String),
            (rf"({NUMBER})(\s*)({one_of(k.UNIT_OF)})", bygroups(Number, Whitespace, Keyword.Type)),
            (NUMBER, Number),
            (r"(TIMESTAMP)(\s+)(?=['\"])", bygroups(Keyword.Type, Whitespace)),
            (rf"(\.)(\s*)({_NAME})", bygroups(Punctuation, Whitespace, Name.Attribute)),
            (rf"(\[)({_NAME})(\])", bygroups(Punctuation, Name.Attribute, Punctuation)),
            (rf"{_NAME}(?=\s*\.)", Name.Variable),
            (one_of(k.CONSTANT_WORDS), Keyword.Constant),
        ],
        "operators": [
            (one_of(k.OPERATOR_WORDS), Operator.Word),
            (r"!=|<>|<=|>=|\|\||[=<>!|&+\-*/%^]", Operator),
            (r"[;,]", Punctuation),
        ],
        "pattern_parts": [
            include("blank"),
            (one_of(k.PATTERN_CALLS) + r"(?=\s*\()", Keyword),
            (rf"{one_of(k.EVENT_WORDS)}(?=\s+(?!{_NO_VARIABLE}){_NAME})", Keyword),
            include("literals"),
            include("operators"),
            (r"[(\[{]", Punctuation, "pattern"),
        ],
        "root": [
            (r"PATTERN\b", Keyword),
            (rf"(SEQ)(\s+)({_NAME})(\s*)(=)", bygroups(Keyword, Whitespace, Name.Class, Whitespace, Operator)),
            (r"SEQ\b", Keyword),
            (rf"(?={one_of(k.CLAUSE_WORDS)})", Whitespace, "clause"),
            include("pattern_parts"),
            *_variable_rules(_NO_VARIABLE_OUTSIDE),
            (r"[)\]}]", Punctuation),
        ],
        "pattern": [
            (r"[)\]}]", Punctuation, "#pop"),
            include("pattern_parts"),
            *_variable_rules(_NO_VARIABLE),
        ],
        "clause": [
            (r"(?=(?:PATTERN|SEQ)\b)", Whitespace, "#pop"),
            (rf"(MERGE)(\s+)({one_of(k.MERGES)})", bygroups(Keyword, Whitespace, Name.Function)),
            (r"EXCLUSIVE\b", Keyword),
            (r"(PARTITION|GROUP)(\s+)(BY)\b", bygroups(Keyword, Whitespace, Keyword)),
            (rf"(EMIT)(\s+)({one_of(k.EMIT_MODES)})", bygroups(Keyword, Whitespace, Keyword)),
            (r"(RETURN)(\s+)(TOP)(?=\s+\d)", bygroups(Keyword, Whitespace, Keyword)),
            (one_of(k.CLAUSE_WORDS), Keyword),
            include("values"),
            (r"[)\]}]", Punctuation),
        ],
        "value": [(r"[)\]}]", Punctuation, "#pop"), include("values")],
        "values": [
            include("blank"),
            include("literals"),
            include("operators"),
            (rf"{_WORD}(?=\s*\()", Name.Function),
            (rf"{one_of(k.OBJECTIVES)}(?=\s*\[)", Name.Function),
            (r"COUNT\b", Name.Function),
            (r"[(\[{]", Punctuation, "value"),
            (_NAME, Name),
        ],
    }


def highlight_html(text: str) -> str:
    """Return a query as an HTML `pre` element with inline colors, for notebooks."""
    return str(highlight(text, QueryLexer(), HtmlFormatter(noclasses=True, nobackground=True)))
