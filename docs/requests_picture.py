"""Makes the picture of the pages of records in the guide, from a real run, with a real Chromium.

    python docs/requests_picture.py

It takes jpsi-records, jpsi-testing and selenium, and what ci/chromium/up installs. A job of this
machine runs for some seconds; the picture is written beside the guide.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from jpsi_records import About, Dispatcher, Records, read_request_spec
from jpsi_records.web import Server
from jpsi_testing.waiting import eventually

PICTURE = Path(__file__).parent / "guide" / "requests-page.png"
WIDTH, HEIGHT = 900, 988
#: How much of it is done when the priority is raised, and when the picture is taken.
MIDDLE, WELL_ON = 0.4, 0.6
#: What runs while the picture is taken.
STEPS = (
    'for n in 1 2 3 4 5 6; do echo "step $n of 10: residual 1e-$n"; echo 0.$n >$JPSI_PROGRESS; sleep 1; done'
)
HEAT = read_request_spec({"command": ["sh", "-c", f"{STEPS}; sleep 600"]})


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["XDG_STATE_HOME"] = folder
        directory = Path(folder, "records")
        with Records(directory, user="ann") as ann, Records(directory, user="kim") as kim, dispatching(ann):
            execution = wanted(ann, kim)
            with serving(ann) as server, browser() as chromium:
                take(chromium, server, execution)
            for it in (ann, kim):
                it.cancel(it.requests(owner=it.user)[0].id)
            assert eventually(lambda: ann.execution(execution).state.ended)


def wanted(ann: Records, kim: Records) -> str:
    """Let two people want the same, one of them urgently; returns the execution, which is well on its way."""
    request = ann.submit(HEAT, About(name="heat equation, 10 steps"))
    execution = request.execution or ""
    kim.submit(HEAT, About(name="heat for the report"))
    assert eventually(lambda: ann.execution(execution).progress >= MIDDLE)
    ann.set_priority(request.id, 5)
    assert eventually(lambda: ann.execution(execution).progress >= WELL_ON)
    return execution


@contextlib.contextmanager
def dispatching(records: Records) -> Iterator[None]:
    """Somebody who sees to what is wanted."""
    is_over = threading.Event()
    dispatcher = Dispatcher(records)
    thread = threading.Thread(target=dispatcher.run, kwargs={"is_over": is_over.is_set})
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        dispatcher.close()


@contextlib.contextmanager
def serving(records: Records) -> Iterator[Server]:
    """The pages."""
    with Server(records) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def browser() -> Iterator[Chrome]:
    """A Chromium without a screen."""
    options = ChromeOptions()
    for it in ("--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(it)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    chromium = Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield chromium
    finally:
        chromium.quit()


def take(chromium: Chrome, server: Server, execution: str) -> None:
    """Make the picture of a page."""
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.get(server.link)
    assert eventually(lambda: "Requests" in chromium.title)
    chromium.get(f"{server.link.partition('?')[0]}execution/{execution}")
    assert eventually(lambda: chromium.execute_script("return document.readyState === 'complete'"))
    chromium.save_screenshot(str(PICTURE))


if __name__ == "__main__":
    main()
