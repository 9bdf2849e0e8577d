"""Certificate authorities, tokens that carry certificates, and TLS contexts."""
