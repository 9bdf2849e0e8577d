"""Passwords and keys that are recognized by a name, in the notations of programming languages and file formats."""

from collections.abc import Iterator
from random import Random
from typing import Final

from bench.dlp.formats.generation import Format, ValueGenerator, from_template, one_of

#: Languages, file formats and other notations, and the ways in which each of them writes a value next to NAME.
_DIALECTS: Final = {
    "INI": ("NAME={}\n", "NAME = {}", 'NAME = "{}"', "[db]\nNAME={}\nhost=h\n"),
    "properties": ("app.NAME={}", "NAME: {}", "NAME : {}"),
    "YAML": ("NAME: {}\n", "  NAME: '{}'", 'NAME: "{}"', "- NAME: {}\n  b: c\n"),
    "TOML": ('NAME = "{}"', "NAME = '{}'"),
    "JSON": ('{"NAME": "{}"}', '"NAME" : "{}",', '{"NAME":"{}"}', r"{\"NAME\": \"{}\"}"),
    "shell": ("export NAME={}", "NAME='{}'", 'NAME="{}" ./run', "set NAME={}", "readonly NAME='{}'"),
    "Python": (
        "NAME = '{}'",
        'self.NAME = "{}"',
        'f(NAME="{}")',
        'd["NAME"] = "{}"',
        "{'NAME': '{}'}",
        'if NAME == "{}":',
    ),
    "JavaScript": ("const NAME = '{}';", 'NAME: "{}",', "x.NAME = `{}`", 'if (NAME === "{}")', 'NAME !== "{}"'),
    "TypeScript": ('NAME: string = "{}";', "private NAME: string = '{}';"),
    "Go": ('NAME := "{}"', "NAME := `{}`", 'var NAME = "{}"', 'const NAME string = "{}"', 'NAME: "{}",'),
    "Java": ('String NAME = "{}";', 'setProperty("NAME", "{}");', '"{}".equals(NAME)'),
    "C": ('char NAME[] = "{}";', 'NAME[32] = "{}";', '#define NAME "{}"', 'if (NAME == "{}")'),
    "C++": ('std::string NAME("{}");', 'NAME.assign("{}");', 'auto NAME{"{}"};'),
    "C#": ('NAME = "{}";', 'NAME = @"{}";', '["NAME"] = "{}"'),
    "Objective-C": ('NSString *NAME = @"{}";', 'NAME[] = @"{}"'),
    "Swift": ('let NAME = "{}"', 'let NAME: String = "{}"'),
    "Kotlin": ('val NAME: String = "{}"', 'val NAME = "{}"'),
    "Rust": ('let NAME = "{}";', 'const NAME: &str = "{}";'),
    "PHP": ("$NAME = '{}';", "'NAME' => '{}',", '"NAME" => "{}"', "define('NAME', '{}');"),
    "Perl": ("$NAME = '{}';", "NAME => '{}',", 'my $NAME="{}";'),
    "Ruby": ("NAME = '{}'", ":NAME => '{}'", "NAME: '{}'", "@NAME = '{}'"),
    "Terraform": ('NAME = "{}"', 'variable "NAME" {\n  default = "{}"\n}'),
    "XML": ("<NAME>{}</NAME>", '<property name="NAME" value="{}"/>', '<add key="NAME" value="{}" />'),
    "Dockerfile": ("ENV NAME={}", "ENV NAME {}", "ARG NAME={}"),
    "command": ("--NAME={}", "--NAME '{}'", "-e NAME={}"),
    "SQL": ("SET NAME = '{}';",),
    "comparison": ("'{}' == NAME", '"{}" != NAME', "'{}' === this.NAME"),
    "prose": ("NAME is {}", "my NAME: {}", "the NAME is '{}'"),
}
_NAMES: Final = (
    *("password", "PASSWORD", "passwd", "pwd", "secret", "client_secret", "clientSecret", "db_pass", "dbPassword"),
    *(
        "database_password",
        "key_pass",
        "api_key",
        "apikey",
        "apiKey",
        "auth_key",
        "service_key",
        "account_key",
        "db_key",
    ),
    *("database_key", "priv_key", "private_key", "client_key", "ADMIN_PASSWORD", "smtp_pwd", "keypass", "dbpasswd"),
    *("contraseña", "contrasena", "root_password", "secretKey", "ldap_password", "keystore_pass"),
)


def _signs(rnd: Random) -> str:
    """Return a password like those that password managers generate."""
    start = from_template("{n:4}")(rnd)
    return (
        start
        + "".join(
            rnd.choices("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789!#%&*+-?@^_~.", k=rnd.randint(8, 16))
        )
        + "7x"
    )


_word = one_of(*(lambda _, word=word: word for word in ("winter", "dragon", "Falcon", "summit", "Tokyo", "Mercury")))


def _by_hand(rnd: Random) -> str:
    return (
        _word(rnd)
        + rnd.choice(("", "_", "-", "!", "@"))
        + from_template("{d:2-4}")(rnd)
        + rnd.choice(("", "!", "$", "#"))
    )


_VALUES: Final[dict[str, ValueGenerator]] = {
    "random": from_template("{n:20}"),
    "random hex": from_template("{h:32}"),
    "with signs": _signs,
    "by hand": _by_hand,
    "key": from_template("{b:43}="),
}


def formats() -> Iterator[Format]:
    for dialect, templates in _DIALECTS.items():
        for kind, value in _VALUES.items():
            contexts = tuple(part.replace("NAME", name) for part in templates for name in _NAMES)
            yield Format("keywords", f"{dialect}, {kind}", value, frozenset({"secret"}), contexts)
