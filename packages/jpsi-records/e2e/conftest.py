"""A real Chromium that looks at the pages of records; `nox -s e2e_web` installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import Browse, Shown
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's jobs or configuration."""
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


@pytest.fixture
def shown(tmp_path: Path, homes: None) -> Iterator[Shown]:
    """Records of which nothing was ever wanted, and their pages."""
    command = [sys.executable, "-m", "jpsi_cli", "request", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        assert server.stdout is not None
        yield Shown(tmp_path, server.stdout.readline().strip())
        # whatever became of the test, its job ends
        (tmp_path / "go-on").touch()
        server.terminate()


@pytest.fixture
def dispatcher(shown: Shown) -> Iterator[None]:
    """Somebody who sees to what is wanted."""
    command = [sys.executable, "-m", "jpsi_cli", "request", "dispatch"]
    with subprocess.Popen(command, cwd=shown.folder) as process:
        yield
        process.terminate()


@pytest.fixture
def browse(tmp_path: Path) -> Iterator[Browse]:
    """Opens browsers; without scripts if asked to."""
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
