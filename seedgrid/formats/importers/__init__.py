"""Other tools' pictures as requests."""
