from __future__ import annotations

import os
from collections.abc import Callable
from http import HTTPStatus

import pytest

from fake_dispatcher import Client, Clock, finish, spec, start
from jpsi import Job
from jpsi_records.jobs.attempt_job import AttemptFiles
from jpsi_records.model.entities import About, Attempt, ExecutionState, new_id
from jpsi_records.records.records import Records
from jpsi_records.store import executions, requests
from jpsi_records.store.ledger import move
from jpsi_records.web.access import Key
from jpsi_records.web.list_pages import PAGE_SIZE
from jpsi_records.web.responses import Answer, answer

KEY = Key(place="place", token="token")
HOST = {"host": "127.0.0.1:80"}
HOSTILE = "<script>alert(1)</script>\"'&\u202e"

Get = Callable[..., Answer]


@pytest.fixture
def get(records: Records) -> Get:
    def get_(path: str = "", method: str = "GET", **headers: str) -> Answer:
        sent = HOST | {"cookie": "jpsi-records=token"} | headers
        return answer(records, KEY, method, f"/place/{path}", sent)

    return get_


@pytest.fixture
def text(get: Get) -> Callable[[str], str]:
    def text_(path: str = "") -> str:
        found = get(path)
        assert found.status is HTTPStatus.OK, found.body
        return found.body.decode()

    return text_


Text = Callable[..., str]


def running_attempt(records: Records, execution: str, number: int = 1) -> AttemptFiles:
    """Return an attempt whose job has written a log."""
    attempt = Attempt(
        id=new_id(records.now()),
        execution=execution,
        number=number,
        executor="local",
        job=Job().id,
        state="ACTIVE",
        created_at=records.now(),
    )
    with records.database.writing() as tx:
        executions.add_attempt(tx, attempt)
    files = AttemptFiles(records.attempt_directory(attempt))
    files.stdout.parent.mkdir(parents=True)
    return files


@pytest.mark.parametrize(
    "path", ["", "executions", "accounting", "style.css", "request/x", "log/x/1/stdout", "nothing", "../etc"]
)
@pytest.mark.parametrize(
    ("place", "headers"),
    [
        ("place", {}),
        ("place", {"cookie": "jpsi-records=tokem"}),
        ("place", {"authorization": "Bearer "}),
        ("other", {"authorization": "Bearer token"}),
    ],
    ids=["no token", "a wrong one", "an empty one", "another place"],
)
def test_without_the_token_every_path_has_the_same_response(
    records: Records, path: str, place: str, headers: dict[str, str]
) -> None:
    found = answer(records, KEY, "GET", f"/{place}/{path}", HOST | headers)

    assert found.status is HTTPStatus.FORBIDDEN
    assert found.body == answer(records, KEY, "GET", "/", HOST).body
    assert "Set-Cookie" not in found.headers


def test_the_link_sets_the_cookie_and_removes_the_token(records: Records) -> None:
    found = answer(records, KEY, "GET", "/place/?token=token", HOST)

    assert found.headers["Set-Cookie"] == KEY.cookie
    assert 'content="0; url=/place/"' in found.body.decode()
    assert "token=token" not in found.body.decode()


def test_a_foreign_host_name_is_refused_even_with_the_token(get: Get) -> None:
    assert get(host="evil.example").status is HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_the_pages_change_no_record(get: Get, method: str) -> None:
    found = get(method=method)

    assert found.status is HTTPStatus.METHOD_NOT_ALLOWED
    assert found.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["", "nothing", "style.css"])
def test_every_response_has_the_security_headers(get: Get, path: str) -> None:
    headers = get(path).headers

    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers


def test_no_page_violates_its_content_policy(records: Records, text: Text) -> None:
    execution = records.submit(spec("a")).execution or ""
    start(records, execution)

    for page in ("", "executions", "accounting", f"execution/{execution}"):
        assert "style=" not in text(page)
        assert text(page).count("<script") == text(page).count('<script src="/place/refresh.js"') == 1


def test_hostile_names_are_text_wherever_they_are_shown(records: Records, text: Text, clock: Clock) -> None:
    other = records.submit(spec("a", environment={"A": HOSTILE})).execution or ""
    more = About(name=HOSTILE, description=HOSTILE, labels={HOSTILE: HOSTILE})
    clock.advance(1)
    request = records.submit(spec("a", HOSTILE), more)
    execution = request.execution or ""
    files = running_attempt(records, execution)
    files.stdout.write_text(f"{HOSTILE}\n\x1b[31m\x00")
    files.stderr.write_bytes(b"\xff<script>")
    start(records, execution)
    status = {"status": {"error": HOSTILE}}
    finish(records, execution, log=records.put(files.stdout.parent).digest, **status)
    records.invalidate(execution, HOSTILE)

    pages = [text(it) for it in ("", "executions", f"request/{request.id}", f"execution/{execution}")]

    assert f"request/{request.id}" in pages[0]
    assert other in pages[2]
    for page in pages:
        assert "<script>" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;" in page
        assert "&amp;\\u202e" in page
        assert not {"\u202e", "\x1b", "\x00"} & set(page)


def test_a_request_page_explains_its_execution(client: Client, text: Text, clock: Clock) -> None:
    records = client("ca")
    first = records.submit(spec("a", environment={"LC_ALL": "C"})).execution or ""
    start(records, first)
    finish(records, first, exit_code=1)
    clock.advance(1)
    again = records.submit(spec("a", environment={"LC_ALL": "C"}))
    finish(records, again.execution or "")
    clock.advance(1)
    reused = records.submit(spec("a", environment={"LC_ALL": "C"}))
    german = records.submit(spec("a", environment={"LC_ALL": "de"}))
    draft = records.draft(spec("b"))
    records.satisfy(draft.id)
    records.commit(draft.id)

    assert "computes the same, but it failed with exit code 1." in text(f"request/{again.id}")
    assert "existed: it computes the same" in text(f"request/{reused.id}")
    assert "was made for it" in text(f"request/{draft.id}")
    page = text(f"request/{german.id}")
    assert "<code>environment.LC_ALL</code></td><td><code>&quot;de&quot;</code>" in page
    assert f"execution/{first}" in page


def test_a_request_page_explains_a_missing_execution(records: Records, text: Text) -> None:
    first = records.submit(spec("a"))
    waits = records.submit(spec("b", after=[first.id]))
    draft = records.draft(spec("c"))

    assert f'<a href="/place/request/{first.id}">' in text(f"request/{waits.id}")
    assert "waits for others" in text()
    assert "as it is a draft" in text(f"request/{draft.id}")
    records.set_priority(first.id, 0)
    missing = {"/in": {"kind": "output", "request": first.id, "path": "/no"}}
    refused = records.submit(spec("d", mounts=missing))
    finish(records, first.execution or "")
    records.advance()
    assert "has no output" in text(f"request/{refused.id}")


def test_a_cancelled_request_is_shown_as_such(records: Records, text: Text) -> None:
    mine, other = (records.submit(spec("a")) for _ in range(2))
    records.cancel(mine.id)

    cancelled = '<span class="state over">cancelled</span>'
    for page in ("", f"request/{mine.id}"):
        assert text(page).count(cancelled) == 1
    assert cancelled not in text(f"request/{other.id}")
    assert ">cancelled</td>" in text(f"execution/{mine.execution}")
    records.cancel(other.id)
    next_ = records.submit(spec("a", placement={"queue_name": "debug"}))
    assert "It has none, as it was cancelled." in text(f"request/{mine.id}")
    assert "waited for requests that were cancelled" in text(f"request/{next_.id}")


def test_a_request_that_waits_for_a_dispatcher_alone_says_so(records: Records, text: Text) -> None:
    request = records.submit(spec("a"))
    with records.database.writing() as tx:
        requests.change(tx, request.id, execution=None)

    page = text(f"request/{request.id}")

    assert "It gets one from a dispatcher: <code>jpsi request dispatch</code>." in page
    assert "these requests" not in page


def test_progress_and_log_of_a_running_execution_are_shown(records: Records, text: Text) -> None:
    execution = records.submit(spec("a")).execution or ""
    files = running_attempt(records, execution)
    files.stdout.write_text("first line")
    start(records, execution)
    records.set_progress(execution, 0.25)

    page = text(f"execution/{execution}")

    assert '<progress value="0.25" max="1">' in page
    assert ">first line</pre>" in page
    assert 'data-live="yes"' in page
    assert '<noscript><meta http-equiv="refresh"' in page
    assert "25% done" in text()


def test_the_page_of_an_ended_execution_is_not_refreshed(records: Records, text: Text) -> None:
    execution = records.submit(spec("a")).execution or ""
    finish(records, execution, output=records.put(__file__).digest)

    for page in ("", "executions", "accounting", f"execution/{execution}"):
        assert "data-live" not in text(page)
    content = text(f"execution/{execution}")
    assert "test_web_responses.py</code>" in content
    assert "jpsi request get sha256:" in content


def test_a_missing_output_does_not_hide_the_rest(records: Records, text: Text) -> None:
    execution = records.submit(spec("a")).execution or ""
    finish(records, execution, output="sha256:" + "0" * 64, log="sha256:" + "1" * 64)
    running_attempt(records, execution)

    assert "complete with exit code 0" in text(f"execution/{execution}")


def test_a_waiting_request_names_its_predecessors(records: Records, text: Text) -> None:
    execution = records.submit(spec("a"), priority=0).execution
    predecessor = records.submit(spec("b")).execution

    assert "It does not run" in text(f"execution/{execution}")
    assert "jpsi request dispatch" in text(f"execution/{predecessor}")


def test_a_log_is_sent_whole_and_no_browser_runs_it(records: Records, get: Get) -> None:
    execution = records.submit(spec("a")).execution or ""
    running_attempt(records, execution).stdout.write_text("<script>" * 20_000)

    found = get(f"log/{execution}/1/stdout")

    assert found.body == b"<script>" * 20_000
    assert found.headers["Content-Type"].startswith("text/plain")
    assert found.headers["Content-Security-Policy"] == "sandbox"
    page = get(f"execution/{execution}").body.decode()
    assert "without the first 94464 bytes" in page


def test_of_several_jobs_each_has_its_log(records: Records, get: Get) -> None:
    execution = records.submit(spec("a")).execution or ""
    running_attempt(records, execution).stdout.write_text("first")
    with records.database.writing() as tx:
        (attempt,) = executions.attempts(tx, execution)
        executions.change_attempt(tx, attempt.id, ended_at=records.now())
    files = running_attempt(records, execution, 2)
    files.stdout.write_text("second")
    finish(records, execution, log=records.put(files.stdout.parent).digest)

    assert get(f"log/{execution}/1/stdout").body == b"first"
    assert get(f"log/{execution}/2/stdout").body == b"second"
    assert get(f"log/{execution}/3/stdout").status is HTTPStatus.NOT_FOUND
    assert get(f"log/{execution}/1/claim").status is HTTPStatus.NOT_FOUND


def test_a_log_that_is_a_symbolic_link_is_not_followed(records: Records, get: Get) -> None:
    execution = records.submit(spec("a")).execution or ""
    files = running_attempt(records, execution)
    files.stdout.symlink_to(__file__)
    os.mkfifo(files.stderr)

    assert get(f"log/{execution}/1/stdout").status is HTTPStatus.NOT_FOUND
    assert get(f"log/{execution}/1/stderr").status is HTTPStatus.NOT_FOUND
    assert b"Log:" not in get(f"execution/{execution}").body


def test_only_ones_own_requests_are_shown_first(client: Client, text: Text) -> None:
    client("cb").submit(spec("a"), About(name="theirs"))
    client("ca").submit(spec("b"), About(name="mine"))

    assert "theirs" not in text()
    assert "mine" in text()
    assert "theirs" in text("?all=1")


def test_older_requests_are_on_further_pages(records: Records, text: Text, clock: Clock) -> None:
    made = []
    for number in range(PAGE_SIZE + 3):
        clock.advance(1)
        made.append(records.submit(spec(str(number)), About(name=f"name{number}.")))

    first = text()
    assert "name52." in first
    assert "name2." not in first
    assert f"?before={made[3].id}" in first
    older = text(f"?before={made[3].id}")
    assert "name2." in older
    assert "name3." not in older
    assert "Older" not in older
    assert f"before={made[3].execution}" in text("executions")
    assert str(made[0].execution) in text(f"executions?before={made[3].execution}")


def test_accounting_is_that_of_the_client(client: Client, text: Text, clock: Clock) -> None:
    assert "There are no requests yet" in text("accounting")
    mine, theirs = client("ca").submit(spec("a")), client("cb").submit(spec("b"))

    page = text("accounting")

    assert mine.id in page
    assert theirs.id not in page
    assert "<svg" in page


@pytest.mark.parametrize(
    "path", ["request/x", "execution/x", "log/x/1/stdout", "a/b", "style.css/x", "%2e%2e"]
)
def test_a_missing_id_is_reported(get: Get, path: str) -> None:
    found = get(path)

    assert found.status is HTTPStatus.NOT_FOUND
    assert b"<h1>Not Found</h1>" in found.body


def test_an_end_without_a_result_is_shown_as_the_failure_that_it_is(records: Records, text: Text) -> None:
    request = records.submit(spec())
    with records.database.writing() as tx:
        move(tx, request.execution or "", ExecutionState.CANCELLED, reason="executable")

    pages = [text(it) for it in ("", "executions", f"request/{request.id}", f"execution/{request.execution}")]

    assert all('class="state bad"' in it and "failed (executable)" in it for it in pages)
    assert not [it for it in pages if "cancelled" in it]
