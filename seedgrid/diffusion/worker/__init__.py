"""The one child process: a batch painted under other instruction limits."""
