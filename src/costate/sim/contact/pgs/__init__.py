"""Hard contact by projected Gauss-Seidel, pair by pair."""
