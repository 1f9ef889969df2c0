"""What comes nearest to a set that does not work."""

from collections.abc import Callable, Sequence

from envbuild.compat.model import Facts
from envbuild.compat.triangle import Judged, Part, Wanted, judged


def nearest(facts: Facts, wanted: Wanted, *, most: int = 3) -> list[Judged]:
    """Return the builds that run on the cards and need the fewest other parts changed.

    Of these the one whose release is nearest to those wanted, for each way to change as few; then
    what is next.

    Args:
        facts: The tables.
        wanted: The set, which does not work.
        most: How many to return.
    """
    found = judged(facts, wanted)
    able = [each for each in found if "gpu" not in each.parts]
    if not able:
        return []
    away = _releases_away(found)
    able.sort(key=lambda each: (len(each.parts), away(each)))  # stable: the best stays first
    fewest = len(able[0].parts)
    ways: dict[frozenset[Part], Judged] = {}
    for each in able:
        if len(each.parts) == fewest:
            ways.setdefault(each.parts, each)
    first = list(ways.values())
    return [*first, *(each for each in able if each not in first)][:most]


def _releases_away(found: Sequence[Judged]) -> Callable[[Judged], int]:
    """Return what counts the releases between a build's own and the nearest that is wanted."""
    names = dict.fromkeys((each.build.framework, each.build.version) for each in found)
    places = {name: place for place, name in enumerate(names)}
    meant = [
        places[each.build.framework, each.build.version]
        for each in found
        if "framework" not in each.parts
    ]

    def away(each: Judged) -> int:
        own = places[each.build.framework, each.build.version]
        return min((abs(own - place) for place in meant), default=0)

    return away
