"""The TLS context of a listener."""

import ssl
from pathlib import Path

from gatehouse.foundation.settings import BadSettings


def tls_context(certificate: Path | None, key: Path | None, clients: Path | None = None) -> ssl.SSLContext | None:
    """Returns a context for TLS 1.2 or newer, or None without a certificate. `clients` is a file with certificate
    authorities: a client may then send a certificate, and the handshake fails if none of these authorities issued it.
    Raises `BadSettings`."""
    if certificate is None and key is None:
        if clients is not None:
            raise BadSettings("TLS_CLIENT_CA_PATH: needs TLS_CERT_PATH and TLS_KEY_PATH")
        return None
    if certificate is None or key is None:
        raise BadSettings("TLS_CERT_PATH, TLS_KEY_PATH: one needs the other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise BadSettings(f"TLS_CERT_PATH, TLS_KEY_PATH: cannot be loaded ({error})") from None
    if clients is not None:
        try:
            context.load_verify_locations(clients)
        except (OSError, ssl.SSLError) as error:
            raise BadSettings(f"TLS_CLIENT_CA_PATH: cannot be loaded ({error})") from None
        context.verify_mode = ssl.CERT_OPTIONAL
        # An intermediate authority is trusted without its root. The root may have issued other authorities, which are
        # not trusted.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
