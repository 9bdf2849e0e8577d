"""The DLP part of a policy: its compiled form and the compiler."""
