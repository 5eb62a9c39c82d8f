"""Groups in a Delta table: an offset table. docs/reference/members.md has its rules."""
