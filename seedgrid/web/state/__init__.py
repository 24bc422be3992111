"""Where a browser is, whose pictures are whose, and what the page shows of them."""
