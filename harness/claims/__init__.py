"""Verdicts on the claims of the paper, computed from tables."""
