"""What measured runs teach beyond physics: penalties, placement patterns, track records."""
