"""For people who look at the queue all day: saved views of lists, searches through all
jobs, a screen in the terminal, and a measurement."""
