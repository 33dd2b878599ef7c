"""Query text to syntax tree and back."""

from streamsift.language.parser import parse, parse_clauses, parse_expression, parse_pattern
from streamsift.language.printer import print_expression, print_pattern, print_script
from streamsift.language.syntax import Script

__all__ = [
    "Script",
    "parse",
    "parse_clauses",
    "parse_expression",
    "parse_pattern",
    "print_expression",
    "print_pattern",
    "print_script",
]
