"""Which browser the tests use, and what happens without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from testproject import browser
from tests.browser.conftest import missing
from tests.support.commands import ROOT


def test_without_a_browser_a_test_is_skipped_and_fails_where_one_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("JOBQUEUE_REQUIRE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="make browser"):
        missing(browser.NEEDS)
    monkeypatch.setenv("JOBQUEUE_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="make browser"):
        missing(browser.NEEDS)
    assert "export JOBQUEUE_REQUIRE_BROWSER=1" in (ROOT / ".ci" / "run").read_text()


def test_a_named_browser_is_used_and_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named = tmp_path / "chromium"
    monkeypatch.setenv("CHROMIUM", str(named))
    assert browser.find() is None
    named.touch()
    assert browser.find() == browser.Chromium(named)


def test_a_fetched_browser_brings_its_libraries_and_fonts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser, "INSTALLED", ())
    monkeypatch.setattr(browser, "CACHE", tmp_path)
    monkeypatch.setattr(browser, "CHROMIUM", "@sparticuz/chromium@1.2.3")
    assert browser.find() is None
    folder = tmp_path / "sparticuz-chromium-1.2.3"
    folder.mkdir()
    found = browser.find()
    assert found is not None
    assert found.path == folder / "chromium"
    assert found.env["LD_LIBRARY_PATH"] == str(folder / "lib")
    assert found.env["FONTCONFIG_FILE"] == str(folder / "fonts.conf")


def test_another_platform_is_told_that_it_needs_an_installed_browser(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser, "INSTALLED", ())
    monkeypatch.setattr(browser, "CACHE", tmp_path)
    monkeypatch.setattr(browser, "axe", lambda: tmp_path)
    monkeypatch.setattr(browser.sys, "platform", "plan9")
    with pytest.raises(browser.Unavailable, match="plan9"):
        browser.fetch()
