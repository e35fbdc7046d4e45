"""The import of a chosen plugin, and the errors if it fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from distributions import lay
from jpsi.model.errors import PluginError
from jpsi.registry.candidate import EXECUTORS, Candidate
from jpsi.registry.discovery import installed
from jpsi.registry.loading import absolute_imports, added_to_path, load_plugin


def find(*places: Path, name: str = "mine") -> Candidate:
    return installed(places).find(EXECUTORS, name)


@pytest.mark.clause("python-restricted")
def test_a_single_module_is_loaded(tmp_path: Path) -> None:
    lay(tmp_path, files={"mine.py": "VALUE = 1\n"}, executors={"mine": "mine"})

    module = load_plugin(find(tmp_path))

    assert module.VALUE == 1
    assert module is load_plugin(find(tmp_path))
    assert "mine" not in sys.modules


@pytest.mark.clause("python-restricted")
@pytest.mark.parametrize("value", ["mine.sub:Hooks.inner", "mine.sub : Hooks.inner [extra]"])
def test_attribute_of_a_part_of_a_package(tmp_path: Path, value: str) -> None:
    files = {
        "mine/__init__.py": "",
        "mine/sub/__init__.py": "from ..other import Hooks\n",
        "mine/other.py": "class Hooks:\n    inner = 'found'\n",
    }
    lay(tmp_path, files=files, executors={"mine": value})

    assert load_plugin(find(tmp_path)) == "found"


@pytest.mark.clause("python-restricted")
def test_a_module_missing_from_a_directory_is_not_imported_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "other"))
    lay(tmp_path / "plugins", executors={"mine": "mine"})

    with pytest.raises(PluginError, match="No module named 'mine'"):
        load_plugin(find(tmp_path / "plugins"))


def test_part_of_a_namespace(tmp_path: Path) -> None:
    files = {
        "company/mine/__init__.py": "from .x import X\nimport company.shared\n",
        "company/mine/x.py": "X = 1\n",
        "company/shared.py": "",
    }
    lay(tmp_path, files=files, executors={"mine": "company.mine"})

    assert load_plugin(find(tmp_path)).X == 1


def test_dependency_beside_it_is_found_and_hides_nothing(tmp_path: Path) -> None:
    lay(
        tmp_path,
        files={"mine.py": "import besides_it, json\nNAMES = besides_it, json\n"},
        executors={"mine": "mine"},
    )
    for name in ("besides_it", "json"):
        (tmp_path / f"{name}.py").write_text("HERE = True\n")

    besides, json = load_plugin(find(tmp_path)).NAMES

    assert besides.HERE
    assert not hasattr(json, "HERE")
    assert sys.path[-1] == str(tmp_path)
    assert find(tmp_path).origin == str(tmp_path)
    del sys.modules["besides_it"]


def test_failed_import_leaves_nothing_behind(tmp_path: Path) -> None:
    files = {"mine/__init__.py": "from . import part\nraise RuntimeError('no licence')\n", "mine/part.py": ""}
    lay(tmp_path, files=files, executors={"mine": "mine"})
    before, path_before = set(sys.modules), added_to_path()

    with pytest.raises(PluginError, match="RuntimeError: no licence; reinstall my-plugin") as caught:
        load_plugin(find(tmp_path))

    assert caught.value.exception is caught.value.__cause__
    assert set(sys.modules) == before
    assert added_to_path() - path_before == {str(tmp_path)}
    assert find(tmp_path).origin == str(tmp_path)


def test_advice_for_a_directory_does_not_mix_versions(tmp_path: Path) -> None:
    """After `pip install --upgrade --target` there is metadata of two versions, and jpsi refuses that."""
    lay(tmp_path, files={"mine.py": "raise RuntimeError\n"}, executors={"mine": "mine"})

    with pytest.raises(PluginError) as caught:
        load_plugin(find(tmp_path))

    assert str(caught.value).endswith(
        "reinstall my-plugin, or install another version, "
        "into a directory of its own, or here after this one was emptied"
    )


def test_failed_import_from_the_environment_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"mine_x/__init__.py": "from . import part\nraise SystemExit\n", "mine_x/part.py": ""}
    lay(tmp_path, files=files, executors={"mine": "mine_x"})
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    with pytest.raises(PluginError, match=r"of my-plugin 1\.2 cannot be loaded: SystemExit"):
        load_plugin(find())

    assert set(sys.modules) == before


def test_program_can_be_interrupted_while_it_loads_a_plugin(tmp_path: Path) -> None:
    lay(tmp_path, files={"mine.py": "raise KeyboardInterrupt\n"}, executors={"mine": "mine"})
    before = set(sys.modules)

    with pytest.raises(KeyboardInterrupt):
        load_plugin(find(tmp_path))

    assert set(sys.modules) == before


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("mine", "ModuleNotFoundError: No module named .*; reinstall my-plugin, or install another version"),
        ("sys:nothing", "AttributeError: "),
        ("a b", "the entry point 'a b' is neither `module` nor `module:attribute`"),
    ],
)
def test_entry_point_that_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, expected: str
) -> None:
    lay(tmp_path, executors={"mine": value})
    monkeypatch.syspath_prepend(str(tmp_path))
    # another test may have imported one of that name
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    with pytest.raises(PluginError, match=expected):
        load_plugin(find())


@pytest.mark.clause("python-restricted")
def test_a_broken_entry_point_of_a_directory_is_reported_without_private_names(tmp_path: Path) -> None:
    lay(tmp_path / "a", executors={"mine": "bree"})
    lay(
        tmp_path / "b",
        files={"mine.py": "from .bree import x\n"},
        executors={"mine": "mine"},
    )

    with pytest.raises(PluginError) as of_entry_point:
        load_plugin(find(tmp_path / "a"))
    with pytest.raises(PluginError) as of_import:
        load_plugin(find(tmp_path / "b"))

    reason = (
        "ModuleNotFoundError: No module named 'bree', which its entry point names: mine = bree; reinstall"
    )
    assert f"the executor 'mine' of my-plugin 1.2 in {tmp_path}/a cannot be loaded: {reason}" in str(
        of_entry_point.value
    )
    for error in (of_entry_point, of_import):
        assert "_jpsi_plugin_" not in str(error.value)
    assert "entry point" not in str(of_import.value)


def test_refused_candidate_is_not_imported() -> None:
    it = Candidate(group=EXECUTORS, name="x", distribution="d", version="1", value="no", refusal="it is bad")

    with pytest.raises(PluginError, match="the executor 'x' of d 1 is refused: it is bad"):
        load_plugin(it)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("from toy import a, b", [1, 1]),
        ("\nimport toy.part as p, os", [2]),
        ("def f():\n    try:\n        import toy\n    except ImportError: pass", [3]),
        ("import toys\nfrom . import toy\nfrom .toy import x\nimport other.toy", []),
        ("if typing.TYPE_CHECKING:\n    from toy import T", []),
        ("toy = (", []),
        ("# coding: nonsense\nimport toy", []),
    ],
)
def test_absolute_imports(source: str, lines: list[int]) -> None:
    assert absolute_imports(source.encode(), {"toy"}) == lines
