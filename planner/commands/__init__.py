"""One module per command of the command line: `configure(parser)` and `run(args)`."""
