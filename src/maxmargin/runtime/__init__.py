"""What every room may use: the clock, threads, progress bars, atomic files, HTML."""
