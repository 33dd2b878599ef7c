"""Test that the table of planner options and the keywords for type checkers agree."""

from __future__ import annotations

from typing import get_args, get_type_hints

from streamsift.physical.plan import PlannerKeywords, option_table


def test_keywords_are_those_of_the_table() -> None:
    keywords = {name: get_args(values) for name, values in get_type_hints(PlannerKeywords).items()}
    assert keywords == {option.name: tuple(value.value for value in option.type) for option in option_table()}


def test_an_option_has_a_default_and_help() -> None:
    for option in option_table():
        assert option.default in list(option.type)
        assert option.help.endswith(".")
