"""Reads job documents from files and standard input, for `jpsi run`, `submit`, `script` and `validate`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence

import jpsi
from jpsi.plugin import word
from jpsi_engine import retry_field_problems

from .. import messages
from .command_warnings import warn_of_habits
from .job_spec import Options, make_spec


def read_document(file: str, *, is_lenient: bool = False) -> jpsi.JobSpec:
    """Return the spec in a document; keys without an effect are an error, or a warning if `is_lenient`.

    Raises:
        InvalidJobException: the file cannot be read, or its content is wrong.
    """
    name, text = _read(file)
    try:
        return _parse_spec(text, name, is_lenient=is_lenient)
    except jpsi.InvalidJobException:
        if text.startswith("#!"):
            path = word(file if "/" in file else f"./{file}")
            how = (
                ""
                if file == "-"
                else (
                    f": jpsi submit -- {path} runs it as it is; if it has "
                    f"directives, such as #SBATCH: jpsi convert {path} > job.yaml"
                )
            )
            msg = f"{name} is a script, not a job document{how}"
            raise jpsi.InvalidJobException(msg) from None
        if not _is_json_lines(text):
            raise
        msg = f"{name} has a document on each line: jpsi submit and jpsi validate take it as --many {file}"
        raise jpsi.InvalidJobException(msg) from None


def read_job(  # noqa: PLR0913  all that makes a job
    command: Sequence[str],
    file: str | None,
    options: Options,
    *,
    executor: str | None,
    is_expanding: bool,
    is_lenient: bool,
) -> jpsi.Job:
    """Return the job of a document or of a command, with options, for an executor or target.

    Raises:
        InvalidJobException: the file cannot be read, or its content or an option is wrong.
    """
    document = None if file is None else read_document(file, is_lenient=is_lenient)
    spec = make_spec(document, command, options, is_expanding=is_expanding)
    warn_of_habits(command, options, spec, executor)
    return jpsi.Job(spec)


def read_documents(files: Iterable[str], *, is_lenient: bool) -> list[tuple[str, jpsi.JobSpec]]:
    """Return the specs in files, each as a pair with the name of its file for messages.

    Raises:
        InvalidJobException: as `read_document`; it names everything that is wrong in any file.
    """
    specs, errors = [], list[jpsi.InvalidJobException]()
    for file in files:
        try:
            specs.append((file_label(file), read_document(file, is_lenient=is_lenient)))
        except jpsi.InvalidJobException as e:
            errors.append(e)
    if len(errors) > 1:
        what = f"what is in {len(errors)} files"
        raise jpsi.InvalidJobException.of(what, [problem for it in errors for problem in it.problems])
    if errors:
        raise errors[0]
    return specs


def read_json_lines(file: str, *, is_lenient: bool) -> list[tuple[str, jpsi.JobSpec]]:
    """Return the specs in a file with a JSON document on each line, each as a pair with its file and line.

    Empty lines are skipped.

    Raises:
        InvalidJobException: the file cannot be read, or its content is wrong; it names all that is wrong.
    """
    name, text = _read(file)
    if text.strip() and "{" not in {line.lstrip()[:1] for line in text.split("\n")}:
        msg = f"{name} has no job document in JSON on any line; if it is one document: -f {file}"
        raise jpsi.InvalidJobException(msg)
    specs, problems = [], list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        location = f"{name}, line {number}"
        try:
            specs.append((location, _parse_line(line, location, is_lenient=is_lenient)))
        except jpsi.InvalidJobException as e:
            problems += e.problems
    if problems:
        raise jpsi.InvalidJobException.of(name, problems)
    if not specs:
        msg = f"{name} has no job in it"
        raise jpsi.InvalidJobException(msg)
    return specs


def file_label(file: str) -> str:
    """Return the name of a file in messages."""
    return "standard input" if file == "-" else file


def _read(file: str) -> tuple[str, str]:
    """Return the name of a file in messages, and its content."""
    name = file_label(file)
    try:
        # The descriptor itself: sys.stdin is None if standard input is closed.
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as opened:
            return name, opened.read().decode()
    except OSError as e:
        msg = f"{name} cannot be read: {e.strerror}"
        raise jpsi.InvalidJobException(msg, e) from e
    except UnicodeDecodeError as e:
        msg = f"{name} is not text in UTF-8: byte {e.start + 1} is {e.object[e.start]:#04x}"
        raise jpsi.InvalidJobException(msg, e) from e


def _is_json_lines(text: str) -> bool:
    """Return True if a text looks as if each of its lines were a JSON document."""
    lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
    return len(lines) > 1 and all(line[0] == "{" and line[-1] == "}" for line in lines)


def _parse_line(text: str, location: str, *, is_lenient: bool) -> jpsi.JobSpec:
    try:
        json.loads(text)
    except json.JSONDecodeError as e:
        msg = f"{location}: is not a document in JSON: {e.msg}, at character {e.colno}"
        raise jpsi.InvalidJobException(msg) from e
    return _parse_spec(text, location, is_lenient=is_lenient, is_line=True)


def _parse_spec(text: str, name: str, *, is_lenient: bool, is_line: bool = False) -> jpsi.JobSpec:
    def localize(sentence: str) -> str:
        # the number of a line within one line says nothing
        return sentence.replace(f"{name}:1: ", f"{name}: ") if is_line else sentence

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", jpsi.DocumentWarning)
        try:
            spec: jpsi.JobSpec | None = jpsi.read_document(
                text, name, lenient=True, check=retry_field_problems
            )
            problems: Sequence[str] = ()
        except jpsi.InvalidJobException as e:
            spec, problems = None, e.problems
    unknown = [line for warning in caught for line in str(warning.message).splitlines()]
    if is_lenient:
        messages.warning(localize("\n".join(unknown)))
    else:
        # first, since an unknown key may be the whole reason for the other problems
        problems = [*(f"{it} (--lenient ignores it)" for it in unknown), *problems]
    if spec is None or problems:
        raise jpsi.InvalidJobException.of(name, [localize(it) for it in problems])
    return spec
