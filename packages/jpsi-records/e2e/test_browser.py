"""The pages of `jpsi request serve` as a browser has them."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

import pytest
from browsing import Browse, Shown
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import Chrome

from jpsi_testing.waiting import eventually

WORDS = """\
command: [sort, "${JPSI_ROOT}/words"]
environment: {LC_ALL: C}
mounts:
  /words: {kind: text, content: "b\\na\\n"}
"""
#: A job that goes on when it is told to. What it writes is not what stands in its command.
STEPS = """\
command: [sh, -c, 'echo beg""un; echo 0.25 >$JPSI_PROGRESS; until [ -e %s ]; do sleep 0.2; done; echo ov""er']
"""
HOSTILE = '"><script>document.title=1</script><img src=x onerror="document.title=2">'


def text(browser: Chrome, selector: str = "body") -> str:
    """What can be read; nothing while the page gives way to a newer one."""
    try:
        return browser.find_element("css selector", selector).text
    except (NoSuchElementException, StaleElementReferenceException):
        return ""


def reads(browser: Chrome, wanted: str) -> Callable[[], bool]:
    return lambda: wanted in text(browser)


def follow(browser: Chrome, selector: str) -> None:
    """Follow a link."""
    before = browser.current_url

    def has_gone() -> bool:
        if browser.current_url != before:
            return True
        # What was found may give way to something newer before it is clicked.
        with contextlib.suppress(NoSuchElementException, StaleElementReferenceException):
            browser.find_element("css selector", selector).click()
        return False

    assert eventually(has_gone)


def is_there(browser: Chrome) -> bool:
    """Whether the page has everything that belongs to it."""
    return bool(browser.execute_script("return document.readyState === 'complete'"))


def enter(browser: Chrome, shown: Shown) -> None:
    browser.get(shown.link)
    assert eventually(lambda: "Requests" in browser.title and is_there(browser))


def test_the_link_leads_to_the_requests_and_the_token_stays_behind(browse: Browse, shown: Shown) -> None:
    browser = browse()

    enter(browser, shown)

    assert browser.current_url == shown.link.partition("?")[0]
    assert "There are none." in text(browser)
    token = shown.link.partition("=")[2]
    assert token not in browser.page_source
    assert token not in str(browser.execute_script("return document.cookie"))


def test_visitors_without_a_token_see_nothing(browse: Browse, shown: Shown) -> None:
    browser = browse()

    browser.get(shown.link.partition("?")[0])

    assert "Forbidden" in text(browser)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_job_is_followed_to_its_end(browse: Browse, shown: Shown, dispatcher: None, scripts: bool) -> None:
    file = shown.write("steps.yaml", STEPS % (shown.folder / "go-on"))
    shown.jpsi("submit", file, "--name", "steps")
    browser = browse(scripts=scripts)

    enter(browser, shown)
    follow(browser, "td a")
    follow(browser, "p a[href*='/execution/']")

    assert eventually(reads(browser, "running, 25% done"))
    assert eventually(reads(browser, "begun"))
    assert "over" not in text(browser)
    shown.write("go-on", "")
    assert eventually(reads(browser, "complete with exit code 0"))
    assert "begun\nover" in text(browser)
    assert "Accounting" in text(browser)
    browser.find_element("css selector", "svg rect.runs")


def test_what_is_read_stays_where_it_is_while_the_page_is_kept_up_to_date(
    browse: Browse, shown: Shown, dispatcher: None
) -> None:
    file = shown.write("steps.yaml", STEPS % (shown.folder / "go-on"))
    made = json.loads(shown.jpsi("submit", file, "--json"))
    browser = browse()
    enter(browser, shown)
    browser.get(f"{browser.current_url}execution/{made['execution']}")
    assert eventually(reads(browser, "begun"))
    browser.execute_script("window.here = true; window.scrollTo(0, 50)")

    shown.write("go-on", "")

    assert eventually(reads(browser, "complete with exit code 0"))
    assert browser.execute_script("return [window.here, window.scrollY]") == [True, 50]


def test_reuse_is_explained(browse: Browse, shown: Shown) -> None:
    shown.write("words.yaml", WORDS)
    shown.jpsi("run", "words.yaml")
    shown.jpsi("run", "words.yaml")
    shown.write("german.yaml", WORDS.replace("LC_ALL: C", "LC_ALL: de_DE.UTF-8"))
    shown.jpsi("submit", "german.yaml", "--name", "german")
    browser = browse()

    enter(browser, shown)
    links = [it.get_attribute("href") for it in browser.find_elements("css selector", "td a")]
    browser.get(str(links[1]))
    assert "existed: it computes the same" in text(browser)
    browser.get(str(links[0]))
    assert 'environment.LC_ALL "de_DE.UTF-8" "C"' in text(browser)


def test_a_hostile_name_is_only_read(browse: Browse, shown: Shown) -> None:
    shown.write("job.json", json.dumps({"command": ["sh", "-c", 'printf %s "$0"', HOSTILE]}))
    shown.jpsi("run", "job.json", "--name", HOSTILE, "--label", f"{HOSTILE.replace('=', '')}=b")
    browser = browse()

    enter(browser, shown)
    assert HOSTILE in text(browser)
    follow(browser, "td a")
    follow(browser, "p a[href*='/execution/']")

    assert HOSTILE in text(browser, "pre")
    assert "jpsi" in browser.title
    # Nothing was refused, as there was nothing to refuse.
    assert browser.get_log("browser") == []
    follow(browser, "a[href*='/log/']")
    assert text(browser) == HOSTILE


@pytest.mark.parametrize("width", [360, 1400])
def test_no_page_is_wider_than_the_window(browse: Browse, shown: Shown, width: int) -> None:
    shown.write("words.yaml", WORDS)
    made = json.loads(shown.jpsi("submit", "words.yaml", "--name", "w" * 300, "--json"))
    browser = browse()
    enter(browser, shown)
    size = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    here = browser.current_url

    for path in ("", "executions", "accounting", f"request/{made['id']}", f"execution/{made['execution']}"):
        browser.get(here + path)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_dark_screen_stays_dark(browse: Browse, shown: Shown) -> None:
    browser = browse()
    enter(browser, shown)
    grounds = {}

    for scheme in ("light", "dark"):
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        grounds[scheme] = browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    assert grounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 31)"}


class Stranger(BaseHTTPRequestHandler):
    """A page of somebody else on the same machine."""

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
def stranger() -> Iterator[HTTPServer]:
    Stranger.cookies = []
    # browsers also connect without asking anything yet
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
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
    browse: Browse, shown: Shown, stranger: HTTPServer
) -> None:
    browser = browse()
    enter(browser, shown)
    here = browser.current_url

    browser.get(f"http://127.0.0.1:{stranger.server_address[1]}/")

    assert browser.execute_async_script(TRY, here) == "refused"
    assert browser.execute_async_script(FRAMED, here) == "refused"
    assert all("jpsi" not in (it or "") for it in Stranger.cookies)
    assert Stranger.cookies
