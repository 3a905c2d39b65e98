"""Secrets go, ordinary values stay, and hostile text costs linear time."""

from __future__ import annotations

import base64
import json
import random
import re
import sys
import time
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.secrets.personal import is_card
from engine.secrets.redaction import DEPTH, TEXT_CHARACTERS, redact, redact_text, redacted


def text(length: int, letters: str = "ABCDEFGHJKMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789", seed: int = 1) -> str:
    return "".join(random.Random(seed).choices(letters, k=length))  # noqa: S311 (looks like a key, opens nothing)


HEX = "0123456789abcdef"
SECRETS = {
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
    "private key without end": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nb3Bl",
    "putty key": "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nPrivate-Lines: 1\nAAAAgQCx",
    "pgp key": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOYBF\n-----END PGP PRIVATE KEY BLOCK-----",
    "aws access key": "AKIAIOSFODNN7EXAMPLF",
    "aws secret key": "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",
    "google api key": "AIza" + text(35),
    "google oauth": "ya29." + text(40),
    "azure client secret": "abC8Q~" + text(34),
    "azure storage": f"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={text(86)}==",
    "github": "ghp_" + text(36),
    "github fine": "github_pat_" + text(22) + "_" + text(59),
    "gitlab": "glpat-" + text(20),
    "slack": "xoxb-" + text(12, "0123456789") + "-" + text(24),
    "slack hook": "https://hooks.slack.com/services/T00000000/B00000000/" + text(24),
    "stripe": "sk_live_" + text(24),
    "openai": "sk-" + text(48),
    "openai project": "sk-proj-" + text(40),
    "anthropic": "sk-ant-api03-" + text(40),
    "hugging face": "hf_" + text(34),
    "npm": "npm_" + text(36),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + text(60),
    "sendgrid": "SG." + text(22) + "." + text(43),
    "gitlab runner": "GR1348941" + text(20),
    "nuget": "oy2" + text(43, "abcdefghijklmnopqrstuvwxyz234567"),
    "circleci": "CCIPAT_" + text(22) + "_" + text(40, HEX),
    "buildkite": "bkua_" + text(40, HEX),
    "sonarqube": "squ_" + text(40, HEX),
    "pulumi": "pul-" + text(40, HEX),
    "supabase": "sbp_" + text(40, HEX),
    "launchdarkly": "sdk-01234567-89ab-4cde-8f01-23456789abcd",
    "airtable": "pat" + text(14) + "." + text(64, HEX),
    "brevo": "xkeysib-" + text(64, HEX) + "-" + text(16),
    "teams hook": "https://acme.webhook.office.com/webhookb2/01234567-89ab-4cde-8f01-23456789abcd@acme",
    "square": "sq0atp-" + text(22),
    "shippo": "shippo_live_" + text(40, HEX),
    "cursor": "key_" + text(64, HEX),
    "discord": "MTk4" + text(20) + "." + text(6) + "." + text(38),
    "e2b": "e2b_" + text(40, HEX),
    "firecrawl": "fc-" + text(32, HEX),
    "fireworks": "fw_" + text(24),
    "langfuse": "sk-lf-01234567-89ab-4cde-8f01-23456789abcd",
    "mailgun": "key-" + text(32, HEX),
    "modal": "ak-" + text(22),
    "plaid": "access-production-01234567-89ab-4cde-8f01-23456789abcd",
    "render": "rnd_" + text(28),
    "sentry of a user": "sntryu_" + text(64, HEX),
    "shopify": "shpat_" + text(32, HEX),
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "jwt unsigned": "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.",
    "bearer": "Bearer abc123def456",
    "bearer long": "bearer averylongtokenwithoutdigits",
    "bearer behind a tab": "bearer\tabc123def456",
    "bearer in quotes": 'Bearer "abc123def456"',
    "bearer in escaped quotes": r"{\"authorization\": \"Bearer \"abc123def456\"}",
    **{f"{one} in quotes": f"Authorization: {one} 'abc123def456'" for one in ("Basic", "Digest", "Token")},
    "basic": "Basic dXNlcjpwYXNzd29yZA==",
    "basic behind a tab": "Basic\tdXNlcjpwYXNzd29yZA==",
    "authorization assignment": "authorization=swordfish",
    "authorization header": "Authorization: anything at all",
    "cookie": "Cookie: session=open sesame",
    "key assignment": "key=hunter2",
    "token assignment": "https://acme.example/data?token=hunter2",
    "password assignment": "password=hunter2",
    "password in yaml": 'password: "hunter2"',
    "password of postgres": "PGPASSWORD=hunter2",
    "password of ssh": "SSHPASS=hunter2",
    "password of mail": "smtp_pass: hunter22",
    "password in camel case": "dbPassword: hunter22",
    "user in sql": "CREATE USER bob IDENTIFIED BY 'hunter2'",
    "constant of php": "define('AUTH_KEY', 'hunter2');",
    "name and value": "name: GITHUB_TOKEN value: hunter2",
    "variable of a container": "name: DB_PASSWORD\nvalue: hunter2",
    "password of vnc": "VNCPASSWD=hunter2",
    "password of a database": "DB_PASS=hunter2",
    "password of a queue": "RABBITMQ_DEFAULT_PASS=hunter2",
    "token header": "X-Auth-Token: abcd1234efgh",
    "private token header": "PRIVATE-TOKEN: abcd1234efgh",
    "token in yaml": "token: abcd1234efgh5678",
    "secret in yaml": "secret: hunter2x",
    "short name in yaml": "pwd: hunter2",
    "api key assignment": "ACME_API_KEY=hunter2",
    "camel assignment": "apiKey=hunter2",
    "userinfo": "https://user:hunter2@acme.example/data",
    "twilio key": "SK" + text(32, "0123456789abcdef"),
    "twilio account": "AC" + text(32, "0123456789abcdef"),
    "heroku": "HRKU-" + text(40),
    "heroku variable": "HEROKU_API_KEY=01234567-89ab-4cde-8f01-23456789abcd",
    "heroku named": "heroku api key: 01234567-89ab-4cde-8f01-23456789abcd",
    "mysql address": "mysql://root:swordfish@db.example.org/contacts",
    "mysql of go": "root:swordfish@tcp(db.example.org:3306)/contacts",
    "mysql of go without a protocol": "root:swordfish@(db.example.org:3306)/contacts",
    "address of this host": "mysql://root:swordfish@localhost/contacts",
    "token in an address": "https://swordfish@localhost/contacts",
    "password for ssh": "ssh://bob:swordfish@localhost/contacts",
    "redis address": "redis://:swordfish@cache.example.org:6379/0",
    "vault": "hvs." + text(24),
    "vault batch": "hvb." + text(60),
    "vault old": "s." + text(24),
    "new relic": "NRAK-" + text(27, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
    "new relic license": text(36, "0123456789abcdef") + "NRAL",
    "password in json in json": '{\\"password\\": \\"hunter2\\"}',
    "key of an environment": 'os.environ["ACME_API_KEY"] = "hunter2"',
    "key with a type": "private readonly apiKey: string = '01234567-89ab'",
    "password in sql": "CREATE USER acme WITH PASSWORD 'swordfish'",
    "password in c": '#define PASSWORD "swordfish"',
    "secret of bytes": "SECRET = b'swordfish'",
    "password in an array": 'static const char password[] = "swordfish";',
    "password in a tag": "<server><password>swordfish</password></server>",
    "netrc": "machine api.example.org login bob password swordfish",
    "netrc lines": "machine api.example.org\n  login bob\n  password swordfish",
    "seed phrase": "legal winner thank year wave sausage worth useful legal winner thank yellow",
    "seed phrase of 24": " ".join(["abandon"] * 23 + ["art"]),
    "seed phrase of the shortest words": "arm bar bag hub dad two spy gap few rug era air",
    "named seed phrase": "seed: apples rivers stones clouds papers tigers lemons chairs music green hats cats",
    "sshpass": "sshpass -p swordfish ssh bob@host",
    "mysql option": "mysql --host db.example.org --port 3306 -uroot -pswordfish contacts",
    "curl user": "curl -s -u bob:swordfish https://api.example.org",
    "password option": "login --password swordfish",
    "token option": "deploy --auth-token swordfish",
    "short password option": "login --pass swordfish",
    "short token option": "deploy --token swordfish",
    "password of words": "the password is correct horse battery staple",
    "quoted password of words": "password = 'correct horse battery staple'",
    "password of words in yaml": "password: correct horse battery staple",
    "passphrase of one word": "passphrase: swordfish",
    "key in pieces": "k = '-----BEGIN RSA PRIVATE KEY-----' 'MIIEpAIBAAKCAQEAswordfish'",
    "password at the end of a mapping": "{'db': {'password': 'swordfish'}}",
    "quoted password with a dot": 'password: "sword.fish"',
    "password behind an equals sign": "password: =swordfish",
    "password with long s": "pa\u017f\u017fword: swordfish",
    "userinfo database": "postgres://acme:hun@ter2@db.acme.example/contacts",
    "mail": "jane.doe@example.org",
    "mail in text": "write to Jane <jane.doe@example.co.uk>",
    "mail in backticks": "`jane.doe@example.org`",
    "mail in braces": "{jane.doe@example.org}",
    "mail unicode": "jürgen@müller.example",
    "card": "4111111111111111",
    "card of 13 digits": "4222222222222",
    "card of 19 digits": "4123456789012345677",
    "card spaced": "5500 0000 0000 0004",
    "card amex": "3782-822463-10005",
    "random base64": base64.b64encode(random.Random(2).randbytes(33)).decode(),  # noqa: S311
    "random text of the least length": text(33),
    "random hex": text(40, "0123456789abcdef"),
    "random hex 64 upper": text(64, "0123456789ABCDEF"),
    "random base32": text(52, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
}

ORDINARY = [
    "",
    "contacts-2026-11",
    "customer-support-tickets-2026-q3",
    "customer-support-tickets-2026-q3-anonymised-part-2",
    "CustomerSupportTicketsAnonymisedPartTwo",
    "content/2026/q3/customer-tickets/part-0001-of-0128.jsonl",
    "environment_source_admitted_after_review_by_compliance",
    "Apache-2.0 WITH LLVM-exception",
    "GPL-2.0-or-later",
    "LicenseRef-scancode-proprietary-license",
    "files.example.org",
    "storage-europe-west4.customer-files.internal.example.com",
    "europe-west1-asia-east2-north3-south4-zone5",
    "https://example.org/files/2026/contacts.json",
    "https://example.org/@acme/contacts",
    "https://example.org/files/" + "9f86d081" * 8,
    "2026-11-02T09:30:00Z",
    "2026-11-02T09:30:00.123456Z",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "sha256:" + "9f86d081" * 8,
    "9f86d081" * 8,
    "sha512:" + "9f86d081" * 16,
    "image@sha256:" + "9f86d081" * 8,
    str(uuid.UUID(int=2**127 + 4111111111111111)),
    "00000000-0000-4000-8000-411111111111",
    "1763683200000",
    "1763683200000000",
    "4111111111111112",
    "+49 30 901820",
    "pkg:npm/%40acme/contacts@1.2.3",
    "contacts@1.2.3",
    "basic authentication is required",
    "bearer authentication",
    "a Bearer token must be sent",
    "follow @example.org",
    "the password must be set",
    "key == value",
    "monkey=3",
    "BYPASS=1 COMPASS=north",
    "token: string, tokens: 1500, max_tokens: 409600",
    "secret: keep it simple",
    "pwd: prints the working folder",
    "sk-customer-support-tickets-2026",
    "risk-management-framework-controls-2026",
    "task-list",
    "the password is required",
    "password: required",
    "the password is correct",
    "a passphrase is not stored",
    "use --password to set it",
    "take --password <password> and --token $TOKEN",
    "docker run -p 8080:80 -u 1000:1000 app",
    "mkdir -p contacts",
    "login with the machine that the password was reset on",
    "add missing tests for the parser and make them run every night before work",
    "SKU-2026-000123",
    "files.example.org/s.html",
    "ACCOUNT",
    "hf_datasets",
    "npm_config",
    "required: the licence of every record is one we admit",
    "Replace the record, or ask compliance to decide on its licence in policy/licenses.yaml",
]


# covers: A28
@pytest.mark.parametrize("name", SECRETS)
def test_secret_is_taken_out(name: str) -> None:
    secret = SECRETS[name]
    assert redact(secret) == (redacted(secret), ("",))
    assert redact({"note": f"see {secret} there"})[1] == ("note",)
    message = redact_text(f"before: {secret}")
    assert message.startswith("before: ")
    assert "[redacted:" in message
    core = re.sub(r"^(authorization|cookie|basic|bearer|password|\w*key|\w*token)\W+", "", secret, flags=re.IGNORECASE)
    assert core not in message
    assert "swordfish" not in message
    assert "horse" not in message


BYTES = ["5:\ufffd[u~\x193\ufffd\ufffd@(", "5:\u00f8[u~\u00eb3\u00ef\u00a9@(\u0080"]
"""Of a picture, read as UTF-8 and as Latin-1."""


@pytest.mark.parametrize(
    "value", [*ORDINARY, *BYTES, "3.14159265358979323846264338327950288419716939937510", str(3**100)]
)
def test_ordinary_value_stays(value: str) -> None:
    assert redact(value) == (value, ())
    assert redact_text(value) == value
    assert redact({value or "empty": [value]}) == ({value or "empty": [value]}, ())


@pytest.mark.parametrize("of", ["approvals", "stops", "memories", "asked", "agents", "children"])
def test_the_subject_of_a_finding_keeps_the_id_of_what_the_engine_has(of: str) -> None:
    subject = f"{of}/97e697e8f98c4d2f9aa5444b06dc192e"
    assert redact({"subject": subject}) == ({"subject": subject}, ())
    assert redact(subject.replace(of, "tokens"))[1] == ("",)


SCRAPS = "ab1cd2efg3hij4klm5no"
"""Eight pieces of two letters or digits at most, in 20."""
WORDS = "-customer-support-tickets-anonymised-in-november-of-this-year-and-again"


def letters(count: int, of: str) -> str:
    """The first `count` letters and digits of a text, and what separates them."""
    return next(of[:end] for end in range(len(of) + 1) if sum(map(str.isalnum, of[:end])) == count)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("aB3x9Qz+7Kd/p2Wm-5Tg8Rv_4Hn1Yc6Jf", True),  # 29 letters and digits
        ("aB3x9Qz+7Kd/p2Wm-5Tg8Rv_4Hn1Yc6J+", False),
        (letters(66, SCRAPS + WORDS), True),  # scraps for 12 % of its characters
        (letters(67, SCRAPS + WORDS), False),
        (SCRAPS[:-1] + WORDS[:30], False),  # 19 letters and digits in words with scraps
        ("aB3x-9Q7z-Kd2W-m5Tg-8Rv4-Hn1Y-c6Jf-q0Ls", True),
        ("aB3-x9Q-z7K-d2W-m5T-g8R-v4H-n1Y-c6J-fq0-Ls4", False),
        ("-".join(["aB3x9Q7z"] * 5), True),  # three bits a character
        ("-".join(["aB3x9Q7"] * 5), False),
        ("bcdfghjk" * 5, True),
        ("bcdfghj" * 6, False),
        ("bcdfghjklmnpqrstvwxz" + "zxwvtsrqpnmlk", True),  # 33 letters
        ("bcdfghjklmnpqrstvwxz" + "zxwvtsrqpnml-", False),
        ("bcdafghejkli" * 3 + "b", True),  # vowels for less than a quarter
        ("bcdafghejkli" * 3, False),
        ("bearer abcdefghijklmnopqrst", True),  # 20 letters
        ("bearer abcdefghijklmnopqrs", False),
        ("able " * 30, True),  # perhaps a seed phrase
        ("able " * 31, False),
        ("able about above absent absorb abstract absurd abuse access accident " * 4, True),  # ten different words
        ("able about above absent absorb abstract absurd abuse access " * 4, False),
        ("able " * 12, True),
        ("able " * 11, False),
    ],
)
def test_random_keys_and_phrases_are_detected_from_exact_thresholds(value: str, *, found: bool) -> None:
    assert bool(redact(value)[1]) == found


@pytest.mark.parametrize("name", ["aws access key", "github", "basic", "openai", "hugging face", "bearer"])
def test_an_invisible_character_hides_no_secret(name: str) -> None:
    secret = SECRETS[name]
    wide = "".join(chr(0xFEE0 + ord(one)) if one.isalnum() else one for one in secret)
    for hidden in ("\u200b", "\xad", "\u2060", "\u034f", "\ufff3", "\U0001bca0"):
        divided = f"{secret[:2]}{hidden}{secret[2:]}"
        for written in (f"word{hidden}{secret}", f"{secret}{hidden}", divided, wide, f"\uff21{secret}"):
            assert secret[-6:] not in redact_text(f"see {written}"), written
            assert wide[-6:] not in redact_text(f"see {written}"), written


def test_words_around_a_secret_stay_in_a_message() -> None:
    message = redact_text(f"the alias `{SECRETS['github']}` of jane.doe@example.org is not known")
    assert re.sub(r"[0-9a-f]{12}", "…", message) == "the alias `[redacted:…]` of [redacted:…] is not known"


def test_secret_keys_values_and_numbers_are_redacted_with_their_paths() -> None:
    value = {
        "records": [{"id": "a", "url": SECRETS["userinfo"]}, {"id": "b", SECRETS["github"]: 1}],
        "card": 4111111111111111,
        "db_password": 12345,
        "X-Api-Key": "short",
        "credentials": ["one", ""],
        "redaction": True,
        "requests": 5,
    }
    clean, paths = redact(value)
    github = redacted(SECRETS["github"])
    assert clean == {
        "records": [{"id": "a", "url": redacted(SECRETS["userinfo"])}, {"id": "b", github: 1}],
        "card": redacted("4111111111111111"),
        "db_password": redacted(hex(12345)),
        "X-Api-Key": redacted("short"),
        "credentials": [redacted("one"), ""],
        "redaction": True,
        "requests": 5,
    }
    assert paths == (
        "X-Api-Key",
        "card",
        "credentials.0",
        "db_password",
        "records.0.url",
        f"records.1.{github}",
    )


def test_a_name_equal_to_a_replacement_is_preserved() -> None:
    name, secret = redacted(SECRETS["github"]), SECRETS["github"]
    for value in ({secret: 1, name: 2}, {name: 2, secret: 1}):
        assert redact(value) == ({f"{name}+": 1, name: 2}, (f"{name}+",))


def test_two_names_with_the_same_replacement_are_both_kept() -> None:
    names = ["password=contacts13274188", "password=contacts24148290"]
    assert redacted(names[0]) == redacted(names[1])  # found by trying millions; so could a caller
    clean, paths = redact({names[0]: 1, names[1]: 2})
    assert clean == {redacted(names[0]): 1, f"{redacted(names[0])}+": 2}
    assert paths == tuple(sorted(clean))


def test_deep_and_long_values_are_taken_out_whole() -> None:
    deep: Any = "x"
    for _ in range(10_000):
        deep = [deep]
    assert redact(deep)[1] == (".".join(["0"] * DEPTH),)
    assert redact("x " * TEXT_CHARACTERS)[1] == ("",)
    assert redact_text("x " * TEXT_CHARACTERS).startswith("[redacted:")
    longest = "x " * (TEXT_CHARACTERS // 2)
    assert redact(longest) == (longest, ())
    assert redact_text(longest) == longest


def test_an_integer_too_long_to_print_is_not_a_card() -> None:
    longest = 10 ** (sys.get_int_max_str_digits() + 1)
    assert redact({"numbers": [longest, -longest]}) == ({"numbers": [longest, -longest]}, ())


def test_adjacent_secrets_are_replaced_as_one() -> None:
    secret = SECRETS["private key"] + SECRETS["key assignment"]
    assert redact_text(f"see {secret}, please") == f"see {redacted(secret)}, please"


def test_only_the_words_forming_a_secret_are_redacted_in_a_list() -> None:
    words = ["sudo", "", "login", "--password", "swordfish", "", "--verbose"]
    clean, paths = redact(words)
    assert clean == [*words[:3], redacted("--password"), redacted("swordfish"), *words[5:]]
    assert paths == ("3", "4")
    assert redact(words[3:5]) == (clean[3:5], ("0", "1"))
    assert redact([*words[3:5], 1]) == ([*words[3:5], 1], ())  # the control: numbers make no command line
    assert redact(["say", "password", "is", "swordfish", ";", "true"])[1] == ("1", "2", "3")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(sorted(SECRETS.values())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_redacting_twice_is_redacting_once_and_never_raises(value: Any) -> None:
    clean, paths = redact(value)
    assert redact(clean) == (clean, ())
    assert (clean == value) == (not paths)


@given(st.sampled_from(sorted(SECRETS)), st.text(max_size=30), st.lists(st.integers(0, 3), max_size=5))
def test_no_secret_survives_wherever_it_stands(name: str, around: str, way: list[int]) -> None:
    value: Any = f"{around} {SECRETS[name]} {around}"
    for step in way:
        value = {f"k{step}": value} if step % 2 else [around, value]
    clean = json.dumps(redact(value)[0], ensure_ascii=False)
    assert json.dumps(SECRETS[name], ensure_ascii=False)[1:-1] not in clean


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_a_message_without_secrets_is_unchanged(message: str) -> None:
    clean = redact_text(message)
    assert redact_text(clean) == clean
    if not redact(message)[1]:
        assert clean == message


@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda chance: base64.b64encode(chance.randbytes(30)).decode(), 0.99),
        (lambda chance: base64.urlsafe_b64encode(chance.randbytes(32)).decode(), 0.99),
        (lambda chance: chance.randbytes(20).hex(), 0.99),
        (lambda chance: "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=40)), 0.99),
        (lambda chance: base64.b32encode(chance.randbytes(30)).decode(), 0.99),
    ],
    ids=["base64", "base64url", "hex", "base36", "base32"],
)
def test_random_keys_without_a_known_form_are_found(make: Any, least: float) -> None:
    found = sum(bool(redact(make(random.Random(seed)))[1]) for seed in range(1000))  # noqa: S311
    assert found / 1000 >= least


def test_random_words_and_dates_are_not_taken_for_keys() -> None:
    words = [
        "customer",
        "support",
        "q3",
        "2026",
        "11",
        "v2",
        "eu",
        "west1",
        "tickets",
        "part",
        "0001",
        "Contacts",
        "id7",
    ]
    for seed in range(1000):
        chance = random.Random(seed)  # noqa: S311
        name = chance.choice("-_/").join(chance.choices(words, k=9))
        assert redact(name)[1] == (), name


def test_what_follows_the_first_line_of_a_key_is_taken_out_whatever_it_is() -> None:
    assert "swordfish" not in json.dumps(redact("k = '-----BEGIN RSA PRIVATE KEY-----' 'swordfish'"))


def test_card_numbers_are_recognized_by_prefix_length_and_check_digit() -> None:
    assert all(
        is_card(card) for card in ("4111111111111111", "378282246310005", "5555555555554444", "6011111111111117")
    )
    assert not any(is_card(card) for card in ("4111111111111112", "1111111111111117", "41111111", "9" * 16))


HOSTILE = [
    "a", "@", "a@", "a.", "a@a.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-----END A", "bearer ", "basic aaaa ",
    "key=", "key", "a://", "a://b@", "4", "4111 ", "sk-", "eyJ", "eyJaaaaaaaa.", "_eyJaaaaaa", "-", "a-", "aB3x/Q9-",
    "authorization:", "cookie:", "abc1Q~", "[redacted:", "password: ", "password::",
    "sha256:" + "0f" * 32 + " ", "0f" * 32 + " 4111 1111 ", "xoxa.",
]  # fmt: skip


@pytest.mark.full(after=1)
@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_costs_linear_time(unit: str) -> None:
    """Sixteen times as much text costs about sixteen times as much; quadratic would be 256 times."""
    short, long = 1 << 14, 1 << 18
    spent = {}
    for size in (short, long):
        message = (unit * (size // len(unit) + 1))[:size]
        rounds = []
        for _ in range(3):
            started = time.process_time()
            redact_text(message)
            rounds.append(time.process_time() - started)
        spent[size] = min(rounds)
    assert spent[long] < 80 * max(spent[short], 0.0005)


@pytest.mark.parametrize("letter", ["\u017f", "\u212a"])  # in lower and upper case `s` and `K`
def test_a_non_ascii_letter_with_an_ascii_case_variant_is_not_base64(letter: str) -> None:
    text = f"basic abc{letter}abcd"
    assert redact(text) == (text, ())
    assert redact(f"basic dXNlcjpwYXNz{letter}")[1] == ("",)
