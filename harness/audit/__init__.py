"""The published logs of the paper's authors, judged by their rule and by ours."""
