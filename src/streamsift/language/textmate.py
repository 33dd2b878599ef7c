"""Generate the TextMate grammar of the query language, for editors.

`editors/streamsift.tmLanguage.json` is the output of `grammar`. It uses the words of `keywords`, as the parser does.
"""

from __future__ import annotations

from typing import Any

from streamsift.language import keywords as k
from streamsift.language.highlight import NUMBER, one_of

_NOT_AFTER_DOT = r"(?<!\.)(?<!\. )\b"


def grammar() -> dict[str, Any]:
    """Return the grammar as a JSON document."""
    functions = one_of({*k.FUNCTIONS, *k.GROUP_FUNCTIONS})
    return {
        "name": "Streamsift",
        "scopeName": "source.streamsift",
        "fileTypes": ["streamsift"],
        "patterns": [{"include": "#clauses"}, {"include": "#parts"}],
        "repository": {
            "clauses": {
                "patterns": [
                    _rule("keyword.control", rf"\b(?:PARTITION|GROUP)\s+BY\b|\bEMIT\s+{one_of(k.EMIT_MODES)}"),
                    _rule("keyword.control", rf"\bRETURN\s+TOP\b(?=\s+\d)|\bMERGE\s+{one_of(k.MERGES)}|\bEXCLUSIVE\b"),
                    _rule("keyword.control", _NOT_AFTER_DOT + one_of({*k.CLAUSE_WORDS, "SEQ"})),
                    _rule("support.function", r"\bCOUNT\b"),
                ]
            },
            "parts": {
                "patterns": [
                    {"name": "comment.line.double-dash.streamsift", "match": "--.*$"},
                    *(_quoted(*each) for each in (("single", "'"), ("double", '"'))),
                    {"name": "variable.other.quoted.streamsift", "match": "`(?:[^`]|``)+`"},
                    _rule("constant.numeric", rf"(?<!\w){NUMBER}(?:\s*{one_of(k.UNIT_OF)})?"),
                    _rule("keyword.control", _NOT_AFTER_DOT + one_of(k.PATTERN_CALLS) + r"(?=\s*\()"),
                    _rule("keyword.control", _NOT_AFTER_DOT + one_of(k.EVENT_WORDS) + r"(?=\s+[\w`])"),
                    _rule("keyword.operator.word", _NOT_AFTER_DOT + one_of(k.OPERATOR_WORDS)),
                    _rule("constant.language", _NOT_AFTER_DOT + one_of(k.CONSTANT_WORDS)),
                    _rule("storage.type", r"\bTIMESTAMP(?=\s*['\"])"),
                    _rule("support.function", rf"\b{functions}(?=\s*\()|\b{one_of(k.OBJECTIVES)}(?=\s*\[)"),
                    _rule("keyword.operator", r"!=|<>|<=|>=|\|\||[=<>!|&+\-*/%^]"),
                    *(_bracket(*each) for each in ((r"\(", r"\)"), (r"\[", r"\]"), (r"\{", r"\}"))),
                ]
            },
        },
    }


def _rule(scope: str, pattern: str) -> dict[str, str]:
    return {"name": f"{scope}.streamsift", "match": f"(?i){pattern}"}


def _quoted(kind: str, quote: str) -> dict[str, Any]:
    return {
        "name": f"string.quoted.{kind}.streamsift",
        "begin": quote,
        "end": f"{quote}(?!{quote})",
        "patterns": [{"name": "constant.character.escape.streamsift", "match": quote * 2}],
    }


def _bracket(opening: str, closing: str) -> dict[str, Any]:
    """Return a rule for brackets, inside which the words of clauses are names."""
    return {"begin": opening, "end": closing, "patterns": [{"include": "#parts"}]}
