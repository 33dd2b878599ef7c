"""The page of refusals is what the engine says, and lists every place in the code that refuses."""

from __future__ import annotations

import os

import pytest

from refusals import REFUSALS, ROOT, Refusal, page, place_of, places

PAGE = ROOT / "docs" / "refusals.md"


def test_the_page_has_the_messages_as_they_are() -> None:
    if os.environ.get("STREAMSIFT_GOLDENS") == "rewrite":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_no_refusal_is_missing() -> None:
    missing = places() - {place_of(refusal.raised) for refusal in REFUSALS}
    assert not missing, f"give tests/support/refusals.py a query that is refused at {sorted(missing)}"


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.title)
def test_a_refusal_points_at_its_place_and_says_what_to_do(refusal: Refusal) -> None:
    error = refusal.raised()
    assert error.hint
    assert "^" in str(error)
