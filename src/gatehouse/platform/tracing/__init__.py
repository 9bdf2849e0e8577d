"""OpenTelemetry traces of model calls: a span of the request and one of each try at a provider, by the conventions for
generative AI, sent by OTLP over HTTP. Spans are made when a request is over, many at a time, in a thread."""
