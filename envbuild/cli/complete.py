"""What a shell is offered for a word: recipes, environments, generations."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from envbuild.cli.context import Here

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _here(ctx: click.Context) -> Here:
    return ctx.ensure_object(Here)


def recipes(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Offer the names of recipes."""
    folders = _here(ctx).recipe_folders
    names = {entry[:-5] for entry in _entries(folders) if entry.endswith(".yaml")}
    return _items(names, incomplete)


def environments(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Offer the names of environments in the store."""
    return _items(_entries(store.environments for store in _here(ctx).stores), incomplete)


def both(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Offer the names of recipes and of environments."""
    found = recipes(ctx, parameter, incomplete)
    found += environments(ctx, parameter, incomplete)
    return _items({item.value for item in found}, incomplete)


def generations(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Offer the generations of the environment that is already named."""
    name = str(ctx.params.get("name") or "")
    if not name:
        return []
    return _items(
        _entries(store.place(name).generations for store in _here(ctx).stores), incomplete
    )


def _entries(folders: Iterable[os.PathLike[str]]) -> set[str]:
    found: set[str] = set()
    for folder in folders:
        if os.path.isdir(folder):  # noqa: PTH112
            found.update(os.listdir(folder))  # noqa: PTH208
    return found


def _items(names: Iterable[str], incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]
