"""Tables in, tables out: from recorded runs to the numbers that figures and claims read."""
