"""Reality: runs a plan with torch.distributed and measures it."""
