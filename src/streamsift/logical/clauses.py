"""Check that clauses go together; raise QueryError at the clause that has to change."""

from __future__ import annotations

from streamsift.language import syntax as s
from streamsift.logical.scopes import Scopes


def check_clauses(scopes: Scopes) -> None:
    statement = scopes.script.statement

    preferences = [p for p in (statement.preference, *(d.statement.preference for d in scopes.script.definitions)) if p]
    limit = statement.returns.limit if statement.returns else None
    items = statement.returns.items if statement.returns else ()
    mode = statement.emit.mode if statement.emit else None

    if statement.aggregates and preferences:
        raise scopes.fail("AGG with PREF", preferences[0].span, "count matches or rank them: leave one of the two out.")
    if preferences and limit is None:
        hint = "say how many of the best to return: RETURN 10."
        raise scopes.fail("PREF without a number of results", preferences[0].span, hint)
    if limit is not None and not preferences:
        assert statement.returns is not None
        raise scopes.fail("RETURN k without PREF", statement.returns.span, "the k best need a preference: PREF MAX[…].")
    if statement.group_by and not (statement.aggregates or preferences):
        hint = "to find matches per key, use PARTITION BY or [attr]."
        raise scopes.fail("GROUP BY without AGG or PREF", statement.group_by[0].span, hint)
    if statement.aggregates and items:
        raise scopes.fail("RETURN items with AGG", items[0].span, "aggregates are the output: name them with AS.")
    if mode is s.Emit.EACH and (statement.aggregates or preferences):
        assert statement.emit is not None
        hint = "EMIT EACH is for detection."
        raise scopes.fail(f"EMIT EACH with {'AGG' if statement.aggregates else 'PREF'}", statement.emit.span, hint)
    if mode is s.Emit.CHANGES and not statement.aggregates:
        assert statement.emit is not None
        hint = "only aggregates change without a match ending."
        raise scopes.fail("EMIT CHANGES without AGG", statement.emit.span, hint)
    update, window = statement.update, statement.window
    if update is None:
        return
    if not (statement.aggregates or preferences):
        hint = "detection reports each match once; UPDATE is for AGG and PREF."
        raise scopes.fail("UPDATE without AGG or PREF", update.span, hint)
    if mode is s.Emit.CHANGES and statement.emit is not None:
        raise scopes.fail("EMIT CHANGES with UPDATE", statement.emit.span, "UPDATE alone says when rows come out.")
    if window is None:
        raise scopes.fail("UPDATE without WITHIN", update.span, "say how much each update looks back on: WITHIN …")
    if (update.unit is s.Unit.EVENT) != (window.length.unit is s.Unit.EVENT):
        hint = "give both EVENTS, or neither."
        raise scopes.fail("WITHIN and UPDATE must both be counts or both be times", update.span, hint)
