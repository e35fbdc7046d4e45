"""Checks that agent and pilots can run where the configuration puts them, before the executor takes a job.

The core calls the hook `make_engine` when a program opens the executor: a wrong target is reported then, not
when the first pilot fails.
"""

from __future__ import annotations

import jpsi
from jpsi.plugin import ConfigError, PluginError, hookimpl
from jpsi.plugin.engine import EngineSetup

from ..config import HERE, PilotConfig

_PILOT = "pilot"


@hookimpl
def make_engine(setup: EngineSetup) -> None:
    """Return None, which selects the core's engine, after a check of the configuration.

    Raises:
        ConfigError: no pilot could ever start with this configuration.
        PluginError: there is no such target.
    """
    config = setup.config
    assert isinstance(config, PilotConfig)  # noqa: S101  as `config_class` says
    if setup.transport.is_local:
        check_target(config.target)
    elif config.python is None:
        raise ConfigError(
            "the pilots' agent runs on the remote host of url: the configuration of the executor pilot must "
            "name, as `python`, a Python of that host that has jpsi-pilot and its engine"
        )


def check_target(target: str) -> None:
    """Raise if pilots cannot be jobs of this target, which is named on this machine.

    Raises:
        ConfigError: the target runs jobs in pilots itself, or is on a remote host.
        PluginError: there is no such target.
    """
    if target.lower() == HERE:
        return
    configured = jpsi.configuration()
    target_config = configured.targets.get(target.lower())
    executor = target if target_config is None or target_config.executor is None else target_config.executor
    if executor.lower() == _PILOT:
        raise ConfigError(f"the target of pilots is {target}, which runs jobs in pilots itself")
    if target_config is not None and target_config.url is not None:
        raise ConfigError(
            f"the target of pilots, {target}, is on a remote host, from which pilots cannot connect to the "
            f"agent here: set url={target_config.url} for the executor pilot itself, and its target to the "
            f"name that the executor {executor} has on that host"
        )
    try:
        jpsi.JobExecutor.get_instance(target).close()
    except PluginError as e:
        raise PluginError(f"the target of pilots: {e}") from e
