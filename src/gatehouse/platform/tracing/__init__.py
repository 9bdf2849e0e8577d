"""OpenTelemetry traces of model calls (docs/tracing.md): one span for the request and one for each attempt at a
provider, with the semantic conventions for generative AI, exported by OTLP over HTTP. Spans are made when a request is
over, and encoded in batches in a thread."""
