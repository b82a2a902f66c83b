"""`python -m harness`: one experiment; or `reproduce` every artifact, `compare` with what is kept,
`audit` the published logs, `predict` what to expect.
"""

import sys


def main() -> int:
    """Dispatch to the subcommand, or to Hydra; returns the exit code."""
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
    from harness import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
