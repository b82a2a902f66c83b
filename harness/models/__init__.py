"""What is known about each model, its audio front end, and tiny checkpoints of its architecture."""
