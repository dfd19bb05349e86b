"""Time: one training step."""
