"""The validate stage: judges batches, obeys the contract's ``on_violation``, tells people."""
