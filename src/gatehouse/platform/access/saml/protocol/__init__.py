"""The SAML protocol: messages, keys, verification of assertions."""
