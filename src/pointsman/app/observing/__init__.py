"""What is told of what happens: levels, measures, logs, traces, and the history that people search and add up."""
