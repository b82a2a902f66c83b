"""Tables of measured steps: published ones, those of a run, and results of `vllm bench serve`.

A published table is a YAML file that says whose steps these are and on what evidence:

    name: qwen3_omni_decode
    model: qwen3_omni          # entry of conf/model/
    hardware: rtx_pro_6000     # entry of conf/hardware/
    scale: full
    evidence: paper
    source: where the numbers stand
    steps:
      - {seconds: 4.8e-3, num_requests: 1}

Columns of a step: `MeasuredStep`. A result of `vllm bench serve --save-result` (0.32) has the
extension .json; of --append-result there are several in a file. Read of each:

    max_concurrency                      requests in a step (--max-concurrency)
    median_itl_ms                        duration of a decode step
    completed, total_input_tokens, total_output_tokens
                                         mean context: the prompt and half of the answer
    median_ttft_ms                       duration of a step of prefill, where max_concurrency is 1:
                                         otherwise the first token waits for others
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from harness.core.errors import ConfigError
from harness.engines.step_time import MeasuredStep

BENCH_FIELDS = (
    "max_concurrency",
    "median_itl_ms",
    "median_ttft_ms",
    "completed",
    "total_input_tokens",
    "total_output_tokens",
)
# A pause of the engine core that is longer than this is idleness: it had nothing to run.
_OVERHEAD_S = 1e-3


@dataclass(frozen=True, kw_only=True)
class StepTable:
    """Measured steps of one model on one machine.

    name: of the table. model, hardware: entries in conf/. scale: tiny or full.
    evidence: class of the numbers. source: where they come from.
    """

    name: str
    model: str
    hardware: str
    scale: str
    evidence: str
    source: str
    steps: tuple[MeasuredStep, ...]


def read_published(path: Path) -> StepTable:
    """Read a published table. Raises: ConfigError if a field is unknown, missing or impossible."""
    try:
        content = yaml.safe_load(path.read_text())
        steps = tuple(MeasuredStep(**step) for step in content.pop("steps"))
        return StepTable(**content, steps=steps)
    except OSError as error:
        raise ConfigError(f"table of steps {path} cannot be read: {error.strerror}") from error
    except (TypeError, KeyError, AttributeError, yaml.YAMLError) as error:
        raise ConfigError(
            f"table of steps {path}: {error}: see harness/engines/step_tables.py for its fields"
        ) from error


def read_bench(path: Path, *, bytes_per_token: float) -> tuple[MeasuredStep, ...]:
    """Steps from results of `vllm bench serve`.

    bytes_per_token: KV cache of one token of the model that was served.
    Raises: ConfigError if it is no JSON, or a field is missing or impossible.
    """
    steps: list[MeasuredStep] = []
    for number, result in enumerate(_json_objects(path), start=1):
        where = f"result {number} of {path}"
        _check_bench(result, where)
        batch = int(result["max_concurrency"])
        prompt_tokens = result["total_input_tokens"] / result["completed"]
        answer_tokens = result["total_output_tokens"] / result["completed"]
        context_tokens = prompt_tokens + answer_tokens / 2
        steps.append(
            MeasuredStep(
                seconds=result["median_itl_ms"] / 1e3,
                num_requests=batch,
                context_bytes=batch * context_tokens * bytes_per_token,
            )
        )
        if batch == 1:
            steps.append(
                MeasuredStep(
                    seconds=result["median_ttft_ms"] / 1e3,
                    num_requests=1,
                    num_prefill_tokens=round(prompt_tokens),
                    context_bytes=prompt_tokens * bytes_per_token,
                )
            )
    return tuple(steps)


def _json_objects(path: Path) -> Iterator[dict[str, Any]]:
    """One result, a list of results, or one after the other as --append-result writes them."""
    try:
        text = path.read_text().strip()
        decoder, place = json.JSONDecoder(), 0
        while place < len(text):
            value, place = decoder.raw_decode(text, place)
            yield from value if isinstance(value, list) else [value]
            place += len(text[place:]) - len(text[place:].lstrip())
    except OSError as error:
        raise ConfigError(f"bench result {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(
            f"bench result {path} is not JSON ({error}): give what `vllm bench serve "
            "--save-result` wrote"
        ) from error


def _check_bench(result: Any, where: str) -> None:
    if not isinstance(result, dict):
        raise ConfigError(f"{where} is a {type(result).__name__}, not an object of fields")
    for name in BENCH_FIELDS:
        value = result.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            hint = ": run the benchmark with --max-concurrency" if "concurrency" in name else ""
            raise ConfigError(f"{where}: {name}={value!r} must be a number{hint}")
        if not value > 0:
            raise ConfigError(f"{where}: {name}={value} must be above 0: did no request complete?")


def logged_steps(log: pd.DataFrame, *, bytes_per_token: float) -> list[MeasuredStep]:
    """Steps of a run, as in telemetry's STEPS schema, with what they really took of its time.

    A step that was decided on while the one before ran begins when that one ends. What the engine
    core does between two steps (handing out, taking in) belongs to the first of them.
    """
    previous_s, following_s = log["end_s"].shift(1), log["begin_s"].shift(-1)
    begin_s = log["begin_s"].where(~(log["begin_s"] < previous_s), previous_s)
    overhead_s = following_s - log["end_s"]
    is_busy = (overhead_s > 0) & (overhead_s < _OVERHEAD_S)
    seconds = log["end_s"] - begin_s + overhead_s.where(is_busy, 0.0)
    columns = ("num_requests", "num_prefill_tokens", "num_frames", "num_context_tokens")
    rows = zip(seconds.tolist(), *(log[name].tolist() for name in columns), strict=True)
    return [
        MeasuredStep(
            seconds=took_s,
            num_requests=requests,
            num_prefill_tokens=prefill,
            num_frames=frames,
            context_bytes=context * bytes_per_token,
        )
        for took_s, requests, prefill, frames, context in rows
        if took_s > 0
    ]


def step_columns(steps: Sequence[MeasuredStep]) -> pd.DataFrame:
    """One row a step, one column a field of MeasuredStep."""
    names = MeasuredStep.__dataclass_fields__
    return pd.DataFrame({name: [getattr(step, name) for step in steps] for name in names})
