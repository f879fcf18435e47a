"""Parts of pages that query, compute and draw; shared by pages or too long for one."""
