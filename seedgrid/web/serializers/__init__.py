"""The JSON that the page's scripts get, and the fields of the page's form."""
