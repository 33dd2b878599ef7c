"""Run the command line in this process and return its exit code, stdout and stderr."""

from __future__ import annotations

import logging
import sys

import pytest

from streamsift.command import main


def command(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    given, sys.argv = sys.argv, ["streamsift", *words]
    capsys.readouterr()
    try:
        with pytest.raises(SystemExit) as ended:
            main.main()
    finally:
        sys.argv = given
        logging.disable(logging.NOTSET)
    out, error = capsys.readouterr()
    return int(ended.value.code or 0), out, error
