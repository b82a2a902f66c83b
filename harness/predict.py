"""`python -m harness predict model=... hardware=... N=... minutes=...`: what to expect, unrun."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from rich.console import Console

from harness.composition import compose
from harness.config import RunConfig
from harness.core.digests import plain
from harness.core.errors import ConfigError, HarnessError
from harness.experiments.prediction import predict
from harness.experiments.prediction_screen import screen

# What a prediction is about unless something else is named.
_DEFAULTS = {"scale": "full", "engine": "sim", "retention": "sink_window"}
_EPILOG = """keys are those of a run (python -m harness --help), and two short ones:
  N=128        workload.num_sessions=128
  minutes=5    workload.duration_s=300
Defaults: scale=full engine=sim retention=sink_window; the other variant is always unbounded."""


def main(arguments: Sequence[str]) -> int:
    """Print the prediction; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m harness predict",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    asked = parser.parse_args(arguments)
    try:
        prediction = predict(predicted_run(asked.overrides))
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    if asked.json:
        print(json.dumps(plain(prediction), indent=2))
    else:
        Console(highlight=False).print(screen(prediction))
    return 0


def predicted_run(overrides: Sequence[str]) -> RunConfig:
    """The bounded run that the command line is about. Raises: ConfigError."""
    spelt_out = [_spelt_out(override) for override in overrides]
    named = {override.partition("=")[0] for override in spelt_out}
    defaults = [f"{key}={value}" for key, value in _DEFAULTS.items() if key not in named]
    run = compose([*defaults, *spelt_out]).run_config
    if not run.retention.is_bounded:
        raise ConfigError(
            "retention=unbounded is the one of the two variants that is always predicted: leave it "
            "out, or name a bounded one"
        )
    return run


def _spelt_out(override: str) -> str:
    """An override with a short name as Hydra knows it. Raises: ConfigError."""
    key, equals, value = override.partition("=")
    if not equals:
        raise ConfigError(f"{override} is no key=value: write for example model=qwen3_omni")
    if key == "N":
        return f"workload.num_sessions={value}"
    if key != "minutes":
        return override
    try:
        return f"workload.duration_s={float(value) * 60:g}"
    except ValueError:
        raise ConfigError(f"minutes={value} must be a number, such as 5") from None
