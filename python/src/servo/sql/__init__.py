"""Assets that a query makes: the text with its references, and how DuckDB runs it."""
