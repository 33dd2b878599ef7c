"""Choose which queries of a stream share counters: the prefix trees of batch, if their totals are updated in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamsift.physical.plan import Plan
from streamsift.physical.share.plan import ShareMode, SharingPlan, share
from streamsift.physical.share.prefix_trees import SharedTree
from streamsift.physical.stream import DecideBy, stream_plan

PIECES = "on a stream, pieces are not shared: their counters per start event would have to be rebuilt with the window"
STORED = "on a stream without WITHIN, each query stores its own counters"


def share_stream(plans: Mapping[str, Plan], how: ShareMode = ShareMode.AUTO) -> SharingPlan:
    """Share the prefixes of queries over a window. Other queries run alone, for the reasons of a batch or these."""
    if len(plans) < 2:
        how = ShareMode.NEVER
    shared = share(plans, how)
    why_not = {tree.members: _why_alone(tree, plans) for tree in shared.trees}
    alone = dict(shared.alone)
    for members, why in why_not.items():
        alone |= dict.fromkeys(members, why) if why is not None else {}
    for chopped in shared.chops:
        alone |= dict.fromkeys(chopped.members, PIECES)
    trees = tuple(tree for tree in shared.trees if why_not[tree.members] is None)
    return replace(shared, trees=trees, chops=(), alone=alone)


def _why_alone(tree: SharedTree, plans: Mapping[str, Plan]) -> str | None:
    """Return why the queries of a tree run alone on a stream; None if they share it."""
    streams = [stream_plan(plans[name]) for name in tree.members]
    if tree.query.window is None:
        return STORED
    recomputed = (stream.why_recomputed for stream in streams if stream.decide_by is not DecideBy.WINDOW_TOTALS)
    return next((f"on a stream, windows are recomputed: {why}" for why in recomputed), None)
