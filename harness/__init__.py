"""Benchmark and reproducibility harness for serving real-time interaction models on vLLM."""

__version__ = "0.1.0"
