"""What the page's scripts get as JSON, and its fields."""
