"""What a rule says of a claim, and how verdicts combine."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class ClaimVerdict(enum.Enum):
    """Whether a claim of the paper holds on one evidence class."""

    REPRODUCED = "REPRODUCED"
    PARTLY = "PARTLY"
    CONTRADICTED = "CONTRADICTED"
    NOT_MEASURED = "NOT MEASURED"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A rule's answer.

    ours: our number or finding, in the words of the paper's.
    interval: (low, high) of our number, where it has one.
    evidence: classes that it rests on, where those are not all that the tables hold.
    """

    verdict: ClaimVerdict
    ours: str
    why: str
    interval: tuple[float, float] | None = None
    evidence: str | None = None


def from_parts(
    parts: Mapping[str, bool], ours: str, interval: tuple[float, float] | None = None
) -> Judgement:
    """REPRODUCED if every part of a claim holds, CONTRADICTED if none does, else PARTLY.

    parts: what the claim says, one sentence each -> whether it held.
    """
    failed = [sentence for sentence, held in parts.items() if not held]
    if not failed:
        verdict, why = ClaimVerdict.REPRODUCED, "; ".join(parts)
    else:
        verdict = ClaimVerdict.CONTRADICTED if len(failed) == len(parts) else ClaimVerdict.PARTLY
        why = "does not hold: " + "; ".join(failed)
    return Judgement(verdict=verdict, ours=ours, why=why, interval=interval)


def not_measured(why: str) -> Judgement:
    """No number: the experiment did not yield one."""
    return Judgement(verdict=ClaimVerdict.NOT_MEASURED, ours="-", why=why)
