"""Choice: which layout, what it costs, the plan file, launch files, and the command line."""
