"""Test the Pygments lexer and the TextMate grammar against the parser."""

from __future__ import annotations

import json
import os
import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from lark import Token
from pygments.token import Error, Keyword, Name, Operator

from language.seed_queries import SEED_QUERIES
from streamsift.errors import QuerySyntaxError
from streamsift.language import parse
from streamsift.language.highlight import QueryLexer, highlight_html
from streamsift.language.keywords import EVERYWHERE_WORDS, GRAMMAR_WORDS
from streamsift.language.parser import _lark
from streamsift.language.textmate import grammar

ROOT = Path(__file__).resolve().parents[2]
TEXTMATE = ROOT / "editors" / "streamsift.tmLanguage.json"
CASES = [
    case["query"]
    for path in sorted((ROOT / "tests" / "cases").glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]


def is_keyword(token: Token) -> bool:
    return token.type in GRAMMAR_WORDS or token.type.startswith("SEQ_") or token.type.endswith("_CALL")


def parsed_keywords(text: str) -> set[int]:
    return {token.start_pos for token in _lark().lex(text) if is_keyword(token) and token.start_pos is not None}


def highlighted_keywords(text: str) -> set[int]:
    # EMIT modes, units and MERGE functions are keywords to the reader, and names to the parser.
    tokens = QueryLexer().get_tokens_unprocessed(text)
    return {
        start
        for start, kind, value in tokens
        if value.strip() and (kind in Keyword or kind is Operator.Word) and is_grammar_word(value)
    }


def is_grammar_word(word: str) -> bool:
    return word.upper() in GRAMMAR_WORDS | {"SEQ"}


@pytest.mark.parametrize("text", [*SEED_QUERIES, *CASES])
def test_keywords_are_those_of_the_parser(text: str) -> None:
    assert not [value for _, kind, value in QueryLexer().get_tokens_unprocessed(text) if kind is Error]
    try:
        parse(text)
    except QuerySyntaxError:
        return
    assert highlighted_keywords(text) == parsed_keywords(text)


def test_keywords_are_names_in_brackets_and_after_a_dot() -> None:
    text = "SEQ(Return r, Update u, Large) WHERE r.where = u.`x y` RETURN r"
    names = [value for _, kind, value in QueryLexer().get_tokens_unprocessed(text) if kind in Name]
    assert names == ["Return", "r", "Update", "u", "Large", "r", "where", "u", "`x y`", "r"]
    assert "<span" in highlight_html(text)


def test_the_lexer_is_installed_as_an_entry_point() -> None:
    (lexer,) = entry_points(group="pygments.lexers", name="streamsift")
    assert lexer.load() is QueryLexer
    assert {"streamsift", "query"} <= set(QueryLexer.aliases)


def test_the_textmate_grammar_is_up_to_date() -> None:
    text = json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("STREAMSIFT_GOLDENS") == "rewrite":
        TEXTMATE.write_text(text, encoding="utf-8")
    assert TEXTMATE.read_text(encoding="utf-8") == text
    patterns = re.findall(r'"match": (".*")', text)
    assert len(patterns) > 10
    for pattern in patterns:
        re.compile(json.loads(pattern))
    assert all(word in text for word in EVERYWHERE_WORDS)
