"""Runs the commands of a batch system: hooks render them and parse their output, a transport runs them.

All that an executor asks of its batch system goes through a `Backend`: submissions, polls, cancels. An answer
that cannot be parsed becomes an error of jpsi, and never a state of a job.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from jpsi.plugin import (
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    ExecutorHooks,
    Failure,
    FailureKind,
    JobSpec,
    JpsiError,
    Lines,
    LineTransport,
    NotOffered,
    Observation,
    PluginError,
    Queue,
    Script,
    Site,
    SubmitContext,
    SubmitException,
    TransportError,
)
from jpsi.plugin.engine import EngineSetup, is_native_id
from jpsi_engine.host import environment_of
from jpsi_engine.scheduler.id_spelling import spell_element_ids
from jpsi_engine.spool import EVERY_FAILURE, Claim, claimant, target_name
from jpsi_engine.verdict import Marker, is_conclusive

log = logging.getLogger(__name__)

_T = TypeVar("_T")

#: Runs a command, as `Transport.run` does.
Run = Callable[[Command], CommandResult]


@attrs.frozen(slots=True)
class Submitted:
    """The result of a submit command: native ids by tag, and a failure for the rest."""

    native_ids: Mapping[str, str]
    failure: Failure


class Backend:
    """A batch system as one executor uses it. Methods may be called from any thread.

    Hooks are called with valid native ids only, and of their answers only those about these ids are used. The
    core passes hooks that raise PluginError where a plugin fails, so that every failure is a JpsiError.
    """

    def __init__(self, setup: EngineSetup, hooks: ExecutorHooks) -> None:
        if not isinstance(setup.config, BatchConfig):
            raise PluginError(f"the configuration of the executor {setup.executor} must be a BatchConfig")
        self.name = setup.executor
        #: The name in messages: there may be several batch systems of one name.
        self.display_name = target_name(setup.executor, setup.target)
        self.config: BatchConfig = setup.config
        self._version = setup.version
        # stands for a batch system that no other process is known to poll
        self._own_digest = os.urandom(16).hex()
        self._hooks = hooks
        self._transport = setup.transport
        self.site = Site(config=setup.config)
        self._known_capabilities: tuple[Site, Capabilities] | None = None
        # native ids that are known to be valid: most polls are about the same ids, and hooks returned them
        self._known_ids: set[str] = set()
        self._probe = hooks.probe(site=self.site)
        self._is_probed = isinstance(self._probe, NotOffered)
        self._probe_failure = ""
        self._has_warned = False

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that the hooks declare for this site."""
        site = self.site
        if self._known_capabilities is None or self._known_capabilities[0] is not site:
            self._known_capabilities = site, self._hooks.capabilities(site=site)
        return self._known_capabilities[1]

    @property
    def requeue_exit_codes(self) -> Collection[int]:
        """Exit codes after which the site may requeue a job; all nonzero codes until the site was probed."""
        return self.capabilities.requeue_exit_codes if self._is_probed else EVERY_FAILURE

    def system_digest(self) -> str:
        """Return a digest that two processes share if they poll the same batch system and parse it alike.

        The executor's name is not enough: the same command may be another program on another PATH, or mean
        another cluster because of an option or an environment variable. The name of such a variable begins
        like the name of the variable in which a job finds its native id.
        """
        try:
            command = self._hooks.query(native_ids=None, site=self.site)
            variable = self.capabilities.id_variable
        except JpsiError:
            log.debug("the query command of the executor %s cannot be rendered", self.name, exc_info=True)
            return self._own_digest
        environment = environment_of(command, os.environ)
        family, _, _ = variable.partition("_")
        meant = (
            self._version,
            command.argv,
            # any word may be the program that runs, as in `sh -c`
            [shutil.which(word, path=environment.get("PATH")) for word in command.argv],
            sorted(command.environment.items()),
            sorted(item for item in environment.items() if family and item[0].startswith(f"{family}_")),
        )
        return hashlib.sha256(repr(meant).encode(errors="surrogateescape")).hexdigest()

    def probe(self) -> bool:
        """Find out what this site offers, unless an earlier call has; return False if it did not answer."""
        command = self._probe
        if not self._is_probed and not isinstance(command, NotOffered):
            try:
                offers = self._hooks.parse_probe(result=self._run(command), site=self.site)
            except JpsiError as e:
                # many submissions may probe one after the other
                if str(e) != self._probe_failure:
                    log_failed_query(f"{self.display_name} (probe)", e)
                self._probe_failure = str(e)
                return False
            self.site = attrs.evolve(self.site, offers=offers)
            self._is_probed = True
        return True

    def render(self, spec: JobSpec, context: SubmitContext) -> Script:
        """Return the directives for a job.

        Raises:
            ValueError: the batch system cannot express what the spec requests.
        """
        return self._hooks.render_script(spec=spec, context=context)

    def submit_command(self, script: Script, spec: JobSpec, context: SubmitContext) -> Command:
        """Return the command that submits a script."""
        return self._hooks.submit(script=script, spec=spec, context=context)

    def submit(
        self, scripts: Sequence[Script], spec: JobSpec, contexts: Sequence[SubmitContext], run: Run
    ) -> Submitted:
        """Submit scripts with one command.

        A failure is AMBIGUOUS if a job may have been submitted all the same.
        """
        if len(scripts) == 1:
            command: Command | NotOffered = self.submit_command(scripts[0], spec, contexts[0])
        else:
            command = self._hooks.submit_several(scripts=scripts, spec=spec, contexts=contexts)
        if isinstance(command, NotOffered):
            raise PluginError(f"the executor {self.name} offered to submit several jobs, and now does not")
        try:
            result = run(self._with_timeout(command))
        except TransportError as e:
            kind = FailureKind.TRANSIENT if e.transient else FailureKind.PERMANENT
            return Submitted({}, Failure(FailureKind.AMBIGUOUS if e.may_have_run else kind, str(e)))
        log.debug("%s: %s", command, result)
        if result.timed_out or result.returncode < 0:
            return Submitted({}, Failure(FailureKind.AMBIGUOUS, result.complaint))
        try:
            if result.returncode != 0:
                return Submitted({}, self._hooks.classify_failure(result=result, site=self.site))
            native_ids = self._parse_submit(result, contexts)
        except Exception as e:
            # the command has run, even if the plugin cannot parse its output
            log.warning("%s printed output that the plugin cannot parse: %r", command.argv[0], result.stdout)
            log.debug("parsing the output of %s failed", command, exc_info=True)
            message = f"{command.argv[0]} printed output that the plugin cannot parse: {e}"
            return Submitted({}, Failure(FailureKind.AMBIGUOUS, message))
        no_id = Failure(FailureKind.AMBIGUOUS, f"{command.argv[0]} printed no id for it")
        return Submitted(native_ids, no_id)

    def _parse_submit(self, result: CommandResult, contexts: Sequence[SubmitContext]) -> dict[str, str]:
        tags = [context.tag for context in contexts]
        if len(contexts) == 1:
            printed: Mapping[str, str] = {
                tags[0]: self._hooks.parse_submit(result=result, context=contexts[0])
            }
        else:
            printed = self._hooks.parse_submit_several(result=result, contexts=contexts)
        return {tag: self.canonical(_native_id(printed[tag])) for tag in tags if tag in printed}

    def can_submit_several(self, script: Script, spec: JobSpec, context: SubmitContext) -> bool:
        """Return True if one command can submit several jobs like this.

        Raises:
            JpsiError: a hook failed.
        """
        if self.capabilities.jobs_per_submission <= 1:
            return False
        command = self._hooks.submit_several(scripts=[script], spec=spec, contexts=[context])
        return not isinstance(command, NotOffered)

    def submission_fingerprint(self, script: Script, spec: JobSpec, context: SubmitContext) -> str:
        """Return all that the batch system would see of a job, as one text.

        Two jobs with equal texts are the same to the batch system.

        Raises:
            JpsiError: a hook failed.
        """
        command = self.submit_command(script, spec, context)
        environment = sorted(command.environment.items())
        return repr((script.text, command.argv, command.stdin, environment, command.unset))

    def element_ids(self, native_id: str, indices: Sequence[int]) -> Sequence[str]:
        """Return the native ids of elements of an array.

        The array is submitted by then, so an error in a hook must not lose its jobs: it is logged, and ids of
        the usual form are returned. The markers that the elements leave show what becomes of them.
        """
        found = spell_element_ids(self.name, self._hooks, self.site, native_id, indices, logging.WARNING)
        # the ids differ in their indices only, so the first one is checked for all
        try:
            self._known_ids.update(found if found and self._is_id(found[0]) else ())
        except JpsiError:
            log.warning("%s: the plugin cannot check the id %s", self.name, found[0], exc_info=True)
        return found

    def canonical(self, native_id: str) -> str:
        """Return a native id in the one spelling that the hooks use.

        Raises:
            ValueError: the text cannot be a native id.
        """
        return _native_id(self._hooks.canonical_id(native_id=native_id, site=self.site))

    def canonical_or_same(self, text: str) -> str:
        """Return a native id in the hooks' spelling; text that cannot be one is returned unchanged."""
        try:
            return self.canonical(text)
        except ValueError:
            return text

    def claimed_id(self, claim: Claim | None) -> str | None:
        """Return the native id that a runner put into its claim; None if no runner did."""
        text = claimant(claim)
        return None if text is None else self.canonical_or_same(text)

    def is_conclusive(self, markers: Collection[Marker]) -> bool:
        """Return True if these markers of an attempt alone decide its final status."""
        return is_conclusive(markers, self.requeue_exit_codes)

    def queues(self) -> Sequence[Queue]:
        """Return the queues with their limits; none if the batch system offers none, or does not answer."""
        try:
            command = self._hooks.queues(site=self.site)
            if isinstance(command, NotOffered):
                return ()
            return list(self._hooks.parse_queues(result=self._run(command), site=self.site))
        except JpsiError as e:
            log_failed_query(f"{self.display_name} (queues)", e)
            return ()

    def find_by_tags(self, tags: Sequence[str]) -> Mapping[str, str] | None:
        """Return the native ids of the jobs that carry these tags, by tag.

        None if the batch system has no query for tags.

        Raises:
            SubmitException: the batch system did not answer.
        """
        command = self._hooks.find(tags=tags, site=self.site)
        if isinstance(command, NotOffered):
            return None
        result = self._run(command)
        found = self._hooks.parse_find(result=result, tags=tags, site=self.site)
        return {tag: native_id for tag, native_id in found.items() if is_native_id(native_id)}

    def query_states(self, native_ids: Sequence[str]) -> dict[str, Observation]:
        """Return what the queue says about these jobs; jobs that it does not mention are left out.

        Where one query lists all jobs of the user, other jobs are in the result too. It may also hold one
        more element of each array that these jobs belong to.

        Raises:
            SubmitException: the batch system did not answer; then nothing is known about any of the jobs.
        """
        if len(self._known_ids) > _PRUNE_FACTOR * len(native_ids):
            # most of the known ids belong to jobs that have ended
            self._known_ids = self._known_ids.intersection(native_ids)
        limit = self.capabilities.ids_per_query
        if limit is None:
            return dict(self._query(None, native_ids))
        found: dict[str, Observation] = {}
        for ids, members in self._split_by_array(self._valid_ids(native_ids), limit):
            answer = self._query(ids, members)
            found |= _select(answer, [*ids, *members]) | self._other_elements(answer, ids, members)
        return found

    def _query(
        self, names: Sequence[str] | None, native_ids: Sequence[str] | None
    ) -> Mapping[str, Observation]:
        """Query the queue for jobs and arrays, or for None all jobs, and parse what it says of these jobs."""
        result = self._run(self._hooks.query(native_ids=names, site=self.site))
        return self._hooks.parse_status(result=result, native_ids=native_ids, site=self.site)

    def _other_elements(
        self, answer: Mapping[str, Observation], arrays: Sequence[str], members: Sequence[str]
    ) -> dict[str, Observation]:
        """Return one element that the answer mentions besides the requested jobs, for each array.

        If the queue still has one element of an array, the requested elements that are missing have left it.
        """
        others = list(answer.keys() - {*arrays, *members})
        wanted = frozenset(arrays)
        one = {array: name for name, array in self.arrays_of(others).items() if array in wanted}
        return _select(answer, list(one.values()))

    def query_all(self) -> dict[str, Observation]:
        """Return what the queue says about all unfinished jobs of the user, with array elements one by one.

        Raises:
            SubmitException: the batch system did not answer.
        """
        seen = self._query(None, None)
        unfinished = {native_id: it for native_id, it in seen.items() if it.exists and not it.final}
        for array in self.arrays_of(list(unfinished)).values():
            unfinished.pop(array, None)
        return unfinished

    def query_elements(self, array: str) -> list[Observation]:
        """Return what the queue says about the elements of an array; empty if it lists none.

        Raises:
            SubmitException: the batch system did not answer.
        """
        return self._elements_in(self._query([array], [array]), array)

    def query_recorded_elements(self, array: str) -> list[Observation]:
        """Return what the accounting says about the elements of an array; empty if it knows none.

        Raises:
            SubmitException: the accounting did not answer.
        """
        found = query_accounting(self._hooks, self.site, [([array], [array])], self._run)
        return [] if isinstance(found, str) else self._elements_in(found, array)

    def _elements_in(self, answer: Mapping[str, Observation], array: str) -> list[Observation]:
        """Return what an answer says about the elements of an array."""
        elements = (name for name, its in self.arrays_of(list(answer)).items() if its == array)
        return [answer[name] for name in elements]

    def split_for_accounting(self, native_ids: Sequence[str]) -> Iterator[Sequence[str]]:
        """Split native ids into groups, each small enough for one accounting query; arrays stay whole."""
        return (
            members for _, members in self._split_by_array(native_ids, ids_per_accounting(self.capabilities))
        )

    def query_accounting(self, native_ids: Sequence[str]) -> dict[str, Observation] | None:
        """Return what the accounting says about these jobs; None if there is no accounting.

        Raises:
            SubmitException: the accounting did not answer.
        """
        groups = self._split_by_array(self._valid_ids(native_ids), ids_per_accounting(self.capabilities))
        found = query_accounting(self._hooks, self.site, groups, self._run)
        if not isinstance(found, str):
            return _select(found, native_ids)
        if found and not self._has_warned:
            log.warning("%s has no accounting to query: %s", self.display_name, found)
            self._has_warned = True
        return None

    def cancel(
        self, native_ids: Sequence[str], seen: Mapping[str, Observation] | None = None
    ) -> Mapping[str, str]:
        """Cancel these jobs; return the reasons by native id for those that could not be cancelled.

        Args:
            native_ids: the jobs.
            seen: the observations of a poll a moment ago, for those of the jobs that it listed.

        Raises:
            SubmitException: the request did not reach the batch system.
        """
        request = functools.partial(self._hooks.cancel, seen=_select(seen or {}, native_ids))
        return self._change_jobs(native_ids, "cancel", request, self._hooks.parse_cancel)

    def split_for_requests(self, items: Sequence[_T]) -> Iterator[Sequence[_T]]:
        """Split a sequence into groups, each small enough for one request."""
        return _split(items, self.capabilities.ids_per_query or _IDS_PER_QUERY)

    def hold(self, native_ids: Sequence[str]) -> Mapping[str, str]:
        """Keep these pending jobs from starting; results and errors are those of `cancel`."""
        return self._change_jobs(native_ids, "hold", self._hooks.hold, self._hooks.parse_hold)

    def release(self, native_ids: Sequence[str]) -> Mapping[str, str]:
        """Let these held jobs start; results and errors are those of `cancel`."""
        return self._change_jobs(native_ids, "release", self._hooks.release, self._hooks.parse_release)

    def _change_jobs(
        self,
        native_ids: Sequence[str],
        what: str,
        request: Callable[..., Command | NotOffered],
        parse: Callable[..., Mapping[str, str]],
    ) -> Mapping[str, str]:
        """Request a change of jobs; return the reasons by native id for those that were not changed."""
        ids = self._valid_ids(native_ids)
        refused = {it: f"{it!r} is no native id here" for it in set(native_ids).difference(ids)}
        if not ids:
            return refused
        command = request(native_ids=ids, site=self.site)
        if isinstance(command, NotOffered):
            raise SubmitException(f"the executor {self.name} does not offer {what}")
        result = self._run(command)
        return refused | dict(parse(result=result, native_ids=ids, site=self.site))

    @property
    def can_stream_events(self) -> bool:
        """True if the batch system announces changes of its jobs by itself, and this executor can listen."""
        try:
            return isinstance(self._transport, LineTransport) and not isinstance(
                self._hooks.watch(site=self.site), NotOffered
            )
        except JpsiError:
            log.warning("%s: no events can be received, so jobs are polled", self.name, exc_info=True)
            return False

    def open_event_stream(self) -> Lines:
        """Start the command that prints the batch system's announcements.

        Raises:
            JpsiError: the command cannot be run, or there is none.
        """
        command = self._hooks.watch(site=self.site)
        if isinstance(command, NotOffered) or not isinstance(self._transport, LineTransport):
            raise SubmitException(f"the executor {self.name} offers no stream of job events")
        return self._transport.open(command)

    def parse_event(self, line: str) -> Sequence[str]:
        """Return the native ids of the jobs that a line of that command is about."""
        return self._hooks.parse_event(line=line, site=self.site)

    def _valid_ids(self, native_ids: Sequence[str]) -> list[str]:
        """Return the valid ones of `native_ids`.

        An invalid id could make the whole query fail, or select other jobs.
        """
        known = self._known_ids
        found = [native_id for native_id in native_ids if native_id in known or self._is_id(native_id)]
        known.update(found)
        return found

    def _is_id(self, text: str) -> bool:
        try:
            self.canonical(text)
        except ValueError:
            return False
        return True

    def _run(self, command: Command) -> CommandResult:
        """Run a command that may safely be repeated; raise a transient SubmitException if it times out."""
        result = self._transport.run(self._with_timeout(command))
        log.debug("%s: %s", command, result)
        if result.timed_out:
            raise SubmitException(f"{command.argv[0]} did not answer in time", transient=True)
        return result

    def _with_timeout(self, command: Command) -> Command:
        if command.timeout is not None:
            return command
        return attrs.evolve(command, timeout=self.config.command_timeout)

    def _split_by_array(
        self, native_ids: Sequence[str], limit: int
    ) -> Iterator[tuple[Sequence[str], list[str]]]:
        """Yield at most `limit` names at a time, arrays in place of elements, and the jobs meant by them."""
        arrays = self.names_for_one(native_ids) if len(native_ids) == 1 else self.arrays_of(native_ids)
        return split_by_array(native_ids, arrays, limit)

    def names_for_one(self, native_ids: Sequence[str]) -> dict[str, str]:
        """Return, by native id, the name of a query about that job alone: the id of its array or its own."""
        offered = self.capabilities.arrays
        arrays = {} if offered is not None and offered.names_elements else self.arrays_of(native_ids)
        return {native_id: arrays.get(native_id, native_id) for native_id in native_ids}

    def arrays_of(self, native_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the native id of the array of each of these jobs that is an element of one."""
        if not native_ids or self.capabilities.arrays is None:
            return {}
        return self._hooks.arrays_of(native_ids=native_ids, site=self.site)


_IDS_PER_QUERY = 200
# Known ids are pruned when there are so many times as many of them as a query is about.
_PRUNE_FACTOR = 4


def _split(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def split_by_array(
    native_ids: Sequence[str], arrays: Mapping[str, str], limit: int
) -> Iterator[tuple[Sequence[str], list[str]]]:
    """Yield at most `limit` names at a time, arrays in place of elements, and the jobs meant by them.

    Args:
        native_ids: the jobs.
        arrays: the array of each of them that is an element.
        limit: the number of names.
    """
    jobs: dict[str, list[str]] = {}
    for native_id in native_ids:
        jobs.setdefault(arrays.get(native_id, native_id), []).append(native_id)
    for names in _split(list(jobs), limit):
        yield names, [native_id for name in names for native_id in jobs[name]]


def ids_per_accounting(offered: Capabilities) -> int:
    """Return the number of names in one accounting query."""
    return offered.ids_per_accounting or offered.ids_per_query or _IDS_PER_QUERY


def query_accounting(
    hooks: ExecutorHooks, site: Site, groups: Iterable[tuple[Sequence[str], Sequence[str]]], run: Run
) -> dict[str, Observation] | str:
    """Return what the accounting says about jobs; if there is none, why, as far as that is known.

    Args:
        hooks: those of the batch system.
        site: what the hooks know of it.
        groups: of each query, the names of jobs and arrays, and the jobs meant by them.
        run: runs a query, and raises if it does not end in time.

    Raises:
        SubmitException: the accounting did not answer.
        TransportError: likewise.
    """
    found: dict[str, Observation] = {}
    for names, members in groups:
        command = hooks.query_finished(native_ids=names, site=site)
        if isinstance(command, NotOffered):
            return ""
        try:
            result = run(command)
        except TransportError as e:
            if e.transient or e.may_have_run:
                raise
            # for example, the accounting command does not exist
            return str(e)
        records = hooks.parse_finished(result=result, native_ids=members, site=site)
        if isinstance(records, NotOffered):
            return result.complaint
        found |= records
    return found


def _select(found: Mapping[str, Observation], native_ids: Sequence[str]) -> dict[str, Observation]:
    return {native_id: found[native_id] for native_id in native_ids if native_id in found}


def _native_id(answer: object) -> str:
    """Return a native id that the spool can hold; raise ValueError otherwise."""
    if not is_native_id(answer):
        raise ValueError(f"{answer!r} is no native id")
    return answer


def log_failed_query(system: str, error: JpsiError) -> None:
    """Log a failed query: an outage as information, an error in a plugin as a warning with its traceback."""
    if isinstance(error, PluginError):
        log.warning("the query of %s failed: %s", system, error, exc_info=error)
    else:
        log.info("the query of %s failed: %s", system, error)
