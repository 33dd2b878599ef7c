"""Draw the algebraic plan of a pattern: its operators, their intervals and where each predicate is evaluated.

The operators are those of "Processing Nested Complex Sequence Pattern Queries over Event Streams" (sections 2.3 and 3):
WinSeq, WinAnd, WinOr, and `!` for a negated sub-pattern. The tree has the shape of the pattern in the query. The lines
under a node come from the steps and negations of the plan, so they show what runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from streamsift.language.printer import print_quantifier
from streamsift.logical import bound as b
from streamsift.physical.explain.words import describe_group_filter, describe_limit, describe_tests, predicates_of
from streamsift.physical.plan import DetectPlan, Edge, GroupNegation, KleeneGroups, Limit, Negation, Step, ordered_steps

Operator = b.Sequence | b.Conjunction | b.Disjunction
Chain = tuple[Step, ...]  # all steps that are bound when a negation is checked, those of enclosing patterns first
Path = tuple[b.Node, ...]  # the nodes from below the root to a node

_NAMES = {b.Sequence: "WinSeq", b.Conjunction: "WinAnd", b.Disjunction: "WinOr"}
_WINDOW_EDGES = {Edge.WINDOW_START: "window start", Edge.WINDOW_END: "window end", Edge.MATCH_END: "match end"}


def describe_algebra(pattern: b.Node, plan: DetectPlan) -> Iterator[str]:
    """Yield the tree, one node per line, with the predicates and negations evaluated at each node."""
    tree = _Tree(pattern, plan)
    root = tree.draw(pattern, (), b.ROOT_SCOPE)
    return _lines(replace(root, details=(*root.details, *tree.of_groups(b.ROOT_SCOPE))), "", "")


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A node ready to be drawn."""

    head: str
    details: tuple[str, ...] = ()
    children: tuple[_Drawn, ...] = ()


def _lines(node: _Drawn, first: str, rest: str) -> Iterator[str]:
    yield first + node.head
    for detail in node.details:
        yield f"{rest}{'│' if node.children else ' '}  {detail}"
    for number, child in enumerate(node.children, start=1):
        is_last = number == len(node.children)
        yield from _lines(child, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "))


class _Decision(NamedTuple):
    """A negated sub-pattern in one OR-free form of the plan."""

    negation: Negation | GroupNegation
    chain: Chain  # the steps of the enclosing patterns
    ready: str  # the condition that must hold before it is checked


class _Tree:
    """The pattern and the plan for it.

    The planner expands OR, so a variable has a step, and a negation a place, in several OR-free forms.
    """

    def __init__(self, pattern: b.Node, plan: DetectPlan) -> None:
        # With Kleene variables, this query also has variables for their elements, with the same names.
        self.query = plan.alternatives[0].query
        self.variables = self.query.variables
        numbers = {variable.name: variable.index for variable in plan.query.variables}
        self.owners = {variable.index: numbers.get(variable.name, variable.index) for variable in self.variables}
        # The optimizer has kept an operator if its result has one of the same kind with the same variables.
        self.kept = {(type(node), node.variables) for node in plan.query.pattern.walk() if isinstance(node, Operator)}
        self.paths = dict(_leaf_paths(pattern, ()))
        self.forms: dict[int, list[tuple[Chain, Chain]]] = defaultdict(list)  # by scope: its steps, the whole chain
        self.negations: dict[int, list[_Decision]] = defaultdict(list)  # by scope
        self.groups: dict[int, list[KleeneGroups]] = defaultdict(list)  # by scope
        for alternative in plan.alternatives:
            if alternative.groups is None:
                self.forms[b.ROOT_SCOPE].append((alternative.steps, alternative.steps))
            else:
                self._collect_groups(b.ROOT_SCOPE, alternative.steps, alternative.groups)
            self._collect(alternative.negations, alternative.steps)

    def _collect(self, negations: Iterable[Negation | GroupNegation], chain: Chain, ready: str = "") -> None:
        for negation in negations:
            inner = self.variables[next(iter(negation.steps)).variable].scope
            if isinstance(negation, GroupNegation):
                self.negations[inner].append(_Decision(negation, chain, ready))
                self._collect_groups(inner, (), negation.groups)
            else:
                when = ready or f"{self._names(chain[negation.ready].variable)} is bound"
                self.negations[inner].append(_Decision(negation, chain, when))
                self.forms[inner].append((negation.steps, (*chain, *negation.steps)))
                self._collect(negation.negations, (*chain, *negation.steps))

    def _collect_groups(self, scope: int, steps: Chain, groups: KleeneGroups) -> None:
        """Collect single events, `[n]` groups and maximal groups, for each order that AND allows."""
        self.groups[scope].append(groups)
        self.forms[scope] += ((form, groups.steps) for form in ordered_steps(steps, groups))
        for decided in groups.decided:
            self._collect(decided.all_negations, groups.steps, "all Kleene groups are built")

    def of_groups(self, scope: int) -> Iterator[str]:
        """Yield the conditions on whole Kleene groups."""
        filters = (expression for groups in self.groups[scope] for expression in groups.filters)
        yield from dict.fromkeys(describe_group_filter(expression, self.query) for expression in filters)
        keys = (key for groups in self.groups[scope] for key in groups.keys)
        for columns in dict.fromkeys(tuple(column for _, column in key.members) for key in keys):
            yield f"same    {columns[0].name} in {self._names(*(column.variable for column in columns))}"

    def _names(self, *variables: int) -> str:
        return ", ".join(self.variables[variable].name for variable in variables)

    # --- nodes ---
    def draw(self, node: b.Node, path: Path, scope: int) -> _Drawn:
        inner = node.scope if isinstance(node, b.Negated) else scope
        children = tuple(self.draw(child, (*path, child), inner) for child in node.children)
        match node:
            case b.Leaf():
                return _Drawn(_leaf(self.variables[node.variable]), tuple(self._predicates(node.variable, scope)))
            case b.Negated():
                (child,) = children
                name = child.head if isinstance(node.child, b.Leaf) else child.head.partition(":")[0]
                details = (*self._decision(inner, path), *child.details, *self.of_groups(inner))
                return _Drawn(f"! {name}: {'; '.join(self._limits(inner))}", details, child.children)
            case b.SubPattern():
                window = f": within {node.window.text}" if node.window else ""
                return _Drawn(f"definition {node.name}{window}", (), children)
            case b.Sequence() | b.Conjunction() | b.Disjunction():
                window = f"within {self.query.window.text}" if self.query.window else "no window"
                details = ("operands are searched separately",) if isinstance(node, b.Disjunction) else ()
                if (type(node), node.variables) not in self.kept:
                    details += ("merged into the enclosing operator",)
                return _Drawn(
                    f"{_NAMES[type(node)]}: {self._interval(node, scope) if path else window}", details, children
                )

    # --- intervals ---
    def _interval(self, node: Operator, scope: int) -> str:
        """Return the events between which a positive operator lies."""
        inside = set(node.leaves())
        lower, upper = [], []
        for steps, chain in self.forms[scope]:
            if inside.isdisjoint(self.owners[step.variable] for step in steps):
                continue  # this form has another branch of the OR
            pairs = [
                (self.owners[chain[earlier].variable], self.owners[step.variable])
                for step in steps
                for earlier in step.after
            ]
            before = sorted({earlier for earlier, later in pairs if later in inside} - inside)
            behind = sorted({later for earlier, later in pairs if earlier in inside} - inside)
            lower.append(f"after {self._names(*before)}" if before else "")
            upper.append(f"before {self._names(*behind)}" if behind else "")
        window = "in the window" if self.query.window else ""
        edges = (window, window) if scope == b.ROOT_SCOPE else self._limits(scope)
        ends = (_either(text or edge for text in texts) for texts, edge in zip((lower, upper), edges, strict=True))
        return "; ".join(dict.fromkeys(end for end in ends if end)) or "anywhere"

    def _limits(self, scope: int) -> tuple[str, str]:
        """Return the interval of a negation."""
        decisions = self.negations[scope]
        lower = _either(describe_limit(self.query, each.negation.lower, each.chain) for each in decisions)
        return lower, _either(describe_limit(self.query, each.negation.upper, each.chain) for each in decisions)

    def _decision(self, scope: int, path: Path) -> Iterator[str]:
        """Yield the bounds of a negation, and when and how it is checked."""
        decisions = self.negations[scope]
        limits = [(limit, each.chain) for each in decisions for limit in (each.negation.lower, each.negation.upper)]
        sources = dict.fromkeys(self._source(limit, chain, path) for limit, chain in limits)
        is_delayed = any(source.startswith("adjacent") for source in sources)
        is_postponed = any(limit.edge is Edge.WINDOW_END for limit, _ in limits)
        yield f"bounds: {', '.join(sources)}{'; delayed constraint' * is_delayed}{'; postponed' * is_postponed}"
        passed = " and start + WITHIN has passed" if is_postponed else ""
        ready = _either(each.ready for each in decisions if each.ready).replace(" is bound or ", " or ")
        yield f"check:  once {ready}{passed}; {describe_tests([each.negation for each in decisions])}"

    def _source(self, limit: Limit, chain: Chain, path: Path) -> str:
        """Return what bounds a negation (section 3.3). Events of enclosing queries are bound first."""
        if limit.edge is Edge.WINDOW_START and self.query.window is None:
            return "start of the stream"
        if not limit.steps:
            return _WINDOW_EDGES[limit.edge]
        beside = self.paths[self.owners[chain[limit.steps[0]].variable]]
        component = next(theirs for ours, theirs in zip(path, beside, strict=False) if ours is not theirs)
        if isinstance(component, b.Leaf):
            return "upper query"
        kind = _NAMES[type(component)] if isinstance(component, Operator) else "query"
        return f"adjacent {kind}({self._names(*component.leaves())})"

    # --- predicates ---
    def _predicates(self, variable: int, scope: int) -> Iterator[str]:
        """Yield every predicate that is evaluated when this variable is bound, with its verb."""
        forms: dict[frozenset[int], dict[str, frozenset[int]]] = defaultdict(dict)
        for steps, chain in self.forms[scope]:
            for step in steps:
                if self.owners[step.variable] == variable:
                    taken = frozenset(self.owners[s.variable] for s in (*chain, *steps))
                    forms[taken] |= self._evaluated(step)
        mentioned = {line: variables for lines in reversed(forms.values()) for line, variables in lines.items()}
        for line in dict.fromkeys(line for lines in forms.values() for line in lines):
            present = [taken for taken, lines in forms.items() if line in lines]
            yield line + self._condition(present, forms, mentioned[line])

    def _evaluated(self, step: Step) -> Iterator[tuple[str, frozenset[int]]]:
        """Yield a line for each predicate, with the variables it mentions."""
        scope = self.variables[step.variable].scope
        for word, text, mentioned in predicates_of(step, self.query):
            is_correlated = any(self.variables[v].scope != scope for v in mentioned)
            yield f"{word:<7} {text}{'  (correlated)' * is_correlated}", mentioned

    def _condition(
        self, present: list[frozenset[int]], forms: Collection[frozenset[int]], mentioned: frozenset[int]
    ) -> str:
        """Return with which branches of OR a predicate is evaluated here; empty if that is clear from the predicate."""
        everywhere = frozenset.intersection(*forms)
        common = frozenset.intersection(*present) - everywhere
        if [taken for taken in forms if taken >= common & mentioned] == present:
            return ""
        is_enough = [taken for taken in forms if taken >= common] == present
        choices = [common] if is_enough else [taken - everywhere for taken in present]
        return f"  (with {_either(self._names(*sorted(choice)) for choice in choices)})"


# --- patterns ------------------------------------------------------------------------------------------------------


def _leaf(variable: b.Variable) -> str:
    quantifier = print_quantifier(variable.quantifier) if variable.quantifier else ""
    class_name = variable.event_class.name + quantifier
    return class_name if variable.name == class_name else f"{class_name} {variable.name}"


def _leaf_paths(node: b.Node, path: Path) -> Iterator[tuple[int, Path]]:
    if isinstance(node, b.Leaf):
        yield node.variable, path
    for child in node.children:
        yield from _leaf_paths(child, (*path, child))


def _either(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(texts))
