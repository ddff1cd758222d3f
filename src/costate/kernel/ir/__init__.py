"""The compiler's intermediate representation: programs, passes over them, and their derivatives."""
