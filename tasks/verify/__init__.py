"""Whether what is served is what the source says, found out without the code that served it."""
