"""One file per experiment, and the runner that turns a configuration into a finished run."""
