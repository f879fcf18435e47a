"""A planned run as the files that start it: the frameworks' own configurations, and the scripts of launchers and
schedulers. Rows in, texts out; nothing here opens a file."""
