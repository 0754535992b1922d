"""The release ledger: an append-only, hash-chained account of what was decided and done."""
