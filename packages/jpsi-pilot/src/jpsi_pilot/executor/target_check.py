"""Checks that agent and pilots can run where the configuration puts them, before the executor takes a job."""

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
        msg = (
            "the pilots' agent is where url leads to, and so the configuration of the executor pilot must "
            "name, as `python`, a Python over there that has jpsi-pilot and its engine"
        )
        raise ConfigError(msg)


def check_target(target: str) -> None:
    """Raise if pilots cannot be jobs of this target, which is named on this machine.

    Raises:
        ConfigError: the target runs jobs in pilots itself, or is on a remote host.
        PluginError: there is no such target.
    """
    if target.lower() == HERE:
        return
    configured = jpsi.configuration()
    named = configured.targets.get(target.lower())
    executor = target if named is None or named.executor is None else named.executor
    if executor.lower() == _PILOT:
        msg = f"the target of pilots is {target}, which runs jobs in pilots itself"
        raise ConfigError(msg)
    if named is not None and named.url is not None:
        msg = (
            f"the target of pilots, {target}, is on another machine, from which they would not find the way "
            f"back: say url={named.url} of the executor pilot itself, and as its target what the executor "
            f"{executor} is called over there"
        )
        raise ConfigError(msg)
    try:
        jpsi.JobExecutor.get_instance(target).close()
    except PluginError as e:
        msg = f"the target of pilots: {e}"
        raise PluginError(msg) from e
