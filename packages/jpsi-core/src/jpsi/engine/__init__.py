"""Floor 3: doing. The only floor with processes, threads, files and clocks."""
