"""Secrets taken out of data by key, and out of text by what they look like."""

from __future__ import annotations

import json
from typing import Any

import pytest

from django_jobqueue.text.redaction import MASK, mask_data, mask_text, secrets_in
from tests.support.tables import differing

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKC\nAQEA7bq2\n"
END = "-----END RSA PRIVATE KEY-----"


USUAL = (
    *("password", "PASSWORD", "db_password", "passwd", "client_secret", "token"),
    *("accessToken", "api_key", "api-key", "APIKEY", "Authorization", "cookie"),
    *("session_id", "card", "card_number", "cvv", "iban", "ssn"),
)


def test_what_is_kept_under_the_names_of_secrets_is_masked() -> None:
    for key in USUAL:
        assert mask_data({key: "value"}) == {key: MASK}
        assert mask_data({"a": [{key: {"deep": 1}}]}) == {"a": [{key: MASK}]}
    data: Any = {"Email": "a@b.ch", "note": "n", "inner": {"email": ["a@b.ch"]}}
    masked = {"Email": MASK, "note": "n", "inner": {"email": MASK}}
    assert mask_data(data, ("email",)) == masked
    for value in (None, 5, "text", True, [], {}, [1, "a"]):
        assert mask_data(value) == value
    assert mask_data({"emails_sent": 5}, ("email",)) == {"emails_sent": 5}
    data = {"token": "abcd", "list": [{"token": "abcd"}]}
    mask_data(data)
    assert data == {"token": "abcd", "list": [{"token": "abcd"}]}


MASKED = {
    f"got {JWT} from": f"got {MASK} from",
    f"Authorization: Bearer {JWT}": f"Authorization: Bearer {MASK}",
    "bearer abcdef-0123456": f"bearer {MASK}",
    "Bearer sk_live_51H/x+y=": f"Bearer {MASK}",
    "postgres://shop:s3cret@db:5432/x": f"postgres://{MASK}@db:5432/x",
    "https://anna:p%40ss@shop.ch/a?b": f"https://{MASK}@shop.ch/a?b",
    "host=db password=s3cret dbname=x": f"host=db password={MASK} dbname=x",
    "a?PASSWORD=s3cret&b=1": f"a?PASSWORD={MASK}&b=1",
    "paid with 4111111111111111.": f"paid with {MASK}.",
    "4111 1111 1111 1111": MASK,
    "5500-0000-0000-0004": MASK,
    "amex 378282246310005": f"amex {MASK}",
    f"key: {KEY}{END} end": f"key: {MASK} end",
    f"key: {KEY}": f"key: {MASK}",
    f"{KEY.replace('RSA ', '')}cut off": MASK,
}
UNMASKED = (
    "",
    "nothing to hide",
    "order 4111111111111112",  # fails the check of card numbers
    "order 123456789012",  # too short for one
    "019aa2f0-0000-7000-8000-000000000001",
    "https://shop.ch:8000/orders",
    "postgres://shop@db/x",
    "the bearer of this letter",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "at 2026-11-21 12:00:00.123456",
    "at 1763726400000",  # passes the check, but no card begins with a 1
    "4111-1111 1111-1111",  # no card is written so
    "unexpected token: 'x'",
    "{'passwords_sent': 5}",
    "token = next_token()",
)
FORMS = [
    ("redis://:s3cret@cache:6379/0", "s3cret"),
    ("connect(password='s3cret')", "s3cret"),
    ('password="s3 cret"', "s3 cret"),
    ("{'api_key': 's3\\'cret', 'a': 'b'}", "cret"),
    ('{"access_token": "s3cret", "a": "b"}', "s3cret"),
    ("session_id = 's3cret'", "s3cret"),
    ("order 7 4111111111111111 declined", "4111111111111111"),
    ("order 4112 4111 1111 1111 1111 declined", "4111 1111 1111"),
    ("order 5 4111 1111 1111 1111, 7", "4111 1111"),
    ("amex 3782-822463-10005", "822463"),
]


def test_what_looks_like_a_credential_is_masked_and_all_else_stays() -> None:
    rows = [*MASKED.items(), *((text, text) for text in UNMASKED)]
    assert differing(rows, mask_text) == []
    hidden = differing(FORMS, mask_text, lambda got, secret: secret not in got)
    assert hidden == []


def test_a_given_secret_is_masked_wherever_it_stands() -> None:
    text = "tokentoken, a token; TOKEN"
    assert mask_text(text, {"token"}) == f"{MASK}, a {MASK}; TOKEN"
    assert mask_text("abcdefgh abcd", ["abcd", "abcdefgh"]) == f"{MASK} {MASK}"
    assert mask_text("a.c+ abc", {"a.c+"}) == f"{MASK} abc"  # it is no pattern
    secret = "a\\b'c\"d\nwörd"  # also as repr and JSON show it
    for text in ("{value}", "{value!r}", '{{"key": {json}}}'):
        shown = text.format(value=secret, json=json.dumps(secret))
        assert "rd" not in mask_text(shown, {secret})


def test_the_values_of_sensitive_keys_are_the_secrets_of_a_job() -> None:
    data = {
        "Token": "abcdef",
        "inner": [{"token": ["first", {"x": "second"}]}],
        **{"token_count": "not one", "pin": 123_456, "open": "to see"},
    }
    assert secrets_in(data, ("token", "pin")) == {"abcdef", "first", "second", "123456"}
    # Values that are too short to mask, and those of other keys, are none.
    short: Any = {"token": ["abc", "", 12, None, True, False]}
    for without in (short, None, "text", 5, [1, 2], {"a": 1}):
        assert secrets_in(without, ("token",)) == set()
    assert secrets_in({"token": "abcdef"}, ()) == set()
    # Plain SQL may write anything into a job type's list of sensitive keys.
    names: list[Any] = [1, None, "pin"]
    assert secrets_in({"pin": "12345", "1": "67890"}, names) == {"12345", "67890"}
    assert mask_data({"pin": "12345", "a": 1}, names) == {"pin": MASK, "a": 1}


# Each held the interpreter for minutes, and now takes less than a second.
@pytest.mark.dear
@pytest.mark.timeout(9)
@pytest.mark.parametrize(
    ("text", "secret", "masked"),
    [
        ("eyJ-" * 150_000, "", "eyJ-" * 150_000),
        ("4111111111111111 " * 35_000, "", f"{MASK} " * 35_000),
        ("a" * 600_000, "a" * 300_000, MASK),
        ("b" * 600_000, ["b" * n + "a" for n in range(4, 200)], MASK),
    ],
    ids=["beginnings of tokens", "cards", "a long secret", "secrets like each other"],
)
def test_what_is_repeated_takes_no_longer_than_other_texts(
    text: str, secret: str | list[str], masked: str
) -> None:
    assert mask_text(text, secrets_in({"pin": secret}, ["pin"])) == masked


def test_what_begins_as_a_long_secret_is_masked_as_far_as_that_goes() -> None:
    long = "".join(f"{n} " for n in range(1_000))
    secrets = secrets_in({"pin": [long, long[:300], "x" * 5]}, ["pin"])
    assert mask_text(f"<{long}>", secrets) == f"<{MASK}>"
    assert mask_text(f"<{long[:250]}", secrets) == f"<{MASK}"
    assert mask_text(f"<{long[:150]}>", secrets) == f"<{long[:150]}>"
