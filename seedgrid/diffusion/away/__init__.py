"""Computing elsewhere: another process, a lent GPU, another machine. Only plain things cross."""
