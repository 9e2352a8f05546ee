"""Texts made fit to be stored: bounded, storable, and without half a secret."""

from __future__ import annotations

from django_jobqueue.text.redaction import MASK, mask_end, mask_start
from django_jobqueue.text.sanitizing import clean, storable, text_of
from tests.support.tables import differing

SECRET = "the-secret-of-forty-characters-01234567"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"


class Unprintable:
    def __str__(self) -> str:
        raise SystemExit("no text")


def test_what_postgresql_refuses_is_escaped_and_a_short_text_kept() -> None:
    stored = [
        *(("plain ü 🎉\n", "plain ü 🎉\n"), ("", "")),
        *(("a\x00b", "a\\x00b"), ("\ud800", "\\ud800")),
    ]
    assert differing(stored, storable) == []
    assert [text_of(one) for one in ("a", ValueError("no stock"), Unprintable())] == [
        *("a", "no stock", "<this cannot be formatted>")
    ]
    assert clean("no stock", 100) == "no stock"
    assert clean("x" * 100, 100) == "x" * 100


def test_a_long_text_keeps_both_ends_within_its_bytes() -> None:
    for letter in ("x", "ü", "\U0001f389", "\x00"):
        kept = clean(f"begin{letter * 10_000}end", 300)
        assert len(kept.encode()) <= 300
        assert kept.startswith("begin")
        assert kept.endswith("end")
        assert "\n… 10,008 characters, cut here …\n" in kept
    kept = clean("ü" * 200, 300)  # too many bytes alone
    assert len(kept.encode()) <= 300
    assert "200 characters, cut here" in kept


def test_no_half_of_a_secret_is_left_at_a_cut() -> None:
    wholes: tuple[tuple[str, set[str]], ...] = ((SECRET, {SECRET}), (JWT, set()))
    for secret, given in wholes:
        for offset in range(0, 200, 7):
            text = "x" * offset + f" {secret} " + "y" * 1_000
            for shown in (
                mask_start(text, 100, given),
                mask_end(text[::-1].replace(secret[::-1], secret), 100, given),
                clean(text, 256, given),
            ):
                assert secret[:8] not in shown
                assert secret[-8:] not in shown
    kept = clean(f"{SECRET} " * 9_000, 500, {SECRET})
    assert SECRET[:8] not in kept
    assert SECRET[-8:] not in kept
    assert MASK in kept
