"""All artifacts: their registry, the command that makes them, what is kept to compare with."""
