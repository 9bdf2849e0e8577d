"""Patterns for secrets that are not specific to a vendor: keys, headers, connection strings, passwords, and files that
contain them."""

from typing import Final

from gatehouse.detection.catalog.assignment import ASSIGNMENT
from gatehouse.detection.catalog.example_tokens import BASE62, HEX, random_characters
from gatehouse.detection.catalog.shapes import secret, shape
from gatehouse.detection.validators import both
from gatehouse.detection.validators.secrets import (
    assigned_key,
    bare_password,
    configured,
    jwt,
    no_number,
    no_slug,
    password,
    private_key_body,
    token,
    unnamed_key,
    user_and_password,
)

_PEM: Final = r"[A-Za-z0-9+/=\s:,.\\()]{0,900}"
_NAMES: Final = (
    r"(?:(?:[_\-]|key|db)?passw(?:or)?d|secret|pwd|_pass|private_key|-pass|api_key|keypass|apikey|dbpass|api-key|contrase[ñn]a"
    r"|private-key|auth_token|privatekey|auth-token|priv_key|authtoken|privkey)"
)
#: Names of keys that may also be names of database columns.
_KEY_NAMES: Final = (
    r"(?:auth_key|service_key|account_key|client_key|db_key|database_key|authkey|servicekey|accountkey|clientkey|dbkey"
    r"|databasekey|auth-key|service-key|account-key|client-key|db-key)"
)
#: The text between one of `_KEY_NAMES` and a value in quotes: `"] = "`, `[32] = @"`, `: &str = "`, `" value="`,
#: `.assign("`.
_QUOTED_ASSIGNMENT: Final = (
    r"(?:\[\d{0,3}\])?[\\\"'`]{0,2}\]?\)?(?::?\s&?str(?:ing)?\??)?\s{0,3}"
    r"(?:[:!=?.]{0,2}=>?|:|,|>|\(|\{|\|\||\.assign\(|value=|\{\s{1,4}default\s{1,4}=|is|)\s{0,3}[@(]?\\{0,2}[\"'`]"
)
#: Ends of names that describe a secret and do not contain it, such as `password_policy`.
_DESCRIBING_NAME_END: Final = (
    r"(?:id|ids|name|names|url|uri|path|file|files|dir|type|types|size|length|len|count|version|vault|pair|event|word|"
    r"board|code|field|label|hint|policy|regex|pattern|min|max|ttl|expiry|expires|expiration|_at|store|chars?|"
    r"message|msg|error|prompt|text|title|description|placeholder|help|info|note|rules?|strength|reminder|question|"
    r"hash|selector|frame|stone|usage|limit|page|mesh|meshing|down|pressed|index|manager|provider|reset|revision|"
    r"prefix|suffix|format|state|status|digest|checksum|fingerprint|build|image|job|trace|span)"
)
#: The end of such a name and the assignment to it. It is used as a decoy.
_DECOY: Final = rf"[\w\-]{{0,12}}?{_DESCRIBING_NAME_END}{ASSIGNMENT}[^\s\"']{{0,40}}"
_PUBLIC_NAME: Final = (
    r"(?:public|primary|foreign|partition|sort|cache|csrf|xsrf|bucket|object|row|schema|map|page|continuation|issuer|"
    r"sequence|lookup|index|idx|column|group|sort|routing|hot|valid|locale|translation|next|previous|prev|sync|resume|"
    r"pagination|cursor|idempotency|dedup|deduplication|cancellation|last|file|image|document|order|item|issue|project)"
)
_KEY: Final = (
    r"(?:token|secret|credentials?|creds|api[_\- .]?key"
    r"|(?:access|auth|private|account|encryption|signing|license|master|app|service|client|session|shared|consumer"
    r"|admin|user|deploy|storage|webhook)[_\-. ]?key"
    r"|auth[_\-]|[_\-]auth|[a-z0-9][_\-]key|key_base|_salt)"
)
#: Names of long random values that are not secret, including all ids.
_PUBLIC_VALUES: Final = (
    r"public[_\-. ]?key|pub[_\-]?key|public[_\-]?token|integrity|checksum|digest|fingerprint|thumbprint|signature|etag|"
    r"cursor|page[_\-]?token|sync[_\-]?token|continuation|next[_\-]?token|nonce|[_\-. \"']hash|"
    r"sha[_\-]?(?:1|256|384|512)|[a-z_\-.]ids?(?:[_\-.]?\d)?"
)
_PASSWORDS: Final = (
    r"\b(?:password|passwd|passphrase|passcode|"
    r"passwort|kennwort|pwd|mot de passe|contraseña|wachtwoord|senha|palavra-passe|"
    r"hasło|"
    r"has[łl]em|parola)|şifre(?:niz|m)?|пароль|パスワ[ー\-]ド|密码|비밀번호"
)
#: The text between a name and its value in a sentence, in the languages of `_PASSWORDS`.
_SENTENCE_ASSIGNMENT: Final = (
    r"(?:\s{0,3}[=:]\s{0,3}|は\s?"
    r"|\s{1,3}(?:is|was|lautet|ist|est|es|è|é|to|jest|será|zal|wordt|to:|is:|ist:|est:|es:|is now)\s{1,3})"
)
_VALUE: Final = r"[\w=.~+/|@%\-]{12,60}"

#: Names whose values are often longer than the maximum length of a shape without an opening.
_LONG_VALUE_NAMES: Final = (
    "access_token",
    "accesstoken",
    "refresh_token",
    "refreshtoken",
    "secret_key_base",
    "client_secret",
)

PATTERNS = (
    secret(
        "private_key",
        "Private key",
        shape(
            r"-----BEGIN[ A-Z0-9_\-]{0,30}PRIVATE KEY[ A-Z]{0,8}-----"
            + (_PEM + "-?") * 7
            + r"(?:-----END[ A-Z0-9_\-]{0,30}PRIVATE KEY[ A-Z]{0,8}-----)?",
            0.95,
            private_key_body,
            opening="-----BEGIN",
        ),
        shape(
            r"PuTTY-User-Key-File-\d: [\w\-]{3,30}" + r"[\w\s:+/=@.\-]{100,900}" * 3,
            0.95,
            opening="PuTTY-User-Key-File-",
        ),
        examples=(
            "-----BEGIN RSA "
            + "PRIVATE KEY-----\n"
            + random_characters(64)
            + "\n"
            + random_characters(30)
            + "\n-----END RSA "
            + "PRIVATE KEY-----",
            "-----BEGIN " + "PRIVATE KEY-----\n" + random_characters(64),
        ),
        counterexamples=(
            "-----BEGIN PUBLIC KEY-----\n" + random_characters(64),
            "-----BEGIN " + "PRIVATE KEY-----\nanything",
        ),
    ),
    secret(
        "jwt",
        "JSON Web Token",
        shape(
            r"\beyJ[A-Za-z0-9_\-]{8,900}\.(?:eyJ|ZXlK)[A-Za-z0-9_\-]{4,900}[A-Za-z0-9_\-]{0,900}"
            r"(?:\.[A-Za-z0-9_\-]{0,900}){0,1}",
            0.95,
            jwt,
            opening="eyJ",
        ),
        examples=("eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJnYXRlaG91c2UifQ." + random_characters(43),),
        counterexamples=("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "eyJAAAA.eyJBBB", "eyJBB.eyJCC.eyJDDDD"),
    ),
    secret(
        "credential_in_url",
        "Password in a URL or connection string",
        shape(
            r"\b[a-zA-Z][a-zA-Z0-9+.\-]{1,15}://[^\s:/@\"'<>]{0,40}:(?P<value>[^\s@/\"'<>]{3,65})@[\w\[]",
            0.9,
            configured,
        ),
        shape(r"[;?&](?:password|pwd|sslpassword)=(?P<value>[^;&\s\"'<>]{3,64})", 0.9, configured, ignore_case=True),
        shape(r"\b[a-zA-Z][a-zA-Z0-9+.\-]{1,15}://(?P<value>[^\s:/@\"'<>]{1,40}:password)@\w", 0.9),
        examples=(
            "postgres://app:" + "hunter2!x" + "@db.internal/app",
            "Server=db;User Id=sa;Password=" + "hunter2!x" + ";",
        ),
        counterexamples=(
            "http://localhost:5000/@user",
            "postgres://app:${PASSWORD}@db/app",
            "https://example.com:8080/a@b",
        ),
    ),
    secret(
        "authorization_header",
        "Credentials in a header or command",
        shape(
            r"(?:csrf|xsrf|page|next|previous|sync|continuation|resume|pagination|cursor|last|cancellation)[\-_]?token"
            r"[\"']?\s{0,2}[:=]\s{0,2}[\"']?[\w=+/\-]{0,70}|(?:authorization|x-api-key|api-token|api-key|apikey|x-auth-token|private-token|x-[a-z]{2,12}-token|\btoken)"
            r"[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?:[a-z][a-z\-]{2,12}\s{1,3})?(?P<value>[\w=~@.+/\-]{8,70})",
            0.8,
            both(no_number, assigned_key(2.7)),
            ignore_case=True,
        ),
        shape(r"\b[Bb]asic\s(?P<value>[A-Za-z0-9+/]{8,100}={0,2})", 0.9, user_and_password),
        shape(r"\bBearer\s(?P<value>[\w=~.+/\-]{20,110})", 0.8, assigned_key(3.3)),
        shape(
            r"\bcurl(?:\s[^\n]{0,36})?\s(?:-u|--user)[ =]?[\"']?(?P<value>[^\s\"':]{1,30}:[^\s\"']{3,36})",
            0.8,
            token(2.0),
        ),
        examples=(
            'curl -H "Authorization: Bearer ' + random_characters(32) + '"',
            "curl -u admin:" + "hunter2!x" + " https://host",
        ),
        counterexamples=(
            "Authorization: Bearer <token>",
            "Authorization: Bearer $API_KEY",
            "Authorization: Bearer ...",
        ),
    ),
    secret(
        "api_key",
        "Key or token given to a name",
        shape(
            rf"(?:(?:{_PUBLIC_NAME}[_\-]?(?:key|token)|client[_\-]?(?:request[_\-]?)?token)[\w.\-]{{0,16}}|{_KEY}[\w.\-]{{0,12}}?{_DESCRIBING_NAME_END}){ASSIGNMENT}[^\s\"']{{0,40}}"
            rf"|{_KEY}[\w.\-]{{0,16}}{ASSIGNMENT}(?P<value>{_VALUE})",
            0.7,
            both(no_number, assigned_key(3.0)),
            ignore_case=True,
        ),
        *(
            shape(
                rf"{name}{ASSIGNMENT}(?P<value>[\w=.~+/|@%\-]{{61,400}})",
                0.8,
                assigned_key(3.0),
                opening=name,
                ignore_case=True,
            )
            for name in _LONG_VALUE_NAMES
        ),
        shape(
            r"\b(?:api|access|secret|auth)[ _\-]?(?:key|token|schlüssel)\s{1,2}"
            r"(?:(?:is|ist|est|es|è|é|to|lautet|is now)\s{1,2})?"
            r"[\"'`]?(?P<value>[\w\-]{24,60})\b",
            0.7,
            assigned_key(3.6),
            ignore_case=True,
        ),
        examples=(
            "mon API key est " + random_characters(32),
            'api_key = "' + random_characters(32) + '"',
            '"accessToken": "' + random_characters(40) + '"',
            "client_secret: " + random_characters(32),
            "refresh_token=" + random_characters(300),
        ),
        counterexamples=(
            'public_key = "' + random_characters(32) + '"',
            'token_url: "https://host/oauth/token/v2"',
            'api_key = "your_api_key_here"',
            "max_tokens: 4096",
            "token = get_token(user)",
            '"ClientToken": "9e386fe9-4da3-423c-8f24-51838da86f7c"',
            "s3_key: exports/billing/20221025222128-76825149.parquet",
            "token_build = 202307230114.4a1fecab",
        ),
    ),
    secret(
        "password",
        "Password given to a name",
        shape(
            rf"{_NAMES}(?:{_DECOY}|[\w\-]{{0,12}}{_QUOTED_ASSIGNMENT}(?P<value>[^\"'`\r\n]{{4,59}}))",
            0.8,
            password,
            ignore_case=True,
        ),
        shape(
            rf"{_KEY_NAMES}(?:{_DECOY}|[\w\-]{{0,12}}{_QUOTED_ASSIGNMENT}(?P<value>[^\"'`\r\n]{{6,56}}))",
            0.7,
            both(password, no_slug),
            ignore_case=True,
        ),
        shape(
            rf"{_NAMES}(?:{_DECOY}|[\w\-]{{0,16}}>\s{{0,2}}(?P<value>[^<>\s\"']{{4,60}})\s{{0,2}}</)",
            0.7,
            bare_password,
            ignore_case=True,
        ),
        shape(
            rf"\benv\s{{1,2}}\w{{0,16}}?{_NAMES}(?:{_DECOY}|\w{{0,12}}\s(?P<value>[^\s=\"'`]{{4,60}}))",
            0.7,
            bare_password,
            ignore_case=True,
        ),
        shape(
            rf"{_NAMES}(?:{_DECOY}|[\w\-]{{0,16}}[\"']?[ \t]{{0,3}}(?::=|:|=)[ \t]{{0,3}}"
            r"(?P<value>[^\s\"'`,;<>][^\s]{3,63}))",
            0.7,
            bare_password,
            ignore_case=True,
        ),
        # A value in a quoted field of CSV, in which quotes are doubled.
        shape(
            rf"{_NAMES}(?:{_DECOY}|[\w\-]{{0,12}}{_QUOTED_ASSIGNMENT}\"(?P<value>[^\"\r\n]{{4,56}})\"\")",
            0.8,
            password,
            ignore_case=True,
        ),
        # A value that is a word counts only if the name is `password`, with little text before or after it.
        shape(
            rf"(?:passwd|password|passphrase)(?:{_DECOY}|\w{{0,16}}\s?:?=\s?"
            r"[\"']{1,2}(?P<value>[a-z]{3,12}(?:[ \-][a-z]{2,12}){3,5})[\"'])",
            0.7,
            ignore_case=True,
        ),
        shape(
            rf"[\"'](?P<value>[^\"'\r\n]{{4,60}})[\"'](?:\s{{0,2}}[!=]={{1,2}}\s{{0,2}}|\.equals\()"
            rf"[\w.]{{0,20}}(?:{_NAMES}|{_KEY_NAMES})",
            0.7,
            password,
            ignore_case=True,
        ),
        shape(
            rf"(?:{_PASSWORDS}){_SENTENCE_ASSIGNMENT}[\"'`«„“]?(?P<value>[^\s\"'`»“”]{{4,60}})",
            0.7,
            bare_password,
            ignore_case=True,
        ),
        shape(
            r"\bpass[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?P<value>[^\s\"'`,;<>]{4,64})", 0.6, bare_password, ignore_case=True
        ),
        shape(
            r"\b(?:password|passcode|passwd|pwd)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<value>\d{4,20})\b",
            0.6,
            ignore_case=True,
        ),
        shape(r"\bpin(?: code | number | is |: | = |:|=)\s{0,2}(?:is )?(?P<value>\d{4,8})\b", 0.6, ignore_case=True),
        examples=(
            'passphrase = "correct horse battery staple"',
            'password = "' + "hunter2!x" + '"',
            "my password is " + "Tr0ub4dor",
            "db_pass: " + "s3cr3t!pass",
        ),
        counterexamples=(
            'password = "your_password_here"',
            "password = get_password()",
            'label = "Password:"',
            'password_error = "must not be too short"',
            '{"password": "must be at least eight characters"}',
            "password: ${DB_PASSWORD}",
            "password = xxxxxxxx",
        ),
    ),
    secret(
        "stored_credential",
        "Credential in a file of settings",
        shape(r"\bmachine\s[\w.\-]{1,36}\s{1,2}login\s\S{1,30}\s{1,2}password\s(?P<value>\S{3,30})", 0.95, configured),
        shape(
            r"(?m)(?:^|[\">,\t])[\w.*\-]{1,36}:(?:5432:[\w*\-]{1,20}|\*:\*):[\w*\-]{1,20}:(?P<value>[^\s:\"]{3,40})(?:[\"\s]|$)",
            0.8,
            configured,
        ),
        shape(r"(?:^|[^\w])_(?:auth|password)\s?=\s?(?P<value>[A-Za-z0-9+/]{8,88}={0,2})", 0.9, token(2.5)),
        shape(r"\"auth\"\s{0,3}:\s{0,3}\"(?P<value>[A-Za-z0-9+/]{8,100}={0,2})\"", 0.9, user_and_password),
        shape(r"<Pass(?:word)?(?:\s[^>]{0,30})?>(?P<value>[^<\s]{3,80})</Pass", 0.9, configured, ignore_case=True),
        shape(
            r"<add key=\"(?:ClearText)?Password\" value=\"(?P<value>[^\"]{4,64})\"", 0.9, configured, ignore_case=True
        ),
        shape(
            r"define\(\s{0,2}['\"][A-Z_]{0,20}(?:PASSWORD|_KEY|_SALT)['\"]\s{0,2},\s{0,6}['\"](?P<value>[^'\"]{3,70})['\"]",
            0.95,
            configured,
        ),
        shape(
            r"(?m)(?:^|\")(?:export\s)?[A-Z][A-Z0-9_]{0,30}(?:PASSWORD|PASSWD|PASS|PWD|SECRET|TOKEN|_KEY)=[\"']?(?P<value>[^\s\"'#$]{4,60})",
            0.7,
            configured,
        ),
        shape(
            r"\"(?:[\w]{0,20})(?:password|passphrase|passwd)\"\s{0,2}:\s{0,2}\"(?P<value>[^\"\r\n]{3,60})\"",
            0.7,
            both(configured, password),
            ignore_case=True,
        ),
        *(
            shape(rf"\${kind}\$[\w./=,$+\-]{{20,110}}", 0.9, token(3.0))
            for kind in ("1", "2[abxy]", "5", "6", "7", "y", "gy", "apr1", "argon2[id]{1,2}")
        ),
        shape(
            r"kind:\s{0,4}[\"']?[Ss]ecret[\"']?\s[\s\S]{0,400}?\n[ \t]{0,4}data:\s{0,4}\n[ \t]{0,8}[\w.\-]{1,40}:"
            r"\s{0,3}[|>]?\s{0,8}[\"']?(?P<value>[A-Za-z0-9+/]{10,900}={0,2})",
            0.9,
            token(2.5),
            opening="kind:",
        ),
        shape(
            r"data:\s{0,4}\n[ \t]{0,8}[\w.\-]{1,40}:\s{0,3}[|>]?\s{0,8}[\"']?(?P<value>[A-Za-z0-9+/]{10,900}={0,2})"
            r"[\"']?\s{1,4}kind:\s{0,4}[\"']?[Ss]ecret[\"']?\s",
            0.9,
            token(2.5),
            opening="data:",
        ),
        examples=(
            "machine host login me password " + "pass123",
            "db.internal:5432:app:app:" + "hunter2",
            "_auth = " + random_characters(20, BASE62) + "==",
            "define('DB_PASSWORD', '" + "hunter2" + "');",
            "export RDS_PASSWORD=" + "hunter2!x",
            "root:$6$" + random_characters(16) + "$" + random_characters(86) + ":17431:0",
        ),
        counterexamples=('<add key="ClearTextPassword" value="%TestSourcePassword%" />', "DB_PASSWORD=${DB_PASSWORD}"),
    ),
    secret(
        "high_entropy_string",
        "Quoted string of high entropy",
        shape(
            r"[\"'](?P<value>[A-Za-z0-9+/_\-]{40,100}={0,2})[\"']",
            0.6,
            unnamed_key,
            # The previous value may be between the name and the value: `"..." -> "..."`.
            not_preceded_by=rf"(?:{_PUBLIC_VALUES})[\w.\-]{{0,8}}{ASSIGNMENT}[^\s\"']{{0,16}}"
            r"(?:[\w+/=\-]{0,50}[\"']\s{0,2}->\s{0,2}[\"'])?",
        ),
        examples=('x = "' + random_characters(60) + '"',),
        counterexamples=(
            'x = "' + random_characters(64, HEX) + '"',
            '"' + "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop" + '"',
            '"integrity": "sha512-' + random_characters(86) + '=="',
            'public_key = "' + random_characters(43) + '="',
            '"nextPageToken": "' + random_characters(44) + '"',
            '"upload_id": "' + random_characters(48) + '"',
            'source_hash = "' + random_characters(43) + '=" -> "' + random_characters(43, seed="x") + '="',
        ),
    ),
)
