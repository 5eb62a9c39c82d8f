"""Groups in a Delta table: an offset table. docs/guide/members.md has its rules."""
