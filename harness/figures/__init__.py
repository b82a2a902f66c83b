"""One file per figure; each reads tables and writes a PDF and a PNG."""
