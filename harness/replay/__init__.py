"""Open-loop pacing: frames are released on time, whatever the engine does."""
