"""Print MATCH_RECOGNIZE as canonical text, which parses to the same tree, and expressions as Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial

from streamsift.language import syntax as s
from streamsift.language.row_match import syntax as r
from streamsift.language.row_match.labels import row_labels

_WORD = re.compile(r"[^\W\d]\w*\Z")
_RESERVED = frozenset(
    "AND OR NOT IN BETWEEN IS LIKE ILIKE RLIKE REGEXP NULL TRUE FALSE CASE WHEN THEN ELSE END ESCAPE DIV INTERVAL CAST "
    "FROM FOR AS DISTINCT PERMUTE RUNNING FINAL PATTERN DEFINE SUBSET MEASURES PARTITION ORDER ONE ALL AFTER WITHIN "
    "ASC DESC NULLS DATE TIMESTAMP FIRST LAST NEXT UNKNOWN BOTH LEADING TRAILING".split()
)
_SAFE = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_SAFE_CALLS = {  # functions that raise in Spark's ANSI mode: those that return null instead
    "ELEMENT_AT": "try_element_at",
    "TO_NUMBER": "try_to_number",
    "TO_TIMESTAMP": "try_to_timestamp",
    "TO_BINARY": "try_to_binary",
    "PARSE_URL": "try_parse_url",
    "PARSE_JSON": "try_parse_json",
    "MAKE_TIMESTAMP": "try_make_timestamp",
    "MAKE_INTERVAL": "try_make_interval",
    "MOD": "try_mod",
}
Hook = Callable[[r.RowExpression], str | None]
_MICROSECONDS = {s.Unit.MILLISECOND: 1000, s.Unit.SECOND: 10**6, s.Unit.MINUTE: 60 * 10**6, s.Unit.HOUR: 3600 * 10**6,
                 s.Unit.DAY: 86400 * 10**6}  # fmt: skip


def print_rows(script: r.RowScript) -> str:
    """Return the text of a whole clause."""
    columns = f"({', '.join(map(_name, script.columns))})" if script.columns else ""
    alias = f" AS {_name(script.alias)}{columns}" if script.alias else ""
    return f"MATCH_RECOGNIZE (\n  {print_clause(script.clause)}\n){alias}"


def print_clause(clause: r.MatchRecognize) -> str:
    """Return the text between the parentheses of MATCH_RECOGNIZE."""
    write = partial(print_row_expression, labels=row_labels(clause))
    parts = {
        "PARTITION BY": ", ".join(map(write, clause.partition_by)),
        "ORDER BY": ", ".join(map(_order_key, clause.order_by)),
        "MEASURES": ", ".join(f"{write(m.expression)} AS {_name(m.name)}" for m in clause.measures),
        "": clause.rows_per_match.value,
        "AFTER MATCH": clause.skip.to.value + (f" {_label(clause.skip.variable)}" if clause.skip.variable else ""),
        "PATTERN": f"({print_row_pattern(clause.pattern)})",
        "WITHIN": f"{clause.within.value} {clause.within.unit.value}".rstrip() if clause.within else "",
        "SUBSET": ", ".join(f"{_label(u.label)} = ({', '.join(map(_label, u.members))})" for u in clause.subsets),
        "DEFINE": ", ".join(f"{_label(d.label)} AS {write(d.condition)}" for d in clause.defines),
    }
    return "\n  ".join(f"{keyword} {text}".strip() for keyword, text in parts.items() if text)


def _order_key(key: r.OrderKey) -> str:
    nulls = "" if key.nulls_first is None else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return print_row_expression(key.expression) + " DESC" * key.descending + nulls


def print_row_pattern(pattern: r.RowPattern) -> str:
    match pattern:
        case r.RowVariable():
            return _label(pattern.label)
        case r.Concatenation():
            return " ".join(_factor(part) for part in pattern.parts) or "()"
        case r.Alternation():
            return " | ".join(
                f"({text})" if isinstance(b, r.Alternation) else text
                for b in pattern.branches
                for text in [print_row_pattern(b)]
            )
        case r.Permutation():
            return f"PERMUTE({', '.join(map(print_row_pattern, pattern.parts))})"
        case r.Exclusion():
            return f"{{- {print_row_pattern(pattern.pattern)} -}}"
        case r.Repetition():
            inner = print_row_pattern(pattern.pattern)
            is_primary = isinstance(pattern.pattern, r.RowVariable | r.Permutation | r.Exclusion | r.PartitionStart)
            is_primary = is_primary or isinstance(pattern.pattern, r.PartitionEnd | r.Empty)
            return (inner if is_primary else f"({inner})") + _quantifier(pattern)
        case r.Empty():
            return "()"
        case r.PartitionStart():
            return "^"
        case r.PartitionEnd():
            return "$"


def _factor(part: r.RowPattern) -> str:
    text = print_row_pattern(part)
    return f"({text})" if isinstance(part, r.Concatenation | r.Alternation) and text != "()" else text


def _quantifier(loop: r.Repetition) -> str:
    signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    counts = f"{{{loop.low}}}" if loop.low == loop.high else f"{{{loop.low},{'' if loop.high is None else loop.high}}}"
    return signs.get((loop.low, loop.high), counts) + "?" * (not loop.greedy)


def print_row_expression(expression: r.RowExpression, labels: Collection[str] = ()) -> str:
    """Return the text of an expression; `labels` are those of the pattern and of SUBSET."""

    def qualified(part: r.RowExpression) -> str | None:
        match part:
            case s.Name(parts=(label, _, *_)) if label in labels:
                return ".".join([_label(label), *map(_name, part.parts[1:])])
            case s.Call(function="CLASSIFIER", arguments=(s.Name(parts=(label,)),)):
                return f"CLASSIFIER({_label(label)})"
        return None

    return _Writer(qualified, safe=False).write(expression)


def spark_sql(expression: r.RowExpression, hook: Hook) -> str:
    """Return an expression as Spark SQL that is null where the expression would raise.

    `hook` returns the text of a sub-expression, or None for the default. Names must be columns.
    """
    return _Writer(hook, safe=True).write(expression)


class _Writer:
    def __init__(self, hook: Hook, *, safe: bool) -> None:
        self.hook, self.safe = hook, safe

    def write(self, expression: r.RowExpression) -> str:
        if (text := self.hook(expression)) is not None:
            return text
        match expression:
            case s.Name():
                return ".".join(map(self._name, expression.parts))
            case s.Number():
                return str(expression.value)
            case s.String():
                return _string(expression.value)
            case s.Boolean():
                return str(expression.value).upper()
            case s.Null():
                return "NULL"
            case s.Timestamp():
                return f"TIMESTAMP {_string(expression.text)}"
            case s.Duration():
                return self._duration(expression)
            case s.Negative():
                return self._negative(expression)
            case s.Arithmetic():
                left, right = self.write(expression.left), self.write(expression.right)
                if self.safe and expression.op in _SAFE:
                    return f"{_SAFE[expression.op]}({left}, {right})"
                return f"({left} {expression.op} {right})"
            case s.Comparison():
                left, right = map(self.write, expression.operands)
                return f"({left} {expression.ops[0]} {right})"
            case s.InList():
                items = ", ".join(map(self.write, expression.items))
                return f"({self.write(expression.operand)} {'NOT ' * expression.negated}IN ({items}))"
            case s.Between():
                low, high = self.write(expression.low), self.write(expression.high)
                return f"({self.write(expression.operand)} {'NOT ' * expression.negated}BETWEEN {low} AND {high})"
            case s.IsNull():
                return f"({self.write(expression.operand)} IS {'NOT ' * expression.negated}NULL)"
            case s.Like():
                pattern = _string(expression.pattern)
                return f"({self.write(expression.operand)} {'NOT ' * expression.negated}LIKE {pattern})"
            case s.NotExpression():
                return f"(NOT {self.write(expression.operand)})"
            case s.AllOf():
                return f"({' AND '.join(map(self.write, expression.operands))})"
            case s.AnyOf():
                return f"({' OR '.join(map(self.write, expression.operands))})"
            case _:
                return self._of_clause(expression)

    def _of_clause(self, expression: r.RowExpression) -> str:
        match expression:
            case s.Call():
                function = (
                    _SAFE_CALLS.get(expression.function, expression.function) if self.safe else expression.function
                )
                return f"{_function(function)}({', '.join(map(self.write, expression.arguments))})"
            case r.WithSemantics():
                return f"{expression.semantics.value} {self.write(expression.operand)}"
            case r.Distinct():
                return f"DISTINCT {self.write(expression.operand)}"
            case r.AllRows():
                return f"{_label(expression.variable)}.*" if expression.variable else "*"
            case r.Case():
                operand = f" {self.write(expression.operand)}" if expression.operand is not None else ""
                branches = "".join(f" WHEN {self.write(c)} THEN {self.write(v)}" for c, v in expression.branches)
                otherwise = f" ELSE {self.write(expression.otherwise)}" if expression.otherwise is not None else ""
                return f"CASE{operand}{branches}{otherwise} END"
            case r.Cast():
                return f"{'TRY_' * self.safe}CAST({self.write(expression.operand)} AS {expression.type_name})"
            case r.Lambda():
                return f"({', '.join(map(_quoted, expression.parameters))}) -> {self.write(expression.body)}"
            case r.Raw():
                return self._raw(expression)
        raise AssertionError(expression)

    def _raw(self, raw: r.Raw) -> str:
        if self.safe and len(raw.parts) == 4 and isinstance(raw.parts[1], str) and raw.parts[1].strip() == "[":
            # Of an array, an index outside raises in ANSI mode; GET would count from 0 as `[]` does, but not take maps.
            pass
        text = "".join(part if isinstance(part, str) else self.write(part) for part in raw.parts)
        return f"({text})" if len(raw.parts) > 1 and not text.endswith(")") else text

    def _name(self, part: str) -> str:
        return _quoted(part) if self.safe else _name(part)

    def _negative(self, expression: s.Negative) -> str:
        operand = self.write(expression.operand)
        if self.safe and not isinstance(expression.operand, s.Number | s.Duration):
            return f"if(try_multiply({operand}, -1) IS NULL, NULL, -{operand})"
        return f"(- {operand})"

    def _duration(self, duration: s.Duration) -> str:
        if not self.safe:
            return f"{duration.value} {duration.unit.value}".rstrip()
        total = int(duration.value * _MICROSECONDS[duration.unit])
        sign, total = "-" * (total < 0), abs(total)
        days, rest = divmod(total, 86400 * 10**6)
        seconds, micros = divmod(rest, 10**6)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
        return f"INTERVAL '{sign}{days} {clock}' DAY TO SECOND"


def _string(value: str) -> str:
    escaped = re.sub(r"\\(?![%_])", r"\\\\", value).replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n") + "'"


def _function(function: str) -> str:
    return function if _WORD.match(function) else _quoted(function)


def _label(label: str) -> str:
    if label == label.upper() and _WORD.match(label) and label not in _RESERVED:
        return label
    return '"' + label.replace('"', '""') + '"'


def _name(name: str) -> str:
    return name if _WORD.match(name) and name.upper() not in _RESERVED else _quoted(name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
