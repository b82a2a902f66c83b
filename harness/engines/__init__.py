"""The engines behind one protocol: null, live vLLM; the simulated one comes here too."""
