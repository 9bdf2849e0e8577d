"""The listener's TLS."""

import ssl
from pathlib import Path

from gatehouse.foundation.settings import BadSettings


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """TLS 1.2 or newer where a certificate is given. Raises `BadSettings`."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise BadSettings("TLS_CERT_PATH, TLS_KEY_PATH: one needs the other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise BadSettings(f"TLS_CERT_PATH, TLS_KEY_PATH: cannot be loaded ({error})") from None
    return context
