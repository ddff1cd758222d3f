"""The `costate` command: a table of subcommands, one thin file each.

A command file holds a frozen dataclass of options, from which tyro makes the command line, and `run(options)`.
"""
