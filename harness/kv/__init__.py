"""KV-cache arithmetic without an engine: geometry, retention policies, forecast."""
