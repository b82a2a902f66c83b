"""The list of claims, conf/claims.yaml: what is claimed, where; not how it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from harness.core.errors import ConfigError

_SOURCES = ("paper", "ours")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim.

    source: paper | ours. where: figure, table or section. says: the claim and its value.
    """

    id: str
    source: str
    where: str
    says: str


def load_claims(path: Path) -> list[Claim]:
    """The claims in order. Raises: ConfigError if a row has an unknown or missing field."""
    claims: list[Claim] = []
    for row in yaml.safe_load(path.read_text()):
        try:
            claim = Claim(**row)
        except TypeError as error:
            raise ConfigError(f"{path.name}, row {row.get('id', '?')}: {error}") from error
        if claim.source not in _SOURCES:
            raise ConfigError(
                f"{path.name}, row {claim.id}: source={claim.source} must be "
                f"{' or '.join(_SOURCES)}"
            )
        if claim.id in {known.id for known in claims}:
            raise ConfigError(f"{path.name}: id={claim.id} stands twice: give each claim its own")
        claims.append(claim)
    return claims


def claim_of(claims: Sequence[Claim], claim_id: str) -> Claim:
    """The claim of that id. Raises: ConfigError if the list does not hold it."""
    for claim in claims:
        if claim.id == claim_id:
            return claim
    known = ", ".join(claim.id for claim in claims)
    raise ConfigError(f"artifacts.yaml: claim id={claim_id} is not in claims.yaml: choose {known}")
