"""Makes native ids of array elements (Slurm: 17_3) for listing stored jobs, without opening the executor.

The batch system names the array only, and plugins know the form of an element's id. `job_store` needs these
ids to list jobs, `Backend` to follow them. If the plugin fails, the id has a usual form, and the job is
listed.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence

from jpsi.plugin import ExecutorHooks, JpsiError, Site
from jpsi.plugin.engine import assemble, is_native_id

log = logging.getLogger(__name__)


def element_id_speller(name: str, url: str | None) -> Callable[[str, Sequence[int]], Sequence[str]]:
    """Return a function that spells the element ids of an executor or of a configured target.

    Its plugin is loaded once, at the first call. Without the plugin, ids of the usual form are returned: the
    jobs can be listed all the same.

    Args:
        name: the name of the executor or target.
        url: the target's URL, if it is not configured.
    """

    @functools.cache
    def load() -> tuple[ExecutorHooks, Site] | None:
        try:
            assembly = assemble(name, None, url, None)
        except JpsiError:
            # for example, the plugin is no longer installed
            log.debug("the plugin of %s is not available to spell element ids", name, exc_info=True)
            return None
        return assembly.hooks, Site(config=assembly.config)

    def spell(native_id: str, indices: Sequence[int]) -> Sequence[str]:
        plugin = load()
        if plugin is None:
            return _usual_ids(native_id, indices)
        return spell_element_ids(name, *plugin, native_id, indices, logging.DEBUG)

    return spell


def spell_element_ids(  # noqa: PLR0913, PLR0917  a plugin is a name, its hooks and its site
    name: str, hooks: ExecutorHooks, site: Site, native_id: str, indices: Sequence[int], level: int
) -> Sequence[str]:
    """Return the native ids of elements of an array, one for each index, in their order.

    Ids of the usual form replace those that the plugin cannot name, with a message of this level.
    """
    try:
        found = list(hooks.element_ids(native_id=native_id, indices=indices, site=site))
        if len(set(found)) == len(found) == len(indices) and all(map(is_native_id, found)):
            return found
        msg = "%s: the plugin returned %s as the element ids of %s, which cannot be right"
        log.log(level, msg, name, found[:5], native_id)
    except JpsiError:
        log.log(level, "%s: the plugin cannot name the elements of %s", name, native_id, exc_info=True)
    return _usual_ids(native_id, indices)


def _usual_ids(native_id: str, indices: Sequence[int]) -> Sequence[str]:
    return [f"{native_id}[{index}]" for index in indices]
