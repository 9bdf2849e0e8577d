"""Generates documents of many kinds. Their lines are filled with ordinary values. A labelled value has its own line or
column."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from bench.dlp.ordinary.fields import FIELD, Fields
from bench.dlp.ordinary.planted import PLANTED, Planted
from bench.dlp.ordinary.texts import LANGUAGES
from bench.dlp.ordinary.turns import Tool

#: The marks around a labelled value until the text is finished.
_OPEN, _CLOSE = "\ue000", "\ue001"


class Kind(NamedTuple):
    """A kind of document. A document is made from between `min_lines` and `max_lines` random templates in `lines` (in
    the held-out set: in `held_out`). A template can have several lines. `head` and `foot` are added before and after
    them. `sensitive_line` is the template with a labelled value, which is inserted at a random position. A kind without
    `sensitive_line` has a column `‹extra›` for the value."""

    name: str
    lines: tuple[str, ...]
    held_out: tuple[str, ...] = ()
    head: str = ""
    foot: str = ""
    sensitive_line: str | None = None
    min_lines: int = 8
    max_lines: int = 30


class TemplateSet(NamedTuple):
    """A set of templates from which documents and turns of agents are generated: development, held-out or held-out-2.
    `kinds` has the templates of lines for each kind, and `sentences` those of sentences for each language. Seeds begin
    at `first_seed`."""

    first_seed: int
    kinds: tuple[tuple[Kind, tuple[str, ...]], ...]
    sentences: Mapping[str, tuple[str, ...]]
    tools: tuple[Tool, ...]


class Span(NamedTuple):
    start: int
    end: int
    planted: Planted


class Document(NamedTuple):
    kind: str
    text: str
    #: the sensitive values; empty in an ordinary document
    spans: tuple[Span, ...]


KINDS: Final = (
    Kind(
        "access log",
        (
            '‹ip› - - [‹log_date›] "GET /‹service›/‹number6› HTTP/1.1" ‹status› ‹bytes› "-" "curl/‹version›"',
            '‹ip› - - [‹log_date›] "POST /api/v2/‹service› HTTP/1.1" ‹status› ‹number_2_to_60› ‹count›',
            '‹ip› - ‹name› [‹log_date›] "GET /static/app.‹hex8›.js HTTP/2.0" ‹status› ‹number5› ‹ratio›',
            '‹ip› - - [‹log_date›] "GET /p?id=‹number10›&ts=‹epoch_ms›&v=‹digit› HTTP/1.1" ‹status› ‹bytes›',
        ),
        ('‹iso› ‹ip› GET /‹service›/‹uuid› ‹status› ‹number_2_to_60› ‹number4› "Mozilla/5.0" rid=‹hex16›',),
        sensitive_line='‹ip› - - [‹log_date›] "GET /find?‹key›=‹planted› HTTP/1.1" 200 512',
    ),
    Kind(
        "application log",
        (
            "‹date› ‹clock_seconds›.‹number3› INFO  [‹service›] request_id=‹uuid› took ‹millis› ms",
            "‹date› ‹clock_seconds› [‹pid›] DEBUG ‹service›.cache: hit ratio ‹ratio› size ‹bytes› key ‹md5›",
            '‹iso› level=warn msg="slow query" duration=‹millis›ms rows=‹number6› trace_id=‹hex16›‹hex16› span_id=‹hex16›',
            "‹iso› level=info caller=store.go:‹line› msg=compacted revision=‹number8› took=‹float6›ms",
            "[‹epoch_float›] usb 1-‹digit›: new high-speed device number ‹number_2_to_60›",
            "‹date› ‹clock_seconds› kafka partition=‹digit› offset=‹number10› lag=‹number6› ts=‹epoch_ms›",
            "‹iso› ERROR payment ‹order› failed with code ‹number3› after ‹number_2_to_60› retries, next at ‹epoch›",
            "I‹number4› ‹clock_seconds›.‹number6›   ‹pid› controller.go:‹line›] synced pod ‹pod› node ip ‹ip›:‹port›",
            "partition_key=‹uuid› idempotency_key=‹uuid› status=‹status›",
            'cache_key=‹md5› etag="‹md5›" last_token=‹number12›',
        ),
        (
            "<‹number3›>1 ‹iso› host-‹number_2_to_60› ‹service› ‹pid› ID‹number_2_to_60› - worker ‹uuid› done in ‹float6› s",
            "‹epoch_ns› ‹service› gc pause ‹ratio› ms heap ‹bytes› -> ‹bytes› objects ‹number9›",
            "‹timestamp_digits_minutes› job ‹number9› step ‹digit› read ‹number12› wrote ‹number11› bytes",
        ),
        sensitive_line='‹iso› level=info msg="profile updated" ‹key›=‹planted› status=200',
    ),
    Kind(
        "sql dump",
        (
            "INSERT INTO ‹service› VALUES (‹number8›, '‹sku›', '‹extra›', ‹price›, '‹date› ‹clock_seconds›', '‹uuid›');",
            "INSERT INTO ‹service› VALUES (‹number9›, '‹order›', '‹extra›', ‹number_2_to_60›, '‹iso›', '‹md5›');",
            "INSERT INTO ‹service› VALUES (‹number10›, '‹tracking›', '‹extra›', ‹bytes›, '‹date›', '‹hex24›');",
        ),
        ("(‹number10›, '‹date›', '‹extra›', ‹epoch›, ‹number7›, '‹city›', NULL),",),
        head="CREATE TABLE `rows` (\n  `id` bigint(20) NOT NULL AUTO_INCREMENT,\n  `ref` varchar(64) DEFAULT NULL,\n"
        "  `‹extra_name›` varchar(64) DEFAULT NULL,\n  `amount` decimal(10,2) NOT NULL,\n  `at` datetime NOT NULL,\n  `hash` char(36),\n"
        "  PRIMARY KEY (`id`)\n) ENGINE=InnoDB AUTO_INCREMENT=‹number9› DEFAULT CHARSET=utf8mb4;",
    ),
    Kind(
        "csv export",
        (
            "‹number9›,‹order›,‹extra›,‹date›,‹price›,‹city›,‹number5›",
            "‹number9›,‹order›,‹extra›,‹date›,‹price›,‹city›,‹number5›",
        ),
        ("‹number10›,‹sku›,‹extra›,‹date›,‹bytes›,‹city›,‹number_2_to_60›",),
        head="id,reference,‹extra_name›,date,amount,city,units",
        min_lines=5,
    ),
    Kind(
        "csv with semicolons",
        ("‹order›;‹date_dots›;‹extra›;‹price_comma›;‹epoch›;‹latitude›;‹longitude›",),
        ("‹number12›;‹date_slashes›;‹extra›;‹dot_grouped›;‹timestamp_digits_minutes›;‹sku›;‹number13›",),
        head="Beleg;Datum;‹extra_name›;Betrag;Zeit;Breite;Länge",
        min_lines=5,
    ),
    Kind(
        "list of numbers",
        ("‹number10›", "‹number9›", "‹number11›", "‹number8›", "‹epoch›", "‹number10›"),
        ("‹epoch_ms›", "‹number12›", "‹number13›", "‹number11›"),
        sensitive_line="‹label›\n‹planted›\n",
    ),
    Kind(
        "package lock",
        (
            '    "node_modules/‹package›": {\n      "version": "‹version›",\n      "resolved": "https://registry.npmjs.org/‹package›/-/‹package›-‹version›.tgz",\n      "integrity": "‹npm_integrity›",\n      "dev": true\n    },',
            '    "node_modules/‹package›-core": {\n      "version": "‹version›",\n      "integrity": "‹npm_integrity›",\n      "engines": { "node": ">=‹number_2_to_60›.0.0" }\n    },',
        ),
        (
            '‹package›@^‹version›:\n  version "‹version›"\n  resolved "https://registry.yarnpkg.com/‹package›/-/‹package›-‹version›.tgz#‹sha1›"\n  integrity ‹npm_integrity›\n',
        ),
        head='{\n  "name": "‹service›",\n  "lockfileVersion": 3,\n  "packages": {',
        foot="  }\n}",
        sensitive_line='    "‹key›": "‹planted›",',
        max_lines=12,
    ),
    Kind(
        "poetry lock",
        (
            '[[package]]\nname = "‹package›"\nversion = "‹version›"\nfiles = [\n    {file = "‹package›-‹version›.tar.gz", hash = "sha256:‹sha256›"},\n]\n',
        ),
        (
            '[[package]]\nname = "‹package›"\nversion = "‹version›"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\nchecksum = "‹sha256›"\n',
            "‹package›==‹version› \\\n    --hash=sha256:‹sha256› \\\n    --hash=sha256:‹sha256›",
            "github.com/acme/‹package› v‹version›-0.‹timestamp_digits›-‹hex12› h1:‹base64_44›",
        ),
        sensitive_line='‹key› = "‹planted›"',
        max_lines=12,
    ),
    Kind(
        "kubernetes manifest",
        (
            '---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: ‹service›\n  uid: ‹uuid›\n  resourceVersion: "‹number9›"\n  creationTimestamp: "‹iso›"',
            "      - name: ‹service›\n        image: registry.example.org/‹service›@sha256:‹sha256›\n        ports:\n        - containerPort: ‹port›",
            '        env:\n        - name: BUILD_ID\n          value: "‹number10›"\n        - name: GITHUB_SHA\n          value: ‹sha1›',
            "        - name: DB_PASSWORD\n          valueFrom:\n            secretKeyRef:\n              name: ‹service›-secrets\n              key: db-password-‹number_2_to_60›",
            '  annotations:\n    checksum/config: ‹sha256›\n    kubectl.kubernetes.io/restartedAt: "‹iso›"\n    token-revision: r‹number12›',
            '        resources:\n          limits:\n            memory: "‹number10›"\n            cpu: ‹count›m',
            "kind: ConfigMap\ndata:\n  session-key-prefix: ‹service›-v‹number_2_to_60›-sessions\n  secretName: ‹service›-tls-‹number6›",
        ),
        (
            '    - lastTransitionTime: "‹iso›"\n      message: ReplicaSet "‹pod›" has successfully progressed.\n      podIP: ‹ip›',
            "  ownerReferences:\n  - kind: ReplicaSet\n    name: ‹service›-‹hex8›\n    uid: ‹uuid›\n  generation: ‹number7›",
            "    volumes:\n    - name: kube-api-access-‹id5›\n      projected:\n        sources:\n        - serviceAccountToken:\n            expirationSeconds: 3607\n            path: token",
        ),
        sensitive_line='        - name: ‹key›\n          value: "‹planted›"',
        max_lines=12,
    ),
    Kind(
        "yaml configuration",
        (
            "‹service›:\n  enabled: true\n  timeout_ms: ‹millis›\n  max_tokens: ‹count›",
            "  image: ghcr.io/acme/‹service›:‹version›-‹short_sha›",
            '  api_key: ${‹service›_API_KEY}\n  password: "{{ vault.‹service›.password }}"',
            "  token_ttl: ‹number5›\n  secret_name: ‹service›/prod/v‹number_2_to_60›",
            "  webhook_url: https://hooks.example.org/‹service›/‹uuid›",
            "  kms_key_id: ‹uuid›\n  key_file: /etc/‹service›/tls-‹number_2_to_60›.key",
            '  public_key: "‹base64_44›"\n  fingerprint: SHA256:‹id24›‹id12›‹hex8›',
            "  tokenizer: bpe-‹number5›-v‹digit›\n  tokenizer_revision: ‹sha1›",
            "  sort_key: created_at_‹number8›\n  partition_key: tenant-‹number12›",
            "  docker_image: ‹service›:build-‹number10›-‹short_sha›",
            "  sentry_release: ‹service›@‹version›+‹short_sha›\n  grafana_dashboard: ‹id12›‹digit›‹id12›",
        ),
        (
            "- name: Deploy ‹service›\n  uses: acme/deploy@‹sha1›\n  with:\n    github-token: ${{ secrets.GITHUB_TOKEN }}\n    build: ‹number10›",
            "  segment_id: ‹hex24›‹hex8›\n  zoom_level: ‹number_2_to_60›\n  stability_window: ‹number10›",
            "  s3_key: exports/‹service›/‹timestamp_digits›-‹number8›.parquet\n  license_key_file: /opt/licences/‹number8›.lic",
        ),
        sensitive_line="  ‹key›: ‹planted›",
    ),
    Kind(
        "json configuration",
        (
            '  "‹service›": { "port": ‹port›, "retries": ‹number_2_to_60›, "since": "‹iso›" },',
            '  "build": { "id": ‹number10›, "commit": "‹sha1›", "at": ‹epoch_ms› },',
            '  "cacheKey": "‹md5›", "partitionKey": "‹uuid›",',
            '  "nextPageToken": "‹id24›‹id20›", "pageSize": ‹count›,',
            '  "etag": "W/\\"‹hex8›-‹id20›‹digit›\\"", "contentLength": ‹bytes›,',
            '  "tokenLimit": ‹number6›, "maxTokens": ‹count›, "model": "sample-‹version›",',
            '  "digest": "sha256:‹sha256›", "size": ‹number9›,',
            '  "clientId": "‹uuid›", "authUrl": "https://login.example.org/‹uuid›/oauth2",',
            '  "bounds": [‹longitude›, ‹latitude›, ‹longitude›, ‹latitude›],',
            '  "secretName": "‹service›-‹number6›", "passwordPolicy": "min-‹number_2_to_60›-chars",',
        ),
        (
            '  "continuationToken": "‹id24›‹id24›‹digit›", "syncToken": "‹number10›",',
            '  "objectKey": "media/‹day_compact›/‹uuid›.webp", "width": ‹count›,',
            '  "cursor": "‹base64_44›", "hash": "‹base64_44›",',
        ),
        head="{",
        foot='  "version": 2\n}',
        sensitive_line='  "‹key›": "‹planted›",',
    ),
    Kind(
        "toml configuration",
        (
            "[‹service›]\nport = ‹port›\nsince = ‹date›T‹clock_seconds›Z",
            'commit = "‹sha1›"\nbuild = ‹number10›',
            'path = "/srv/‹service›/‹number8›"\nratio = ‹ratio›',
            "max_upload = ‹bytes›\nseed = ‹number9›",
            'public_key = "‹base64_44›"',
        ),
        ('[[runs]]\nid = "‹uuid›"\nstarted = ‹epoch_ms›\nkeyspace = "ks_‹number8›"',),
        sensitive_line='‹key› = "‹planted›"',
    ),
    Kind(
        "python source",
        (
            'def load_‹service›(path: str, limit: int = ‹number5›) -> list[str]:\n    """Rows of ‹file›, at most `limit`."""',
            '    token = await client.get_token(user.id)\n    password = request.form["password"]',
            '    assert checksum(data) == "‹sha256›"',
            '    if elapsed > ‹float6›:\n        raise TimeoutError(f"{name} took {elapsed} s, line ‹line›")',
            '    expected = {"id": ‹number9›, "at": ‹epoch›, "name": "‹name›"}',
            'SECRET_KEY = os.environ["‹service›_SECRET_KEY"]',
            'CACHE_KEY = f"‹service›:{user_id}:{version}:v‹number_2_to_60›"',
            '    assert parse("‹date› ‹clock_seconds›") == ‹epoch_ms›',
            '    key = hashlib.sha256(b"‹service›").hexdigest()  # ‹sha1›',
            "MAGIC = 0x‹hex16›\nPRIMES = (‹number9›, ‹number10›, ‹number10›)",
            "    token_type_ids = tokenizer.encode(text, max_length=‹count›)",
        ),
        (
            '@pytest.mark.parametrize(("code", "size"), [("‹sku›", ‹number9›), ("‹alphanumeric10›", ‹number11›)])',
            '    session_key = make_key("‹service›", ‹number8›)\n    secret_santa = pairs[‹number_2_to_60›]',
            'ID = UUID("‹uuid›")\nSTAMP = "‹timestamp_digits›"',
        ),
        sensitive_line='‹key› = "‹planted›"',
    ),
    Kind(
        "javascript source",
        (
            "export const ‹service›Limit = ‹number7›; // bytes, see ‹ticket›",
            "const token = await fetchToken(user.id, { scope: '‹service›' });",
            "if (!password || password.length < ‹number_2_to_60›) throw new Error('Password must have ‹number_2_to_60› characters');",
            "import { ‹service› } from '@acme/‹package›'; // ‹version›",
            "it('finds order ‹order›', async () => { expect(await find('‹uuid›')).toBe(‹number9›); });",
            "const key = `‹service›:${id}:${Date.now()}`; // e.g. ‹service›:‹number6›:‹epoch_ms›",
            '  <input type="password" name="password" autocomplete="new-password" id="pw-‹number5›" />',
            "const colors = ['#‹hex6›', '#‹hex6›', '#‹hex6›'];",
            '<path d="M‹number_2_to_60›.‹number2› ‹number_2_to_60›.‹number2›L‹number_2_to_60› ‹number3› ‹number_2_to_60› ‹number4›z" />',
            "module.exports = { publicKey: '‹base64_44›', chunk: '‹service›.‹hex16›.js' };",
        ),
        (
            "localStorage.setItem('auth_state', JSON.stringify({ step: ‹digit›, at: ‹epoch_ms› }));",
            "describe('token bucket', () => { const tokenBucket = new Bucket(‹number6›, '‹hex24›'); });",
        ),
        sensitive_line="const ‹key› = '‹planted›';",
    ),
    Kind(
        "go and java source",
        (
            "const max‹upper1› = ‹number10› // nanoseconds",
            'var errToken = errors.New("token expired at ‹iso›")',
            'func (s *‹service›) Key(id int64) string { return fmt.Sprintf("%s:%d", s.prefix, id) }',
            "private static final long serialVersionUID = -‹snowflake›L;",
            'private static final String CACHE_NAME = "‹service›-cache-v‹number_2_to_60›";',
            '    logger.info("Loaded {} rows in {} ms", ‹number7›, ‹millis›); // ‹ticket›',
            'String password = System.getenv("DB_PASSWORD");',
            '    assertEquals("‹md5›", md5("‹service›‹number8›"));',
            '    return new Money("EUR", ‹number9›L);',
        ),
        (
            '    [Guid("‹uuid_upper›")]\n    public const string PublicKeyToken = "‹hex16›";',
            "impl ‹upper1›Key { pub const SEED: u64 = 0x‹hex16›; } // ‹number13›",
        ),
        sensitive_line='String ‹key› = "‹planted›";',
    ),
    Kind(
        "stack trace",
        (
            '  File "/usr/lib/python3.11/site-packages/‹service›/core.py", line ‹line›, in run\n    return self.call(item, retries=‹digit›)',
            "    at com.acme.‹service›.Handler.process(Handler.java:‹line›)",
            "    at async Object.<anonymous> (/srv/app/node_modules/‹package›/index.js:‹line›:‹number_2_to_60›)",
            "goroutine ‹number6› [running]:\nmain.handle(0xc000‹hex6›, 0x‹hex12›)\n\t/go/src/‹service›/main.go:‹line› +0x‹hex3›",
            "KeyError: '‹sku›' (order ‹order›, attempt ‹digit› of ‹number_2_to_60›)",
            "TypeError: expected token of type 'number' but got '‹number9›' at position ‹number6›",
            "Caused by: java.lang.IllegalStateException: lock ‹uuid› held since ‹epoch_ms›",
        ),
        (
            "thread '‹service›' panicked at src/‹service›.rs:‹line›:‹number_2_to_60›: index ‹number8› out of range for slice of length ‹number7›",
            "#‹digit›  0x0000‹hex12› in ‹service›_run (arg=0x‹hex12›) at ‹service›.c:‹line›",
        ),
        sensitive_line="ValueError: bad ‹key›: ‹planted›",
    ),
    Kind(
        "git log",
        (
            "commit ‹sha1›\nAuthor: ‹name› <‹service›@example.org>\nDate:   ‹git_date›\n\n    Fix ‹ticket›: do not round ‹number5› to ‹number4›\n",
            "‹short_sha› Bump ‹package› from ‹version› to ‹version› (#‹count›)",
            "index ‹short_sha›..‹short_sha› 100644\n--- a/‹code_path›\n+++ b/‹code_path›\n@@ -‹line›,‹number_2_to_60› +‹line›,‹number_2_to_60› @@",
            "Merge: ‹short_sha› ‹short_sha›\n    Merge pull request #‹count› from acme/‹service›-‹number6›",
        ),
        (
            "‹sha1› refs/tags/v‹version›-‹day_compact›",
            " ‹code_path› | ‹count› ‹digit›+++---\n ‹number_2_to_60› files changed, ‹count› insertions(+)",
        ),
        sensitive_line="    Use ‹key› ‹planted› in the test\n",
    ),
    Kind(
        "mail with headers",
        (
            "Received: from mx‹digit›.example.org (mx‹digit›.example.org [‹ip›]) by mail.example.net (Postfix) with ESMTPS id ‹alphanumeric10› for <team@example.net>; ‹mail_date›",
            "Message-ID: <‹timestamp_digits›.‹alphanumeric10›@mail.example.org>",
            "DKIM-Signature: v=1; a=rsa-sha256; d=example.org; s=s‹number4›; t=‹epoch›; bh=‹base64_44›; b=‹base64_44›‹base64_44›",
            "X-Mailer: Mailer ‹version› (build ‹number8›)\nX-Spam-Score: -‹digit›.‹number3›",
            'Content-Type: multipart/mixed; boundary="----=_Part_‹number6›_‹number9›.‹epoch_ms›"',
            "Thread-Index: ‹base64_44›\nReferences: <‹uuid›@example.org>",
            "List-Unsubscribe: <https://example.org/u/‹id24›?m=‹number9›>",
        ),
        (
            "ARC-Seal: i=1; a=rsa-sha256; t=‹epoch›; cv=none; d=example.com; s=arc-‹day_compact›; b=‹base64_44›",
            "X-Campaign: ‹number9›:‹number5›:‹number7›",
        ),
        sensitive_line="X-‹key›: ‹planted›",
        max_lines=10,
    ),
    Kind(
        "markdown notes",
        (
            "# Release ‹version› (‹date›)\n",
            "- ‹ticket›: limit of ‹service› is ‹comma_grouped› rows now, was ‹number6›",
            "- [ ] measure ‹service› again at ‹clock›, last time ‹float6› s (±‹ratio›)",
            "| ‹service› | ‹number4› | ‹number5› | ‹percent› % | ‹date› |",
            "| ‹sku› | ‹number3› ‹number3› ‹number3› | ‹number2› ‹number4› | ‹price› |",
            "See `‹short_sha›` and pages ‹number3›-‹number3›; dial-in code ‹number3› ‹number3› ‹number3›.",
            "> Uptime ‹percent› %, downtime ‹number3› s, ISBN 978-‹digit›-‹number4›-‹number4›-‹digit›",
            "1. Open ‹file› and jump to line ‹line›, column ‹number_2_to_60›",
            "Position of the sensor: rack ‹number_2_to_60›, unit ‹digit›, ‹celsius› °C, ‹percent› % humidity",
        ),
        (
            "## Sprint ‹number_2_to_60› (‹date› to ‹date›)\n\nVelocity ‹number_2_to_60›, ‹count› points open, burn rate ‹ratio›.",
            "| ‹number9› | ‹number10› | ‹number8› | ok |",
            "Meeting ‹number3› ‹number4› ‹number4›, doc revision ‹number8›, see also figure ‹digit›.",
        ),
        sensitive_line="- ‹label›: ‹planted›",
    ),
    Kind(
        "table of numbers",
        (
            "‹number3› ‹number2› ‹number4›",
            "‹number3› ‹number3› ‹number3›",
            "‹number2› ‹number3› ‹number3› ‹number3›",
            "‹number4› ‹number4› ‹number4›",
            "‹number5› ‹number6› ‹number7›",
            "‹number3› ‹number3› ‹number4›",
        ),
        (
            "‹number4› ‹number3› ‹number3›",
            "‹number6›-‹number4›",
            "‹number6› ‹number5›",
            "‹number4›-‹number4›-‹number4›",
        ),
        head="rows  used  free",
        sensitive_line="‹label› ‹planted›",
    ),
    Kind(
        "shell session",
        (
            "$ date +%s\n‹epoch›",
            "$ ls -l\n-rw-r--r-- 1 app app ‹bytes› Mar ‹number_2_to_60› ‹clock› ‹file›\ndrwxr-xr-x ‹digit› app app ‹number4› Mar ‹number_2_to_60› ‹clock› ‹service›",
            "$ git rev-parse HEAD\n‹sha1›",
            "$ sha256sum ‹file›\n‹sha256›  ‹file›",
            "$ docker images\nregistry.example.org/‹service›   ‹version›   ‹hex12›   ‹number_2_to_60› days ago   ‹count›MB",
            "$ kubectl get pods\n‹pod›   1/1   Running   ‹digit›   ‹number_2_to_60›h",
            "$ du -sb .\n‹bytes›\t.",
            "$ ping -c1 ‹ip›\n64 bytes from ‹ip›: icmp_seq=1 ttl=‹number_2_to_60› time=‹ratio› ms",
            "$ docker build .\n#‹number_2_to_60› exporting layers\n#‹number_2_to_60› writing image sha256:‹sha256› done",
        ),
        (
            "$ free -b\nMem:  ‹number11› ‹number10› ‹number9› ‹number8› ‹number10› ‹number11›",
            "$ id\nuid=‹number4›(app) gid=‹number9›(app) groups=‹number9›(app)",
            "$ stat -c '%i %s %Y' ‹file›\n‹number8› ‹bytes› ‹epoch›",
        ),
        sensitive_line="$ export ‹key›=‹planted›",
    ),
    Kind(
        "ci log",
        (
            "##[debug]GITHUB_SHA=‹sha1›",
            "‹iso› GITHUB_RUN_ID=‹number10› GITHUB_RUN_NUMBER=‹count› RUNNER_TRACKING_ID=github_‹uuid›",
            "Cache restored from key: node-modules-linux-‹sha256›",
            "CIRCLE_SHA1=‹sha1›\nCIRCLE_BUILD_NUM=‹number6›",
            "Uploading artifact ‹service›-‹number10› (‹bytes› bytes), digest ‹sha256›",
            "Docker digest: sha256:‹sha256›",
            "Sentry release: ‹sha1›",
            "codecov: commit ‹sha1› uploaded, token check skipped",
            "VERCEL_GIT_COMMIT_SHA=‹sha1›\nVERCEL_DEPLOYMENT_ID=dpl_‹id24›",
            "terraform: Refreshing state... [id=vpc-‹hex16›0]\nvault lease id: ‹uuid›",
        ),
        (
            "BUILDKITE_COMMIT=‹sha1›\nBUILDKITE_JOB_ID=‹uuid›",
            "heroku slug: ‹uuid›, release v‹count›\nrender deploy id: dep-‹id20›",
            "TRAVIS_COMMIT=‹sha1›\nTRAVIS_BUILD_ID=‹number9›",
        ),
        sensitive_line="‹key›=‹planted›",
        max_lines=14,
    ),
    # Kinds of documents that are only in the held-out part.
    Kind(
        "ini file",
        (),
        (
            "[‹service›]\nlisten = ‹ip›:‹port›\nworkers = ‹number_2_to_60›",
            "cookie_name = sid_‹number6›\nsecret_file = /run/secrets/‹service›",
            "token_endpoint = https://id.example.org/‹uuid›/token",
            "build = ‹timestamp_digits_minutes›.‹short_sha›",
            "salt_rounds = ‹number_2_to_60›\nkeyring = ring-‹number8›",
        ),
        sensitive_line="‹key› = ‹planted›",
    ),
    Kind(
        "calendar file",
        (),
        (
            "BEGIN:VEVENT\nUID:‹uuid›@example.org\nDTSTAMP:‹day_compact›T‹number6›Z\nSUMMARY:‹service› review ‹ticket›\nSEQUENCE:‹digit›\nEND:VEVENT",
        ),
        head="BEGIN:VCALENDAR\nVERSION:2.0",
        foot="END:VCALENDAR",
        sensitive_line="DESCRIPTION:‹label› ‹planted›",
        max_lines=8,
    ),
    Kind(
        "prometheus metrics",
        (),
        (
            'http_requests_total{service="‹service›",code="‹status›"} ‹number9› ‹epoch_ms›',
            "process_start_time_seconds ‹epoch_float›",
            'node_filesystem_free_bytes{device="/dev/sda‹digit›"} ‹number12›',
            "go_memstats_last_gc_time_seconds ‹epoch_float›",
        ),
        sensitive_line="# ‹key› ‹planted›",
    ),
    Kind(
        "html page",
        (),
        (
            '<li data-id="‹number9›" data-ts="‹epoch_ms›"><a href="/‹service›/‹uuid›">‹product›</a> ‹price› €</li>',
            '<script src="/a.‹hex16›.js" integrity="sha384-‹base64_44›‹id20›" crossorigin="anonymous"></script>',
            '<meta name="csrf-token" content="">\n<input type="hidden" name="page" value="‹number6›">',
            '<time datetime="‹iso›">‹date_slashes›</time>, article ‹sku›',
        ),
        sensitive_line="<td>‹label›</td><td>‹planted›</td>",
    ),
    Kind(
        "bank of tests",
        (),
        (
            "test ‹service›::case_‹number5› ... ok (‹ratio›s)",
            "seed ‹number10› shrink ‹number_2_to_60› → ‹number13›",
            "expected ‹number9› but was ‹number9›",
            "‹alphanumeric12› ‹alphanumeric12› ‹alphanumeric10›",
        ),
        sensitive_line="fixture ‹key›=‹planted›",
    ),
)

#: The minimum and maximum number of sentences for each kind of prose.
_PROSE: Final = {"support ticket": (4, 9), "chat": (6, 14), "mail": (4, 8)}


def documents(part: TemplateSet, count: int, *, planted: bool) -> list[Document]:
    return [document(part, part.first_seed + number, planted=planted) for number in range(count)]


def document(part: TemplateSet, seed: int, *, planted: bool) -> Document:
    """Return a document. About half of the documents are prose, in a random language of the part. The others are of one
    of its kinds."""
    fields = Fields(seed)
    value = PLANTED[seed % len(PLANTED)] if planted else None
    if fields.random.random() < 0.5:
        return _prose(fields, part, planted=value)
    kind, templates = fields.random.choice(part.kinds)
    return _made(fields, kind, templates, planted=value)


def _prose(fields: Fields, part: TemplateSet, *, planted: Planted | None) -> Document:
    name, (least, most) = fields.random.choice(list(_PROSE.items()))
    language = fields.random.choice(list(part.sentences))
    written, sentences = LANGUAGES[language], part.sentences[language]
    lines = [fields.fill(fields.random.choice(sentences)) for _ in range(fields.random.randint(least, most))]
    if planted is not None:
        mention = fields.random.choice(written.mentions)
        lines.insert(fields.random.randrange(len(lines) + 1), _mentioned(fields, mention, planted))
    greeting, closing = fields.fill(written.greeting), fields.fill(written.closing)
    if name == "chat":
        text = "\n".join(fields.fill("[‹clock›] ‹name›: ") + line for line in lines)
    elif name == "mail":
        head = fields.fill("From: ‹service›@example.org\nDate: ‹mail_date›\nSubject: ‹ticket›\n")
        text = "\n".join((head, greeting, "", " ".join(lines), "", closing))
    else:
        text = "\n\n".join((greeting, " ".join(lines), closing))
    return _finished(f"{name} ({language})", text, planted)


def _made(fields: Fields, kind: Kind, templates: tuple[str, ...], *, planted: Planted | None) -> Document:
    count = fields.random.randint(kind.min_lines, kind.max_lines)
    column = fields.random.choice(planted.keys) if planted else fields.value("column")

    def filled(template: str) -> str:
        def value(name: str) -> str:
            if name == "extra":
                return _marked(fields, planted) if planted else fields.digits(fields.random.randint(2, 6))
            return column if name == "extra_name" else fields.value(name)

        return FIELD.sub(lambda match: value(match[1]), template)

    lines = [filled(fields.random.choice(templates)) for _ in range(count)]
    if planted is not None and kind.sensitive_line is not None:
        lines.insert(fields.random.randrange(len(lines) + 1), _mentioned(fields, kind.sensitive_line, planted))
    parts = [filled(kind.head)] * bool(kind.head) + lines + [filled(kind.foot)] * bool(kind.foot)
    return _finished(kind.name, "\n".join(parts), planted)


def _marked(fields: Fields, planted: Planted) -> str:
    return _OPEN + planted.make(fields) + _CLOSE


def _mentioned(fields: Fields, template: str, planted: Planted) -> str:
    """Return `template` filled with the value and one of its names."""
    own = {
        "label": fields.random.choice(planted.names),
        "key": fields.random.choice(planted.keys),
        "planted": _marked(fields, planted),
    }
    return FIELD.sub(lambda match: own.get(match[1]) or fields.value(match[1]), template)


def _finished(kind: str, text: str, planted: Planted | None) -> Document:
    """Return a document without the marks. The marked parts become spans."""
    parts: list[str] = []
    spans: list[Span] = []
    length = 0
    for piece in text.split(_OPEN):
        value, closed, rest = piece.rpartition(_CLOSE)
        if closed and planted is not None:
            spans.append(Span(length, length + len(value), planted))
            parts.append(value)
            length += len(value)
        parts.append(rest)
        length += len(rest)
    return Document(kind, "".join(parts), tuple(spans))
