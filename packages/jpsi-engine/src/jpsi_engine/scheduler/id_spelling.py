"""Native ids of array elements (Slurm: 17_3) for listing stored jobs, without opening the executor."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence

from jpsi.plugin import ExecutorHooks, JpsiError, Site
from jpsi.plugin.engine import assemble, is_native_id

log = logging.getLogger(__name__)


class IdSpelling:
    """The spelling of an executor's element ids; its plugin is loaded once, and only if needed.

    Args:
        name: the name of the executor, or of a configured target.
        url: the target's URL, if it is not configured.
    """

    def __init__(self, name: str, url: str | None) -> None:
        self._name = name
        self._url = url

    @functools.cached_property
    def _plugin(self) -> tuple[ExecutorHooks, Site] | None:
        try:
            assembly = assemble(self._name, None, self._url, None)
        except JpsiError:
            # for example, the plugin is no longer installed
            log.debug("the plugin of %s is not available to spell element ids", self._name, exc_info=True)
            return None
        return assembly.hooks, Site(config=assembly.config)

    def element_ids(self, native_id: str, indices: Sequence[int]) -> Sequence[str]:
        """Return the native ids of elements of an array, one for each index, in their order.

        Ids of the usual form replace those that the plugin cannot name: the jobs can be listed all the same.
        """
        if self._plugin is not None:
            hooks, site = self._plugin
            try:
                found = list(hooks.element_ids(native_id=native_id, indices=indices, site=site))
                if len(set(found)) == len(found) == len(indices) and all(map(is_native_id, found)):
                    return found
                log.debug("the plugin returned %s as the element ids of %s", found[:5], native_id)
            except JpsiError:
                log.debug("the elements of %s have no ids", native_id, exc_info=True)
        return [f"{native_id}[{index}]" for index in indices]
