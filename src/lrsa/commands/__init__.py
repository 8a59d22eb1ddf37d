"""What each command does: its parameters are the options, its docstring the help; imports are within."""
