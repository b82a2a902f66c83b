"""Why a run went quiet: verdicts, and the self-checks that make one valid."""
