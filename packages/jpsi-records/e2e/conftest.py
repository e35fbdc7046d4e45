"""A real Chromium that opens the pages of records; `nox -s e2e_web` installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_support import Browse, RecordsServer
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service


@pytest.fixture(autouse=True)
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's jobs and configuration from each test."""
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


@pytest.fixture
def records_server(tmp_path: Path, private_home: None) -> Iterator[RecordsServer]:
    """Yield empty records and the server of their pages."""
    command = [sys.executable, "-m", "jpsi_cli", "request", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        assert server.stdout is not None
        yield RecordsServer(tmp_path, server.stdout.readline().strip())
        # however the test ended, its job ends
        (tmp_path / "go-on").touch()
        server.terminate()


@pytest.fixture
def dispatcher(records_server: RecordsServer) -> Iterator[None]:
    """Run a dispatcher during the test."""
    command = [sys.executable, "-m", "jpsi_cli", "request", "dispatch"]
    with subprocess.Popen(command, cwd=records_server.folder) as process:
        yield
        process.terminate()


@pytest.fixture
def browse(tmp_path: Path) -> Iterator[Browse]:
    """Yield a function that opens browsers, by default with scripts."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no chromium, or no chromedriver, on PATH; ci/chromium/up installs them")
    opened: list[Chrome] = []

    def browse_(*, scripts: bool = True) -> Chrome:
        options = ChromeOptions()
        options.binary_location = chromium
        profile = tmp_path / f"profile{len(opened)}"
        for it in ("--headless=new", "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
            options.add_argument(it)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        if not scripts:
            options.add_experimental_option(
                "prefs", {"profile.managed_default_content_settings.javascript": 2}
            )
        opened.append(Chrome(options=options, service=Service(driver)))
        opened[-1].set_window_size(1000, 800)
        return opened[-1]

    yield browse_
    for it in opened:
        it.quit()
