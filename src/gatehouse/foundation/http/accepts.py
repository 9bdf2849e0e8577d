"""What a client would rather read (RFC 9110, 12.5.1)."""


def prefers_html(accept: str) -> bool:
    """Whether HTML is wanted more than JSON. Browsers name it; programs name JSON, everything (`*/*`), or nothing."""
    weights = [_weight(part) for part in accept.lower().split(",")]
    return _wanted(weights, "text/html") > _wanted(weights, "application/json")


def _wanted(weights: list[tuple[str, float]], media_type: str) -> float:
    """By the most specific range that fits."""
    for name in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        found = [weight for named, weight in weights if named == name]
        if found:
            return max(found)
    return 0.0


def _weight(part: str) -> tuple[str, float]:
    name, *parameters = (each.strip() for each in part.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, float(parameter[2:])
            except ValueError:
                return name, 0.0
    return name, 1.0
