"""`python -m harness`: one experiment; `reproduce`: every artifact; `audit`: the published logs."""

import sys


def main() -> int:
    """Dispatch to the subcommand, or to Hydra; returns the exit code."""
    if sys.argv[1:2] == ["reproduce"]:
        from harness import reproduce

        return reproduce.main(sys.argv[2:])
    if sys.argv[1:2] == ["audit"]:
        from harness.audit import command

        return command.main(sys.argv[2:])
    from harness import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
