"""Answers of the pages for programs: sentences, rows and SQL, as `sweepscope mcp` and the address `/api` give them."""
