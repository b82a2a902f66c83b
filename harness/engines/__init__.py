"""The engines behind one protocol: null, live vLLM, and vLLM's scheduler in virtual time."""
