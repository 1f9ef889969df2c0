"""`make_generation`: recipe and lock to a generation; locks first where there is no lock.

What reads recipes and locks is loaded only where these files were not read before.
"""

from datetime import datetime

from envbuild.access import Access
from envbuild.errors import UsageProblem
from envbuild.pipeline.ask import Ask
from envbuild.progress import Progress
from envbuild.store import noop, orders
from envbuild.store.create import Created, create
from envbuild.store.journal import Who
from envbuild.store.layout import Store
from envbuild.store.order import Order


def make_generation(
    ask: Ask,
    *,
    store: Store,
    access: Access,
    progress: Progress,
    who: Who,
    now: datetime,
) -> Created:
    """Create the generation of a recipe's lock.

    Args:
        ask: What is asked.
        store: The store.
        access: How the network is reached.
        progress: Who is told.
        who: Who asks for it.
        now: The instant (UTC).

    Raises:
        RecipeError: The recipe is wrong or there is none.
        LockError: There is no lock under locked or frozen, it is damaged, or not for this platform.
        Refused: The lock does not answer its recipe, or creation says no.
        UsageProblem: A Python is named for a recipe that takes conda's.
        EnvbuildError: As `store.create.create` and `pipeline.lock.make_lock` raise it.
    """
    order, chosen = _known_order(ask, store), None
    if order is None:
        from envbuild.pipeline.orders import new_order

        order, chosen = new_order(ask, store=store, access=access, now=now, progress=progress)
    if order.host_python is None and ask.pythons.option is not None:
        message = f"--python: {order.name} takes its Python from conda, not from this machine"
        raise UsageProblem(message, hint="leave --python out; the recipe's `python` says which")
    return create(
        order,
        store.place(order.name),
        ask.options,
        host=chosen,
        access=access,
        progress=progress,
        who=who,
        now=now,
    )


def _known_order(ask: Ask, store: Store) -> Order | None:
    """Return the order that these files gave before."""
    file = noop.recipe_file(ask.name, ask.recipe_folders)
    if file is None or ask.lock_folder is None or ask.frozen:
        return None
    return orders.recall(store, file, noop.lock_files(ask.lock_folder, ask.platform), ask.platform)
