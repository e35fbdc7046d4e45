"""Conformance tests of attributes: a backend passes on each attribute of a job, or refuses the job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from jpsi import JobAttributes, JobSpec
from jpsi.plugin import ResourceSpecV1
from jpsi_testing.conformance.hook_caller import Hooks
from jpsi_testing.conformance.hooks import HookTests

#: Values of each attribute that a backend translates, all different from the default.
TRANSLATED: Mapping[str, tuple[object, ...]] = {
    "name": ("first", "other"),
    "resources.node_count": (2, 3),
    "resources.process_count": (2, 3),
    "resources.processes_per_node": (2, 3),
    "resources.cpu_cores_per_process": (2, 3),
    "resources.gpu_cores_per_process": (1, 2),
    "resources.exclusive_node_use": (True,),
    "resources.memory": (1 << 30, 1 << 33),
    "attributes.duration": (timedelta(hours=1), timedelta(hours=2)),
    **{f"attributes.{name}": ("first", "other") for name in JobAttributes.text_names()},
    "attributes.custom_attributes": ("first", "other"),
}
#: The attributes on which jpsi acts itself, and the test that runs jobs with each.
OF_JPSI: Mapping[str, str] = {
    "executable": "test_a_missing_executable_is_reported",
    "arguments": "test_arguments_arrive_unchanged",
    "directory": "test_streams_and_directory_are_those_of_the_spec",
    "create_directory": "test_streams_and_directory_are_those_of_the_spec",
    "inherit_environment": "test_the_environment_is_inherited_or_not",
    "environment": "test_the_environment_arrives_unchanged",
    "stdin_path": "test_streams_and_directory_are_those_of_the_spec",
    "stdout_path": "test_streams_and_directory_are_those_of_the_spec",
    "stderr_path": "test_streams_and_directory_are_those_of_the_spec",
    "pre_launch": "test_pre_and_post_launch_surround_the_job",
    "post_launch": "test_pre_and_post_launch_surround_the_job",
    "environment_setup": "test_the_environment_is_set_up",
    "container": "test_a_job_runs_in_a_container",
    "launcher": "test_each_process_has_its_node_in_a_file",
    "stage_in": "test_files_are_staged_in_and_out",
    "stage_out": "test_files_are_staged_in_and_out",
    "cleanup": "test_files_are_staged_in_and_out",
    "cleanup_flags": "test_a_failed_cleanup_is_reported",
    # they become `memory`
    "resources.memory_per_cpu": "test_each_attribute_is_passed_on_or_refused",
    "resources.memory_per_gpu": "test_each_attribute_is_passed_on_or_refused",
    "attributes.warn": "test_a_job_is_warned_before_its_end",
    "attributes.retry": "test_a_job_is_submitted_again_until_it_succeeds",
    "attributes.after": "test_a_job_runs_if_the_other_ends_as_it_should",
}
#: The attributes that jpsi keeps and never reads.
UNREAD = frozenset({"attributes.user"})


class AttributeTests(HookTests):
    """Tests that no attribute of a job is dropped in silence."""

    @pytest.mark.parametrize("attribute", TRANSLATED)
    def test_each_attribute_is_passed_on_or_refused(self, hooks: Hooks, attribute: str) -> None:
        """Two jobs that differ in it have different scripts or commands."""
        if attribute in self.ignored_attributes:
            pytest.skip("such an attribute has no effect here, as ignored_attributes says")
        room, _, name = attribute.rpartition(".")
        seen: list[tuple[object, list[str]]] = []
        for value in (None, *TRANSLATED[attribute]):
            submission = self._submission(hooks, self._spec(room, name, value))
            if submission is not None:
                same = [other for other, it in seen if it == submission]
                assert not same, (
                    f"{attribute} is dropped: a job with {value!r} has the same script and the same command "
                    f"as one with {same[0]!r}; express the attribute, or refuse it in check_spec"
                )
                seen.append((value, submission))

    def _spec(self, room: str, name: str, value: object) -> JobSpec:
        """Return the spec of a job in which one attribute has a value; None is its default."""
        # nodes alone would be processes, too
        process_count = 6 if name == "node_count" else None
        # a kind of GPUs needs some
        gpus = 1 if name == "gpu_type" else None
        resources = ResourceSpecV1(process_count=process_count, gpu_cores_per_process=gpus)
        spec = JobSpec("/bin/true", resources=resources)
        if name == "custom_attributes":
            value = value and {f"{self.executor_name}.xyzzy": value}
        if value is not None:
            setattr(getattr(spec, room) if room else spec, name, value)
        return spec

    @staticmethod
    def _submission(hooks: Hooks, spec: JobSpec) -> list[str] | None:
        """Return what the batch system gets to see of a job; None if the backend refuses it."""
        script = hooks.script(spec)
        if script is None or list(hooks.get("check_spec", (), spec=spec)):
            return None
        command = hooks("submit", script=script, spec=spec)
        variables = [f"{name}={value}" for name, value in sorted(command.environment.items())]
        return [script.text, *command.argv, command.stdin or "", *variables]
