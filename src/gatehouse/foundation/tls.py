"""The listener's TLS."""

import ssl
from pathlib import Path

from gatehouse.foundation.settings import BadSettings


def tls_context(certificate: Path | None, key: Path | None, clients: Path | None = None) -> ssl.SSLContext | None:
    """TLS 1.2 or newer where a certificate is given. `clients` are authorities: clients are asked for a certificate
    then, and may do without; one of another authority ends the handshake. Raises `BadSettings`."""
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
        # Each of them is trusted for itself: nobody needs the one above it, and all that that one has issued.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
