"""`python -m harness`: one experiment; or `reproduce` every artifact, `compare` with what is kept,
`audit` the published logs, `predict` what to expect.
"""

import difflib
import os
import sys

_NOBODY_READS = 141
_MISUSED = 2
_COMMANDS = ("reproduce", "compare", "audit", "predict")


def main() -> int:
    """Do what the command line asks for; returns the exit code."""
    try:
        try:
            return _dispatch()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # As of `... | head`; left to the interpreter's end, it would be a traceback there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _NOBODY_READS


def _dispatch() -> int:
    """Call the subcommand, or Hydra; returns the exit code."""
    if sys.argv[1:2] == ["reproduce"]:
        from harness.reproduce import command as reproduction

        return reproduction.main(sys.argv[2:])
    if sys.argv[1:2] == ["compare"]:
        from harness.reproduce import compare

        return compare.main(sys.argv[2:])
    if sys.argv[1:2] == ["audit"]:
        from harness.audit import command

        return command.main(sys.argv[2:])
    if sys.argv[1:2] == ["predict"]:
        from harness import predict

        return predict.main(sys.argv[2:])
    near = difflib.get_close_matches(sys.argv[1] if len(sys.argv) > 1 else "", _COMMANDS, n=1)
    if near:
        print(f"error: {sys.argv[1]} is no command: did you mean {near[0]}?", file=sys.stderr)
        return _MISUSED
    from harness import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
