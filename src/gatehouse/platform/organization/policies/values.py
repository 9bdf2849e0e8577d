"""The policies as values: they stand below, where each worker's replica reads them too."""

from gatehouse.platform.sign_in_policies import Concurrency, Enforcement, MfaMethod, MfaPolicy, SessionPolicy

__all__ = ["Concurrency", "Enforcement", "MfaMethod", "MfaPolicy", "SessionPolicy"]
