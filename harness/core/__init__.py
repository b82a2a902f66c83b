"""Clock, frames, seeding, digests and errors: what every other package may lean on."""
