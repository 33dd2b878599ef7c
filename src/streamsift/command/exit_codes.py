"""Report exceptions on standard error and map them to exit codes."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from rich.console import Console
from rich.text import Text

from streamsift.errors import BadInputError, LocatedError, MemoryLimitExceeded, StreamsiftError

TIME_HINT = "name the column with the time of the event, such as --time ts; `streamsift new DATA_FILE` suggests one."

EXIT_CODES = """Exit codes:
  0    success
  1    no matches, with --fail-on-empty; or a closed output pipe
  2    error in the query, an option or a path; or a missing package
  3    the data cannot be read, or does not fit the query
  4    the query exceeds the memory limit
  70   bug in Streamsift
  130  interrupted with Ctrl-C"""

OPTIONS = {  # Python names in messages, and the command-line options for them
    'bad_rows="drop"': "--bad-rows drop",
    "for memory_limit:": "for --memory-limit:",
    "memory_limit= ": "--memory-limit ",
    "memory_limit=": "--memory-limit ",
    "limit=n ": "--limit n ",
    "batches() ": "--output FILE ",
}


class ExitCode(IntEnum):
    """The exit codes of commands, which scripts rely on."""

    NO_MATCH = 1  # with --fail-on-empty
    BROKEN_PIPE = 1  # the reader of the output, such as `head`, has closed it: nothing is reported
    BAD_QUERY = 2  # also bad options, missing files and missing packages
    BAD_DATA = 3  # the data cannot be read, or does not fit the query
    TOO_LARGE = 4  # the query exceeds the memory limit
    BUG = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 + SIGINT


def run_command(command: Callable[[], Any], stderr: Console) -> int:
    """Run a command, report its exception on stderr and return the exit code."""
    try:
        code = command()
        sys.stdout.flush()  # so that a failed write is reported here, not when Python exits
        if code == ExitCode.INTERRUPTED:  # typer turns a KeyboardInterrupt into this code
            stderr.print("interrupted")
        return code or 0
    except StreamsiftError as error:
        return _report(stderr, type(error).__name__, error)
    except BrokenPipeError:
        _discard_output()
        return ExitCode.BROKEN_PIPE
    except OSError as error:
        _discard_output()
        return _report(stderr, "SetupError", error)  # such as a full disk or a missing permission
    except Exception as error:
        # Click's usage errors and errors from Spark workers are for users; anything else is a bug.
        if (usage := getattr(error, "format_message", None)) is not None:
            return _report_usage(stderr, usage(), getattr(error, "ctx", None))
        if (inner := _worker_error(str(error))) is not None:
            return _report(stderr, *inner)
        traceback.print_exc()
        stderr.print("This is a bug in Streamsift. Please report it with the lines above.")
        return ExitCode.BUG


def _discard_output() -> None:
    """Discard unwritten output if it cannot be written, because Python would try again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_usage(stderr: Console, message: str, context: Any) -> int:
    """Report an error of Click in the grammar of our own messages."""
    if message:  # empty if the help was shown
        message = message.replace("Value error, ", "")
        what, _, suggestion = message.partition(". ")
        usage = f"run `{getattr(context, 'command_path', 'streamsift')} --help` for usage."
        hint = TIME_HINT if "Missing option '--time'" in message else _lowered(suggestion) or usage
        _report(stderr, "usage", f"{_lowered(what.removesuffix('.'))}\nHint: {hint}")
    return ExitCode.BAD_QUERY


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _report(stderr: Console, name: str, error: Exception | str) -> int:
    message = str(error)
    for called, option in OPTIONS.items():
        message = message.replace(called, option)
    if "--json" in sys.argv:
        print(json.dumps({"error": name, **_parts(error, message)}, ensure_ascii=False), file=sys.stderr)
    else:
        # Not wrapped, so that carets stay in place.
        stderr.print(Text.assemble((f"{name}: ", "bold red"), message), soft_wrap=True)
    codes = {BadInputError.__name__: ExitCode.BAD_DATA, MemoryLimitExceeded.__name__: ExitCode.TOO_LARGE}
    return codes.get(name, ExitCode.BAD_QUERY)


def _parts(error: Exception | str, message: str) -> dict[str, Any]:
    """Return the message in parts for `--json`. Lines and columns count from 1."""
    if not isinstance(error, LocatedError):
        return {"message": message}
    before = error.text[: error.span.start]
    return {
        "message": error.message,
        "line": before.count("\n") + 1,
        "column": len(before) - before.rfind("\n"),
        "length": error.span.end - error.span.start,
        "hint": error.hint,
    }


def _worker_error(text: str) -> tuple[str, str] | None:
    """Extract the class and message of a Streamsift error from Spark's report of a failed worker."""
    report = re.search(r"streamsift\.errors\.(\w+): (.*?)(?:\n\n|\n SQLSTATE|\nJVM stacktrace|\Z)", text, re.DOTALL)
    return (report[1], report[2].strip()) if report else None
