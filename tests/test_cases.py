"""The case files, by the kernels: right rows, or a refusal that says where."""

from __future__ import annotations

import pytest

import streamsift as ss
from casefile import Case, assert_rows, load_cases

CASES = load_cases()
ROWS = [case for case in CASES if case.error is None]
ERRORS = [case for case in CASES if case.error is not None]


def run_local(case: Case) -> list[dict[str, object]]:
    result = ss.query(case.query).run_local(case.table(), time=case.time, type=case.type, order=case.order)
    return result.to_pylist()


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.id)
def test_answered_case(case: Case) -> None:
    assert_rows(case, run_local(case))


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case.id)
def test_error_case(case: Case) -> None:
    assert case.error is not None
    with pytest.raises(getattr(ss, case.error)) as raised:
        run_local(case)
    assert case.message in str(raised.value)
