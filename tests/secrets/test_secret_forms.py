"""The forms of vendors are values: what a pattern may be, what is seen without any, and what is refused for it."""

from __future__ import annotations

import base64
import json
import random
import sysconfig
from dataclasses import replace
from pathlib import Path
from string import ascii_letters
from textwrap import wrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.engine import Engine
from engine.secrets.forms import UNKNOWN_FORMS, Form, SecretForms, least_length
from engine.secrets.patterns import find_secrets, is_secret
from engine.secrets.redaction import redact
from engine.settings import Settings
from engine.values.secrets import Secrets
from tests.conftest import FORMS, ROOT
from tests.expect import there
from tests.secrets.test_redaction import HEX, ORDINARY, SECRETS, text

PRIVATE = {name for name in SECRETS if name.startswith(("mail", "card"))}
"""What belongs to people and opens nothing."""

PLAIN = {"random hex"}
"""What looks like the digest of a commit."""


@pytest.mark.parametrize("name", sorted(SECRETS.keys() - PRIVATE - PLAIN))
def test_a_credential_is_a_secret(name: str) -> None:
    assert is_secret(SECRETS[name], FORMS)
    assert is_secret(f"see {SECRETS[name]}", FORMS)


BYTES = random.Random(7).randbytes(600)  # noqa: S311
PICTURE = base64.b64encode(BYTES).decode()
LOCK = base64.b64encode(BYTES[:64]).decode()
URL_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
URL_SAFE = text(64, URL_LETTERS)
ANSWERS = [
    *((prefix, 32, HEX) for prefix in ("call_", "chatcmpl-", "chatcmpl-tool-", "cmpl-", "req_", "batch_", "trace_")),
    *((prefix, 22, ascii_letters) for prefix in ("toolu_bdrk_01", "toolu_vrtx_01", "srvtoolu_01", "msg_bdrk_01")),
    ("gen-1743115766-", 20, ascii_letters), ("conv_", 48, HEX), ("cmpl-", 29, ascii_letters),
]  # fmt: skip
"""Ids that servers of models give to their answers, and to the calls of tools in them: prefix, length, alphabet."""

HARMLESS = {
    "commit": "3f786850e387550fdab836ed7e6dc881de23001b",
    "commits": "git range-diff 3f786850e387550fdab836ed7e6dc881de23001b..89e6c98d92887913cadf06b2adb97f26cde4849b",
    "uuid": "01234567-89ab-4cde-8f01-23456789abcd",
    "digest": "sha256:" + "9f86d081" * 8,
    "bare digest": "9f86d081" * 8,
    "digest of 512 bits": "9f86d081" * 16,
    "package lock": f'"integrity": "sha512-{LOCK}"',
    "go.sum": "example.org/x v1.2.3 h1:" + base64.b64encode(BYTES[:32]).decode(),
    "pip hash": "--hash=sha256:" + "9f86d081" * 8,
    "poetry": 'content-hash = "' + "9f86d081" * 8 + '"',
    "subresource": '<script integrity="sha384-' + base64.b64encode(BYTES[:48]).decode() + '">',
    "image": "data:image/png;base64,iVBORw0KGgo" + base64.b64encode(BYTES).decode(),
    "bare image": "iVBORw0KGgo" + PICTURE,
    "photo": "/9j/" + base64.b64encode(BYTES).decode(),
    "notebook": json.dumps({"image/png": "iVBORw0KGgo" + PICTURE}),
    **{
        f"image in lines of {len(end)}": '"image/png": "' + end.join(wrap("iVBORw0KGgo" + PICTURE, 76)) + f'{end}",'
        for end in ("\\n", "\n")
    },
    "public key of ssh": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + base64.b64encode(BYTES[:33]).decode(),
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "name in an address": "git clone ssh://git@github.com/acme/contacts.git",
    "mail": "write to jane.doe@example.org",
    "policy of cookies": "Cookie: see the page on cookies",
    "code": "token = next(tokens)\nkey = row['key']\npassword = os.environ['DB_PASSWORD']",
    "template": "password=${DB_PASSWORD} token=$TOKEN key=<your key>",
    "options": "curl -s -L -o out.json https://api.example.org/items?page=2",
    "prose": "The password must have twelve characters. It is stored hashed, and a token is sent by mail.",
    "said of a password": "the password is generally required",
    "question": "Forgot your password? Reset it: password reset takes a minute.",
    "words": "read the whole file into memory then split every line and count each single word that you find there",
    "ports": "docker run -p 8080:80 --user 1000:1000 app",
    "version": "python-3.11.2-x86_64-linux-gnu-2026.11.22",
    "ids": "order 4111-2026-000123-AB, ticket PROJ-12345, build 20261122.1",
    "semver": "registry.example.org/team/app:1.2.3-rc.4+build.20261122",
    "path": "/srv/data/2026/q3/customer-support-tickets/part-0001-of-0128.parquet",
    "identifier": "org.springframework.security.web.authentication.UsernamePasswordAuthenticationFilter",
    "css": "color: #a1b2c3d4; background: url(/static/logo.9f86d081.svg)",
    "page of a commit": "https://github.com/psf/requests/commit/3f786850e387550fdab836ed7e6dc881de23001b",
    "page of a short commit": "https://github.com/nodejs/node/commit/4288c6a26e",
    "file of a commit": "https://raw.githubusercontent.com/a/b/3f786850e387550fdab836ed7e6dc881de23001b/README.md",
    "package": f"https://files.pythonhosted.org/packages/63/70/{'2bf7780a' * 7}2913/requests-2.32.3.tar.gz",
    "article": "https://medium.com/better-programming/understanding-async-await-4f3a2b1c9d8e",
    "article without a scheme": "medium.com/better-programming/understanding-async-await-4f3a2b1c9d8e",
    "build": "build-20261122-1530-abcdef0123456789abcdef0123456789abcdef01",
    "answer of a model": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    "response of a model": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
    **{f"{prefix} of {length}": prefix + text(length, letters) for prefix, length, letters in ANSWERS},
    "wheel": f"pip/wheels/4d/da/d4/{text(50, HEX)}",
    "account of a chain": f"0x{text(40, HEX)}".replace("a", "A"),
    "trace": f"traceparent: 00-{text(32, HEX)}-{text(16, HEX)}-01",
    "object of git": f".git/objects/4d/{text(38, HEX)}",
    "numbers": "3.14159265358979323846264338327950288419716939937510",
    "large number": "const big = 186709961001538790100634132976990n;",
    "pod": "pod/orders-api-deployment-66b6c48dd5-7tq2x is running",
    "article without an address": "slug: what-is-policy-part-one-enforcement-bad8ea8eb35c",
    "versions": "scenario-1-v0x-producer-v0x-consumer",
    "drawing": '<path d="M2 3h20v10h-4v8h-2v-8H8v8H6v-8H2zm18 10-2h3v-2h2v3h3V9h-3v3h-2V8h-6V6h3V4z"/>',
    "font": "src: url(data:font/woff2;charset=utf-8;base64," + base64.b64encode(BYTES).decode() + ")",
    "program for the web": "AGFzbQEAAAA" + base64.b64encode(BYTES).decode(),
    "node of GitHub": '"node_id": "' + base64.b64encode(b"017:PullRequestReview1234567890").decode() + '"',
    "play list": f"https://www.youtube.com/watch?v=t0Cq6tVNRBA&list=PL{text(32)}&index=5",
    "collection": "https://huggingface.co/collections/acme/parcels-release-65d5efbccdbb8c4202ec078b",
    "configuration in a link": "https://editor.example.com/install?name=a&config="
    + base64.b64encode(b'{"command": "npx", "args": ["-y", "@acme/tool"], "env": {"LEVEL": "ERROR"}}').decode(),
    "key that is left out": "-----BEGIN OPENSSH PRIVATE KEY-----\n    ...\n    -----END OPENSSH PRIVATE KEY-----",
    "netrc with placeholders": "machine example.org\nlogin example-username\npassword example-password\n",
    "name with a version": "handlers: GetOrgsProjectsV2ItemsByProjectByItemID",
    "long name": "def BenchmarkTemplateStringVsConcatVsSprintf(): ...",
    "page of notes": f"https://www.notion.so/team/Plan-{text(32, HEX)}",
    "document": f"https://docs.google.com/document/d/1{URL_SAFE[:43]}/edit#heading=h.5dnsipzz5fk",
    "id of a document": f'{{"documentId": "1{URL_SAFE[:43]}"}}',
    "file of a drive": f"https://drive.google.com/open?id=1{URL_SAFE[:32]}",
    "form": f"https://docs.google.com/forms/d/e/1FAIpQLS{URL_SAFE[:49]}/viewform",
    "event": f"https://www.google.com/calendar/event?eid={URL_SAFE[:48]}",
    "meeting": f"https://teams.microsoft.com/l/meetup-join/19%3ameeting_{text(48)}%40thread.v2/0",
    **{f"mail {start}": start + text(120, URL_LETTERS) + "AAA=" for start in ("AAMkA", "AAQkA", "AQMkA")},
    "mail of a thread": f"In-Reply-To: <CA+{text(50)}@mail.gmail.com>",
    **{
        f"click {start}": f"https://shop.example.com/?a=1&{start}{text(60, URL_LETTERS)}"
        for start in ("gclid=Cj0KCQ", "gclid=CjwKC", "gclid=EAIaIQobChMI", "fbclid=IwAR", "fbclid=IwZXh0bg")
    },
    "click on Bing": f"https://shop.example.com/?msclkid={text(32, HEX)}",
    "tag of an upload in parts": f'"ETag": "\\"{text(32, HEX)}-12\\""',
    "run": f"runs:/{text(32, HEX)}/model",
    "content": f"ipfs://Qm{text(44)}",
    "fingerprint of a host": "ED25519 key fingerprint is SHA256:" + base64.b64encode(BYTES[:32]).decode().rstrip("="),
    "protein": "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVV",
    "password of RFC 7617": "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
}

NEARLY_IDS = [
    *(f"1{URL_SAFE[:length]}" for length in (33, 42, 44)), f"1{URL_SAFE[:43]}=", f"x1{URL_SAFE[:43]}",
    f"2{URL_SAFE[:43]}", f"token=1{URL_SAFE[:43]}", f"1{URL_SAFE[:20]}.{URL_SAFE[:43]}",
    "https://docs.google.com/document/d/ghp_" + text(36), f"https://docs.google.com/document/d/{text(40)}/edit",
    f"1FAIpQLS{URL_SAFE[:40]}", f"calendar/event?eid={URL_SAFE[:48]}.{text(43)}", f"event?eid={URL_SAFE[:48]}",
    f"19%3ameeting_{text(80)}", f"<CA+{text(50)}@mail.example.com>", f"<{text(50)}@mail.gmail.com>",
    f"AAMkA{text(60)}", f"AAMkB{text(120)}", f"?gclid={text(60)}", f"?token=Cj0KCQ{text(60)}",
    f"?gclid=Cj0KCQ{text(200)}", f"?xgclid=Cj0KCQ{text(60)}", "?gclid=Cj0KCQ-ghp_" + text(36),
    f"?fbclid={text(60)}", f"?msclkid={text(40)}", f"?session-msclkid-{text(32, HEX)}", f"{text(32, HEX)}-{text(12)}",
    f"orders_api_key_{text(32, HEX)}", f"key={text(32, HEX)}-12", f"Qm{text(60)}",
    f"SHA256:{text(60)}", f"MD5:{text(43)}", "MKTAYIAKQRQIS" + text(40),
    "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZT==", f"https://a.example.com/api-{text(33, HEX)}",
]  # fmt: skip
"""What an id looks like, with another name, length or alphabet, or with a key in its place."""


@pytest.mark.parametrize("value", NEARLY_IDS)
def test_what_only_resembles_an_id_is_a_secret(value: str) -> None:
    assert is_secret(value, FORMS)


@pytest.mark.parametrize("name", ["document", "click gclid=Cj0KCQ", "protein"])
def test_an_id_is_a_secret_without_the_row_that_knows_it_and_is_taken_out_of_records(name: str) -> None:
    assert is_secret(HARMLESS[name], replace(FORMS, ids=frozenset()))
    assert is_secret(HARMLESS[name], UNKNOWN_FORMS)
    assert next(find_secrets(HARMLESS[name], FORMS), None) is not None


@pytest.mark.parametrize("word", [SECRETS["aws secret key"], SECRETS["random base64"], text(40)])
@pytest.mark.parametrize("before", ["", "https://a.example.com/v1/", "/srv/data/", "see ", "https://a.example.com/?q="])
def test_random_text_is_a_secret_in_an_address_or_path_too(before: str, word: str) -> None:
    assert is_secret(before + word.replace("/", "x" if "/" in before else "/"), FORMS)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_value_is_not_a_secret(name: str) -> None:
    assert not is_secret(HARMLESS[name], FORMS)


CODE = [
    *(f"Authorization: {scheme} $ACME_TOKEN" for scheme in ("Bearer", "Basic", "Digest", "Token")),
    "rows = sorted(rows, key=len)", "best = max(items, key=lambda i: i.score)", "self.password = password",
    "const token = await getToken();", '<Item key="first" />', "Client(token=args.token)", "ssl_key = server.key",
    "def f(key=None):", "requests.get(url, auth=auth)", "password: &str", "password: process.env.PW",
    "sort --key=2 data/in.csv", "tool --key=/etc/ssl/private/key.pem", "password = password + salt", "key = (a, b)",
    "if password == expected:", "connect(user=user, password=pw)", "connect(\n    password=password\n)",
    'token = f"{a}-{b}"', "https://a.example.com/?key=abc123", "https://a.example.com/?next_token=AbC",
    'SERVER_AUTH = "1.3.6.1.5.5.7.3.1"', "let password = user.password;", "secret = settings.secret or default",
    "password=none", "connect(password=pw, user=user)", "password=settings.pw", "password = entry or fallback",
    "connect({user: user, password: password})", "token=abcd+efgh+i",
    "token = new Token(1)", "key = not found", "PASSWORD = os.environ.get('PW1')",
    "def login(user: str, password: str) -> bool:", "def f(password: SecretStr | None = None):", "if password is None:",
    "hide(password: bool = False)", "password: str = ''", "password: str = f'{a}-{b}'", "password: str = '${PW}'",
    "password: str = os.environ['PW']", "authorization = self.headers.get('authorization')",
    "authorization: str | None = None,", "authorization: Optional[str] = None", "headers: {authorization: token}",
    "'Proxy-Authorization': true,", "authorization=tool.authorization_token,", "Authorization: Bearer YOUR_API_KEY",
    "Bearer YOUR_OPENAI_API_KEY_HERE", "Authorization: Bearer 'YOUR_API_KEY'",
    "headers['Authorization'] = 'Bearer '+token", '"Authorization": "Bearer " + token',
    "'Authorization: Bearer '.$token", "send `Authorization: Bearer` (not `x-api-key:`)",
    "- Authorization: Role-based access control selected", "Authorization: OAuth 2.0 with PKCE",
    "'Authorization': 'Bearer your-api-key-here'", "'Authorization': 'Bearer sk-...'", "Authorization: Bearer <token>",
    "cookie: SimpleCookie = SimpleCookie()", "cookie: Optional[str] = None,", "Cookie: session=${SESSION}",
    "password: Faker::Internet.password, age: 3", "const token = req.headers.authorization?.split(' ')[1];",
    "key = `${stat.dev}:${stat.ino}`", "auth = `${user}:${pw}`", "f'postgresql://{user}:{password}@{host}/db'",
    "postgresql://${DB_USER}:${DB_PASSWORD}@db/x", "redis://:$REDIS_PASSWORD@cache", "socks5://<user>:<password>@<host>",
    '<input type="password"> Remember', "<password>${pw}</password>", "<password>required</password>",
    "keys: dict[str, int] = {}", "token: str = 'end_of_text'", "def f(key: str | None = None):",
    'hint: password "required"', "first_pass = True", "mail_pass = settings.mail_pass", '"userPassword": "string"',
    "resetPassword: (user1) => {}", "define('AUTH_KEY', $key);", "ALTER USER a IDENTIFIED BY '{password}'",
    "name: DB_PASSWORD\n  valueFrom: {secretKeyRef: {name: db1}}", "name: API_TOKEN\n  value: ${API_TOKEN}",
    "maxPasswordAge: 90days", "identified by their names",
    "apiKey: string = process.env.KEY", "key: bytes = secrets.token_bytes(32)", 'fields["token"] = token_of(1)',
    "abfss://container@account.dfs.core.windows.net/part-1", "https://user:***@registry.example.org/",
    "read from the --cloud-token flag, then", "If --token flag was given", "the `--password` option",
    "--password option", "password is checked", "# Verify the password was returned\n",
    "cffi-2.0.0-cp314-cp314t-manylinux2014_s390x.manylinux_2_17_s390x.whl",
    "aiohttp-3.14.3-cp314-cp314t-manylinux_2_31_armv7l.whl",
    "ci_68c2e701a23081939c93b6fb5bb952d302d3a5742c7dd123",
    "https://user:pass@proxy.example.org:1080", "postgres://user:password@db/x", "https://user:@a.example.com/",
    "git+https://git@github.com/acme/tool.git", "http://user@a.example.com/x",
    "PWD=/srv/app", "signature='ii->i'", "Token = v1.AuthenticationToken", "PublicKey = pubClientKey2",
    "AUTH = SOCKS5_NO_ACCEPTABLE_AUTH", "key = _pep_440_key", 'password = "".join(letters)', "password: 'XXXXX'",
    'password = ":****"', ":param password: Basic auth password.", "const password = 'Password used for the test';",
    "see Basic Options below", "WHERE key='app.settings.v1'", "key='feature.flags.v2.beta'",
    "password := make([]byte, 8)", "passphrase := []byte(text)", "string password = 2;",
    'SANDBOX_SECRET = "..."', "secret = 'whsec_...'", "ANTHROPIC_KEY=sk-ant-oat01-...", "--token YOUR_PAT_TOKEN",
    "Culture=neutral, PublicKeyToken=b03f5f7f11d50a3a", "$secret = Get-AzKeyVaultSecret -VaultName $vault",
    "$password = ConvertTo-SecureString $text -AsPlainText",
    "password = 'your_email_password'", "CLIENT_SECRET = 'YOUR_CLIENT_SECRET'", 'password="yourpassword",',
    "password: 'your_database_password',", "const apiKey = 'API_KEY';", "secret=your-secret-key-here",
    "password: 2", "rows[m.key] = baggage.Item{Size: 1}", "WHERE id=? and password=? LIMIT 1",
    "const token = process.env.TOKEN!;", "docker build --secret id=npmrc,src=.npmrc .",
    "docker service create --secret source=ssh-key,target=ssh image", "podman run --secret entry,type=env image",
    "  password: z\n    .string()", '.min(1, { message: "Password is required" }),',
    "const { password: _, ...rest } = user;",
    "'/recover-password': typeof RecoverPasswordRoute", 'label={shown ? "Hide password" : "Show password"}',
    "new Client({ apiKey: mem0ApiKey })", "apiKey: process.env.MEM0_API_KEY,", "apiKey = config?.mem0ApiKey;",
    "User(hashed_password=argon2_hash)", "const isOk = !!token; Token = !!githubToken;",
    "POSTGRES_PASSWORD=postgres", "MYSQL_ROOT_PASSWORD: root", "postgres://fitness:fitness@db:5432/fitness",
    "postgres://postgres:%s@db/app", "postgresql://u:p@db/app", "postgresql://postgres:[password]@db/app",
    "postgres://db:${POSTGRES_PASSWORD:?Variable not set}@db:5432/app", "MYSQL_PASSWORD=/run/secrets/db-password",
    'connect(password="test_pass")', "password: 'pass'", 'api_key = "test-api-key"', "accessToken: 'new-access-token',",
    "Authorization: 'Bearer token'", "headers = {'Authorization': 'Bearer some-expired-token'}",
    "KEY=m0-your-api-key", 'apiKey: "m0-xxx"', 'KEY="your-mem0-api-key"', "tool --api-key m0-xxx", "tool --api-key /",
    '"%s:%s@tcp(%s:%d)/%s?parseTime=true"', "# Api-Key instead of Authorization: Bearer\n",
    'os.environ["OPENAI_API_KEY"] = "sk-test-key-images-test-not-real"',
    "ghp_" + "x" * 36, "AKIA" + "X" * 16, "key='bm25_doc_ids'", 'key="student_123"',
    "{'db': {'password': 'changeme'}}, {'password': 'wrong'}) == 401", "login({'password': ''}) == 401",
    "SECRET_KEY=changethis", "PASSWORD: nextcloud", "input.password:hover {", "const KEY = /^[a-zA-Z_][a-zA-Z0-9_]*$/;",
    'CHANGE_PASSWORD: "/auth/change-password"', "SECRET=replace_with_long_random_jwt_secret_min_24_chars",
    'secret = "test_secret_that_is_at_least_32_bytes_long!!"',
    'if (pem.startsWith("-----BEGIN RSA PRIVATE KEY-----")) {',
    "it sends `Authorization: Bearer ...` again.", "send `Authorization: Bearer YOUR_API_KEY` as a header",
    '-H "Authorization: Bearer ACME7_API_KEY"', '{\\"Authorization\\": \\"Bearer ntn_****\\"}',
    '"Authorization": "Bearer ghp_yourtokenhere"', '"Authorization": "Acme-Bearer ${ACME_TOKEN}"',
    "- Authorization: protected resource metadata discovery, challenges, scopes",
    "Opening browser for authorization: http://localhost:9000/authorize?scope=a",
    "[Basic Orbital Capture](physics/capture.md)", "POSTGRES_PASSWORD=... -e POSTGRES_DB=app", "PASSWORD=change-me",
    "it sets `hide_password=True`, too", "- `ACME_CLIENT_SECRET=your_development_acme_client_secret`",
    "`--api-key=ACME_SECRET_KEY`", "tool [-h] [--token TOKEN] [--all]", r'"api_key = \"sk-your-key\",',
    "publicKeyToken='6595b64144ccf1df'",
    "\u30bf\u30b0\uff08key=value\uff09\u3067\u30d5\u30a3\u30eb\u30bf\u30ea\u30f3\u30b0\u3055\u308c",
]  # fmt: skip


@pytest.mark.parametrize("value", CODE)
def test_ordinary_code_is_not_a_secret(value: str) -> None:
    assert not is_secret(value, FORMS)


@pytest.mark.full
def test_few_standard_library_files_are_mistaken_for_secrets() -> None:
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    refused = [file.name for file in files if is_secret(file.read_text("utf-8", "replace"), FORMS)]
    assert len(refused) <= len(files) // 50, refused


@pytest.mark.parametrize(
    "value",
    ["password=swordfish", "PASSWORD=root docker compose up", "export DB_PASS=swordfish", "password='swordfish'",
     'self.password = "swordfish"', "connect(password='swordfish')", "Server=a;Password=swordfish;", "key=hunter2",
     "password = hunter2", "connect(password=hunter2)", "token=abcd-efgh+ijkl", "https://a.example.com/?token=abcd1234",
     "password: swordfish", "password=hunter:new", "token=x1y2z3w4:not", "secret=swordfish",
     "token=abcd+efgh+ij", "the password is mypassword", "the password is sword.fish",
     "password=b'swordfish'", "sig=9x8y7z6w5v", "login(password: swordfish)", "password: str = 'swordfish'",
     'password: SecretStr | None = "swordfish"', "password is swordfish:",
     "authorization: swordfish-2", "'authorization': 'swordfish'", "Authorization: Bearer swordfish",
     "Bearer ABCDEFGHIJKLMNOPQRSTUVW",
     "Authorization: Bearer 'swordfish'", 'Authorization: Token "swordfish"',
     "Authorization: Bearer YOUR4KEY", "Authorization: Token swordfish", "Authorization: none swordfish",
     "Authorization: custom one two swordfish4", "Authorization: Bearer one two three four",
     "Cookie: session=abc; theme=${THEME}",
     "https://swordfish@github.example.org/x", "postgresql://{user}:swordfish@db/x", "redis://:$w0rdfish@cache",
     "postgresql://${DB_USER}x:swordfish@db/x", "key = `9x8y7z6w5v`", "token = req?x1y2z3w4",
     "chatcmpl-qU0kKa9fK3xLz8Wm2RtY7bNc4VhJ6sDp1GqE5aXo", '"dbPassword": "sw0rdfish"', "smtp_pass = sw0rdfish",
     "mail_pass: sw0rdfish", "define('DB_PASSWORD', 'swordfish');", "define( 'AUTH_KEY', 'k3;x=9 a+b' );",
     "CREATE USER a IDENTIFIED BY 'swordfish'", "name: DB_PASSWORD\n  value: swordfish",
     "--token flag9swordfish", "--cloud-token swordfish", "--secret swordfish", "--secret swordfish,3",
     "--token id=swordfish", "token = x1y2z3w4!", "secret=swordfish!",
     "the password was swordfished4", "the password is sacred horse battery staple", "password: returned",
     "x-cp314-cp314t-manylinux2014_k3Jx9QzV7bLm2RtYw8Nc4Vh6",
     '{"name":"API_TOKEN","value":"swordfish"}',
     "key = swordfish-4711x", "token = swordfish4711", "token=monkey_1234", "login(secret=Blue42Monkey)",
     "dbPassword: hunter2password", "apiKey: 9x8y7-apikey", '"apiKey": "sw0rd9apikey"',
     "passcode = blueMonkey9Horse", "password: swordfish is good",
     "https://user:passw0rd@a.example.com/", "https://passes@a.example.com/", "PWD=hunter2", "pwd=/srv7pw",
     'password := []byte("swordfish")', 'var passphrase = []byte("swordfish")', "password: 4711",
     "dbPassword=.swordfish", 'password := "swordfish"', "password=?swordfish", "password=123 swordfish",
     "signature=9x8y7z6w5v4u", "token=kjfch2345sdf", "https://9x8y7z:@a.example.com/",
     "token = a8f5f167f44f4964e6c998dee827110c",
     "key='app.user.sw0rdfish9'", "key='app.k3x9q7'",
     "secret = 'sword...'", "password = hunter2...", "--token YOUR4PAT", "PublicToken=b03f5f7f11d50a3a",
     "password = Blue-Monkey9", "password = Get-Monkey", "password = Get-9Secret", "password = New-Orleans",
     f"0x{text(64, HEX)}a", f"0x{text(44)}", f"00-{text(48, HEX)}-{text(16, HEX)}-01",
     "password = 'yourpassw0rd'", "password='yourhorsebattery'", "password='yourmonkey'", "password: your_password4711",
     "password: 'your_password sword.fish'", "PASSWORD='MY_KEY'", f"api_key=call_{text(32, HEX)}",
     f"call_{text(36, HEX)}", f"toolu_bdrk_01{text(30)}", f"wheels/4d/da/d4/{text(50)}", f"4d/{text(39, HEX)}",
     "key = Zq7Xw3Lp9TfKd2", "password: 'Xavier7'", "Basic " + "dXNlcjpw5A==",
     "password: zeb\n", "password: swordfish\n...", 'message: "Password is swordfish" })',
     "password: 'typeof swordfish'",
     'x ? "password" : "sword fish"', '"apiKey": "mem0swordfish"', "apiKey: mem0Sw0rdfish", "password = hunter_2_fish",
     "POSTGRES_PASSWORD=swordfish", "POSTGRES_PASSWORD=postgres1", "postgres://fitness:fitness1@db/x",
     "postgres://postgres:%swordfish@db/app", "postgresql://u:psw@db/app", "PASSWORD:?swordfish",
     "MYSQL_PASSWORD=/run/swordfish", 'connect(password="test_sw0rd")', "password: 'testfish'",
     'api_key = "test-api-key-4711"',
     "Authorization: 'Bearer token4711'", "KEY=m0-your-9x8y7z6w5v", 'apiKey: "m0-xx7"', "tool --api-key /sword",
     "%s:sword@tcp(a)/b", "Authorization: Bearer\tswordfish", "sk-test-key-images-9x8y7z6w5v4u-n0t",
     "ghp_" + "x" * 35 + "7", "key='bm25_d0c_1ds'", "API_KEY='student_123'", "api-key='student_123'",
     "password: horse battery\n.staple", "Authorization: Digest ab cd",
     "PASSWORD: nextcl0ud", "password: hunter2 password", "password: '9x8y7z-password'", "password=S3cretPassword",
     "login(password=Blue42Monkey)", "password: Blue42Password",
     "SECRET=replace_with_long_9x8y7z6w5v", 'secret = "sword_fish_that_is_long"',
     '"-----BEGIN RSA PRIVATE KEY-----" + "MIIEpAIBAAKCAQEA"',
     '"-----BEGIN RSA PRIVATE KEY-----",\n  "MIIEpAIBAAKCAQEA"',
     "`Authorization: Bearer swordfish`", "Authorization: Bearer ACME7_KEY9", "Basic c3dvcmQ6ZmlzaA",
     "Authorization: Sword-Bearer swordfish", "Authorization: Bearer sword-token",
     "`Authorization: sword-token`", "`ACME_PASSWORD=swordfish`", "tool [--token sw0rdfish]",
     "machine example.org\nlogin jane\npassword swordfish", "PASSWORD=...swordfish",
     "Authorization: http9x8y7z",
     "-----BEGIN RSA PRIVATE KEY-----\n...\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
     "iVBORw0KGgo" + PICTURE[:65] + "\n" + text(40), "iVBORw0KGgo" + PICTURE[:65] + "\\n" + text(40),
     '"iVBORw0KGgo' + PICTURE[:65] + f'", "{text(76)}"', "\n".join(wrap(PICTURE, 76)),
     f"?list={text(34)}", f"MDe{text(36)}", f"MDE2Ol{text(70)}", f"?list=PL{text(40)}", f"https://a.example.com/shared_invite/zt-28jv3ci39-{text(22)}",
     "?config=" + base64.b64encode(b'{"url": "https://a.example.com/", "api_key": "sw0rdfish"}').decode(),
     "?config=" + base64.b64encode(b'{"host": "a.example.com", "pw": "swordfish"}').decode(),
     "session=" + base64.b64encode(b'{"user": 12345, "groups": ["a", "b"]}').decode() + ".aXvTZQ.9x8y7z6w5v",
     "-----BEGIN RSA PRIVATE KEY-----\nMIIE", 'k = "-----BEGIN RSA PRIVATE KEY-----\\nMIIE"',
     f"orders-api-key-{text(24)}", f"orders_api_key_{text(24, '0123456789abcdef')}"],
)  # fmt: skip
def test_a_value_in_code_is_a_secret_all_the_same(value: str) -> None:
    assert is_secret(value, FORMS)


@pytest.mark.parametrize("value", ORDINARY)
def test_ordinary_text_is_not_a_secret(value: str) -> None:
    assert not is_secret(value, FORMS)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/threat-model.md", "docs/requirements.md"])
def test_the_project_documentation_contains_no_secret(name: str) -> None:
    for paragraph in (ROOT / name).read_text(encoding="utf-8").split("\n\n"):
        assert not is_secret(paragraph, FORMS), paragraph


@pytest.mark.parametrize("name", sorted(SECRETS.keys() - PRIVATE - PLAIN))
def test_secrets_are_detected_without_a_loaded_policy(name: str) -> None:
    """What no policy was loaded for is written with more taken out, never with less."""
    assert next(find_secrets(SECRETS[name], UNKNOWN_FORMS), None) is not None
    assert is_secret(SECRETS[name], UNKNOWN_FORMS)


def test_ids_and_words_are_kept_without_a_loaded_policy() -> None:
    for value in (
        "9f86d081" * 4,
        "9f86d081" * 8,
        "policy_unavailable",
        "alice",
    ):
        assert next(find_secrets(value, UNKNOWN_FORMS), None) is None


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("", "not valid"),
        ("[a-z]*", "character 6"),
        ("(a|b){2}", "character 1"),
        ("a.b", "character 2"),
        ("[^a]{4}", "character 1"),
        ("a{2,1}", "count"),
        ("[a-z]{0}", "count"),
        ("[a-z]{257}", "count"),
        ("[a-z]{257,}", "count"),
        ("[z-a]{3}", "not a range"),
        ("[a-Z]{3}", "not a range"),
        ("[_-0]{3}", "first or last"),
        ("[+-~]{3}", "first or last"),
        ("[a-z]{2,}x", "without an upper bound"),
        ("[a-z]{2,8}[a-f]{2}", "share no character"),
        ("[a-z]{200}[0-9]{100}x", "256 characters"),
    ],
)
def test_a_pattern_that_could_cost_more_than_its_text_is_refused(pattern: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        least_length(pattern)
    row = {"prefixes": ["abc-"], "rest": pattern}
    with pytest.raises(ValidationError, match=rf"forms\.own\.rest\n.*{says}"):
        Secrets.model_validate_json(json.dumps({"forms": {"own": row}, "options": {}}))


def test_a_form_that_would_match_words_is_refused() -> None:
    row = {"prefixes": ["ab"], "rest": "[a-z]{2,}"}
    with pytest.raises(ValidationError, match="at least 8 characters"):
        Secrets.model_validate_json(json.dumps({"forms": {"own": row}, "options": {}}))


@given(st.text(alphabet="AZaz09-_.{},[]", max_size=12))
def test_an_accepted_pattern_matches_at_least_its_minimum_length(pattern: str) -> None:
    try:
        least = least_length(pattern)
    except ValueError:
        return
    forms = SecretForms(frozenset({Form(("start-",), pattern)}))
    for start, end in forms.spans("start-" + "AZaz09-_." * 40):
        assert end - start >= least + len("start-")


@pytest.mark.parametrize(
    ("pattern", "least"),
    [
        ("[a-z]{256}", 256),
        ("[a-z]{1,256}", 1),
        ("[a-z]{0,1}", 0),
        ("[a-z]{256,}", 256),
        ("[a-z]{8,}", 8),
        ("[a-a]{8}", 8),
        ("[-a-z]{8}", 8),
        ("[a-z]{8,8}[a-f]{2}", 10),
        ("[a-z]{200}[0-9]{56}x", 257),
    ],
)
def test_a_pattern_at_a_bound_is_accepted(pattern: str, least: int) -> None:
    assert least_length(pattern) == least


@pytest.mark.parametrize("prefix", ["SK", "sky"])
def test_a_form_matches_at_a_word_start_with_a_short_prefix(prefix: str) -> None:
    forms = SecretForms(frozenset({Form((prefix,), "[0-9]{16}")}))
    secret = prefix + "0123456789012345"
    for line, found in ((secret, True), (f"{prefix}-1 ({secret})", True), (f"x{secret}", False), (prefix * 9, False)):
        assert forms.none_in(line) is not found
        assert [line[start:end] for start, end in forms.spans(line)] == [secret] * found


def test_without_options_no_command_passes_a_secret() -> None:
    assert not SecretForms().handed("login --password swordfish")
    assert SecretForms(options=frozenset({("login", "--password *")})).handed("login --password swordfish")


def test_an_own_form_is_seen_only_by_the_policy_that_states_it() -> None:
    """A decision depends on the policy that is served, and on no other that this process once loaded."""
    own = SecretForms(frozenset({Form(("quuxnet-",), "[a-z]{6}")}))
    assert is_secret("quuxnet-qwerty", own)
    assert not is_secret("quuxnet-qwerty", FORMS)
    assert is_secret("quuxnet-qwerty", FORMS | own)
    assert [*find_secrets("quuxnet-qwerty", own)] == [(0, len("quuxnet-qwerty"))]
    assert not [*find_secrets("quuxnet-qwerty", FORMS)]
    assert (UNKNOWN_FORMS | own).forms == own.forms


@pytest.mark.parametrize(
    ("words", "hidden"),
    [
        (["sshpass", "-p", "swordfish", "ssh", "host"], "swordfish"),
        (["login", "--password", "swordfish"], "swordfish"),
        (["deploy", "--api-key", "swordfish"], "swordfish"),
        (["curl", "-u", "bob:swordfish", "https://api.example.org"], "swordfish"),
        (SECRETS["seed phrase"].split(), "sausage"),
        ([SECRETS["seed phrase"][:36], SECRETS["seed phrase"][36:]], "sausage"),
    ],
)
def test_words_of_a_list_that_are_a_secret_together_are_taken_out(words: list[str], hidden: str) -> None:
    clean, paths = redact({"command": words, "next": ["git", "status", "-s"]})
    assert hidden not in json.dumps(clean)
    assert all(path.startswith("command.") for path in paths)
    assert clean["next"] == ["git", "status", "-s"]


CALL: dict[str, Any] = {"call": {"name": "shell", "arguments": {}}, "policy": "p", "profile": "q", "cwd": "/work"}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", ["vault", "twilio key", "netrc", "seed phrase", "sshpass", "password of words"])
@pytest.mark.parametrize("place", ["command", "note"])
def test_a_secret_in_an_argument_is_a_fact_and_in_no_record(name: str, place: str, tmp_path: Path, cache: Path) -> None:
    with Engine(Settings(state=tmp_path / "state", cache=cache)) as engine:
        call = CALL | {"call": {"name": "shell", "arguments": {place: SECRETS[name]}}}
        answer = engine.decide("tool_call", call)
        listed = engine.decide(
            "tool_call", CALL | {"call": {"name": "sh", "arguments": {place: SECRETS[name].split()}}}
        )
    assert there(answer.document)["secrets"] != []
    assert there(listed.document)["secrets"] != []
    written = "".join(path.read_text() for path in (tmp_path / "state" / "records").rglob("*.jsonl"))
    assert "tool_call" in written
    for planted in (SECRETS[name], "swordfish", "sausage", "horse"):
        assert planted not in written


@pytest.mark.full
def test_a_removed_form_is_no_longer_detected(tmp_path: Path, cache: Path) -> None:
    """Like a deny rule, as the header of policy/secrets.yaml says; the row is what did it."""
    row = json.dumps({"prefixes": ["quuxnet-"], "rest": "[a-z]{6}"})
    call = CALL | {"call": {"name": "shell", "arguments": {"note": "quuxnet-qwerty"}}}
    found = []
    for values in ((f"secrets.forms.quuxnet={row}",), ()):
        with Engine(Settings(state=tmp_path / str(len(values)), cache=cache), values=values) as engine:
            answer = engine.check("tool_call", call)
            assert answer.document is not None, answer.decision.findings
            found.append(bool(answer.document["secrets"]))
    assert found == [True, False]


def test_a_record_without_a_policy_holds_no_secret(tmp_path: Path, cache: Path) -> None:
    settings = Settings(state=tmp_path / "state", cache=cache, policy=tmp_path / "nowhere")
    with Engine(settings) as engine:
        answer = engine.decide("license", {"license": text(40)})
    assert answer.decision.outcome == "deny"
    written = "".join(path.read_text() for path in (tmp_path / "state" / "records").rglob("*.jsonl"))
    assert "license" in written
    assert text(40) not in written


ASSIGNED = (
    *("key", "Key", "KEY", "token", "TOKEN", "sig", "signature", "SIG", "auth", "AUTH", "secret", "SECRET", "password"),
    *("passwort", "passwd", "pwd", "PWD", "PASSWORD", "PASSWD", "DB_PASS", "passphrase", "PASSPHRASE", "credential"),
    *("credentials", "apiKey", "apikey", "APIKEY"),
    *(f"acme{of}" for of in ("Key", "Token", "Signature", "Secret", "Password")),
    *(f"{of}_pass" for of in ("admin", "db", "ftp", "mail", "mysql", "root", "smtp", "ssh", "user")),
)
BEHIND_COLON = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "secret-key", "client_secret"),
    *("access_token", "db_pass", "mail_pass", "smtp_pass"),
    *(f"acme{of}" for of in ("Password", "Passwd", "Passphrase", "Secret", "ApiKey")),
)
OPTIONS = ("pass", "password", "passwd", "passphrase", "secret", "token", "api-key", "secret_key", "access-key")


@pytest.mark.parametrize(
    "text",
    [
        *(f"{name}=hunter2x" for name in ASSIGNED),
        *(f"{name}: hunter2x" for name in BEHIND_COLON),
        *(f"acme --{name} hunter2x" for name in OPTIONS),
        *(f"define('ACME_{name}', 'hunter2x');" for name in ("PASSWORD", "SECRET", "KEY", "SALT")),
        *(f"name: ACME_{name} value: hunter2x" for name in ("PASSWORD", "SECRET", "TOKEN", "APIKEY", "API_KEY")),
        *(f"{name}: swordfish" for name in ("password", "passwort", "passwd", "passphrase", "passcode")),
        *(f"password{sign}swordfish" for sign in (" := '", " is ", " was ", " '")),
    ],
)
def test_each_name_of_a_secret_is_known(text: str) -> None:
    assert is_secret(text, SecretForms())


PUBLISHED = "AKIAIOSFODNN7EXAMPLE"


@pytest.mark.parametrize(
    "text", [PUBLISHED, f"AWS_ACCESS_KEY_ID={PUBLISHED}\n", f'{{"key": "{PUBLISHED}"}}', f"Try {PUBLISHED}."]
)
def test_a_published_example_is_no_secret(text: str) -> None:
    forms = SecretForms(frozenset({Form(("AKIA",), "[A-Z0-9]{16}")}))
    assert is_secret(text, forms)
    assert not is_secret(text, replace(forms, published=frozenset({PUBLISHED})))


def test_what_only_one_of_two_policies_publishes_is_a_secret() -> None:
    forms = SecretForms(frozenset({Form(("AKIA",), "[A-Z0-9]{16}")}))
    publishing = replace(forms, published=frozenset({PUBLISHED}))
    assert is_secret(PUBLISHED, publishing | forms)
    assert not is_secret(PUBLISHED, publishing | publishing)


@pytest.mark.parametrize(
    "text",
    [
        PUBLISHED.replace("E", "F"),
        "".join(chr(ord(letter) + 0xFEE0) for letter in PUBLISHED),  # full width
        f"{PUBLISHED}:AKIAIOSFODNN7EXAMPLF",
        f"{PUBLISHED}/Zt4Qm81LwXk2Vb7Nc3Ys9Hd5Zt4Qm81",
        f"Bearer {PUBLISHED}Zt4Qm81LwXk2Vb7Nc3Ys9Hd5",
        f"Bearer ab{PUBLISHED}",
    ],
)
def test_what_only_resembles_or_contains_a_published_example_is_a_secret(text: str) -> None:
    forms = SecretForms(frozenset({Form(("AKIA",), "[A-Z0-9]{16}")}), published=frozenset({PUBLISHED}))
    assert is_secret(text, forms)
