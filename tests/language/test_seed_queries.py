"""Test that every query of the papers survives printing and parsing, and is valid without a schema."""

from __future__ import annotations

import pytest

from language.seed_queries import SEED_QUERIES
from streamsift.language import parse, print_script
from streamsift.logical.binder import sketch


@pytest.mark.parametrize("text", SEED_QUERIES)
def test_seed_query_survives_printing(text: str) -> None:
    script = parse(text)
    assert parse(print_script(script)) == script


@pytest.mark.parametrize("text", SEED_QUERIES)
def test_seed_query_makes_sense(text: str) -> None:
    sketch(parse(text))


def test_there_are_as_many_as_the_papers_print() -> None:
    assert len(SEED_QUERIES) == len(set(SEED_QUERIES)) >= 80
