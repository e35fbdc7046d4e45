"""A submit script that becomes a job; what backends read in it is tested with each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import jpsi
from jpsi.api.script_import import completed
from jpsi.contract.hookspecs import ForeignScript

_SCRIPT, _HERE = Path("/home/me/a job.sh"), Path("/scratch/me")


def _completed(
    spec: jpsi.JobSpec, text: str = "", *, path: Path = _SCRIPT, is_output_here: bool = False
) -> jpsi.JobSpec:
    return completed(ForeignScript(spec=spec, directives=1, is_output_here=is_output_here), text, path, _HERE)


@pytest.mark.parametrize(
    ("first", "command"),
    [
        ("#!/bin/sh", ["/bin/sh"]),
        ("#!/bin/bash -l", ["/bin/bash", "-l"]),
        ("#! /usr/bin/env  -S python3 -u ", ["/usr/bin/env", "-S python3 -u"]),
        ("", ["/bin/sh"]),
        ("#!", ["/bin/sh"]),
        ("true", ["/bin/sh"]),
    ],
)
def test_the_interpreter_of_a_script_is_that_of_the_kernel(first: str, command: list[str]) -> None:
    spec = _completed(jpsi.JobSpec(), f"{first}\ntrue\n")

    assert [spec.executable, *(spec.arguments or ())] == [*command, str(_SCRIPT)]


def test_the_shell_of_the_directives_has_precedence() -> None:
    spec = _completed(jpsi.JobSpec("/bin/ksh"), "#!/bin/bash\n")

    assert (spec.executable, spec.arguments) == ("/bin/ksh", [str(_SCRIPT)])


@pytest.mark.parametrize(
    ("spec_directory", "directory"),
    [(None, "/scratch/me"), ("run", "/scratch/me/run"), ("/x", "/x"), ("~", "~"), ("~/a", "~/a")],
)
def test_a_directory_is_relative_to_that_of_the_submission(
    spec_directory: str | None, directory: str
) -> None:
    assert _completed(jpsi.JobSpec(directory=spec_directory)).directory == Path(directory)


@pytest.mark.parametrize(("is_local", "path"), [(False, "a/out.txt"), (True, "/scratch/me/a/out.txt")])
def test_files_for_output_are_where_the_batch_system_has_them(is_local: bool, path: str) -> None:
    spec = _completed(
        jpsi.JobSpec(directory="~", stdout_path="a/out.txt", stderr_path="/dev/null"), is_output_here=is_local
    )

    assert (spec.stdout_path, spec.stderr_path) == (Path(path), Path("/dev/null"))


def test_a_script_finds_the_directory_of_its_submission_in_its_variable() -> None:
    spec = jpsi.JobSpec(environment={"A": "1"})
    script = ForeignScript(spec=spec, directives=1, directory_variables=("O_WORKDIR",))

    found = completed(script, "", Path("/a"), Path("/scratch/${me}"))

    assert found.environment == {"A": "1", "O_WORKDIR": "/scratch/$${me}"}


def test_the_path_of_a_script_is_never_expanded() -> None:
    assert _completed(jpsi.JobSpec(), path=Path("/a/${HOME}")).arguments == ["/a/$${HOME}"]


def test_a_script_is_started_once_for_any_resources() -> None:
    spec = jpsi.JobSpec(resources=jpsi.ResourceSpecV1(process_count=8))

    assert _completed(spec).launcher == "single"


def test_a_script_of_an_unknown_batch_system_is_refused() -> None:
    with pytest.raises(jpsi.InvalidJobException, match=r"a\.sh has no directives of any executor"):
        jpsi.read_script("#!/bin/sh\ntrue\n", "a.sh", "/")
    with pytest.raises(jpsi.InvalidJobException, match=r"a\.sh has no directives of the executor local"):
        jpsi.read_script("#!/bin/sh\ntrue\n", "a.sh", "/", "local")
    with pytest.raises(jpsi.PluginError, match="no executor 'nope'"):
        jpsi.read_script("", "a.sh", "/", "nope")
