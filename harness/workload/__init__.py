"""What is offered to the engine: corpora, streams and the schedule drawn from the seed."""
