"""The pages of `jpsi request serve` in a browser."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

import pytest
from browser_support import Browse, RecordsServer
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import Chrome

from jpsi_testing.waiting import eventually

WORDS = """\
command: [sort, "${JPSI_ROOT}/words"]
environment: {LC_ALL: C}
mounts:
  /words: {kind: text, content: "b\\na\\n"}
"""
#: A job that waits for a file. Its output does not occur in its command.
STEPS = """\
command: [sh, -c, 'echo beg""un; echo 0.25 >$JPSI_PROGRESS; until [ -e %s ]; do sleep 0.2; done; echo ov""er']
"""
HOSTILE = '"><script>document.title=1</script><img src=x onerror="document.title=2">'


def text(browser: Chrome, selector: str = "body") -> str:
    """Return the visible text; "" while a newer page replaces this one."""
    try:
        return browser.find_element("css selector", selector).text
    except (NoSuchElementException, StaleElementReferenceException):
        return ""


def reads(browser: Chrome, expected: str) -> Callable[[], bool]:
    return lambda: expected in text(browser)


def follow(browser: Chrome, selector: str) -> None:
    """Click a link and wait until its page is complete."""
    before = browser.current_url

    def has_gone() -> bool:
        if browser.current_url != before:
            return True
        # A newer page may replace the link before the click.
        with contextlib.suppress(NoSuchElementException, StaleElementReferenceException):
            browser.find_element("css selector", selector).click()
        return False

    assert eventually(has_gone)


def is_complete(browser: Chrome) -> bool:
    """Return True if the page is complete."""
    return bool(browser.execute_script("return document.readyState === 'complete'"))


def enter(browser: Chrome, records_server: RecordsServer) -> None:
    browser.get(records_server.link)
    assert eventually(lambda: "Requests" in browser.title and is_complete(browser))


def test_the_link_leads_to_the_requests_and_the_token_stays_behind(
    browse: Browse, records_server: RecordsServer
) -> None:
    browser = browse()

    enter(browser, records_server)

    assert browser.current_url == records_server.link.partition("?")[0]
    assert "There are none." in text(browser)
    token = records_server.link.partition("=")[2]
    assert token not in browser.page_source
    assert token not in str(browser.execute_script("return document.cookie"))


def test_visitors_without_a_token_see_nothing(browse: Browse, records_server: RecordsServer) -> None:
    browser = browse()

    browser.get(records_server.link.partition("?")[0])

    assert "Forbidden" in text(browser)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_job_is_followed_to_its_end(
    browse: Browse, records_server: RecordsServer, dispatcher: None, scripts: bool
) -> None:
    file = records_server.write("steps.yaml", STEPS % (records_server.folder / "go-on"))
    records_server.jpsi("submit", file, "--name", "steps")
    browser = browse(scripts=scripts)

    enter(browser, records_server)
    follow(browser, "td a")
    follow(browser, "p a[href*='/execution/']")

    assert eventually(reads(browser, "running, 25% done"))
    assert eventually(reads(browser, "begun"))
    assert "over" not in text(browser)
    records_server.write("go-on", "")
    assert eventually(reads(browser, "complete with exit code 0"))
    assert "begun\nover" in text(browser)
    assert "Accounting" in text(browser)
    browser.find_element("css selector", "svg rect.runs")


def test_the_scroll_position_stays_while_the_page_is_updated(
    browse: Browse, records_server: RecordsServer, dispatcher: None
) -> None:
    file = records_server.write("steps.yaml", STEPS % (records_server.folder / "go-on"))
    made = json.loads(records_server.jpsi("submit", file, "--json"))
    browser = browse()
    enter(browser, records_server)
    browser.get(f"{browser.current_url}execution/{made['execution']}")
    assert eventually(reads(browser, "begun"))
    browser.execute_script("window.here = true; window.scrollTo(0, 50)")

    records_server.write("go-on", "")

    assert eventually(reads(browser, "complete with exit code 0"))
    assert browser.execute_script("return [window.here, window.scrollY]") == [True, 50]


def test_reuse_is_explained(browse: Browse, records_server: RecordsServer) -> None:
    records_server.write("words.yaml", WORDS)
    records_server.jpsi("run", "words.yaml")
    records_server.jpsi("run", "words.yaml")
    records_server.write("german.yaml", WORDS.replace("LC_ALL: C", "LC_ALL: de_DE.UTF-8"))
    records_server.jpsi("submit", "german.yaml", "--name", "german")
    browser = browse()

    enter(browser, records_server)
    links = [it.get_attribute("href") for it in browser.find_elements("css selector", "td a")]
    browser.get(str(links[1]))
    assert "existed: it computes the same" in text(browser)
    browser.get(str(links[0]))
    assert 'environment.LC_ALL "de_DE.UTF-8" "C"' in text(browser)


def test_a_hostile_name_is_only_text(browse: Browse, records_server: RecordsServer) -> None:
    records_server.write("job.json", json.dumps({"command": ["sh", "-c", 'printf %s "$0"', HOSTILE]}))
    records_server.jpsi("run", "job.json", "--name", HOSTILE, "--label", f"{HOSTILE.replace('=', '')}=b")
    browser = browse()

    enter(browser, records_server)
    assert HOSTILE in text(browser)
    follow(browser, "td a")
    follow(browser, "p a[href*='/execution/']")

    assert HOSTILE in text(browser, "pre")
    assert "jpsi" in browser.title
    # The browser blocked nothing, as there was nothing to block.
    assert browser.get_log("browser") == []
    follow(browser, "a[href*='/log/']")
    assert text(browser) == HOSTILE


@pytest.mark.parametrize("width", [360, 1400])
def test_no_page_is_wider_than_the_window(browse: Browse, records_server: RecordsServer, width: int) -> None:
    records_server.write("words.yaml", WORDS)
    made = json.loads(records_server.jpsi("submit", "words.yaml", "--name", "w" * 300, "--json"))
    browser = browse()
    enter(browser, records_server)
    size = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    here = browser.current_url

    for path in ("", "executions", "accounting", f"request/{made['id']}", f"execution/{made['execution']}"):
        browser.get(here + path)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_dark_screen_stays_dark(browse: Browse, records_server: RecordsServer) -> None:
    browser = browse()
    enter(browser, records_server)
    grounds = {}

    for scheme in ("light", "dark"):
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        grounds[scheme] = browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    assert grounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 31)"}


class ForeignPage(BaseHTTPRequestHandler):
    """A page of another user on the same machine."""

    cookies: list[str | None]
    page = ""

    def do_GET(self) -> None:
        self.cookies.append(self.headers["Cookie"])
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page.encode())

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def foreign_server() -> Iterator[HTTPServer]:
    ForeignPage.cookies = []
    # browsers also connect without sending a request
    with ThreadingHTTPServer(("127.0.0.1", 0), ForeignPage) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


TRY = """
const [address, done] = [arguments[0], arguments[1]];
fetch(address, {credentials: "include"}).then(it => it.text(), () => "refused").then(done);
"""
FRAMED = """
const [address, done] = [arguments[0], arguments[1]];
const frame = document.createElement("iframe");
frame.onload = () => { try { done(frame.contentDocument.body.innerText) } catch { done("refused") } };
frame.src = address;
document.body.append(frame);
"""


def test_a_page_of_another_user_on_this_machine_learns_nothing(
    browse: Browse, records_server: RecordsServer, foreign_server: HTTPServer
) -> None:
    browser = browse()
    enter(browser, records_server)
    here = browser.current_url

    browser.get(f"http://127.0.0.1:{foreign_server.server_address[1]}/")

    assert browser.execute_async_script(TRY, here) == "refused"
    assert browser.execute_async_script(FRAMED, here) == "refused"
    assert all("jpsi" not in (it or "") for it in ForeignPage.cookies)
    assert ForeignPage.cookies
