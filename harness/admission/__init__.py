"""Who is let in: controllers behind one protocol, and the gate that runs one beside a replay."""
