"""From a join and an account to the rows of a result: cases, ops, verdict."""
