"""The account: where the time of the steps went, exact in integer ns (`docs/account.md`)."""
