"""What happened, written down: recorder, pool sampler, table schemas, provenance."""
