"""Number the variables of PATTERN, resolve SUBSET and SKIP TO, and derive what is certain about every match."""

from __future__ import annotations

from streamsift.errors import QueryError, nearest
from streamsift.language.row_match import syntax as r
from streamsift.language.row_match.labels import pattern_variables
from streamsift.logical.row_match import bound as m

_MAX_REPEATS = 2**31 - 1


def number_variables(clause: r.MatchRecognize) -> dict[str, str]:
    """Return the labels of the pattern in order of first appearance, each as written."""
    written: dict[str, str] = {}
    for variable in pattern_variables(clause.pattern):
        written.setdefault(variable.label, variable.written or variable.label)
    return written


def resolve_labels(clause: r.MatchRecognize, numbers: dict[str, int], text: str) -> dict[str, tuple[int, ...]]:
    """Return the variables that each label stands for: itself, or the members of a subset."""
    labels: dict[str, tuple[int, ...]] = {label: (number,) for label, number in numbers.items()}
    unions = {subset.label for subset in clause.subsets}
    for subset in clause.subsets:
        if subset.label in numbers:
            hint = "give the subset another name."
            raise QueryError(f"`{subset.label}` is a variable of the pattern", text, subset.span, hint)
        if subset.label in labels:
            raise QueryError(f"the subset `{subset.label}` is defined twice", text, subset.span, "remove one of them.")
        for member in subset.members:
            if member not in numbers:
                what = "a subset, not a variable" if member in unions else "not a variable of the pattern"
                message = f"`{member}` is {what}"
                raise QueryError(message, text, subset.span, nearest(member, numbers))
        labels[subset.label] = tuple(sorted({numbers[member] for member in subset.members}))
    return labels


def bind_pattern(pattern: r.RowPattern, numbers: dict[str, int]) -> m.BoundRowPattern:
    def bind(part: r.RowPattern) -> m.BoundRowPattern:
        match part:
            case r.RowVariable():
                return m.Label(numbers[part.label], span=part.span)
            case r.Concatenation():
                return m.Then(tuple(map(bind, part.parts)), span=part.span)
            case r.Alternation():
                return m.Either(tuple(map(bind, part.branches)), span=part.span)
            case r.Permutation():
                return m.Permute(tuple(map(bind, part.parts)), span=part.span)
            case r.Exclusion():
                return m.Exclude(bind(part.pattern), span=part.span)
            case r.Repetition():
                return m.Loop(bind(part.pattern), part.low, part.high, part.greedy, span=part.span)
            case r.Empty():
                return m.Then((), span=part.span)
            case r.PartitionStart():
                return m.AtStart(span=part.span)
            case r.PartitionEnd():
                return m.AtEnd(span=part.span)

    return bind(pattern)


def excludes(pattern: m.BoundRowPattern) -> m.Exclude | None:
    """Return the first exclusion of a pattern."""
    match pattern:
        case m.Exclude():
            return pattern
        case m.Then(parts=parts) | m.Permute(parts=parts) | m.Either(branches=parts):
            return next((exclusion for part in parts if (exclusion := excludes(part)) is not None), None)
        case m.Loop():
            return excludes(pattern.part)
    return None


def certain_skip_error(pattern: m.BoundRowPattern, members: tuple[int, ...], *, is_first: bool) -> str:
    """Return why SKIP TO FIRST (or LAST) fails for every match; an empty string if it may succeed.

    After an empty match, the next one begins at the next row, wherever the clause skips to.
    """
    firsts, may_be_empty = _firsts(pattern)
    if may_be_empty:
        return ""
    if _most(pattern, members) == 0:
        return "is bound in no match"
    if firsts <= set(members) and (is_first or _most(pattern, members) == 1):
        return "is the first row of every match"
    return ""


def _most(pattern: m.BoundRowPattern, members: tuple[int, ...]) -> float:
    """Return the largest number of rows of a match that may have one of the labels."""
    match pattern:
        case m.Label():
            return float(pattern.variable in members)
        case m.Then(parts=parts) | m.Permute(parts=parts):
            return sum((_most(part, members) for part in parts), 0.0)
        case m.Either():
            return max((_most(part, members) for part in pattern.branches), default=0.0)
        case m.Exclude():
            return _most(pattern.part, members)
        case m.Loop():
            inner = _most(pattern.part, members)
            return inner * (float("inf") if pattern.high is None else pattern.high) if inner else 0.0
    return 0.0


def _firsts(pattern: m.BoundRowPattern) -> tuple[set[int], bool]:
    """Return the variables that the first row of a match may have, and whether it may have no row."""
    match pattern:
        case m.Label():
            return {pattern.variable}, False
        case m.Then():
            variables: set[int] = set()
            for part in pattern.parts:
                firsts, empty = _firsts(part)
                variables |= firsts
                if not empty:
                    return variables, False
            return variables, True
        case m.Either(branches=parts) | m.Permute(parts=parts):
            each = [_firsts(part) for part in parts]
            combine = any if isinstance(pattern, m.Either) else all
            return set().union(*(firsts for firsts, _ in each)), combine(empty for _, empty in each)
        case m.Exclude():
            return _firsts(pattern.part)
        case m.Loop():
            firsts, empty = _firsts(pattern.part)
            return (set(), True) if pattern.high == 0 else (firsts, empty or pattern.low == 0)
    return set(), True
