"""Host names, network addresses and paths of machines."""

from functools import partial

from gatehouse.detection.catalog.shapes import entry, shape, word, words
from gatehouse.detection.validators import network, refutes

infrastructure = partial(entry, "infrastructure", "log_only")

_LABELS = r"[A-Za-z0-9][A-Za-z0-9\-]{0,30}(?:\.[A-Za-z0-9\-]{1,31}){0,2}"
#: Top-level domains. One alternation has at most sixteen, because RE2's filter recognizes no literals in longer
#: alternations. Domains that are also words (`in`, `it`, `is`, `no`, `at`, `so`, `me`, `to`) are left out. With them,
#: the end of a sentence without a blank before the next sentence would look like a domain.
_TOP_LEVEL_DOMAINS = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|co|eu|tv",
    "de|uk|fr|es|nl|be|ch|se|dk|fi|pl|cz|pt|gr|ie|ru",
    "us|ca|au|nz|jp|cn|kr|il|br|mx|ar|tr|za|sg|hk|tw",
)


def _domain(end: str) -> str:
    return rf"(?:^|[^\w@./\-])(?P<value>{_LABELS}\.(?:{end})(?:/[^\s<>\"']{{0,16}})?)(?:[^\w\-]|$)"


PATTERNS = (
    infrastructure(
        "ip_v4",
        "IPv4 address",
        shape(
            r"(?:^|[^\w.])(?P<value>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?:/\d{1,2})?)(?:\.?(?:[^\w.]|$))",
            0.7,
            refutes(network.ipv4),
        ),
        entity_type="ip_address",
        context=words("ip, address, host, server"),
        examples=("connect to 203.0.113.7:8080", "10.0.0.0/8"),
        counterexamples=("1.2.3.4.5", "999.1.1.1", "version 1.2.3"),
    ),
    infrastructure(
        "ip_v6",
        "IPv6 address",
        shape(
            r"(?:^|[^\w:.])(?P<value>(?:[0-9A-Fa-f]{0,4}:){2,7}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4})(?:%[\w]{1,12})?(?:/\d{1,3})?)(?:[^\w:]|$)",
            0.7,
            refutes(network.ipv6),
        ),
        entity_type="ip_address",
        examples=("2001:db8::1", "fe80::1%eth0", "::1"),
        counterexamples=("12:34:56", "::", "a::b::c"),
    ),
    infrastructure(
        "mac_address",
        "MAC address",
        shape(
            r"(?:^|[^\w:\-])(?P<value>[0-9A-Fa-f]{2}(?:[:\-][0-9A-Fa-f]{2}){5})(?:[^\w:\-]|$)",
            0.8,
            refutes(network.mac),
        ),
        word(r"[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}", 0.7, refutes(network.mac)),
        examples=("00:1A:2B:3C:4D:5E", "001A.2B3C.4D5E"),
        counterexamples=("00:1A:2B:3C:4D", "00:00:00:00:00:00"),
    ),
    infrastructure(
        "url",
        "URL or domain",
        shape(r"\b(?P<value>(?:https?|ftp|wss?|sftp)://[^\s<>\"'`{}|\\^\[\]]{2,112})", 0.8, ignore_case=True),
        shape(
            r"\b(?P<value>www\.[A-Za-z0-9][A-Za-z0-9\-]{0,30}(?:\.[A-Za-z0-9\-]{2,24}){1,3}(?:/[^\s<>\"']{0,8})?)", 0.6
        ),
        *(shape(_domain(end), 0.6) for end in _TOP_LEVEL_DOMAINS),
        examples=("see https://example.org/a?b=1", "my domains: example.co.uk and www.example.museum"),
        counterexamples=("end.Next sentence", "file.txt", "jane@mail.com"),
    ),
    infrastructure(
        "internal_host",
        "Internal host or URL",
        shape(
            r"\b(?P<value>[A-Za-z0-9][A-Za-z0-9\-]{0,30}(?:\.[A-Za-z0-9\-]{1,31}){0,2}\.(?:internal|intranet|corp|local|lan|localdomain|svc\.cluster\.local|private))(?:[^\w]|$)",
            0.7,
            ignore_case=True,
        ),
        # The plain path, and the path in up to three levels of JSON strings. Each level doubles the backslashes.
        *(
            shape(rf"(?P<value>\\{{{2 * count}}}[\w.\-]{{2,30}}\\{{{count}}}[\w$.\-]{{1,30}})", 0.7)
            for count in (1, 2, 4, 8)
        ),
        examples=("http://wiki.corp/page", "db01.prod.internal", r"\\fileserver\share$", r"\\\\fileserver\\share$"),
        counterexamples=("internal affairs", "localhost", "self.private_ip", r"C:\\Users\\me", r"C:\\\\Users\\\\me"),
    ),
    infrastructure(
        "cloud_resource",
        "Cloud resource name",
        shape(
            r"\b(?P<value>arn:aws[a-z\-]{0,10}:[a-z0-9\-]{1,20}:[a-z0-9\-]{0,16}:\d{0,12}:[\w+=,.@:/\-*]{1,56})", 0.8
        ),
        shape(r"(?P<value>/subscriptions/[0-9a-f\-]{36}(?:/resourceGroups/[\w.\-]{1,60})?)", 0.8, ignore_case=True),
        shape(
            r"\b(?P<value>projects/[a-z][a-z0-9\-]{4,28}[a-z0-9]/(?:locations|secrets|zones|topics|subscriptions)/[\w.\-/]{1,50})",
            0.8,
        ),
        shape(r"\b(?P<value>(?:s3|gs|abfs|abfss)://[\w.\-]{3,63})", 0.7),
        examples=(
            "arn:aws:s3:::my-bucket/key",
            "/subscriptions/11111111-2222-3333-4444-555555555555",
            "s3://my-bucket",
        ),
        counterexamples=("arn of the matter", "projects/readme"),
    ),
)
