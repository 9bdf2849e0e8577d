"""OpenTelemetry traces of model calls (docs/tracing.md).

A trace has one span for the request and one for each attempt at a provider, with the semantic conventions for
generative AI. Spans are exported with OTLP over HTTP. They are created after the end of a request, and encoded in
batches in a thread."""
