"""Every error a user can cause or meet, in one tree.

HarnessError
├── ConfigError       a value in conf/ or on the command line is impossible
├── CorpusError       audio is missing, corrupt or not what its manifest says
├── PoolExhausted     the KV pool cannot hold what the configuration asks for
├── EngineError       the engine did not start, died or stopped answering
├── TelemetryError    a recording is missing, torn or of another schema
└── ProvenanceError   where a number came from cannot be established

A message names the thing, its value, the bound it broke and what to change. The command line prints
it as one line and exits with the class's `exit_code`; anything else that is raised is a bug of
ours.
"""


class HarnessError(Exception):
    """Base of all errors that are reported to the user as one line."""

    exit_code: int = 1


class ConfigError(HarnessError):
    """A configured value is unknown, impossible or in conflict with another."""

    exit_code = 2


class CorpusError(HarnessError):
    """A corpus, archive or clip is missing, corrupt or not what its manifest says."""

    exit_code = 3


class PoolExhausted(HarnessError):
    """The KV pool cannot hold what the configuration asks for."""

    exit_code = 4


class EngineError(HarnessError):
    """The engine did not start, died or stopped answering."""

    exit_code = 5


class TelemetryError(HarnessError):
    """A recording is missing, torn or of another schema."""

    exit_code = 6


class ProvenanceError(HarnessError):
    """The origin of a result cannot be established or written down."""

    exit_code = 7


class HarnessWarning(UserWarning):
    """Something is unusual and usable; the run goes on."""
