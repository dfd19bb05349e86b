"""The command `plan`: one module of `planner.commands` for each word after it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from hwmodels.errors import Fault, SpecError, nearest_name

COMMANDS = {
    "search": "the best layouts of a job, as a table and a plan file",
    "estimate": "one layout, priced, with its breakdown",
    "explain": "where the time and memory of a plan go, and what else was possible",
    "cost": "rent or build: what a job or a plan costs",
    "emit": "launch files of a plan",
    "run": "train a plan with torch.distributed, measured beside predicted",
    "validate": "predictions against measurements",
    "profile": "measure the collectives of this machine, or read a log of them",
    "topology": "read real machines into a cluster file; draw a cluster",
    "catalog": "what is known of models, devices, nodes, fabrics and prices, and from where",
}
DONE, BUG, BAD_INPUT, INFEASIBLE = 0, 1, 2, 3
INTERRUPTED, PIPE_CLOSED = 130, 141


class Parser(argparse.ArgumentParser):
    """An argument parser that names the nearest option, in one message, with exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print `message`, the nearest legal option and where help is, and exit with 2."""
        options = [text for action in self._actions for text in action.option_strings if text.startswith("--")]
        unknown = message.partition("unrecognized arguments: ")[2].split(" ")[0].partition("=")[0]
        near = nearest_name(unknown, options) if unknown.startswith("-") else None
        hint = f"; nearest legal option: {near}" if near else ""
        self.exit(BAD_INPUT, f"{self.prog}: {message}{hint}\nSee '{self.prog} --help'.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 when done, 2 for bad input, 3 where nothing is feasible, 1 for a fault of ours."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return DONE if words else BAD_INPUT
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"meshwright {version('meshwright')}")
        return DONE
    if words[0] not in COMMANDS:
        near = nearest_name(words[0], COMMANDS)
        hint = f" Did you mean '{near}'?" if near else ""
        print(f"plan: there is no command '{words[0]}'.{hint}\n\n{_help()}", file=sys.stderr)
        return BAD_INPUT
    return _run(words[0], words[1:])


def _help() -> str:
    lines = [f"  {name:<10}{what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "usage: plan COMMAND [options]",
            "",
            "Plans the training of large models: layout, time, memory, cost, launch files, runs.",
            "",
            *lines,
            "",
            "'plan COMMAND --help' shows the options of a command; 'plan --version' the version.",
        ]
    )


def _run(name: str, words: list[str]) -> int:
    command = import_module(f"planner.commands.{name}")
    parser = Parser(prog=f"plan {name}", description=(command.__doc__ or "").partition(": ")[2], allow_abbrev=False)
    command.configure(parser)
    try:
        options = parser.parse_args(words)
        code: int = command.run(options)
        sys.stdout.flush()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    except SpecError as error:
        print(f"plan {name}: {error}", file=sys.stderr)
        if "--json" in words:
            print(json.dumps({"faults": [_fault(error, fault) for fault in error.faults]}))
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"plan {name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception:  # noqa: BLE001 (the last door before the user)
        traceback.print_exc()
        print(f"plan {name}: this is a fault of meshwright, not of your input; please report the lines above",
              file=sys.stderr)  # fmt: skip
        return BUG
    return code


def _fault(error: SpecError, fault: Fault) -> dict[str, str | None]:
    names = ("path", "found", "legal", "nearest")
    return {"source": error.source, **{name: getattr(fault, name) for name in names}}
